//! The dependence of neighbouring blocks of a run on each other.
//!
//! What happens at one moment is not independent of what happens at the next: interrupts come in
//! bursts, and a thread that runs often now does so a millisecond later. The sum of n values then
//! varies more than that of independent ones. For a first-order process with the lag-1
//! autocorrelation r, its variance is larger by (1 + r) / (1 - r) (G. V. Bayley, J. M. Hammersley:
//! The "effective" number of independent observations in an autocorrelated time series. Supplement
//! to the Journal of the Royal Statistical Society 8, 1946).
//!
//! The ranks of the values are correlated, not the values, so that one long gap does not hide the
//! dependence of the others.

use itertools::Itertools;

use crate::ranks::ranks;

/// Fewer differences have no autocorrelation.
const DIFFERENCES_MIN: usize = 4;
/// A larger autocorrelation cannot be estimated from so few blocks.
const CORRELATION_MAX: f64 = 0.9;

/// How much larger the variance of a sum of these values is than that of independent ones: 1 or more.
pub fn inflation(samples: [&[f64]; 2]) -> f64 {
    let count: usize = samples.iter().map(|values| values.len()).sum();
    let weighted = samples.map(|values| correlation(values) * values.len() as f64);
    let mean = weighted.iter().sum::<f64>() / count.max(1) as f64;
    of_correlation(mean)
}

/// The same for a series whose level may change: changes would look like dependence. The differences of
/// neighbouring values, most of which contain no change, have the lag-1 autocorrelation (r - 1) / 2. Equal
/// neighbours say nothing about it: a level without noise has no dependence.
pub(crate) fn inflation_of_levels(values: &[f64]) -> f64 {
    let differences = values.windows(2).map(|pair| pair[1] - pair[0]);
    let differences: Vec<f64> = differences.filter(|one| *one != 0.0).collect();
    match differences.len() {
        0..DIFFERENCES_MIN => 1.0,
        _ => of_correlation(1.0 + 2.0 * correlation(&differences)),
    }
}

fn of_correlation(correlation: f64) -> f64 {
    let correlation = correlation.clamp(0.0, CORRELATION_MAX);
    (1.0 + correlation) / (1.0 - correlation)
}

/// The lag-1 autocorrelation of the ranks. Its estimate is too small by about 1 / n for n independent
/// values (F. H. C. Marriott, J. A. Pope: Bias in the estimation of autocorrelations. Biometrika 41,
/// 1954), which is corrected. 0 for values that are all equal.
fn correlation(values: &[f64]) -> f64 {
    let ranks = ranks(values);
    let count = ranks.len() as f64;
    let mean = ranks.iter().sum::<f64>() / count;
    let product = |a: f64, b: f64| (a - mean) * (b - mean);
    let all: f64 = ranks.iter().map(|rank| product(*rank, *rank)).sum();
    let lagged: f64 = ranks.iter().tuple_windows().map(|(a, b)| product(*a, *b)).sum();
    if all > 0.0 { lagged / all + 1.0 / count } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that alternating and equal values need no correction, and that values in stretches do.
    #[test]
    fn stretches() {
        let alternating: Vec<f64> = (0..40).map(|n| f64::from(n % 2)).collect();
        assert_eq!(inflation([&alternating, &[3.0; 40]]), 1.0);
        let stretches: Vec<f64> = (0..40).map(|n| f64::from(n / 10)).collect();
        assert!(inflation([&stretches, &stretches]) > 5.0);
        assert_eq!(inflation([&[], &[]]), 1.0);
    }
}
