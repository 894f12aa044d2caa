//! Gaps without any traced event, by length.
//!
//! Such a gap is not caused by the kernel, but by a hypervisor, firmware (system management
//! interrupts), or the processor itself. Cannot distinguish these.

use recording::Blamed;
use serde::Serialize;
use units::{Nanos, Span};

use crate::noise::culprits::shares;

/// All shorter lengths are in one bin.
const SHORTEST: Nanos = Nanos::from_nanos(100);

/// Gaps of similar length.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LengthBin {
    /// The smallest length of the bin.
    pub from_ns: Nanos,
    /// All lengths are below this.
    pub below_ns: Nanos,
    /// The number of gaps.
    pub gaps: u64,
    /// The sum of their lengths.
    pub ns: Nanos,
}

/// Gaps without any event.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Eventless {
    /// The number of gaps.
    pub gaps: u64,
    /// The sum of their lengths.
    pub ns: Nanos,
    /// The gaps by length, in steps of 1, 2, 5; without empty bins.
    pub lengths: Vec<LengthBin>,
}

impl Eventless {
    /// The gaps without a share of an event, and without overlap with a period in which events were
    /// lost.
    pub(crate) fn of(gaps: &[Span], blamed: &Blamed) -> Self {
        let mut is_eventless = vec![true; gaps.len()];
        for (share, _) in shares(blamed).filter(|(_, culprit)| culprit.kind.is_event()) {
            if let Some(eventless) = is_eventless.get_mut(share.gap) {
                *eventless = false;
            }
        }
        let is_whole = |gap: &Span| {
            !blamed
                .losses
                .iter()
                .any(|loss| loss.start < gap.end() && gap.start < loss.end())
        };
        let mut found = Self::default();
        for (gap, _) in
            gaps.iter().zip(is_eventless).filter(|(gap, is)| *is && is_whole(gap))
        {
            let (from_ns, below_ns) = bin(gap.length);
            found.add(LengthBin { from_ns, below_ns, gaps: 1, ns: gap.length });
        }
        found
    }

    /// The sum of several CPUs; `None` if unknown for one of them.
    pub(crate) fn together<'a>(
        all: impl Iterator<Item = Option<&'a Self>>,
    ) -> Option<Self> {
        let mut sum = None;
        for one in all {
            let sum: &mut Self = sum.get_or_insert_default();
            one?.lengths.iter().for_each(|bin| sum.add(*bin));
        }
        sum
    }

    fn add(&mut self, more: LengthBin) {
        self.gaps += more.gaps;
        self.ns = self.ns + more.ns;
        let place = self.lengths.partition_point(|bin| bin.from_ns < more.from_ns);
        match self.lengths.get_mut(place).filter(|bin| bin.from_ns == more.from_ns) {
            Some(bin) => (bin.gaps, bin.ns) = (bin.gaps + more.gaps, bin.ns + more.ns),
            None => self.lengths.insert(place, more),
        }
    }
}

/// The bin of a length: from 1, 2 or 5 times a power of ten to the next one.
fn bin(length: Nanos) -> (Nanos, Nanos) {
    let mut ends = (Nanos::ZERO, SHORTEST);
    let mut decade = SHORTEST;
    loop {
        for times in [1, 2, 5] {
            ends = (ends.1, decade.saturating_mul(times));
            if length < ends.1 {
                return if length < SHORTEST { (Nanos::ZERO, SHORTEST) } else { ends };
            }
        }
        if decade == Nanos::MAX {
            return (ends.1, Nanos::MAX);
        }
        decade = decade.saturating_mul(10);
    }
}

#[cfg(test)]
mod tests {
    use recording::CulpritKind;

    use super::*;
    use crate::example;

    fn nanos(nanos: u64) -> Nanos {
        Nanos::from_nanos(nanos)
    }

    /// Check the bins by hand, from zero to the longest.
    #[test]
    fn steps() {
        let bins = [0, 99, 100, 199, 200, 1_999, 5_000_000, u64::MAX].map(nanos).map(bin);
        let ends = bins.map(|(from, below)| (from.get(), below.get()));
        assert_eq!(ends[..4], [(0, 100), (0, 100), (100, 200), (100, 200)]);
        assert_eq!(ends[4..7], [(200, 500), (1_000, 2_000), (5_000_000, 10_000_000)]);
        assert_eq!(ends[7].1, u64::MAX);
    }

    /// Check that gaps with an event, or with lost events, are omitted, and that the lengths of two
    /// CPUs add up.
    #[test]
    fn by_length() {
        let span = |start, length| Span { start: nanos(start), length: nanos(length) };
        let gaps =
            [span(0, 1_500), span(5_000, 1_200), span(9_000, 30), span(20_000, 1_999)];
        let share = |gap, kind| example::share(gap, kind, "x", None, 5);
        let shares = [
            share(0, CulpritKind::Unexplained),
            share(1, CulpritKind::Timer),
            share(1, CulpritKind::Unexplained),
            share(3, CulpritKind::Steal),
        ];
        let losses = vec![span(8_000, 1_010)];
        let found = Eventless::of(&gaps, &Blamed { losses, ..example::blamed(&shares) });
        let bin = |gaps, ns| LengthBin {
            from_ns: nanos(1_000),
            below_ns: nanos(2_000),
            gaps,
            ns: nanos(ns),
        };
        assert_eq!((found.gaps, found.ns), (2, nanos(3_499)));
        assert_eq!(found.lengths, [bin(2, 3_499)]);
        let both = Eventless::together([Some(&found), Some(&found)].into_iter()).unwrap();
        assert_eq!(both.lengths, [bin(4, 6_998)]);
        assert_eq!(Eventless::together([Some(&found), None].into_iter()), None);
    }
}
