//! Who wakes up how often, for how long, and whom that preempts: what is asked and what is
//! seen.

use serde::{Deserialize, Serialize};
use units::{CpuSet, Nanos};

/// What `wakers` is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakersSpec {
    /// Only wake-ups on these CPUs, if not `None`.
    pub cpus: Option<CpuSet>,
    /// How long to count.
    pub duration_ns: Nanos,
    /// How many threads to tell of, the most frequent first.
    pub top: u32,
    /// Only wake-ups of this process's threads or by them, if not `None`.
    pub process: Option<u32>,
}

/// What was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakersSeries {
    /// `CLOCK_MONOTONIC` at the beginning.
    pub began_ns: Nanos,
    /// How long was counted.
    pub elapsed_ns: Nanos,
    /// Wake-ups that there was no room for: whose they were is not known.
    pub lost: u64,
    /// All threads that were woken.
    pub threads: Vec<WokenThread>,
}

/// A thread that was woken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WokenThread {
    /// Its number, as the kernel counts outside of containers.
    pub tid: u32,
    /// Its process; the same for a kernel thread.
    pub pid: u32,
    /// Its name, the last one if it had several.
    pub name: String,
    /// The kernel's own priority at its last wake-up: 0 to 98 real time, -1 deadline, 100 to
    /// 139 ordinary.
    pub prio: i32,
    /// How often it was woken.
    pub wakeups: u64,
    /// How long it ran from these wake-ups on until it slept again, interrupts included;
    /// `None`: the kernel did not tell all of it.
    pub run_ns: Option<Nanos>,
    /// How often it took the CPU from somebody who could have run on, when it first ran after
    /// a wake-up.
    pub preempted: u64,
    /// Who woke it, and how often.
    pub woken_by: Vec<Partner>,
    /// Whom it preempted, and how often.
    pub victims: Vec<Partner>,
}

/// Who woke a thread, or was preempted by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partner {
    /// The thread; `None` for what is none: `interrupt`, `softirq`, `idle`.
    pub tid: Option<u32>,
    /// Its name.
    pub name: String,
    /// How often.
    pub count: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the keys and the form of every value: this is what files hold.
    #[test]
    fn contract() {
        let partner = |tid, name: &str, count| Partner { tid, name: name.into(), count };
        let series = WakersSeries {
            began_ns: Nanos::from_secs(70),
            elapsed_ns: Nanos::from_secs(5),
            lost: 0,
            threads: vec![WokenThread {
                tid: 1235,
                pid: 1234,
                name: "notifier".to_owned(),
                prio: 120,
                wakeups: 5_000,
                run_ns: Some(Nanos::from_millis(60)),
                preempted: 4_990,
                woken_by: vec![partner(None, "interrupt", 5_000)],
                victims: vec![partner(Some(40), "compile", 4_990)],
            }],
        };
        let expected = serde_json::json!({
            "began_ns": 70_000_000_000_u64, "elapsed_ns": 5_000_000_000_u64, "lost": 0,
            "threads": [{
                "tid": 1235, "pid": 1234, "name": "notifier", "prio": 120,
                "wakeups": 5_000, "run_ns": 60_000_000, "preempted": 4_990,
                "woken_by": [{"tid": null, "name": "interrupt", "count": 5_000}],
                "victims": [{"tid": 40, "name": "compile", "count": 4_990}],
            }],
        });
        assert_eq!(serde_json::to_value(&series).unwrap(), expected);
        assert_eq!(serde_json::from_value::<WakersSeries>(expected).unwrap(), series);
    }
}
