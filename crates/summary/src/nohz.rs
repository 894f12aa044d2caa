//! The summaries of `nohz test` and `nohz stress`.

use recording::{KeptBy, NohzSeries, NohzSpec, WaitingThread};
use serde::Serialize;
use stats::{Distribution, Waits, quantile};
use units::{Cpu, Nanos};

use crate::nohz::remaining::RemainingSummary;
use crate::nohz::tick_back::TickReturnSummary;
use crate::proc_counts::ProcSummary;

pub(crate) mod remaining;
pub(crate) mod tick_back;

/// The result of `nohz test`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NohzTestSummary {
    /// The CPU.
    pub cpu: Cpu,
    /// Whether the tick stopped; null if the test was ended early.
    pub entered: Option<bool>,
    /// The median of the times until it stopped; if it did not, the time waited.
    pub wait_ns: Option<Nanos>,
    /// The largest deviation of a try; null for fewer than two, or if the tick did not stop.
    pub wait_deviation_ns: Option<Nanos>,
    /// Whether the thread left the CPU from time to time.
    pub forced: bool,
    /// How often it left.
    pub left: u32,
    /// The tick dependencies, the most frequent first; null if they could not be traced.
    pub kept_by: Option<Vec<KeptBy>>,
    /// The other threads that were runnable on the CPU while the tick did not stop.
    pub others: Vec<WaitingThread>,
    /// The counters of `/proc` while the stopped tick was observed.
    pub observed: Option<ProcSummary>,
    /// The timer interrupts of a second observation, by the timers that expired in them; null if
    /// none remained in the first, or if they could not be traced.
    pub remaining: Option<RemainingSummary>,
    /// Whether the tick restarted then; null if it was not observed.
    pub came_back: Option<bool>,
    /// Why it restarted; null if it did not, or if the cause could not be traced.
    pub brought_back: Option<TickReturnSummary>,
}

/// The result of `nohz stress`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NohzStressSummary {
    /// The CPU.
    pub cpu: Cpu,
    /// Whether the thread left the CPU from time to time while it waited.
    pub forced: bool,
    /// The number of tries, including a failed one.
    pub tries: u64,
    /// The number of failed tries: at most one, because it ends the test.
    pub failures: u64,
    /// The duration of all tries.
    pub elapsed_ns: Nanos,
    /// The times until the tick stopped; null if it never did.
    pub wait_ns: Option<Distribution<Waits>>,
    /// The tick dependencies, the most frequent first; null if they could not be traced.
    pub kept_by: Option<Vec<KeptBy>>,
    /// The other threads that were runnable on the CPU while the tick did not stop.
    pub others: Vec<WaitingThread>,
}

impl NohzTestSummary {
    /// Summarizes all tries, or only the last one if it failed.
    pub fn of(spec: &NohzSpec, series: &NohzSeries) -> Self {
        let last = series.tries.last();
        let has_failed = last.is_some_and(|tried| !tried.entered);
        let waits = series.tries.iter().map(|tried| tried.wait_ns);
        let mut waits: Vec<Nanos> =
            waits.skip(if has_failed { series.tries.len() - 1 } else { 0 }).collect();
        waits.sort_unstable();
        let wait_ns = quantile(&waits, 500_000);
        let dependencies = series.kept_by.as_deref().unwrap_or_default();
        let deviation =
            |wait: &Nanos| Some(Nanos::from_nanos(wait.get().abs_diff(wait_ns?.get())));
        Self {
            cpu: spec.cpu,
            entered: last.map(|tried| tried.entered),
            wait_ns,
            wait_deviation_ns: waits
                .iter()
                .filter_map(deviation)
                .max()
                .filter(|_| waits.len() > 1),
            forced: spec.forced,
            left: last.map_or(0, |tried| tried.left),
            kept_by: kept_by(series),
            others: series.others.clone(),
            observed: series.observed.as_ref().map(ProcSummary::of),
            remaining: series.remaining.as_ref().map(RemainingSummary::of),
            came_back: series.came_back(),
            brought_back: series
                .back
                .as_ref()
                .map(|back| TickReturnSummary::of(back, dependencies)),
        }
    }
}

