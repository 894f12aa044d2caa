//! The main metric of a set, run by run: whether its runs are stationary, which source of noise explains why
//! they differ, and what a comparison with another set can show.
//!
//! One metric stands for each set, so that few of all sets have a false alarm: the run time of a program, the
//! noise, or else the first metric. Of several CPUs it is the mean.

use recording::CulpritKind;
use serde::Serialize;
use stats::{Detectable, Explained, Pattern, Unit};

use crate::comparison::detectable;
use crate::comparison::run_numbers::RunNumbers;
use crate::comparison::run_set::RunSet;
use crate::comparison::samples::{RunSpread, SMALL};
use crate::metrics::table::NOISE_PPM;

/// Metrics that stand for a set, before its first one.
const MAIN: [&str; 2] = [RUN_NS, NOISE_PPM];
const RUN_NS: &str = "run_ns";
/// With fewer runs, no order is so improbable that a source explains it.
const RUNS_MIN: usize = 6;

/// The time that each run lost to a source of noise.
struct Source {
    kind: CulpritKind,
    name: String,
    times: Vec<f64>,
}

/// The main metric of a set.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MainMetric {
    /// Its key.
    pub metric: String,
    /// The number of runs that have it.
    pub runs: usize,
    /// The run with the largest value, from 1.
    pub largest_run: usize,
    /// What its values do from run to run, if they are not stationary.
    pub pattern: Option<Pattern>,
    /// Why its values differ.
    pub spread: SpreadCause,
    /// What a comparison with another set of as many runs can show; null with fewer than six runs.
    pub detectable: Option<Detectable>,
    /// Its unit.
    #[serde(skip)]
    pub unit: Unit,
}

/// Why the values of runs differ.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "cause", rename_all = "snake_case")]
pub enum SpreadCause {
    /// They do not differ.
    Equal,
    /// Too few runs to say it.
    FewRuns,
    /// Single events were not traced in each run.
    Untraced,
    /// No source of noise explains it.
    NoSource,
    /// The time that was lost to a source.
    Source {
        /// The kind of event.
        kind: CulpritKind,
        /// The name of the interrupt, the thread, ...
        name: String,
        /// How much it explains.
        #[serde(flatten)]
        explained: Explained,
    },
}

impl RunSet {
    /// The main metric; `None` without a metric, and for a single run.
    pub fn main_metric(&self) -> Option<MainMetric> {
        let (metric, values) = self.main_values()?;
        let in_order = |a: &usize, b: &usize| values[*a].total_cmp(&values[*b]);
        Some(MainMetric {
            runs: values.len(),
            largest_run: (0..values.len()).max_by(in_order)? + 1,
            pattern: stats::pattern(&values),
            spread: self.cause(&metric, &values),
            detectable: detectable::of_set(self, &metric),
            unit: RunNumbers::unit(&metric)?,
            metric,
        })
    }

    /// The pattern of the main metric.
    pub fn pattern(&self) -> Option<(Pattern, String)> {
        let (metric, values) = self.main_values()?;
        Some((stats::pattern(&values)?, metric))
    }

    /// The key of the main metric.
    pub fn main_key(&self) -> Option<&str> {
        let all = || self.observations.iter().flat_map(|one| &one.metrics);
        let own = |key: &&str| all().any(|one| one.metric == *key);
        MAIN.into_iter().find(own).or_else(|| Some(all().next()?.metric.as_str()))
    }

    /// The key of the main metric, and its value in each run that has it, in the order in which they were taken.
    fn main_values(&self) -> Option<(String, Vec<f64>)> {
        let key = self.main_key().filter(|_| self.runs() > 1)?.to_owned();
        let value = |run: usize| {
            let own =
                self.observations[run].metrics.iter().filter(|one| one.metric == key);
            let values: Vec<f64> = own.map(|one| one.value).collect();
            (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
        };
        let values: Vec<f64> = self.in_time().into_iter().filter_map(value).collect();
        (values.len() > 1).then_some((key, values))
    }

    /// The places of the runs, in the order in which they were taken: files may be named in another one.
    fn in_time(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.runs()).collect();
        order.sort_by_key(|run| self.identities.get(*run).map(|one| one.taken.as_str()));
        order
    }

