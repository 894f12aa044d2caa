//! Lengths by size: bins whose edges have a constant ratio, eight per power of ten, and quantiles by
//! nearest rank.
//!
//! Edges are whole nanoseconds, so that the bin of a length is exact.

use units::{Nanos, Ppm};

/// The number of bins per power of ten.
const PER_DECADE: i32 = 8;
/// The number of powers of ten below 2^64.
const DECADES: i32 = 20;

/// Lengths of similar size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LengthBar {
    /// The smallest length of the bin.
    pub from: Nanos,
    /// All lengths are below this; in the last of all bins at most this.
    pub below: Nanos,
    /// The number of lengths.
    pub count: u64,
    /// That as a share of all lengths.
    pub share: Option<Ppm>,
    /// The share of all lengths that are longer than those of this bin and of those before it.
    pub longer: Option<Ppm>,
}

/// Lengths by size.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LengthBars {
    /// The bins from the shortest to the longest length; none without lengths.
    pub bars: Vec<LengthBar>,
    /// The number of lengths.
    pub count: u64,
    /// The lengths that 50 %, 99 % and 99.9 % do not exceed, and the longest; `None` without lengths.
    pub quantiles: [Option<Nanos>; 4],
}

/// At least so many lengths are sorted at once.
const ROUND: usize = 1 << 14;

/// The parts of all lengths that a quantile is not exceeded by, in thousandths.
const PARTS: [u128; 4] = [500, 990, 999, 1_000];

impl LengthBars {
    /// Lengths in any order, and how often each occurred.
    pub fn of(lengths: impl IntoIterator<Item = (Nanos, u64)>) -> Self {
        let sums = sums(lengths);
        let count = sums.last().map_or(0, |(_, sum)| *sum);
        let up_to = |edge: Nanos| {
            let at = sums.partition_point(|(length, _)| *length < edge);
            at.checked_sub(1).and_then(|at| sums.get(at)).map_or(0, |(_, sum)| *sum)
        };
        let quantile = |part: u128| {
            let rank = (part * u128::from(count)).div_ceil(1_000);
            sums.iter().find(|(_, sum)| u128::from(*sum) >= rank.max(1)).map(|one| one.0)
        };
        let ends = sums.first().zip(sums.last());
        let on = |edges: &&[Nanos]| {
            ends.is_some_and(|((first, _), (last, _))| {
                edges[0] <= *last && (*first < edges[1] || edges[1] == Nanos::MAX)
            })
        };
        let bar = |edges: &[Nanos]| {
            let is_last = edges[1] == Nanos::MAX;
            let until = if is_last { count } else { up_to(edges[1]) };
            let inside = until.saturating_sub(up_to(edges[0]));
            LengthBar {
                from: edges[0],
                below: edges[1],
                count: inside,
                share: Ppm::of_count(inside, count),
                longer: Ppm::of_count(count.saturating_sub(until), count),
            }
        };
        let bars = edges().windows(2).filter(on).map(bar).collect();
        Self { bars, count, quantiles: PARTS.map(quantile) }
    }
}

/// Each length, in rising order, with the number of lengths up to it.
fn sums(lengths: impl IntoIterator<Item = (Nanos, u64)>) -> Vec<(Nanos, u64)> {
    let mut sums = length_counts(lengths);
    let mut before = 0_u64;
    for (_, count) in &mut sums {
        *count = count.saturating_add(before);
        before = *count;
    }
    sums
}

/// Each length, in rising order, and how often it occurred.
pub fn length_counts(
    lengths: impl IntoIterator<Item = (Nanos, u64)>,
) -> Vec<(Nanos, u64)> {
    counts(&mut lengths.into_iter())
}

/// Of millions of lengths, most are equal: equal ones are added up whenever there are as many new ones as
/// different ones.
fn counts(lengths: &mut dyn Iterator<Item = (Nanos, u64)>) -> Vec<(Nanos, u64)> {
    let mut counts: Vec<(Nanos, u64)> = Vec::new();
    loop {
        let different = counts.len();
        counts.extend((&mut *lengths).take(different.max(ROUND)));
        if counts.len() == different {
            return counts;
        }
        counts.sort_unstable_by_key(|(length, _)| *length);
        counts.dedup_by(|(next, more), (length, count)| {
            let is_same = next == length;
            *count = count.saturating_add(if is_same { *more } else { 0 });
            is_same
        });
    }
}

/// Zero, and the edges from 1 ns on, without equal ones.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "from 1 to 10, times a power of ten; a cast saturates"
)]
fn edges() -> Vec<Nanos> {
    let edge = |at: i32| {
        let part = 10_f64.powf(f64::from(at % PER_DECADE) / f64::from(PER_DECADE));
        (part * 10_f64.powi(at / PER_DECADE)).round() as u64
    };
    let mut edges: Vec<u64> =
        std::iter::once(0).chain((0..PER_DECADE * DECADES).map(edge)).collect();
    edges.dedup();
    edges.into_iter().map(Nanos::from_nanos).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Check bins by hand, with an empty one in the middle.
    #[test]
    fn by_hand() {
        let lengths = [(1_000, 3), (1_333, 1), (2_000, 4)];
        let bars =
            LengthBars::of(lengths.map(|(ns, count)| (Nanos::from_nanos(ns), count)));
        let found = bars.bars.iter().map(|bar| {
            let share = bar.longer.unwrap().get().round();
            (bar.from.get(), bar.below.get(), bar.count, share)
        });
        let expected = [
            (1_000, 1_334, 4, 500_000.0),
            (1_334, 1_778, 0, 500_000.0),
            (1_778, 2_371, 4, 0.0),
        ];
        assert_eq!(found.collect::<Vec<_>>(), expected);
        assert_eq!(
            (bars.count, bars.quantiles),
            (8, [1_333, 2_000, 2_000, 2_000].map(|ns| Some(Nanos::from_nanos(ns))))
        );
        assert_eq!(LengthBars::of([]), LengthBars::default());
    }

    proptest! {
        /// Check that each length is in its bin, and that bins touch.
        #[test]
        fn complete(lengths in prop::collection::vec(any::<u64>(), 1..50)) {
            let found = LengthBars::of(lengths.iter().map(|ns| (Nanos::from_nanos(*ns), 1)));
            let bars = &found.bars;
            prop_assert!(bars.windows(2).all(|pair| pair[0].below == pair[1].from));
            for bar in bars {
                let is_in = |ns: &&u64| {
                    let ns = Nanos::from_nanos(**ns);
                    bar.from <= ns && (ns < bar.below || bar.below == Nanos::MAX)
                };
                prop_assert_eq!(bar.count, lengths.iter().filter(is_in).count() as u64);
            }
            prop_assert_eq!(bars.last().unwrap().longer, Some(Ppm::new(0.0)));
            let longest = lengths.iter().max().copied().map(Nanos::from_nanos);
            prop_assert_eq!(found.quantiles[3], longest);
        }
    }
}
