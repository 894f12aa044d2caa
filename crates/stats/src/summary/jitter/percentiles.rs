//! A distribution as HdrHistogram tells it: values at percentiles that lie the closer to
//! each other the closer they are to the whole.
//!
//! Between a percentile and the whole lie as many steps as between it and the one that is
//! half as far away, so each power of two of rarity gets [`STEPS`] lines. Values are those
//! that were seen, in full: they are not put into buckets.

/// Lines for each halving of the distance to the whole, HdrHistogram's own default.
const STEPS: f64 = 5.0;

/// One line: that part of all values is not larger.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PercentileLine {
    /// The value.
    pub value: u64,
    /// The part of all values that was asked for, 0 to 1.
    pub quantile: f64,
    /// How many values are not larger than this one.
    pub count: u64,
    /// One in so many values is larger, by the part asked for; `None` where that is none.
    pub one_in: Option<f64>,
}

/// A distribution of values.
#[derive(Debug, Clone, PartialEq)]
pub struct Percentiles {
    /// Values in rising order; the last is the largest, at 1. Empty without a value.
    pub lines: Vec<PercentileLine>,
    /// The mean; zero without a value.
    pub mean: f64,
    /// The standard deviation; zero without a value.
    pub deviation: f64,
    /// The largest; zero without a value.
    pub max: u64,
    /// How many values there are.
    pub count: u64,
    /// The least power of two that is larger than the largest: so many places tell all.
    pub places: u64,
}

impl Percentiles {
    /// Tells values, in whatever order they come.
    #[expect(clippy::cast_precision_loss, reason = "a mean of lengths, for people")]
    pub fn of(mut values: Vec<u64>) -> Self {
        values.sort_unstable();
        let count = values.len() as f64;
        let mean =
            values.iter().fold(0.0, |sum, &value| sum + value as f64) / count.max(1.0);
        let squares =
            values.iter().fold(0.0, |sum, &value| sum + (value as f64 - mean).powi(2));
        let max = values.last().copied().unwrap_or(0);
        let places = max.saturating_add(1).checked_next_power_of_two();
        Self {
            lines: lines(&values),
            mean,
            deviation: (squares / count.max(1.0)).sqrt(),
            max,
            count: u64::try_from(values.len()).unwrap_or(u64::MAX),
            places: places.unwrap_or(u64::MAX),
        }
    }
}

fn lines(sorted: &[u64]) -> Vec<PercentileLine> {
    let mut lines = Vec::new();
    let mut percent = 0.0;
    while let Some(line) = at(sorted, percent) {
        lines.push(line);
        if usize::try_from(line.count) == Ok(sorted.len()) {
            lines.push(PercentileLine { quantile: 1.0, one_in: None, ..line });
            break;
        }
        let halvings = (100.0_f64 / (100.0 - percent)).log2().floor() + 1.0;
        percent += 100.0 / (STEPS * halvings.exp2());
    }
    lines
}

/// The smallest value that at least that part of all values does not exceed.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rank among values that fit into memory"
)]
fn at(sorted: &[u64], percent: f64) -> Option<PercentileLine> {
    let rank = (percent * sorted.len() as f64 / 100.0).ceil() as usize;
    let value = *sorted.get(rank.saturating_sub(1).min(sorted.len().checked_sub(1)?))?;
    let count = sorted.partition_point(|&other| other <= value);
    let count = u64::try_from(count).unwrap_or(u64::MAX);
    let quantile = percent / 100.0;
    Some(PercentileLine { value, quantile, count, one_in: Some(1.0 / (1.0 - quantile)) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Check the lines of a hundred values by hand: five for each halving, the last twice.
    #[test]
    fn by_hand() {
        let found = Percentiles::of((1..=100).rev().collect());
        let lines: Vec<_> =
            found.lines.iter().map(|l| (l.value, l.quantile, l.count)).collect();
        assert_eq!(
            lines[..7],
            [
                (1, 0.0, 1),
                (10, 0.1, 10),
                (20, 0.2, 20),
                (30, 0.3, 30),
                (40, 0.4, 40),
                (50, 0.5, 50),
                (55, 0.55, 55),
            ]
        );
        let [.., before, last] = lines.as_slice() else { panic!("{lines:?}") };
        assert_eq!((before.0, last), (100, &(100, 1.0, 100)));
        assert!(before.1 < 1.0);
        assert_eq!((found.mean, found.max, found.count), (50.5, 100, 100));
        assert_eq!((found.places, found.lines[5].one_in), (128, Some(2.0)));
        assert!((found.deviation - 28.866).abs() < 0.001, "{}", found.deviation);
    }

    /// Check that no value has no line, and a single one two.
    #[test]
    fn few_values() {
        assert_eq!(Percentiles::of(Vec::new()).lines, []);
        let line =
            |quantile, one_in| PercentileLine { value: 7, quantile, count: 1, one_in };
        assert_eq!(
            Percentiles::of(vec![7]).lines,
            [line(0.0, Some(1.0)), line(1.0, None)]
        );
    }

    proptest! {
        /// Check that lines rise, that each value was seen and has as many not larger than
        /// it as is said, enough for its percentile, and that the last line is the whole.
        #[test]
        fn definition(values in prop::collection::vec(0u64..1000, 1..400)) {
            let found = Percentiles::of(values.clone());
            for line in &found.lines {
                let counted = values.iter().filter(|&&value| value <= line.value).count();
                prop_assert!(values.contains(&line.value));
                prop_assert_eq!(counted as u64, line.count);
                let enough = line.quantile * values.len() as f64;
                prop_assert!(counted as f64 + 1e-6 >= enough);
            }
            let rises = found.lines.is_sorted_by(|a, b| {
                a.value <= b.value && a.count <= b.count && a.quantile < b.quantile
            });
            prop_assert!(rises);
            let last = found.lines.last().unwrap();
            prop_assert_eq!((last.quantile, Some(&last.value)), (1.0, values.iter().max()));
        }
    }
}
