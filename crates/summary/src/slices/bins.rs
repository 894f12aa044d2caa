//! Slices by length: from 10 µs to 100 ms in eight bins per decade, whose edges have a constant ratio,
//! one bin for shorter slices and one for longer ones.
//!
//! Edges are whole nanoseconds, so that the bin of a length is exact.

use units::{Nanos, Ppm};

/// The lower edges of the bins of the first decade in nanoseconds: each is 10^(1/8) times the one
/// before.
const DECADE: [u64; 8] = [10_000, 13_335, 17_783, 23_714, 31_623, 42_170, 56_234, 74_989];
/// The number of decades, from 10 µs to 100 ms.
const DECADES: u32 = 4;

/// Slices of similar length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SliceBin {
    /// The smallest length of the bin; zero for the first bin.
    pub from: Nanos,
    /// All lengths are below this, except in the last bin.
    pub below: Nanos,
    /// The number of slices.
    pub slices: u64,
    /// That as a share of all slices; `None` without slices.
    pub share: Option<Ppm>,
    /// Those that were ended by a wake-up, as a share of all slices; `None` without slices.
    pub woken: Option<Ppm>,
}

impl SliceBin {
    /// All bins, from the lengths of all slices, and of those that were ended by a wake-up, both in
    /// ascending order.
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
            let share = |part| Ppm::of_count(part, sorted.len() as u64);
            let woken = share(count(woken, from, below));
            Self { from, below, slices, share: share(slices), woken }
        };
        froms.zip(belows).map(bin).collect()
    }
}

/// The number of lengths in a bin; the last one, below `Nanos::MAX`, also contains that length.
fn count(sorted: &[Nanos], from: Nanos, below: Nanos) -> u64 {
    let at = |length| sorted.partition_point(|slice| *slice < length);
    let until = if below == Nanos::MAX { sorted.len() } else { at(below) };
    (until - at(from)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the bins of slices, including lengths at the edges.
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
