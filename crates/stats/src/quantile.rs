//! Quantiles by nearest rank: always a value that was really seen, never one between two.

/// The smallest value that at least `permille` thousandths of all values do not exceed;
/// `None` where there are no values. `sorted` is in rising order; 500 is the median.
pub(crate) fn nearest_rank<T: Copy>(sorted: &[T], permille: usize) -> Option<T> {
    let rank = (sorted.len() * permille).div_ceil(1000);
    let last = sorted.len().checked_sub(1)?;
    sorted.get(rank.saturating_sub(1).min(last)).copied()
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