impl NohzStressSummary {
    /// Summarizes all tries.
    pub fn of(spec: &NohzSpec, series: &NohzSeries) -> Self {
        let entered = series.tries.iter().filter(|tried| tried.entered);
        let waits: Vec<Nanos> = entered.map(|tried| tried.wait_ns).collect();
        let tries = series.tries.len() as u64;
        let successes = waits.len() as u64;
        Self {
            cpu: spec.cpu,
            forced: spec.forced,
            tries,
            failures: tries - successes,
            elapsed_ns: series.elapsed_ns,
            wait_ns: (successes > 0).then(|| Distribution::of(waits)),
            kept_by: kept_by(series),
            others: series.others.clone(),
        }
    }
}

fn kept_by(series: &NohzSeries) -> Option<Vec<KeptBy>> {
    let mut all = series.kept_by.clone()?;
    all.sort_by_key(|dependency| std::cmp::Reverse(dependency.times));
    Some(all)
}

#[cfg(test)]
mod tests {
    use recording::NohzTry;

    use super::*;

    fn spec() -> NohzSpec {
        NohzSpec {
            cpu: Cpu::new(1),
            tries: None,
            limit_ns: Nanos::from_secs(1),
            forced: true,
            fifo: None,
            observe_ns: Nanos::ZERO,
            phases: None,
        }
    }

    fn series(tries: &[(bool, u64)]) -> NohzSeries {
        let of = |&(entered, wait)| NohzTry {
            entered,
            wait_ns: Nanos::from_micros(wait),
            left: 1,
        };
        let kept = |name: &str, times| KeptBy { dependency: name.to_owned(), times };
        NohzSeries {
            elapsed_ns: Nanos::from_secs(3),
            tries: tries.iter().map(of).collect(),
            kept_by: Some(vec![kept("RCU", 2), kept("SCHED", 23)]),
            others: vec![WaitingThread {
                tid: 12,
                name: "sh".to_owned(),
                rt_priority: 0,
            }],
            observed: None,
            back: None,
            remaining: None,
        }
    }

    /// Check the keys, and that a failed try is reported.
    #[test]
    fn test_contract() {
        let found = NohzTestSummary::of(&spec(), &series(&[(true, 500), (false, 9_000)]));
        let expected = serde_json::json!({
            "cpu": 1, "entered": false, "wait_ns": 9_000_000, "wait_deviation_ns": null,
            "forced": true, "left": 1,
            "kept_by": [{"dependency": "SCHED", "times": 23}, {"dependency": "RCU", "times": 2}],
            "others": [{"tid": 12, "name": "sh", "rt_priority": 0}],
            "observed": null, "remaining": null, "came_back": null, "brought_back": null,
        });
        assert_eq!(serde_json::to_value(found).unwrap(), expected);
        let tries = [(true, 500), (true, 900), (true, 300), (true, 600)];
        let found = NohzTestSummary::of(&spec(), &series(&tries));
        let micros = |micros| Some(Nanos::from_micros(micros));
        assert_eq!((found.wait_ns, found.wait_deviation_ns), (micros(500), micros(400)));
        let none =
            NohzTestSummary::of(&spec(), &NohzSeries { kept_by: None, ..series(&[]) });
        assert_eq!((none.entered, none.wait_ns, none.kept_by), (None, None, None));
    }

    /// Check the keys, and that the time of a failed try is not counted.
    #[test]
    fn stress_contract() {
        let found = NohzStressSummary::of(
            &spec(),
            &series(&[(true, 500), (true, 300), (false, 9_000)]),
        );
        let expected = serde_json::json!({
            "cpu": 1, "forced": true, "tries": 3, "failures": 1, "elapsed_ns": 3_000_000_000_u64,
            "wait_ns": {"min": 300_000, "p50": 300_000, "p99": 500_000, "max": 500_000},
            "kept_by": [{"dependency": "SCHED", "times": 23}, {"dependency": "RCU", "times": 2}],
            "others": [{"tid": 12, "name": "sh", "rt_priority": 0}],
        });
        assert_eq!(serde_json::to_value(found).unwrap(), expected);
        assert_eq!(NohzStressSummary::of(&spec(), &series(&[(false, 9)])).wait_ns, None);
    }
}
