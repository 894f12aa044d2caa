//! The summary of `wakers`: the threads that wake up most often. The sums include all others.

use std::cmp::Reverse;

use recording::{Partner, WakersSeries, WokenThread};
use serde::Serialize;
use stats::mean;
use units::{Nanos, PerSecond, Ppm};

/// The number of wakers, and of preempted tasks, that are listed for a thread.
const PARTNERS: usize = 5;

/// A waker of a thread, or a task that it preempted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartnerSummary {
    /// The thread ID; null if it is no thread.
    pub tid: Option<u32>,
    /// The name of the thread, or `interrupt`, `softirq`, `idle`.
    pub name: String,
    /// The number of wake-ups, or of preemptions.
    pub count: u64,
    /// That per second; null if no time passed.
    pub count_hz: Option<PerSecond>,
}

/// A thread that was woken.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WokenSummary {
    /// The thread ID.
    pub tid: u32,
    /// The process ID.
    pub pid: u32,
    /// The name.
    pub name: String,
    /// The kernel's priority: 0 to 98 real-time, -1 deadline, 100 to 139 ordinary.
    pub prio: i32,
    /// The number of its wake-ups.
    pub wakeups: u64,
    /// That per second; null if no time passed.
    pub wakeups_hz: Option<PerSecond>,
    /// CPU time from these wake-ups until it slept again; null if unknown.
    pub run_ns: Option<Nanos>,
    /// The mean of one wake-up; null without one, or if unknown.
    pub run_ns_mean: Option<Nanos>,
    /// `run_ns` as a share of one CPU; null if no time passed, or if unknown.
    pub run_ppm: Option<Ppm>,
    /// How often it preempted a task.
    pub preempted: u64,
    /// That per second; null if no time passed.
    pub preempted_hz: Option<PerSecond>,
    /// The five most frequent wakers.
    pub woken_by: Vec<PartnerSummary>,
    /// The five tasks that it preempted most often.
    pub victims: Vec<PartnerSummary>,
}

/// Wake-ups of threads, and preemptions by them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WakersSummary {
    /// The duration of the measurement.
    pub elapsed_ns: Nanos,
    /// All wake-ups.
    pub wakeups: u64,
    /// That per second; null if no time passed.
    pub wakeups_hz: Option<PerSecond>,
    /// The number of threads that woke up.
    pub woken: u64,
    /// The threads that woke up most often, the most frequent first.
    pub threads: Vec<WokenSummary>,
}

impl WakersSummary {
    /// Summarizes the `top` threads, and all wake-ups including lost ones.
    pub fn of(top: u32, series: &WakersSeries) -> Self {
        let elapsed = series.elapsed_ns;
        let each = series.threads.iter().map(|thread| thread.wakeups);
        let wakeups = each.fold(series.lost, u64::saturating_add);
        let woken = series.threads.len() as u64;
        let mut threads: Vec<&WokenThread> = series.threads.iter().collect();
        threads.sort_by_key(|thread| (Reverse(thread.wakeups), thread.tid));
        threads.truncate(usize::try_from(top).unwrap_or(usize::MAX));
        let threads = threads.iter().map(|thread| WokenSummary::of(elapsed, thread));
        Self {
            elapsed_ns: elapsed,
            wakeups,
            wakeups_hz: PerSecond::of(wakeups, elapsed),
            woken,
            threads: threads.collect(),
        }
    }

    /// The listed thread that preempted most often; `None` if none did.
    pub fn most_preempting(&self) -> Option<&WokenSummary> {
        let preempting = self.threads.iter().filter(|thread| thread.preempted > 0);
        preempting.min_by_key(|thread| (Reverse(thread.preempted), thread.tid))
    }
}

impl WokenSummary {
    fn of(elapsed: Nanos, thread: &WokenThread) -> Self {
        Self {
            tid: thread.tid,
            pid: thread.pid,
            name: thread.name.clone(),
            prio: thread.prio,
            wakeups: thread.wakeups,
            wakeups_hz: PerSecond::of(thread.wakeups, elapsed),
            run_ns: thread.run_ns,
            run_ns_mean: thread
                .run_ns
                .and_then(|run| mean(run.get().into(), thread.wakeups))
                .map(Nanos::from_nanos),
            run_ppm: thread.run_ns.and_then(|run| Ppm::of(run, elapsed)),
            preempted: thread.preempted,
            preempted_hz: PerSecond::of(thread.preempted, elapsed),
            woken_by: partners(elapsed, &thread.woken_by),
            victims: partners(elapsed, &thread.victims),
        }
    }
}

