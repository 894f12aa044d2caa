//! A measurement in parts, each of which begins at another offset in the period of the tick.
//!
//! What a kernel executes at a tick depends slightly on when the tick comes: on the interrupted
//! instruction, and on the kernel's state. One long run has a single relation between the measuring
//! loop and the tick; several parts have several.

use serde::{Deserialize, Serialize};
use units::Nanos;

/// When the parts of a measurement begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Phases {
    /// The number of parts, from 1.
    pub count: u32,
    /// The first part begins when `CLOCK_MONOTONIC` is a multiple of this,
    pub every_ns: Nanos,
    /// and each further part this much later after a multiple.
    pub step_ns: Nanos,
}

impl Phases {
    /// Offsets that lie well apart in the periods of ticks of 100 to 1000 Hz, and that begin at other
    /// passes of a measuring loop.
    pub const STEP: Nanos = Nanos::from_nanos(1_381_967);

    /// The start of a part, which is counted from 0, at or after `now`.
    pub fn start(&self, part: u32, now: Nanos) -> Nanos {
        let every = self.every_ns.get().max(1);
        let offset = self.step_ns.get().saturating_mul(u64::from(part)) % every;
        let late = now.get().saturating_sub(offset);
        Nanos::from_nanos(
            late.div_ceil(every).saturating_mul(every).saturating_add(offset),
        )
    }

    /// The number of parts of a measurement that may be divided.
    pub fn parts(phases: Option<&Self>) -> u32 {
        phases.map_or(1, |phases| phases.count.max(1))
    }

    /// The share of each part in a whole.
    pub fn share(&self, whole: Nanos) -> Nanos {
        Nanos::from_nanos(whole.get() / u64::from(self.count.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that each part begins at its own offset, never in the past.
    #[test]
    fn starts() {
        let nanos = Nanos::from_nanos;
        let phases = Phases { count: 8, every_ns: nanos(100), step_ns: nanos(38) };
        let start = |part, now| phases.start(part, nanos(now)).get();
        assert_eq!([start(0, 0), start(0, 1), start(0, 100)], [0, 100, 100]);
        assert_eq!([start(1, 0), start(1, 38), start(1, 39)], [38, 38, 138]);
        assert_eq!([start(3, 0), start(3, 5_000)], [14, 5_014]);
        assert_eq!(phases.share(nanos(1_000)), nanos(125));
    }
}
