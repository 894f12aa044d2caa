//! The pattern that explains a series best.
//!
//! Each pattern predicts a value for each run. Of two patterns the better one has smaller deviations, as sums of
//! absolute values: one disturbed run decides nothing. A pattern with more parameters fits better by chance;
//! each parameter costs the logarithm of the number of values (G. Schwarz: Estimating the dimension of a model.
//! Annals of Statistics 6, 1978). Two modes without an order have a parameter for each value: its mode.

use crate::comparison::statistic::median;
use crate::relative::relative;
use crate::stationary::pattern::{ModeOrder, Pattern};

/// Deviations smaller than this part of the range do not count: constant levels would fit infinitely well.
const SMALLEST: f64 = 1e-3;
/// Longer series have a slope of this many values at equal distances: all pairs would be too many.
const SLOPE_VALUES: usize = 1_000;
/// The half width of an interval of 95 %, in standard deviations.
const SIGMAS: f64 = 1.96;

/// What is known about a series.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Signs {
    /// Its order is no chance.
    pub(crate) is_ordered: bool,
    /// It has two modes.
    pub(crate) has_two_modes: bool,
    /// So many first values differ from all others.
    pub(crate) first: usize,
}

/// A pattern, and how badly it fits.
type Fit = (f64, Pattern);

/// The best fitting pattern of those for which there are signs.
pub(crate) fn best(values: &[f64], sorted: &[f64], signs: Signs) -> Option<Pattern> {
    let (is_ordered, has_modes) = (signs.is_ordered, signs.has_two_modes);
    let mut fits: Vec<Fit> = Vec::new();
    if signs.first > 0 {
        fits.extend(first_runs(values, signs.first));
    }
    if is_ordered {
        fits.extend(trend(values));
    }
    if is_ordered || has_modes {
        fits.extend(jump(values));
        fits.extend(alternating(values));
    }
    if has_modes {
        fits.extend(modes(values, sorted));
    }
    fits.into_iter().min_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, pattern)| pattern)
}

/// How badly deviations fit, with so many parameters: the smaller, the better.
fn misfit(values: &[f64], deviations: f64, parameters: f64) -> f64 {
    let [min, max] =
        [f64::min, f64::max].map(|of| values.iter().copied().reduce(of).unwrap_or(0.0));
    let count = values.len() as f64;
    let mean = (deviations / count).max(SMALLEST * (max - min));
    2.0 * count * mean.ln() + parameters * count.ln()
}

/// The median of values, and the sum of their deviations from it.
fn level(values: &[f64]) -> (f64, f64) {
    let level = median(&mut values.to_vec());
    (level, values.iter().map(|value| (value - level).abs()).sum())
}

fn first_runs(values: &[f64], runs: usize) -> Option<Fit> {
    let (own, others) = values.split_at_checked(runs)?;
    let ((first, of_first), (others, of_others)) = (level(own), level(others));
    let change_ppm = relative(first, others);
    let pattern = Pattern::FirstRuns { runs, first, others, change_ppm };
    Some((misfit(values, of_first + of_others, 2.0), pattern))
}

/// The jump with the smallest deviations. A part has at least a tenth of the values, and two.
fn jump(values: &[f64]) -> Option<Fit> {
    let least = (values.len() / 10).max(2);
    let places = least..(values.len() + 1).saturating_sub(least);
    let at = |place: usize| {
        let (before, after) = values.split_at(place);
        let ((from, one), (to, other)) = (level(before), level(after));
        let change_ppm = relative(to, from);
        (one + other, Pattern::Jump { run: place + 1, from, to, change_ppm })
    };
    let (deviations, pattern) = places.map(at).min_by(|(a, _), (b, _)| a.total_cmp(b))?;
    Some((misfit(values, deviations, 3.0), pattern))
}

