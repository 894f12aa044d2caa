//! One metric of several sets, compared with a base: the mean over the CPUs of each run.
//!
//! A question about one number has one answer, and no false alarm of the metrics beside it. What differs on one CPU
//! only is diluted by the others.

use stats::adjusted;
use units::Ppm;

use crate::comparison::Compared;
use crate::comparison::observation::MetricNumber;
use crate::comparison::quantity::Quantity;
use crate::comparison::run_set::RunSet;
use crate::comparison::samples::Pair;

/// Compares a metric of each of the other sets with that of the base; `None` for a set without it. The number of
/// sets is corrected for. A relative difference of at most `smallest` is of no interest.
pub fn compare_metric(
    base: &RunSet,
    others: &[RunSet],
    metric: &str,
    smallest: Ppm,
) -> Vec<Option<Compared>> {
    let pairs: Vec<Option<Pair>> =
        others.iter().map(|other| pair(base, other, metric)).collect();
    let p_values: Vec<f64> = pairs.iter().flatten().map(Pair::p_value).collect();
    let mut p_values = p_values.iter().copied().zip(adjusted(&p_values));
    let mut compared = |pair: Pair| Some(pair.compared(p_values.next()?, smallest));
    pairs.into_iter().map(|pair| pair.and_then(&mut compared)).collect()
}

fn pair(base: &RunSet, other: &RunSet, metric: &str) -> Option<Pair> {
    let all = base.observations.iter().flat_map(|one| &one.metrics);
    let (unit, better) =
        all.filter(|one| one.metric == metric).find_map(MetricNumber::meaning)?;
    let [base, other] = [base, other].map(|set| means(set, metric));
    let has_both = !base.is_empty() && !other.is_empty();
    has_both.then(|| Pair {
        quantity: Quantity::Metric { metric: metric.to_owned(), cpu: None },
        unit,
        better,
        base,
        other,
        block: None,
        inflation: 1.0,
    })
}

/// The mean over the CPUs in each run that has the metric.
fn means(set: &RunSet, metric: &str) -> Vec<f64> {
    let mean = |values: Vec<f64>| {
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let runs = set.observations.iter().map(|run| {
        let own = run.metrics.iter().filter(|one| one.metric == metric);
        own.map(|one| one.value).collect::<Vec<f64>>()
    });
    runs.filter_map(mean).collect()
}

#[cfg(test)]
mod tests {
    use stats::Conclusion;
    use units::Cpu;

    use super::*;
    use crate::comparison::run_numbers::RunNumbers;

    /// Runs with these shares of noise on CPU 0, and twice as much on CPU 1.
    fn set(noise: &[f64]) -> RunSet {
        let mut set = RunSet::default();
        for (at, value) in noise.iter().enumerate() {
            let of = |cpu, value| MetricNumber {
                metric: "noise_ppm".to_owned(),
                cpu: Some(Cpu::new(cpu)),
                value,
                better: None,
            };
            set.add_numbers(&RunNumbers {
                taken: format!("2026-11-28T04:00:{at:02}Z"),
                metrics: vec![of(0, *value), of(1, 2.0 * value)],
                culprits: None,
                facts: Vec::new(),
                parameters: Vec::new(),
                doubts: Vec::new(),
            });
        }
        set
    }

    /// Check that the mean over CPUs is compared once for each set, and that a set without runs has no comparison.
    #[test]
    fn means_of_cpus() {
        let base = set(&[100.0, 101.0, 102.0, 103.0, 104.0, 105.0]);
        let half = set(&[50.0, 50.5, 51.0, 51.5, 52.0, 52.5]);
        let others = [half, base.clone(), RunSet::default()];
        let found = compare_metric(&base, &others, "noise_ppm", Ppm::new(1e5));
        let lower = found[0].as_ref().unwrap();
        assert_eq!(lower.conclusion, Conclusion::Lower, "{lower:?}");
        assert_eq!(lower.centers, [Some(153.75), Some(76.875)]);
        assert!(!found[1].as_ref().unwrap().is_difference());
        assert!(found[2].is_none());
        assert!(
            compare_metric(&base, &others, "none", Ppm::new(1e5))
                .iter()
                .all(Option::is_none)
        );
    }
}
