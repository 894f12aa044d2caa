//! What comparisons of sets can show of a metric, beside all other metrics and sources that they compare.

use stats::{Detectable, FALSE_DISCOVERIES, rank_correlation};
use units::Ppm;

use crate::comparison::run_set::RunSet;
use crate::comparison::samples::{Pair, pairs};

/// The difference whose number of runs is reported: 1 %.
const INTEREST: Ppm = Ppm::new(10_000.0);
/// Metrics whose ranks correlate as much over the runs of a set are taken to differ together.
const TOGETHER: f64 = 0.8;

/// What a comparison of a metric with another set of as many runs can show.
pub(crate) fn of_set(set: &RunSet, metric: &str) -> Option<Detectable> {
    let all = pairs(set, set).compared;
    let main = widest(set, metric, &all)?;
    Detectable::of(&main.base, level(main, &all, all.len()), INTEREST)
}

/// What a comparison of a metric would have shown, among all pairs of two sets, and so many of all sets.
pub(crate) fn of_pairs(
    base: &RunSet,
    metric: &str,
    all: &[Pair],
    comparisons: usize,
) -> Option<Detectable> {
    let main = widest(base, metric, all)?;
    let level = level(main, all, comparisons);
    Detectable::of_both([&main.base, &main.other], level, INTEREST)
}

/// The values of a metric; of several CPUs, of the one on which it differs most from run to run.
fn widest<'a>(set: &RunSet, metric: &str, all: &'a [Pair]) -> Option<&'a Pair> {
    let spreads = set.spreads();
    let spread = |pair: &&Pair| {
        let own = spreads.iter().find(|one| one.quantity == pair.quantity);
        own.and_then(|one| one.spread_ppm).map_or(0.0, Ppm::get)
    };
    let own = all.iter().filter(|one| one.quantity.metric() == Some(metric));
    own.max_by(|a, b| spread(a).total_cmp(&spread(b)))
}

/// The p-value at which the procedure of Benjamini and Hochberg reports a difference of a metric and of those
/// that differ together with it, if nothing else differs.
fn level(main: &Pair, all: &[Pair], comparisons: usize) -> f64 {
    let is_together = |one: &&Pair| {
        one.quantity.metric().is_some()
            && one.base.len() == main.base.len()
            && (one.quantity == main.quantity
                || rank_correlation(&one.base, &main.base) >= TOGETHER)
    };
    let together = all.iter().filter(is_together).count();
    FALSE_DISCOVERIES * together as f64 / comparisons as f64
}
