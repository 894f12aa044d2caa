//! A distribution in the format of HdrHistogram's percentile output.
//!
//! The distance between percentiles decreases towards 100 %: each halving of the distance to 100 % has
//! [`STEPS`] lines, so that rare values have as many lines as frequent ones. Unlike HdrHistogram's,
//! values are exact: they are not rounded to buckets.

/// The number of lines for each halving of the distance to 100 %, HdrHistogram's own default.
const STEPS: f64 = 5.0;

/// One line: a part of all values does not exceed this value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PercentileLine {
    /// The value.
    pub value: u64,
    /// That part, 0 to 1.
    pub quantile: f64,
    /// The number of values that do not exceed it.
    pub count: u64,
    /// One in so many values is larger, according to `quantile`; `None` if that is 1.
    pub one_in: Option<f64>,
}

/// A distribution of values.
#[derive(Debug, Clone, PartialEq)]
pub struct Percentiles {
    /// Lines in ascending order; the last is the largest value, at 1. Empty without values.
    pub lines: Vec<PercentileLine>,
    /// The mean; zero without values.
    pub mean: f64,
    /// The standard deviation; zero without values.
    pub deviation: f64,
    /// The largest value; zero without values.
    pub max: u64,
    /// The number of values.
    pub count: u64,
    /// The smallest power of two above the largest value: HdrHistogram's number of buckets.
    pub places: u64,
}

impl Percentiles {
    /// The distribution of values in any order.
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
            count: values.len() as u64,
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

/// The smallest value that at least that part of all values does not exceed (nearest rank).
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rank among values that fit into memory"
)]
fn at(sorted: &[u64], percent: f64) -> Option<PercentileLine> {
    let rank = (percent * sorted.len() as f64 / 100.0).ceil() as usize;
    let value = *sorted.get(rank.saturating_sub(1).min(sorted.len().checked_sub(1)?))?;
    let count = sorted.partition_point(|&other| other <= value) as u64;
    let quantile = percent / 100.0;
    Some(PercentileLine { value, quantile, count, one_in: Some(1.0 / (1.0 - quantile)) })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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

    /// Check that there are no lines without values, and two for a single value.
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
        /// Check that lines ascend, that each is a measured value, with the right number of values up
        /// to it, enough for its percentile, and that the last line is 100 %.
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