fn partners(elapsed: Nanos, partners: &[Partner]) -> Vec<PartnerSummary> {
    let mut sorted: Vec<&Partner> = partners.iter().collect();
    sorted.sort_by_key(|partner| (Reverse(partner.count), partner.tid));
    sorted.truncate(PARTNERS);
    let partner = |partner: &Partner| PartnerSummary {
        tid: partner.tid,
        name: partner.name.clone(),
        count: partner.count,
        count_hz: PerSecond::of(partner.count, elapsed),
    };
    sorted.into_iter().map(partner).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn woken(tid: u32, wakeups: u64, run: u64, preempted: u64) -> WokenThread {
        let partner = |tid, name: &str, count| Partner { tid, name: name.into(), count };
        WokenThread {
            tid,
            pid: 7,
            name: "notifier".to_owned(),
            prio: 120,
            wakeups,
            run_ns: Some(Nanos::from_nanos(run)),
            preempted,
            woken_by: vec![partner(None, "interrupt", wakeups)],
            victims: vec![partner(Some(9), "compile", preempted)],
        }
    }

    fn summary(
        secs: u64,
        top: u32,
        lost: u64,
        threads: Vec<WokenThread>,
    ) -> WakersSummary {
        let (began_ns, elapsed_ns) = (Nanos::ZERO, Nanos::from_secs(secs));
        WakersSummary::of(top, &WakersSeries { began_ns, elapsed_ns, lost, threads })
    }

    /// Check the keys and values of the JSON contract.
    #[test]
    fn contract() {
        let inputs = vec![woken(8, 1_000, 5_000_499, 500)];
        let found = summary(2, 20, 4, inputs);
        let expected = serde_json::json!({
            "elapsed_ns": 2_000_000_000_u64, "wakeups": 1_004, "wakeups_hz": 502.0,
            "woken": 1, "threads": [{
                "tid": 8, "pid": 7, "name": "notifier", "prio": 120, "wakeups": 1_000,
                "wakeups_hz": 500.0, "run_ns": 5_000_499, "run_ns_mean": 5_000,
                "run_ppm": 2_500.249_5, "preempted": 500, "preempted_hz": 250.0,
                "woken_by": [{"tid": null, "name": "interrupt", "count": 1_000,
                    "count_hz": 500.0}],
                "victims": [{"tid": 9, "name": "compile", "count": 500,
                    "count_hz": 250.0}],
            }],
        });
        assert_eq!(serde_json::to_value(&found).unwrap(), expected);
    }

    /// Check the thread that preempted most often, and that there is none without a preemption.
    #[test]
    fn most_preempting() {
        let inputs = vec![woken(1, 50, 0, 3), woken(2, 40, 0, 4), woken(3, 30, 0, 4)];
        let found = summary(1, 20, 0, inputs);
        assert_eq!(found.most_preempting().map(|thread| thread.tid), Some(2));
        let kind = summary(1, 20, 0, vec![woken(1, 5, 0, 0)]);
        assert_eq!(kind.most_preempting(), None);
    }

    /// Check that means are rounded, and unknown without a wake-up.
    #[test]
    fn means() {
        let mean = |sum: u64, count| mean(sum.into(), count);
        assert_eq!(mean(7, 2), Some(4));
        assert_eq!(mean(7, 3), Some(2));
        assert_eq!(mean(8, 3), Some(3));
        assert_eq!(mean(5, 0), None);
        assert_eq!(mean(u64::MAX, 1), Some(u64::MAX));
    }

    proptest! {
        /// Check the order by frequency, and that the sum includes all wake-ups.
        #[test]
        fn sorted_and_whole(counts in prop::collection::vec(1u64..50, 0..40), top in 0usize..45) {
            let number = |at: usize| u32::try_from(at).unwrap();
            let inputs = counts.iter().enumerate();
            let inputs = inputs.map(|(at, count)| woken(number(at), *count, 0, 0)).collect();
            let found = summary(1, number(top), 0, inputs);
            prop_assert_eq!(found.wakeups, counts.iter().sum::<u64>());
            prop_assert_eq!(found.threads.len(), counts.len().min(top));
            prop_assert!(found.threads.is_sorted_by_key(|thread| Reverse(thread.wakeups)));
            let least = found.threads.last().map_or(0, |thread| thread.wakeups);
            let more = counts.iter().filter(|count| **count > least).count();
            prop_assert!(top == 0 || more <= found.threads.len());
        }
    }
}