/// The line through the values: P. K. Sen: Estimates of the regression coefficient based on Kendall's tau.
/// Journal of the American Statistical Association 63, 1968.
fn trend(values: &[f64]) -> Option<Fit> {
    let step = values.len().div_ceil(SLOPE_VALUES);
    let places: Vec<usize> = (0..values.len()).step_by(step).collect();
    let mut slopes: Vec<f64> = Vec::new();
    for (at, left) in places.iter().enumerate() {
        let slope =
            |right: &usize| (values[*right] - values[*left]) / (right - left) as f64;
        slopes.extend(places[at + 1..].iter().map(slope));
    }
    if slopes.is_empty() {
        return None;
    }
    slopes.sort_unstable_by(f64::total_cmp);
    let per_run = median(&mut slopes.clone());
    let lines = values.iter().enumerate().map(|(at, value)| value - per_run * at as f64);
    let (from, deviations) = level(&lines.collect::<Vec<_>>());
    let pattern = Pattern::Trend {
        per_run,
        interval: interval(&slopes, places.len()),
        per_run_ppm: relative(from + per_run, from),
        from,
        to: from + per_run * (values.len() - 1) as f64,
    };
    Some((misfit(values, deviations, 2.0), pattern))
}

/// The slopes between which the true one is, by the standard deviation of Kendall's statistic.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "from 0 to the number of slopes"
)]
fn interval(slopes: &[f64], values: usize) -> [f64; 2] {
    let n = values as f64;
    let deviation = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    let outside = (slopes.len() as f64 - SIGMAS * deviation) / 2.0;
    let low = outside.floor().max(0.0) as usize;
    [slopes[low], slopes[slopes.len() - 1 - low]]
}

/// The levels of every other value.
fn alternating(values: &[f64]) -> Option<Fit> {
    let own =
        |first: usize| values.iter().skip(first).step_by(2).copied().collect::<Vec<_>>();
    let groups = [own(0), own(1)];
    if groups[1].is_empty() {
        return None;
    }
    let [mut one, mut other] = groups.map(|group| (level(&group), group.len()));
    if one.0.0 > other.0.0 {
        std::mem::swap(&mut one, &mut other);
    }
    let (((lower, of_lower), lower_runs), ((upper, of_upper), upper_runs)) = (one, other);
    let pattern = Pattern::TwoModes {
        modes: [lower, upper],
        runs: [lower_runs, upper_runs],
        run: 2,
        changes: values.len() - 1,
        order: ModeOrder::Alternating,
    };
    Some((misfit(values, of_lower + of_upper, 2.0), pattern))
}

/// The two groups of values with the smallest deviations, and their order.
fn modes(values: &[f64], sorted: &[f64]) -> Option<Fit> {
    let split = |at: usize| (level(&sorted[..at]), level(&sorted[at..]));
    let deviations = |at: &usize| {
        let ((_, lower), (_, upper)) = split(*at);
        lower + upper
    };
    let is_between = |at: &usize| sorted[at - 1] < sorted[*at];
    let places = (1..sorted.len()).filter(is_between);
    let at = places.min_by(|a, b| deviations(a).total_cmp(&deviations(b)))?;
    let ((lower, _), (upper, _)) = split(at);
    let is_upper: Vec<bool> = values.iter().map(|value| *value >= sorted[at]).collect();
    let runs = [at, sorted.len() - at];
    let changes = is_upper.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let order = order(runs, changes);
    let labels = match order {
        ModeOrder::Alternating => 0.0,
        ModeOrder::Stretches | ModeOrder::Random => 2.0 * information(runs),
    };
    let pattern = Pattern::TwoModes {
        modes: [lower, upper],
        runs,
        run: is_upper.iter().position(|one| *one != is_upper[0])? + 1,
        changes,
        order,
    };
    Some((misfit(values, deviations(&at), 2.0) + labels, pattern))
}

/// The order of so many values of each mode that change so often. By chance, a change follows a value with the
/// probability of the other mode (A. Wald, J. Wolfowitz: On a test whether two samples are from the same
/// population. Annals of Mathematical Statistics 11, 1940).
fn order(runs: [usize; 2], changes: usize) -> ModeOrder {
    let [a, b] = runs.map(|count| count as f64);
    let (all, changes) = (a + b, changes as f64);
    let mean = 2.0 * a * b / all;
    let deviation = (mean * (mean - 1.0).max(0.0) / (all - 1.0)).sqrt();
    if changes >= 0.9 * (all - 1.0) {
        ModeOrder::Alternating
    } else if changes < mean - 2.0 * deviation {
        ModeOrder::Stretches
    } else {
        ModeOrder::Random
    }
}

/// The information of the modes of all values, in nats.
fn information(runs: [usize; 2]) -> f64 {
    let all = (runs[0] + runs[1]) as f64;
    runs.map(|count| count as f64 * (all / count as f64).ln()).iter().sum()
}
