//! Slices by their length: from 10 µs to 100 ms in eight bins a decade, each as many times as
//! long as the one before, and one for what is shorter and one for what is longer.
//!
//! Edges are whole nanoseconds, so that it is exact which bin a length is in. Cannot tell apart
//! what is in the first bin, or in the last.

use units::{Nanos, Ppm};

/// Where the bins of the first decade begin, in nanoseconds: each is 10^(1/8) times as long as
/// the one before.
const DECADE: [u64; 8] = [10_000, 13_335, 17_783, 23_714, 31_623, 42_170, 56_234, 74_989];
/// So many decades, from 10 µs to 100 ms.
const DECADES: u32 = 4;

/// Slices that are about as long as each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SliceBin {
    /// The shortest length; zero in the first bin.
    pub from: Nanos,
    /// All lengths are below this; the longest length there is in the last bin.
    pub below: Nanos,
    /// How many slices are so long.
    pub slices: u64,
    /// The part of all slices that this is; `None` where there is no slice.
    pub share: Option<Ppm>,
    /// The part of all slices that are so long and ended because somebody woke up; `None` where
    /// there is no slice.
    pub woken: Option<Ppm>,
}

impl SliceBin {
    /// All bins: of all slices' lengths, and of those that somebody who woke up ended; both in
    /// rising order.
    pub(super) fn all(sorted: &[Nanos], woken: &[Nanos]) -> Vec<Self> {
        let decades = (0..DECADES).map(|decade| 10_u64.pow(decade));
        let edges = decades
            .flat_map(|ten| DECADE.map(|edge| edge * ten))
            .chain(std::iter::once(DECADE[0] * 10_u64.pow(DECADES)))
            .map(Nanos::from_nanos);
        let edges: Vec<Nanos> = edges.collect();
        let froms = std::iter::once(Nanos::ZERO).chain(edges.iter().copied());
        let belows = edges.iter().copied().chain(std::iter::once(Nanos::MAX));
        let bin = |(from, below)| {
            let slices = count(sorted, from, below);
            let share = |part| share(part, sorted.len());
            let woken = share(count(woken, from, below));
            let share = share(slices);
            let slices = u64::try_from(slices).unwrap_or(u64::MAX);
            Self { from, below, slices, share, woken }
        };
        froms.zip(belows).map(bin).collect()
    }
}

/// How many lengths are that long; those that are as long as there can be too, in the last bin.
fn count(sorted: &[Nanos], from: Nanos, below: Nanos) -> usize {
    let at = |length| sorted.partition_point(|slice| *slice < length);
    let until = if below == Nanos::MAX { sorted.len() } else { at(below) };
    until - at(from)
}

#[expect(clippy::cast_precision_loss, reason = "as many slices as fit into memory")]
fn share(part: usize, of: usize) -> Option<Ppm> {
    (of > 0).then(|| Ppm::new(part as f64 * 1e6 / of as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check in which bins slices are, at the edges too.
    #[test]
    fn histogram() {
        let lengths = [0, 9_999, 10_000, 999_999, 1_000_000, 99_999_999, 100_000_000];
        let found = SliceBin::all(&lengths.map(Nanos::from_nanos), &[Nanos::MAX]);
        let full: Vec<(u64, u64, u64)> = found
            .iter()
            .filter(|bin| bin.slices > 0)
            .map(|bin| (bin.from.get(), bin.below.get(), bin.slices))
            .collect();
        let expected = [
            (0, 10_000, 2),
            (10_000, 13_335, 1),
            (749_890, 1_000_000, 1),
            (1_000_000, 1_333_500, 1),
            (74_989_000, 100_000_000, 1),
            (100_000_000, u64::MAX, 1),
        ];
        assert_eq!((full.as_slice(), found.len()), (&expected[..], 34));
        let woken: Vec<f64> =
            found.iter().filter_map(|bin| Some(bin.woken?.get())).collect();
        assert_eq!((woken[33].round(), woken[..33].iter().sum()), (142_857.0, 0.0));
        assert!(SliceBin::all(&[], &[]).iter().all(|bin| bin.share.is_none()));
    }
}
