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
    /// What keeps the tick, where it did not stop or came back; `None`: it could not be seen.
    pub kept_by: Option<Vec<KeptBy>>,
    /// What came while the thread stayed on, the last time that it did.
    pub stay: Option<Meanwhile>,
}

/// A tick that has stopped leaves no more timer interrupts a second than this: kernels before 4.17
/// kept one a second, and a program's own timers may come by the same line.
const STOPPED_HZ_MAX: u64 = 10;

impl NohzSeries {
    /// Whether the tick came back after it had stopped, while the thread stayed on; `None` where
    /// that was not watched.
    pub fn came_back(&self) -> Option<bool> {
        let stay = self.stay.as_ref().filter(|stay| stay.interrupts.is_some())?;
        Some(Self::is_back(stay))
    }

    /// Whether the tick came back in that stay.
    pub fn is_back(stay: &Meanwhile) -> bool {
        let lines = stay.interrupts.iter().flatten();
        let timer: u64 = lines.filter(|line| line.timer).map(|line| line.count).sum();
        let second = Nanos::from_secs(1).get();
        let most = u128::from(STOPPED_HZ_MAX) * u128::from(stay.span_ns.get());
        u128::from(timer) * u128::from(second) > most
    }
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
    use crate::LineCount;

    /// Check that a tick is back from more than ten timer interrupts a second on, whatever else
    /// came, and that nothing is said of what was not watched.
    #[test]
    fn back() {
        let line = |count, timer| LineCount {
            line: String::new(),
            name: String::new(),
            count,
            timer,
        };
        let series = |interrupts| NohzSeries {
            elapsed_ns: Nanos::ZERO,
            tries: Vec::new(),
            kept_by: None,
            stay: Some(Meanwhile {
                span_ns: Nanos::from_secs(2),
                interrupts,
                ..Meanwhile::default()
            }),
        };
        let back = |timer| series(Some(vec![line(timer, true), line(500, false)]));
        assert_eq!(back(20).came_back(), Some(false));
        assert_eq!(back(21).came_back(), Some(true));
        assert_eq!(series(None).came_back(), None);
    }

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
