//! Which of many values are too large to belong to the others, with a stated rate of false alarms.
//!
//! Values of noise differ by decades and are skewed to the right, so they are compared on a logarithmic scale,
//! where their spread is nearly symmetric. The centre is the median and the scale the median absolute deviation
//! (MAD): up to half of the values may be outliers. A value is one if it is above the centre by more than `c(n)`
//! scales; `c(n)` is the normal quantile at which a set of `n` values has a false alarm with a probability of
//! 5 %, and more for small `n`, where the scale itself is uncertain (P. J. Rousseeuw, C. Croux: Alternatives
//! to the median absolute deviation. JASA 88, 1993; the factor is that of simulations, which `tests` repeat).
//!
//! Cannot see that a set has a longer tail than a lognormal one: its largest values are then outliers more often
//! than stated, and `docs/method.md` says how often.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::comparison::statistic::median;

/// The probability that a set without an outlier has a value that is called one.
pub const FALSE_OUTLIERS: f64 = 0.05;
/// The fewest values among which one can be an outlier.
pub const OUTLIER_VALUES_MIN: usize = 5;
/// An outlier is larger than the median by this factor at least, however small the spread is.
pub const OUTLIER_FACTOR_MIN: f64 = 1.1;

/// A part of the absolute deviations, and the standard deviations below which it is of normal values. The first
/// part whose deviation is not zero is used: of rounded values, more than half can be equal.
const PARTS: [(f64, f64); 4] =
    [(0.5, 0.674_490), (0.75, 1.150_349), (0.9, 1.644_854), (0.95, 1.959_964)];
/// Smaller deviations are none.
const LEAST: f64 = 1e-9;
/// How much more a small set needs: a factor of 1 + this / n.
const SMALL_SETS: f64 = 7.5;
/// The standard error of a median of normal values, in those of a mean.
const OF_MEDIAN: f64 = 1.253_314;

/// The centre and the scale of a set, and its limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fence {
    /// The median of the values.
    pub median: f64,
    /// The scale: standard deviations of logarithms.
    pub scale: f64,
    /// The number of scales above the median from which a value is an outlier.
    pub scales: f64,
    /// What is added to values before their logarithm: their resolution.
    step: f64,
}

/// How far a value is above the median.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Height {
    /// In scales, its own uncertainty included.
    pub scales: f64,
    /// Whether it is an outlier.
    pub is_outlier: bool,
}

/// A value that is itself the median of several.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MedianOfRuns {
    /// The median.
    pub value: f64,
    /// The spread of the values: a standard deviation of logarithms; `None` of fewer than three.
    pub spread: Option<f64>,
    /// Their number.
    pub count: usize,
}

impl Fence {
    /// The fence of values with this resolution: values that differ by less than it are nearly equal, and zero is
    /// an ordinary value. `None` for fewer than [`OUTLIER_VALUES_MIN`].
    pub fn of(values: &[f64], step: f64) -> Option<Self> {
        if values.len() < OUTLIER_VALUES_MIN {
            return None;
        }
        let log = |value: &f64| (value.max(0.0) + step).ln();
        let mut logs: Vec<f64> = values.iter().map(log).collect();
        let centre = median(&mut logs);
        let scale = scale(&logs, centre);
        let scales = scales(values.len());
        Some(Self { median: centre.exp() - step, scale, scales, step })
    }

    /// How far a value is above the median.
    pub fn height(&self, of: &MedianOfRuns) -> Height {
        let above = self.above(of.value);
        let scale = self.scale.hypot(of.error());
        let scales = match (scale > 0.0, above) {
            (true, _) => above / scale,
            (false, 0.0) => 0.0,
            (false, _) => f64::INFINITY.copysign(above),
        };
        let is_relevant = above > OUTLIER_FACTOR_MIN.ln();
        Height { scales, is_outlier: is_relevant && scales > self.scales }
    }

    /// How far a value is above the median: less by the resolution of both.
    fn above(&self, value: f64) -> f64 {
        let nearer = |by: f64| self.log(value + by) - self.log(self.median - by);
        match value - self.median {
            more if more > self.step => nearer(-self.step / 2.0),
            less if less < -self.step => nearer(self.step / 2.0),
            _ => 0.0,
        }
    }

    /// The value above which a single one is an outlier.
    pub fn limit(&self) -> f64 {
        let above = (self.scales * self.scale).max(OUTLIER_FACTOR_MIN.ln());
        (self.log(self.median + self.step / 2.0) + above).exp() - self.step / 2.0
    }

    fn log(&self, value: f64) -> f64 {
        (value.max(0.0) + self.step).ln()
    }
}

impl MedianOfRuns {
    /// The median and the spread of values with a resolution as in [`Fence::of`]; `None` without a value.
    pub fn of(values: &[f64], step: f64) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let value = median(&mut values.to_vec());
        let log = |value: f64| (value.max(0.0) + step).ln();
        let logs: Vec<f64> = values.iter().map(|value| log(*value)).collect();
        let spread = (values.len() > 2).then(|| scale(&logs, log(value)));
        Some(Self { value, spread, count: values.len() })
    }

    /// The standard error of the median, as far as it is known.
    fn error(&self) -> f64 {
        self.spread.map_or(0.0, |spread| OF_MEDIAN * spread / (self.count as f64).sqrt())
    }
}

/// The standard deviation of normal values with such deviations from the centre; 0 if nearly all are equal to it.
fn scale(values: &[f64], centre: f64) -> f64 {
    let mut deviations: Vec<f64> =
        values.iter().map(|value| (value - centre).abs()).collect();
    deviations.sort_unstable_by(f64::total_cmp);
    let is_spread = |part: &f64| deviations[place(&deviations, *part)] > LEAST;
    let used = PARTS.into_iter().find(|(part, _)| is_spread(part));
    used.map_or(0.0, |(part, normal)| quantile(&deviations, part) / normal)
}

/// The place of a quantile of sorted values.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a place in a slice"
)]
fn place(sorted: &[f64], part: f64) -> usize {
    (part * (sorted.len() - 1) as f64) as usize
}

/// A quantile of the mid-distribution of sorted values, in which half of those that are equal are below their
/// value: that of rounded values does not jump (Y. Ma, M. Genton, E. Parzen: Asymptotic properties of sample
/// quantiles of discrete distributions. Annals of the Institute of Statistical Mathematics 63, 2011).
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let wanted = part * sorted.len() as f64;
    let (mut below, mut last) = (0, None::<(f64, f64)>);
    for equal in sorted.chunk_by(|a, b| (a - b).abs() <= LEAST) {
        let at = below as f64 + equal.len() as f64 / 2.0;
        match last {
            _ if at < wanted => last = Some((at, equal[0])),
            None => return equal[0],
            Some((before, value)) => {
                let weight = (wanted - before) / (at - before);
                return value * (1.0 - weight) + equal[0] * weight;
            }
        }
        below += equal.len();
    }
    last.map_or(0.0, |(_, value)| value)
}

/// The number of scales for a set of that many values.
fn scales(count: usize) -> f64 {
    let each = 1.0 - (1.0 - FALSE_OUTLIERS).powf(1.0 / count as f64);
    Normal::standard().inverse_cdf(1.0 - each) * (1.0 + SMALL_SETS / count as f64)
}

#[cfg(test)]
mod tests;