    /// Why the values of the main metric differ.
    fn cause(&self, metric: &str, values: &[f64]) -> SpreadCause {
        if values.windows(2).all(|pair| pair[0] == pair[1]) {
            return SpreadCause::Equal;
        }
        let Some(sources) = self.lost_times(metric, values) else {
            return SpreadCause::Untraced;
        };
        if values.len() < RUNS_MIN {
            return SpreadCause::FewRuns;
        }
        let times: Vec<&[f64]> = sources.iter().map(|one| one.times.as_slice()).collect();
        let Some(explained) = stats::explained(values, &times) else {
            return SpreadCause::NoSource;
        };
        let Source { kind, name, .. } = &sources[explained.source];
        SpreadCause::Source { kind: *kind, name: name.clone(), explained }
    }

    /// What each run lost to each source that has at least 1 % of it, in the unit of the metric. `None` if single
    /// events were not traced, or if the metric is neither a run time nor a share of lost time.
    fn lost_times(&self, metric: &str, values: &[f64]) -> Option<Vec<Source>> {
        let ready = |run: usize| self.programs.get(run)?.ready_ns;
        let whole = |(run, value): (&usize, &f64)| match metric {
            NOISE_PPM => Some(1e6),
            RUN_NS => Some(ready(*run).map_or(*value, |ready| ready.get() as f64)),
            _ => None,
        };
        let order = self.in_time();
        let wholes: Vec<f64> =
            order.iter().zip(values).map(whole).collect::<Option<_>>()?;
        let culprits = self.culprit_spreads();
        let all: f64 = culprits.iter().map(|one| one.mean).sum();
        let large = culprits.iter().filter(|one| one.mean >= SMALL * all);
        let source = |one: &RunSpread| {
            let key = one.quantity.culprit()?;
            let part = |(run, whole): (&usize, &f64)| self.lost_share(*run, key) * whole;
            let times = order.iter().zip(&wholes).map(part);
            Some(Source { kind: key.0, name: key.1.to_owned(), times: times.collect() })
        };
        let is_known = self.is_traced() && values.len() == self.runs();
        is_known.then(|| large.filter_map(source).collect())
    }

    /// The share of its time that a run lost to a source.
    fn lost_share(&self, run: usize, key: (CulpritKind, &str)) -> f64 {
        let all = self.observations[run].culprits.iter().flatten();
        all.filter(|one| one.key() == key).map(|one| one.ppm.get() / 1e6).sum()
    }
}

#[cfg(test)]
mod tests {
    use units::Ppm;

    use super::*;
    use crate::comparison::observation::{CulpritNumber, MetricNumber};
    use crate::random::Random;

    /// A run of a program, so many seconds after the first, that lost these times to a timer and to a thread.
    fn run(second: usize, ms: f64, lost: Option<[f64; 2]>) -> RunNumbers {
        let culprit = |(kind, name, ms): (CulpritKind, &str, f64)| CulpritNumber {
            kind,
            name: name.to_owned(),
            ppm: Ppm::new(ms * 1e4),
        };
        let culprits = lost.map(|[timer, thread]| {
            let both = [
                (CulpritKind::Timer, "tick", timer),
                (CulpritKind::Thread, "kworker/0", thread),
            ];
            both.map(culprit).to_vec()
        });
        RunNumbers {
            taken: format!("2026-11-28T04:{:02}:{:02}Z", second / 60, second % 60),
            metrics: vec![MetricNumber {
                metric: "run_ns".to_owned(),
                cpu: None,
                value: ms * 1e6,
                better: None,
            }],
            culprits,
            facts: Vec::new(),
            parameters: Vec::new(),
            doubts: Vec::new(),
        }
    }

    fn set(runs: &[RunNumbers]) -> RunSet {
        let mut set = RunSet::default();
        runs.iter().for_each(|run| set.add_numbers(run));
        set
    }

