//! Threads by their wake-ups, and the threads that these preempt: parameters and measured values.

use serde::{Deserialize, Serialize};
use units::{CpuSet, Nanos};

/// The parameters of `wakers`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakersSpec {
    /// The CPUs of the counted wake-ups; `None`: all.
    pub cpus: Option<CpuSet>,
    /// The duration.
    pub duration_ns: Nanos,
    /// The number of threads to report, the most frequent first.
    pub top: u32,
    /// Only wake-ups of or by the threads of this process; `None`: all.
    pub process: Option<u32>,
}

/// The measured values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakersSeries {
    /// `CLOCK_MONOTONIC` at the beginning.
    pub began_ns: Nanos,
    /// The actual duration.
    pub elapsed_ns: Nanos,
    /// Wake-ups of unknown threads, because a table was full.
    pub lost: u64,
    /// All threads that were woken.
    pub threads: Vec<WokenThread>,
}

/// A thread that was woken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WokenThread {
    /// The thread ID in the initial PID namespace.
    pub tid: u32,
    /// The process ID; the thread ID for a kernel thread.
    pub pid: u32,
    /// The name; the last one, if it was renamed.
    pub name: String,
    /// The kernel's internal priority at its last wake-up: -1 deadline, 0 to 98 real time, 100 to
    /// 139 ordinary.
    pub prio: i32,
    /// How often it was woken.
    pub wakeups: u64,
    /// How long it ran from these wake-ups until it slept again, interrupts included; `None`: not
    /// known for all of them.
    pub run_ns: Option<Nanos>,
    /// How often it preempted a runnable thread when it first ran after a wake-up.
    pub preempted: u64,
    /// The waking threads, and how often each woke it.
    pub woken_by: Vec<Partner>,
    /// The preempted threads, and how often it preempted each.
    pub victims: Vec<Partner>,
}

/// A thread that woke another one, or was preempted by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partner {
    /// The thread ID; `None` if it is not a thread: `interrupt`, `softirq`, `idle`.
    pub tid: Option<u32>,
    /// Its name.
    pub name: String,
    /// How often.
    pub count: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the keys and the form of every value in files.
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
