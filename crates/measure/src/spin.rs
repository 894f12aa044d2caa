//! The spinning loop: reads the counter, over and over, and keeps each pass that took
//! longer than the threshold.
//!
//! Nothing in the loop allocates, locks or enters the kernel (`tests/quiet.rs` counts).
//! The ring's memory is touched before the loop begins, so that keeping a gap does not
//! fault. When the ring is full the loop goes on: what comes then is counted and
//! summed, not kept.
//!
//! # Caveats
//! A gap's edge is known to one pass. Two interruptions less than a pass apart are one
//! gap. What slows the loop without stopping it (another hardware thread, a lower
//! frequency) is no gap.

use std::sync::atomic::{AtomicBool, Ordering};

use units::{Tsc, TscDelta};

use crate::counter;

/// One pass that took too long: when the reading before it was made, and how long until
/// the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    /// The reading before the gap.
    pub last: Tsc,
    /// The time to the next reading: the gap, and one ordinary pass.
    pub delta: TscDelta,
}

/// Passes that came after the ring was full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Overflow {
    /// The first such pass.
    pub first: Pass,
    /// How many there were.
    pub passes: u64,
    /// Their deltas added up.
    pub sum: TscDelta,
    /// The longest of them.
    pub longest: TscDelta,
}

/// Room for the passes that are kept, made and touched before the loop begins.
#[derive(Debug)]
pub struct Ring {
    passes: Box<[Pass]>,
    used: usize,
    overflow: Option<Overflow>,
    too_long: TscDelta,
}

impl Ring {
    /// A ring for that many passes.
    pub fn new(capacity: usize) -> Self {
        // Anything but zero: zeroed memory would be given lazily and fault in the loop.
        let blank =
            Pass { last: Tsc::from_counter(u64::MAX), delta: TscDelta::from_ticks(1) };
        Self {
            passes: vec![blank; capacity].into_boxed_slice(),
            used: 0,
            overflow: None,
            too_long: TscDelta::from_ticks(u64::MAX),
        }
    }

    /// A pass that is longer ends the loop, and those of other CPUs.
    pub fn end_above(&mut self, longest: TscDelta) {
        self.too_long = longest;
    }

    /// The passes that were kept, in order.
    pub fn passes(&self) -> &[Pass] {
        &self.passes[..self.used]
    }

    /// What came after the ring was full.
    pub fn overflow(&self) -> Option<Overflow> {
        self.overflow
    }

    /// The longest pass, kept or not.
    pub fn longest(&self) -> TscDelta {
        let kept = self.passes().iter().map(|pass| pass.delta);
        let rest = self.overflow.map(|overflow| overflow.longest);
        kept.chain(rest).max().unwrap_or_default()
    }

    /// Keeps a pass; whether it is so long that the loop is to end.
    #[cold]
    fn keep(&mut self, pass: Pass) -> bool {
        self.put(pass);
        pass.delta > self.too_long
    }

    fn put(&mut self, pass: Pass) {
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

/// What the loop itself knows when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spun {
    /// The first reading.
    pub first: Tsc,
    /// The time from the first reading to the last, less what the counter went back.
    pub elapsed: TscDelta,
    /// How many passes were made.
    pub passes: u64,
    /// How often the counter went backwards.
    pub backwards: u64,
}

/// Spins for `length`, or until `stop`, and keeps every pass longer than `threshold`. A pass
/// that is too long for `ring` gives `stop`.
#[inline(never)]
pub fn spin(
    length: TscDelta,
    threshold: TscDelta,
    stop: &AtomicBool,
    ring: &mut Ring,
) -> Spun {
    let first = counter::now();
    let (mut begin, mut last) = (first, first);
    let (mut passes, mut backwards) = (0, 0);
    loop {
        // Looked at before the reading, so that the gap in which the order came is kept.
        let told = stop.load(Ordering::Relaxed);
        let now = counter::now();
        let delta = now.since(last);
        passes += 1;
        if delta > threshold {
            if delta.is_backwards() {
                // The counter was set back: so is the beginning, or the end would never
                // come.
                backwards += 1;
                begin = begin.plus(delta);
            } else if ring.keep(Pass { last: first.plus(last.since(begin)), delta }) {
                stop.store(true, Ordering::Relaxed);
            }
        }
        last = now;
        if told || now.since(begin) >= length {
            return Spun { first, elapsed: now.since(begin), passes, backwards };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pass(delta: u64) -> Pass {
        Pass { last: Tsc::from_counter(0), delta: TscDelta::from_ticks(delta) }
    }

    /// Check that a full ring keeps what it has, and counts and sums what comes.
    #[test]
    fn full_rings_count_on() {
        let mut ring = Ring::new(2);
        for delta in [5, 6, 7, 90, 8] {
            ring.keep(pass(delta));
        }
        assert_eq!(ring.passes(), [pass(5), pass(6)]);
        let overflow = ring.overflow().unwrap();
        assert_eq!(overflow.first, pass(7));
        assert_eq!((overflow.passes, overflow.sum.ticks()), (3, 105));
        assert_eq!(overflow.longest.ticks(), 90);
    }

    /// Check that with a threshold of nothing every pass is kept, and that together they
    /// are the whole time.
    #[test]
    fn passes_add_up_to_the_whole() {
        let mut ring = Ring::new(1 << 20);
        let stop = AtomicBool::new(false);
        let length = TscDelta::from_ticks(200_000);
        let spun = spin(length, TscDelta::default(), &stop, &mut ring);
        let sum: u64 = ring.passes().iter().map(|pass| pass.delta.ticks()).sum();
        assert_eq!(sum, spun.elapsed.ticks());
        assert!(spun.elapsed >= length && spun.passes >= ring.passes().len() as u64);
    }

    /// Check that the stop flag ends the loop long before its time.
    #[test]
    fn stops_when_told() {
        let stop = AtomicBool::new(true);
        let length = TscDelta::from_ticks(u64::MAX >> 1);
        let spun = spin(length, length, &stop, &mut Ring::new(0));
        assert_eq!(spun.passes, 1);
    }
}
