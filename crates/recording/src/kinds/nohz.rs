//! Whether the tick stops: parameters and measured values of `nohz test` and `nohz stress`.

use facts::TimerList;
use serde::{Deserialize, Serialize};
use units::{Cpu, Nanos};

use crate::{Phases, ProcCounts};

/// The parameters of `nohz test` and `nohz stress`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NohzSpec {
    /// The CPU whose tick should stop.
    pub cpu: Cpu,
    /// The number of tries; `None`: until one fails. A failed try is always the last one.
    pub tries: Option<u64>,
    /// The longest wait of each try.
    pub limit_ns: Nanos,
    /// Whether the thread leaves the CPU from time to time while it waits.
    pub forced: bool,
    /// The waiting thread's `SCHED_FIFO` priority; `None`: an ordinary task.
    pub fifo: Option<u8>,
    /// How long interrupts are counted after the tick has stopped in the last try; zero: not at
    /// all.
    pub observe_ns: Nanos,
    /// When each try begins; `None`: at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<Phases>,
}

/// The measured values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NohzSeries {
    /// The time of all tries together.
    pub elapsed_ns: Nanos,
    /// The tries, in their order; only the last one may have failed.
    pub tries: Vec<NohzTry>,
    /// What prevented the tick from stopping, or restarted it; `None`: not known.
    pub kept_by: Option<Vec<KeptBy>>,
    /// The other threads that were runnable on the CPU while the tick did not stop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<WaitingThread>,
    /// The `/proc` counters of the observed time, after the last try.
    pub observed: Option<ProcCounts>,
    /// If the tick restarted in that time: what a trace of another restart shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<TickReturn>,
    /// If timer interrupts remained in that time: the timers of those of a second observation, which
    /// is traced; `None` if none remained, or if they could not be traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remaining: Option<RemainingTimers>,
}

/// A stopped tick leaves at most this many timer interrupts per second: kernels before 4.17 keep one
/// per second, and a program's own timers may use the same interrupt.
const STOPPED_HZ_MAX: u64 = 10;

impl NohzSeries {
    /// Whether the tick restarted in the observed time; `None` if it was not observed.
    pub fn came_back(&self) -> Option<bool> {
        let observed =
            self.observed.as_ref().filter(|observed| observed.interrupts.is_some())?;
        Some(Self::is_back(observed))
    }

    /// The timer interrupts of the observed time.
    pub fn timer_interrupts(observed: &ProcCounts) -> u64 {
        let lines = observed.interrupts.iter().flatten();
        lines.filter(|line| line.timer).map(|line| line.count).sum()
    }

    /// Whether the tick restarted in the observed time.
    pub fn is_back(observed: &ProcCounts) -> bool {
        let timer = Self::timer_interrupts(observed);
        let second = Nanos::from_secs(1).get();
        let most = u128::from(STOPPED_HZ_MAX) * u128::from(observed.span_ns.get());
        u128::from(timer) * u128::from(second) > most
    }
}

/// A trace of the CPU while the tick restarted. Its dependencies are in [`NohzSeries::kept_by`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TickReturn {
    /// Whether the tick had stopped before, during the trace.
    pub stopped: bool,
    /// The length of the trace.
    pub span_ns: Nanos,
    /// The number of timer interrupts in that time.
    pub ticks: u64,
    /// The softirqs that were raised, and how often each ran.
    pub softirqs: Vec<SoftirqCount>,
    /// The timers of the timer wheel that expired. If raised softirqs did not run: those that
    /// expired when the thread then left the CPU.
    pub timers: Vec<TimerCount>,
    /// The high-resolution timers that expired, without the tick.
    pub hrtimers: Vec<TimerCount>,
    /// The other threads that waited for the CPU at the end of that time.
    pub waiting: Vec<WaitingThread>,
}

/// How often a softirq was raised, and how often it ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SoftirqCount {
    /// The name in `/proc/softirqs`.
    pub name: String,
    /// How often it was raised.
    pub raised: u64,
    /// How often it ran.
    pub run: u64,
}

/// How often timers with one function expired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimerCount {
    /// The function's name, or its address.
    pub function: String,
    /// How often.
    pub times: u64,
}

/// The timer interrupts of a CPU whose tick had stopped, by the timers that expired in them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemainingTimers {
    /// The length of the trace.
    pub span_ns: Nanos,
    /// The number of timer interrupts in that time, according to `/proc/interrupts`.
    pub count: u64,
    /// Those of timers, the most frequent first.
    pub interrupts: Vec<TimerInterrupts>,
    /// The number of lost records of the trace.
    pub lost: u64,
}

