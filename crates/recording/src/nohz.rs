//! Whether the tick stops: what `nohz test` and `nohz stress` are asked, and what they see.

use serde::{Deserialize, Serialize};
use units::{Cpu, Nanos};

use crate::{Meanwhile, Phases};

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
    /// How long to stay after the tick has stopped in the last try, and count what comes; zero:
    /// not at all.
    pub observe_ns: Nanos,
    /// When each try begins; `None`: at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<Phases>,
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
    /// The other threads that were runnable on the CPU while the tick was kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<WaitingThread>,
    /// What came while the thread stayed on, in the last try.
    pub observed: Option<Meanwhile>,
    /// Where the tick came back then: what went on while it did so again, watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<TickReturn>,
}

/// A tick that has stopped leaves no more timer interrupts a second than this: kernels before 4.17
/// kept one a second, and a program's own timers may come by the same line.
const STOPPED_HZ_MAX: u64 = 10;

impl NohzSeries {
    /// Whether the tick came back after it had stopped, while the thread stayed on; `None` where
    /// that was not watched.
    pub fn came_back(&self) -> Option<bool> {
        let observed =
            self.observed.as_ref().filter(|observed| observed.interrupts.is_some())?;
        Some(Self::is_back(observed))
    }

    /// Whether the tick came back in that observed.
    pub fn is_back(observed: &Meanwhile) -> bool {
        let lines = observed.interrupts.iter().flatten();
        let timer: u64 = lines.filter(|line| line.timer).map(|line| line.count).sum();
        let second = Nanos::from_secs(1).get();
        let most = u128::from(STOPPED_HZ_MAX) * u128::from(observed.span_ns.get());
        u128::from(timer) * u128::from(second) > most
    }
}

/// What went on while the tick came back. The dependencies of that time are in
/// [`NohzSeries::kept_by`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TickReturn {
    /// Whether the tick stopped again before, while it was watched.
    pub stopped: bool,
    /// For how long it was watched.
    pub span_ns: Nanos,
    /// How often the timer interrupted the CPU in that time.
    pub ticks: u64,
    /// Which softirqs were raised, and how often each ran.
    pub softirqs: Vec<SoftirqCount>,
    /// The timers of the timer wheel that expired. Where raised softirqs did not run: those
    /// that expired when the thread then left the CPU.
    pub timers: Vec<TimerCount>,
    /// The high-resolution timers that expired, without the tick.
    pub hrtimers: Vec<TimerCount>,
    /// The other threads that waited for the CPU at the end of that time.
    pub waiting: Vec<WaitingThread>,
}

/// How often a softirq was raised, and how often it ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoftirqCount {
    /// As `/proc/softirqs` names it.
    pub name: String,
    /// How often it was raised.
    pub raised: u64,
    /// How often it ran.
    pub run: u64,
}

/// How often timers with one function expired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimerCount {
    /// The kernel's name of the function, or its address.
    pub function: String,
    /// How often.
    pub times: u64,
}

/// A thread that could run and waited for the CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingThread {
    /// Its number.
    pub tid: u32,
    /// Its name.
    pub name: String,
    /// Its real-time priority, 1 to 99; 0 for an ordinary thread.
    pub rt_priority: u8,
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
            others: Vec::new(),
            observed: Some(Meanwhile {
                span_ns: Nanos::from_secs(2),
                interrupts,
                ..Meanwhile::default()
            }),
            back: None,
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
            observe_ns: Nanos::ZERO,
            phases: None,
        };
        let text = serde_json::json!({
            "cpu": 1, "tries": 2, "limit_ns": 5_000_000_000_u64, "forced": false,
            "fifo": 99, "observe_ns": 0,
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
            others: Vec::new(),
            observed: None,
            back: None,
        };
        let text = serde_json::json!({
            "elapsed_ns": 6_000_000_000_u64,
            "tries": [
                {"entered": true, "wait_ns": 512_000, "left": 0},
                {"entered": false, "wait_ns": 5_000_000_000_u64, "left": 0},
            ],
            "kept_by": [{"dependency": "SCHED", "times": 25}],
            "observed": null,
        });
        assert_eq!(serde_json::to_value(&series).unwrap(), text);
        assert_eq!(serde_json::from_value::<NohzSeries>(text).unwrap(), series);
    }

    /// Check the keys of what was seen of a tick that came back.
    #[test]
    fn back_contract() {
        let timer =
            |function: &str| TimerCount { function: function.to_owned(), times: 1 };
        let back = TickReturn {
            stopped: true,
            span_ns: Nanos::from_millis(100),
            ticks: 25,
            softirqs: vec![SoftirqCount { name: "TIMER".to_owned(), raised: 25, run: 0 }],
            timers: vec![timer("process_timeout")],
            hrtimers: vec![timer("hrtimer_wakeup")],
            waiting: vec![WaitingThread {
                tid: 29,
                name: "ktimers/1".to_owned(),
                rt_priority: 1,
            }],
        };
        let text = serde_json::json!({
            "stopped": true, "span_ns": 100_000_000, "ticks": 25,
            "softirqs": [{"name": "TIMER", "raised": 25, "run": 0}],
            "timers": [{"function": "process_timeout", "times": 1}],
            "hrtimers": [{"function": "hrtimer_wakeup", "times": 1}],
            "waiting": [{"tid": 29, "name": "ktimers/1", "rt_priority": 1}],
        });
        assert_eq!(serde_json::to_value(&back).unwrap(), text);
        assert_eq!(serde_json::from_value::<TickReturn>(text).unwrap(), back);
    }
}
