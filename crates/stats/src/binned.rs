//! Long series in few bins. Each keeps its smallest and its largest value, so that no peak is lost.

/// Values that follow each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bin {
    /// The place of the first value.
    pub begin: usize,
    /// The place after the last value.
    pub end: usize,
    /// The smallest value.
    pub min: f64,
    /// The mean.
    pub mean: f64,
    /// The largest value.
    pub max: f64,
}

/// The values in at most `most` bins of as many values each, except for the last one. Values that are no
/// numbers are in no bin.
pub fn binned(values: &[f64], most: usize) -> Vec<Bin> {
    let each = values.len().div_ceil(most.max(1)).max(1);
    let bin = |(at, values): (usize, &[f64])| {
        let numbers = || values.iter().copied().filter(|value| !value.is_nan());
        Some(Bin {
            begin: at * each,
            end: at * each + values.len(),
            min: numbers().reduce(f64::min)?,
            mean: numbers().sum::<f64>() / numbers().count() as f64,
            max: numbers().reduce(f64::max)?,
        })
    };
    values.chunks(each).enumerate().filter_map(bin).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Check bins by hand, of as many values as bins, and of none.
    #[test]
    fn by_hand() {
        let found = binned(&[1.0, 3.0, f64::NAN, 100.0, 5.0], 3);
        let bin = |begin, end, min, mean, max| Bin { begin, end, min, mean, max };
        let expected = [
            bin(0, 2, 1.0, 2.0, 3.0),
            bin(2, 4, 100.0, 100.0, 100.0),
            bin(4, 5, 5.0, 5.0, 5.0),
        ];
        assert_eq!(found, expected);
        assert_eq!(binned(&[7.0], 9), [bin(0, 1, 7.0, 7.0, 7.0)]);
        assert_eq!(binned(&[], 0), []);
    }

    proptest! {
        /// Check that no peak is lost, and that the number of bins is limited.
        #[test]
        fn keeps_peaks(values in prop::collection::vec(-1e9..1e9, 1..500), most in 1_usize..40) {
            let bins = binned(&values, most);
            prop_assert!(bins.len() <= most);
            let all = values.iter().copied();
            let found = bins.iter().map(|bin| bin.max).reduce(f64::max);
            prop_assert_eq!(found, all.clone().reduce(f64::max));
            let found = bins.iter().map(|bin| bin.min).reduce(f64::min);
            prop_assert_eq!(found, all.reduce(f64::min));
            prop_assert_eq!(bins.iter().map(|bin| bin.end - bin.begin).sum::<usize>(), values.len());
        }
    }
}
