//! Quantiles by nearest rank: always a value that was really seen, never one between two.

use units::Nanos;

/// The smallest value that at least `permille` thousandths of all values do not exceed;
/// `None` where there are no values. `sorted` is in rising order; 500 is the median.
pub(crate) fn nearest_rank<T: Copy>(sorted: &[T], permille: usize) -> Option<T> {
    ranked(sorted, u32::try_from(permille).unwrap_or(u32::MAX).saturating_mul(1000))
}

/// The shortest length that at least so many millionths of all lengths do not exceed; `None`
/// where there are none. `sorted` is in rising order; 500,000 is the median, 999,900 the
/// 99.99th percentile, 1,000,000 the longest.
pub fn quantile(sorted: &[Nanos], millionths: u32) -> Option<Nanos> {
    ranked(sorted, millionths)
}

fn ranked<T: Copy>(sorted: &[T], millionths: u32) -> Option<T> {
    let last = sorted.len().checked_sub(1)?;
    let rank = (sorted.len() as u128 * u128::from(millionths)).div_ceil(1_000_000);
    let at = usize::try_from(rank).unwrap_or(usize::MAX).saturating_sub(1);
    sorted.get(at.min(last)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Check known ranks by hand, the edges included.
    #[test]
    fn by_hand() {
        assert_eq!(nearest_rank::<u64>(&[], 500), None);
        assert_eq!(nearest_rank(&[7], 999), Some(7));
        assert_eq!(nearest_rank(&[1, 2], 500), Some(1));
        assert_eq!(nearest_rank(&[1, 2, 3], 500), Some(2));
        let thousand: Vec<u64> = (1..=1000).collect();
        assert_eq!(nearest_rank(&thousand, 999), Some(999));
        assert_eq!(nearest_rank(&thousand, 1000), Some(1000));
        assert_eq!(nearest_rank(&thousand, 0), Some(1));
        assert_eq!(nearest_rank(&(1..=1001).collect::<Vec<u64>>(), 999), Some(1000));
    }

    /// Check ranks that thousandths cannot name.
    #[test]
    fn fine_ranks() {
        let all: Vec<Nanos> = (1..=20_000).map(Nanos::from_nanos).collect();
        let at = |millionths| quantile(&all, millionths).map(Nanos::get);
        let found = [0, 1, 500_000, 999_900, 999_901, 1_000_000, u32::MAX].map(at);
        let expected = [1, 1, 10_000, 19_998, 19_999, 20_000, 20_000].map(Some);
        assert_eq!(found, expected);
        assert_eq!(quantile(&[], 500_000), None);
    }

    proptest! {
        /// Check the definition by counting: enough values are at or below the quantile,
        /// and too few are below it.
        #[test]
        fn definition(
            mut values in prop::collection::vec(0u64..50, 1..200),
            permille in 1usize..=1000,
        ) {
            values.sort_unstable();
            let found = nearest_rank(&values, permille).unwrap();
            let at_or_below = values.iter().filter(|&&value| value <= found).count();
            let below = values.iter().filter(|&&value| value < found).count();
            prop_assert!(at_or_below * 1000 >= values.len() * permille);
            prop_assert!(below * 1000 < values.len() * permille);
        }
    }
}
