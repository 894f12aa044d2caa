//! The cost of an ordinary pass of the loop on this CPU, and the threshold above which a pass is a
//! gap.
//!
//! The loop itself runs for many short pieces. The mean pass of a piece is accurate to a tick even
//! if the counter ticks once in several passes (as arm64's may), and the median over the pieces
//! ignores those that were interrupted. A minimum would be wrong: if the counter steps by 26 ticks
//! with a rare step of 1, it is 1.

use std::sync::atomic::AtomicBool;

use units::TscDelta;

use crate::control::moments::OnMoment;
use crate::spin::{Ring, spin};
use crate::time::counter;

/// The median is taken over that many pieces.
const PIECES: usize = 33;
/// The approximate length of a piece, in passes; 33 pieces take a few milliseconds at most.
const PASSES: u64 = 2_000;
/// A pass that takes this many ordinary ones (or steps of the counter) is a gap. Even an interrupt
/// with an empty handler costs more; the stalls of 5 to 40 passes that a busy sibling thread of the
/// core causes (thousands per second) do not.
const ORDINARY: u64 = 40;

/// The ordinary cost of the loop on one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoopCost {
    /// The median pass.
    pub pass: TscDelta,
    /// The counter's usual step.
    pub step: TscDelta,
}

impl LoopCost {
    /// Measures the loop on the CPU of the calling thread.
    pub fn measure() -> Self {
        Self { pass: median_pass(), step: usual_step() }
    }

    /// The longest pass that is not a gap.
    #[must_use]
    pub fn threshold(self) -> TscDelta {
        TscDelta::from_ticks(self.pass.max(self.step).ticks().saturating_mul(ORDINARY))
    }
}

fn median_pass() -> TscDelta {
    let never = AtomicBool::new(false);
    let longest = TscDelta::from_ticks(u64::MAX >> 1);
    let mut ring = Ring::new(0);
    // A first piece finds the length of the others, in ticks.
    let mut length = TscDelta::from_ticks(1);
    let mut means = Vec::with_capacity(PIECES);
    for _ in 0..PIECES {
        let spun = spin(length, longest, OnMoment::stopping(&never), &mut ring);
        let mean = (spun.elapsed.ticks() + spun.passes / 2) / spun.passes.max(1);
        means.push(mean.max(1));
        length = TscDelta::from_ticks(mean.max(1).saturating_mul(PASSES));
    }
    // The first piece was too short to be meaningful.
    means.remove(0);
    TscDelta::from_ticks(median(means))
}

fn usual_step() -> TscDelta {
    let mut steps = Vec::with_capacity(PIECES * 8);
    let mut last = counter::now();
    while steps.len() < steps.capacity() {
        let now = counter::now();
        if now != last {
            steps.push(now.since(last).ticks());
        }
        last = now;
    }
    TscDelta::from_ticks(median(steps))
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the cost is found, and that the threshold is well above it.
    #[test]
    fn ordinary_is_below_the_threshold() {
        let ordinary = LoopCost::measure();
        assert!(ordinary.pass.ticks() > 0);
        assert!(
            ordinary.threshold()
                >= TscDelta::from_ticks(ordinary.step.ticks() * ORDINARY)
        );
    }

    /// Check that single outliers do not move the median.
    #[test]
    fn medians_are_steady() {
        assert_eq!(median(vec![22, 22, 1, 22, 900_000]), 22);
        assert_eq!(median(vec![]), 1);
    }
}
