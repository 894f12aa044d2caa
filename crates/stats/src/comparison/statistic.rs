//! The number that stands for a sample: its median or its mean.

use serde::Serialize;

/// The number that stands for a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Statistic {
    /// The median; its difference is that of all pairs.
    Median,
    /// The mean.
    Mean,
}

impl Statistic {
    /// The statistic for two samples: of values that are mostly 0 the mean.
    pub(crate) fn for_samples(samples: [&[f64]; 2]) -> Self {
        let zeros =
            samples.map(|values| values.iter().filter(|one| **one == 0.0).count());
        let is_rare =
            zeros.iter().zip(samples).any(|(zeros, all)| 2 * zeros >= all.len());
        let is_there = zeros.iter().zip(samples).any(|(zeros, all)| *zeros < all.len());
        if is_rare && is_there { Self::Mean } else { Self::Median }
    }

    /// The statistic of one sample; `None` without values.
    pub fn of(self, values: &[f64]) -> Option<f64> {
        (!values.is_empty()).then(|| match self {
            Self::Median => median(&mut values.to_vec()),
            Self::Mean => mean(values),
        })
    }
}

/// The mean; there are values.
pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// The median; of an even number of values, the mean of the middle two.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    let middle = values.len() / 2;
    let is_even = values.len() % 2 == 0;
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let upper = *upper;
    let lower = below.iter().copied().max_by(f64::total_cmp).filter(|_| is_even);
    lower.map_or(upper, |lower| (lower + upper) / 2.0)
}
