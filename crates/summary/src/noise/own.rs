//! The measurement's own cost: the time of the threads of the process that measured, which are among
//! the culprits. They are marked by their process's ID, never by their name.
//!
//! Cannot see what its eBPF programs add to each event: that is part of the event. Recordings of
//! older versions have no marks.

use serde::Serialize;
use units::{Nanos, Ppm};

use crate::noise::culprits::CulpritSummary;

/// The time that the measuring process took from the measured CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct OwnCost {
    /// The number of its threads.
    pub threads: usize,
    /// The number of gaps with a share of them, added up for its threads.
    pub gaps: u64,
    /// Their time, which is part of the noise.
    pub ns: Nanos,
    /// That as a share of the CPUs' time; null if no time passed.
    pub ppm: Option<Ppm>,
    /// That as a share of the noise; null without noise.
    pub noise_ppm: Option<Ppm>,
    /// The longest share.
    pub max_ns: Nanos,
}

impl OwnCost {
    /// Adds up the own threads among these culprits.
    pub(crate) fn of(culprits: &[CulpritSummary], elapsed: Nanos, noise: Nanos) -> Self {
        let own = || culprits.iter().filter(|culprit| culprit.is_own());
        let ns = own().map(|culprit| culprit.ns).sum();
        Self {
            threads: own().count(),
            gaps: own().map(|culprit| culprit.gaps).sum(),
            ns,
            ppm: Ppm::of(ns, elapsed),
            noise_ppm: Ppm::of(ns, noise),
            max_ns: own().map(|culprit| culprit.max_ns).max().unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use recording::{CulpritKind, Thread};

    use super::*;
    use crate::example;

    /// Check that only marked threads count, whatever their name.
    #[test]
    fn marked_threads() {
        let share = |tid, own, ns| {
            let thread = Thread { tid, pid: 9, prio: 0, owner: None, unit: None, own };
            example::share(0, CulpritKind::Thread, "noisefloor", Some(thread), ns)
        };
        let shares = [share(1, true, 30), share(2, true, 10), share(3, false, 60)];
        let nanos = Nanos::from_nanos;
        let blamed = example::blamed(&shares);
        let culprits = CulpritSummary::of(Some(&blamed), None, nanos(100));
        let own = OwnCost::of(&culprits, nanos(1_000), nanos(100));
        let expected = serde_json::json!({"threads": 2, "gaps": 2, "ns": 40, "ppm": 40_000.0,
            "noise_ppm": 400_000.0, "max_ns": 30});
        assert_eq!(serde_json::to_value(own).unwrap(), expected);
        assert_eq!(OwnCost::of(&culprits[..1], nanos(0), nanos(0)).ns, nanos(0));
    }
}
