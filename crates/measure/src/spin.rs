//! The busy loop: reads the time stamp counter continuously, and records each pass that took longer
//! than the threshold.
//!
//! The loop does not allocate, lock or enter the kernel (`tests/quiet.rs` counts). The ring's
//! memory is touched before the loop begins, so that recording a gap causes no page fault. When the
//! ring is full the loop continues: later passes are counted and summed, not recorded.
//!
//! # Caveats
//! The edge of a gap is known to one pass. Two interruptions less than a pass apart are one gap.
//! What slows the loop down without stopping it (another hardware thread, a lower frequency) is not
//! a gap.

use std::sync::atomic::Ordering;

use units::{Nanos, Tsc, TscDelta, TscHz};

use crate::control::moments::OnMoment;
use crate::time::counter;

/// One pass that took too long: the time of the reading before it, and the time to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    /// The reading before the gap.
    pub last: Tsc,
    /// The time to the next reading: the gap, and one ordinary pass.
    pub delta: TscDelta,
}

/// Passes after the ring was full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow {
    /// The first such pass.
    pub first: Pass,
    /// Their number.
    pub passes: u64,
    /// The sum of their deltas.
    pub sum: TscDelta,
    /// The longest of them.
    pub longest: TscDelta,
}

/// A buffer for recorded passes, allocated and touched before the loop begins.
#[derive(Debug)]
pub struct Ring {
    passes: Box<[Pass]>,
    used: usize,
    overflow: Option<Overflow>,
    too_long: TscDelta,
    /// The rate of the counter, to convert longer passes.
    hz: Option<TscHz>,
}

impl Ring {
    /// A ring with that capacity.
    pub fn new(capacity: usize) -> Self {
        // Not zero: zeroed memory would be mapped lazily and fault in the loop.
        let blank =
            Pass { last: Tsc::from_counter(u64::MAX), delta: TscDelta::from_ticks(1) };
        Self {
            passes: vec![blank; capacity].into_boxed_slice(),
            used: 0,
            overflow: None,
            too_long: TscDelta::from_ticks(u64::MAX),
            hz: None,
        }
    }

    /// Sets the limit above which a pass is a moment, and the rate of the counter.
    pub fn set_limit(&mut self, longest: TscDelta, hz: TscHz) {
        (self.too_long, self.hz) = (longest, Some(hz));
    }

    /// The recorded passes, in order.
    pub fn passes(&self) -> &[Pass] {
        &self.passes[..self.used]
    }

    /// The passes after the ring was full.
    pub fn overflow(&self) -> Option<Overflow> {
        self.overflow
    }

    /// The longest pass, recorded or not.
    pub fn longest(&self) -> TscDelta {
        let recorded = self.passes().iter().map(|pass| pass.delta);
        let rest = self.overflow.map(|overflow| overflow.longest);
        recorded.chain(rest).max().unwrap_or_default()
    }

    /// Records a pass; whether it is a moment.
    #[cold]
    fn record(&mut self, pass: Pass) -> bool {
        self.push(pass);
        pass.delta > self.too_long
    }

    fn push(&mut self, pass: Pass) {
        if let Some(place) = self.passes.get_mut(self.used) {
            *place = pass;
            self.used += 1;
            return;
        }
        let overflow = self.overflow.get_or_insert(Overflow {
            first: pass,
            passes: 0,
            sum: TscDelta::default(),
            longest: TscDelta::default(),
        });
        overflow.passes += 1;
        let sum = overflow.sum.ticks().saturating_add(pass.delta.ticks());
        overflow.sum = TscDelta::from_ticks(sum);
        overflow.longest = overflow.longest.max(pass.delta);
    }
}

/// The loop's own results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpinTotals {
    /// The first reading.
    pub first: Tsc,
    /// The time from the first reading to the last; steps of the counter backwards do not count.
    pub elapsed: TscDelta,
    /// The number of passes.
    pub passes: u64,
    /// How often the counter went backwards.
    pub backwards: u64,
}

/// Loops for `length`, or until the stop request, and records every pass longer than `threshold`. A
/// pass above the limit of `ring` is a moment.
#[inline(never)]
pub fn spin(
    length: TscDelta,
    threshold: TscDelta,
    moments: OnMoment<'_>,
    ring: &mut Ring,
) -> SpinTotals {
    let (first, stop) = (counter::now(), moments.stop());
    let (mut begin, mut last) = (first, first);
    let (mut passes, mut backwards) = (0, 0);
    loop {
        // Read before the counter, so that the gap in which the stop request arrived is recorded.
        let is_stopped = stop.load(Ordering::Relaxed);
        let now = counter::now();
        let delta = now.since(last);
        passes += 1;
        if delta > threshold {
            if delta.is_backwards() {
                // The counter was set back: shift the beginning too, or the end would never be
                // reached.
                backwards += 1;
                begin = begin.plus(delta);
            } else if ring.record(Pass { last: first.plus(last.since(begin)), delta }) {
                moments.handle(|| {
                    let length = ring.hz.map_or(Nanos::ZERO, |hz| hz.span(delta));
                    (length, length)
                });
            }
        }
        last = now;
        if is_stopped || now.since(begin) >= length {
            return SpinTotals { first, elapsed: now.since(begin), passes, backwards };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    fn pass(delta: u64) -> Pass {
        Pass { last: Tsc::from_counter(0), delta: TscDelta::from_ticks(delta) }
    }

    /// Check that a full ring retains its passes, and counts and sums later ones.
    #[test]
    fn full_rings_count_on() {
        let mut ring = Ring::new(2);
        for delta in [5, 6, 7, 90, 8] {
            ring.record(pass(delta));
        }
        assert_eq!(ring.passes(), [pass(5), pass(6)]);
        let overflow = ring.overflow().unwrap();
        assert_eq!(overflow.first, pass(7));
        assert_eq!((overflow.passes, overflow.sum.ticks()), (3, 105));
        assert_eq!(overflow.longest.ticks(), 90);
    }

    /// Check that with a threshold of 0 every pass is recorded, and that their sum is the elapsed
    /// time.
    #[test]
    fn passes_add_up_to_the_whole() {
        let mut ring = Ring::new(1 << 20);
        let stop = AtomicBool::new(false);
        let length = TscDelta::from_ticks(200_000);
        let on = OnMoment::stopping(&stop);
        let spun = spin(length, TscDelta::default(), on, &mut ring);
        let sum: u64 = ring.passes().iter().map(|pass| pass.delta.ticks()).sum();
        assert_eq!(sum, spun.elapsed.ticks());
        assert!(spun.elapsed >= length && spun.passes >= ring.passes().len() as u64);
    }

    /// Check that the stop flag ends the loop long before its time.
    #[test]
    fn stops_when_told() {
        let stop = AtomicBool::new(true);
        let length = TscDelta::from_ticks(u64::MAX >> 1);
        let spun = spin(length, length, OnMoment::stopping(&stop), &mut Ring::new(0));
        assert_eq!(spun.passes, 1);
    }
}