/// Timer interrupts in which the same timers expired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimerInterrupts {
    /// The timers, in the order in which they expired; none: the interrupts came before their timers,
    /// which expired in the next ones.
    pub timers: Vec<ExpiredTimer>,
    /// The number of interrupts.
    pub times: u64,
}

/// A timer that expired.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExpiredTimer {
    /// Its kind.
    pub kind: TimerKind,
    /// The function that it calls: its name, or its address.
    pub function: String,
    /// Why it was armed, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<TimerReason>,
}

impl ExpiredTimer {
    /// Whether it is the tick, or serves a timer of the timer wheel while the tick is stopped.
    pub fn is_tick(&self) -> bool {
        TimerList::TICKS.contains(&self.function.as_str())
    }
}

/// The kind of a timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimerKind {
    /// A high-resolution timer.
    Hrtimer,
    /// A timer of the timer wheel, for which the kernel programs the tick's hrtimer.
    Timer,
}

/// Why a timer was armed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimerReason {
    /// It queues this function for a worker thread.
    Work(String),
    /// It wakes this thread, or sends it a signal.
    Thread {
        /// The thread ID.
        tid: u32,
        /// The thread's name.
        name: String,
    },
    /// It is that of the fair server of this CPU, or the tick that restarted because of it.
    FairServer,
    /// It is the tick, which restarted because of this dependency.
    Dependency(String),
}

/// A runnable thread that waited for the CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingThread {
    /// The thread ID.
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
    /// The time until it stopped; the whole wait if it did not.
    pub wait_ns: Nanos,
    /// How often the thread left the CPU and came back.
    pub left: u32,
}

/// A dependency that prevents the tick from stopping.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptBy {
    /// The kernel's name: `POSIX_TIMER`, `PERF_EVENTS`, `SCHED`, `CLOCK_UNSTABLE`,
    /// `RCU`, `RCU_EXP`.
    pub dependency: String,
    /// How often the kernel reported it.
    pub times: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LineCount;

    /// Check that more than ten timer interrupts per second count as a restart, whatever else was
    /// counted, and that the result without an observation is unknown.
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
            observed: Some(ProcCounts {
                span_ns: Nanos::from_secs(2),
                interrupts,
                ..ProcCounts::default()
            }),
            back: None,
            remaining: None,
        };
        let back = |timer| series(Some(vec![line(timer, true), line(500, false)]));
        assert_eq!(back(20).came_back(), Some(false));
        assert_eq!(back(21).came_back(), Some(true));
        assert_eq!(series(None).came_back(), None);
    }

    /// Check the keys and the form of every value in files.
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
            remaining: None,
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

    /// Check the keys of the trace of a restarted tick.
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

    /// Check the keys of the trace of remaining timer interrupts.
    #[test]
    fn remaining_contract() {
        let timer = |kind, function: &str, reason| ExpiredTimer {
            kind,
            function: function.to_owned(),
            reason,
        };
        let (hrtimer, wheel) = (TimerKind::Hrtimer, TimerKind::Timer);
        let work = Some(TimerReason::Work("vmstat_update".to_owned()));
        let thread = Some(TimerReason::Thread { tid: 40, name: "cyclic".to_owned() });
        let server = timer(hrtimer, "dl_task_timer", Some(TimerReason::FairServer));
        let remaining = RemainingTimers {
            span_ns: Nanos::from_secs(5),
            count: 7,
            interrupts: vec![
                TimerInterrupts { timers: vec![server], times: 4 },
                TimerInterrupts {
                    timers: vec![
                        timer(hrtimer, "hrtimer_wakeup", thread),
                        timer(hrtimer, "tick_nohz_handler", None),
                        timer(wheel, "delayed_work_timer_fn", work),
                    ],
                    times: 1,
                },
            ],
            lost: 0,
        };
        let text = serde_json::json!({
            "span_ns": 5_000_000_000_u64, "count": 7,
            "interrupts": [
                {"timers": [{
                    "kind": "hrtimer", "function": "dl_task_timer", "reason": "fair_server",
                }], "times": 4},
                {"timers": [
                    {"kind": "hrtimer", "function": "hrtimer_wakeup",
                        "reason": {"thread": {"tid": 40, "name": "cyclic"}}},
                    {"kind": "hrtimer", "function": "tick_nohz_handler"},
                    {"kind": "timer", "function": "delayed_work_timer_fn",
                        "reason": {"work": "vmstat_update"}},
                ], "times": 1},
            ],
            "lost": 0,
        });
        assert_eq!(serde_json::to_value(&remaining).unwrap(), text);
        assert_eq!(serde_json::from_value::<RemainingTimers>(text).unwrap(), remaining);
    }
}
