//! Whether the tick stops: what `nohz test` and `nohz stress` are asked, and what they see.

use serde::{Deserialize, Serialize};
use units::{Cpu, Nanos};

use crate::Meanwhile;

/// What `nohz test` and `nohz stress` are asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NohzSpec {
    /// The CPU whose tick is to stop.
    pub cpu: Cpu,
    /// How often to try; until it fails, if `None`. It always ends where it fails.
    pub tries: Option<u64>,
    /// How long to wait each time.
    pub limit_ns: Nanos,
    /// Whether the thread leaves the CPU now and then while it waits.
    pub forced: bool,
    /// The waiting thread's `SCHED_FIFO` priority; an ordinary one's if `None`.
    pub fifo: Option<u8>,
    /// How long to stay after the tick has stopped, and count what comes; zero: not at all.
    pub stay_ns: Nanos,
}

/// What was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NohzSeries {
    /// How long all tries took together.
    pub elapsed_ns: Nanos,
    /// The tries, in their order; only the last one may have failed.
    pub tries: Vec<NohzTry>,
    /// What keeps the tick, where it did not stop; `None`: it could not be seen.
    pub kept_by: Option<Vec<KeptBy>>,
    /// What came while the thread stayed on, the last time that it did.
    pub stay: Option<Meanwhile>,
}

/// One try.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct NohzTry {
    /// Whether the tick stopped.
    pub entered: bool,
    /// How long that took; the whole wait where it did not.
    pub wait_ns: Nanos,
    /// How often the thread left the CPU and came back.
    pub left: u32,
}

/// A reason why the kernel keeps the tick.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptBy {
    /// The kernel's name of it: `POSIX_TIMER`, `PERF_EVENTS`, `SCHED`, `CLOCK_UNSTABLE`,
    /// `RCU`, `RCU_EXP`.
    pub dependency: String,
    /// How often the kernel said so.
    pub times: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the keys and the form of every value: this is what files hold.
    #[test]
    fn contract() {
        let spec = NohzSpec {
            cpu: Cpu::new(1),
            tries: Some(2),
            limit_ns: Nanos::from_secs(5),
            forced: false,
            fifo: Some(99),
            stay_ns: Nanos::ZERO,
        };
        let text = serde_json::json!({
            "cpu": 1, "tries": 2, "limit_ns": 5_000_000_000_u64, "forced": false,
            "fifo": 99, "stay_ns": 0,
        });
        assert_eq!(serde_json::to_value(&spec).unwrap(), text);
        let wait = |entered, wait_ns| NohzTry { entered, wait_ns, left: 0 };
        let series = NohzSeries {
            elapsed_ns: Nanos::from_secs(6),
            tries: vec![
                wait(true, Nanos::from_micros(512)),
                wait(false, Nanos::from_secs(5)),
            ],
            kept_by: Some(vec![KeptBy { dependency: "SCHED".to_owned(), times: 25 }]),
            stay: None,
        };
        let text = serde_json::json!({
            "elapsed_ns": 6_000_000_000_u64,
            "tries": [
                {"entered": true, "wait_ns": 512_000, "left": 0},
                {"entered": false, "wait_ns": 5_000_000_000_u64, "left": 0},
            ],
            "kept_by": [{"dependency": "SCHED", "times": 25}],
            "stay": null,
        });
        assert_eq!(serde_json::to_value(&series).unwrap(), text);
        assert_eq!(serde_json::from_value::<NohzSeries>(text).unwrap(), series);
    }
}