    /// Check that runs are in the order in which they were taken, whatever the order of their files.
    #[test]
    fn order_of_runs() {
        let mut runs: Vec<RunNumbers> = (0..20)
            .map(|at| run(at, 100.0 + at as f64 + (at * 7 % 5) as f64 / 10.0, None))
            .collect();
        let mixed: Vec<RunNumbers> =
            (0..20).map(|at| runs[at * 7 % 20].clone()).collect();
        for set in [set(&runs), set(&mixed)] {
            let main = set.main_metric().unwrap();
            assert_eq!((main.metric.as_str(), main.runs), ("run_ns", 20));
            assert_eq!(main.largest_run, 20);
            let Some(Pattern::Trend { per_run, .. }) = main.pattern else {
                panic!("{main:?}")
            };
            assert!((per_run / 1e6 - 1.0).abs() < 0.05, "{per_run}");
            assert_eq!(main.spread, SpreadCause::Untraced);
        }
        runs.truncate(1);
        assert_eq!(set(&runs).main_metric(), None);
        assert_eq!(RunSet::default().main_metric(), None);
    }

    /// Check that the thread whose time is added to the run time is named, with its part of the variance, and
    /// that a timer that takes more time in each run is not.
    #[test]
    fn sources() {
        let mut random = Random::new(61);
        let mut traced = |count: usize, adds: f64| {
            let runs = (0..count).map(|at| {
                let (timer, thread) =
                    (20.0 + random.normal(), 3.0 * random.exponential());
                let ms = 100.0 + adds * thread + 1.5 * random.normal();
                run(at, ms, Some([timer, thread]))
            });
            set(&runs.collect::<Vec<_>>()).main_metric().unwrap().spread
        };
        let SpreadCause::Source { kind, name, explained } = traced(40, 1.0) else {
            panic!("no source")
        };
        assert_eq!((kind, name.as_str()), (CulpritKind::Thread, "kworker/0"));
        // The variance of the thread's time is 9, and that of the rest 2.25.
        let share = explained.share_ppm.get() / 1e6;
        assert!((0.65..0.95).contains(&share), "{share}");
        assert_eq!(traced(40, 0.0), SpreadCause::NoSource);
        assert_eq!(traced(5, 1.0), SpreadCause::FewRuns);
        assert_eq!(
            set(&[0, 1, 2].map(|at| run(at, 1.0, None))).cause(RUN_NS, &[1.0; 3]),
            SpreadCause::Equal
        );
    }

    /// Check that runs are recognised by what they are, and how many two sets have in common.
    #[test]
    fn common_runs() {
        let runs: Vec<RunNumbers> =
            (0..9).map(|at| run(at, 100.0 + at as f64, None)).collect();
        let [all, first, other] = [&runs[..], &runs[..4], &[run(0, 50.0, None)]].map(set);
        assert_eq!((all.runs_in(&all.clone()), first.runs_in(&all)), (9, 4));
        assert_eq!((all.runs_in(&first), other.runs_in(&all)), (4, 0));
        // The same run twice is in a set with one of it once.
        assert_eq!(set(&[runs[0].clone(), runs[0].clone()]).runs_in(&all), 1);
    }

    /// Check the keys of the JSON contract.
    #[test]
    fn contract() {
        let runs: Vec<RunNumbers> = (0..8)
            .map(|at| run(at, [200.0, 100.0, 101.0, 99.0][at.min(1 + at % 3)], None))
            .collect();
        let main = serde_json::to_value(set(&runs).main_metric()).unwrap();
        let pattern = serde_json::json!({
            "pattern": "first_runs", "runs": 1, "first": 200e6, "others": 100e6,
            "change_ppm": 1e6,
        });
        assert_eq!(main["pattern"], pattern, "{main:#}");
        assert_eq!(main["spread"], serde_json::json!({"cause": "untraced"}));
        for key in ["metric", "runs", "largest_run", "detectable"] {
            assert!(!main[key].is_null(), "{key}: {main:#}");
        }
    }
}
