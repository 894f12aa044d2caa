//! The causes for which a stopped tick restarted.
//!
//! Causes are events of the trace that happened at least a tenth as often as the tick: a tick
//! dependency; the timer softirq, if it was raised and never ran; a timer of the timer wheel; and a
//! high-resolution timer, which interrupts like a tick without being one.

use std::cmp::Reverse;

use recording::{KeptBy, TickReturn, TimerCount, WaitingThread};
use serde::Serialize;
use units::Nanos;

/// The only pending softirq that prevents the tick from stopping (`local_timer_softirq_pending`).
const TIMER: &str = "TIMER";
/// The threads that run it: the first with PREEMPT_RT since 6.13, the second before, and for softirqs
/// that are deferred to it.
const RUN_BY: [&str; 2] = ["ktimers/", "ksoftirqd/"];
/// A cause happens at least once per so many ticks.
const PART: u64 = 10;

/// The causes for which a tick restarted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TickReturnSummary {
    /// Whether the tick had stopped before, during the trace.
    pub stopped: bool,
    /// The length of the trace.
    pub span_ns: Nanos,
    /// The number of timer interrupts in that time.
    pub ticks: u64,
    /// The causes, the most frequent first; empty if none was traced.
    pub causes: Vec<TickCause>,
}

/// A cause for which a tick restarted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TickCause {
    /// The kind of cause.
    pub kind: TickCauseKind,
    /// The name of the dependency, the softirq or the timer's function.
    pub name: String,
    /// How often it happened.
    pub times: u64,
    /// For a softirq: the functions of the timers for which it was raised.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub timers: Vec<String>,
    /// For a softirq: the threads that run it and waited for the CPU.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<TickThread>,
}

/// The kind of a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TickCauseKind {
    /// A tick dependency.
    Dependency,
    /// A softirq that was raised and did not run.
    Softirq,
    /// A timer of the timer wheel.
    Timer,
    /// A high-resolution timer.
    Hrtimer,
}

/// A thread that waited for the CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TickThread {
    /// The name.
    pub name: String,
    /// The real-time priority; 0 for an ordinary thread.
    pub rt_priority: u8,
}

impl TickReturnSummary {
    /// Finds the causes; `kept_by` are the dependencies of the whole test.
    pub(crate) fn of(back: &TickReturn, kept_by: &[KeptBy]) -> Self {
        use TickCauseKind::{Dependency, Hrtimer, Timer};
        let dependencies =
            kept_by.iter().map(|by| TickCause::of(Dependency, &by.dependency, by.times));
        let waiting = softirq(back);
        // If the softirq did not run, these timers expired only after the thread had left the CPU: they
        // are listed with the softirq.
        let cause = |kind| {
            move |timer: &TimerCount| TickCause::of(kind, &timer.function, timer.times)
        };
        let timers = back.timers.iter().filter(|_| waiting.is_none()).map(cause(Timer));
        let hrtimers = back.hrtimers.iter().map(cause(Hrtimer));
        let all = dependencies.chain(timers).chain(hrtimers);
        let all = all.chain(waiting.clone());
        let is_frequent = |cause: &TickCause| cause.times * PART >= back.ticks;
        let mut causes: Vec<TickCause> = all.filter(is_frequent).collect();
        causes.sort_by_key(|cause| Reverse(cause.times));
        let TickReturn { stopped, span_ns, ticks, .. } = *back;
        Self { stopped, span_ns, ticks, causes }
    }
}

impl TickCause {
    fn of(kind: TickCauseKind, name: &str, times: u64) -> Self {
        let (timers, threads) = (Vec::new(), Vec::new());
        Self { kind, name: name.to_owned(), times, timers, threads }
    }
}

/// The timer softirq, if it was raised and never ran.
fn softirq(back: &TickReturn) -> Option<TickCause> {
    let mut softirqs = back.softirqs.iter();
    let softirq = softirqs.find(|softirq| softirq.name == TIMER && softirq.run == 0)?;
    let runs_it =
        |thread: &&WaitingThread| RUN_BY.iter().any(|by| thread.name.starts_with(by));
    let threads = back.waiting.iter().filter(runs_it);
    let thread = |thread: &WaitingThread| TickThread {
        name: thread.name.clone(),
        rt_priority: thread.rt_priority,
    };
    Some(TickCause {
        timers: back.timers.iter().map(|timer| timer.function.clone()).collect(),
        threads: threads.map(thread).collect(),
        ..TickCause::of(TickCauseKind::Softirq, &softirq.name, softirq.raised)
    })
}

#[cfg(test)]
mod tests {
    use recording::SoftirqCount;

    use super::*;

    fn kept_by(times: u64) -> KeptBy {
        KeptBy { dependency: "SCHED".to_owned(), times }
    }

    fn softirq(name: &str, raised: u64, run: u64) -> SoftirqCount {
        SoftirqCount { name: name.to_owned(), raised, run }
    }

    fn timer(function: &str, times: u64) -> TimerCount {
        TimerCount { function: function.to_owned(), times }
    }

    fn back() -> TickReturn {
        let waiting =
            |name: &str| WaitingThread { tid: 9, name: name.to_owned(), rt_priority: 1 };
        TickReturn {
            stopped: true,
            span_ns: Nanos::from_secs(5),
            ticks: 1_000,
            softirqs: vec![softirq("TIMER", 980, 0), softirq("RCU", 400, 0)],
            timers: vec![timer("process_timeout", 1)],
            hrtimers: vec![timer("inactive_task_timer", 1)],
            waiting: vec![waiting("ktimers/1"), waiting("rcuc/1")],
        }
    }

    /// Check the keys of a softirq that waits for its thread, and that events much rarer than the tick
    /// are no causes.
    #[test]
    fn waiting_softirq() {
        let expected = serde_json::json!({
            "stopped": true, "span_ns": 5_000_000_000_u64, "ticks": 1_000,
            "causes": [{
                "kind": "softirq", "name": "TIMER", "times": 980,
                "timers": ["process_timeout"],
                "threads": [{"name": "ktimers/1", "rt_priority": 1}],
            }],
        });
        let found = TickReturnSummary::of(&back(), &[kept_by(27)]);
        assert_eq!(serde_json::to_value(found).unwrap(), expected);
    }

    /// Check that dependencies and timers are causes, the most frequent first, and that a softirq that
    /// runs is no cause.
    #[test]
    fn causes_by_frequency() {
        let back = TickReturn {
            softirqs: vec![softirq("TIMER", 980, 979)],
            timers: vec![timer("delayed_work_timer_fn", 979)],
            hrtimers: vec![timer("hrtimer_wakeup", 100), timer("watchdog_timer_fn", 99)],
            ..back()
        };
        let found = TickReturnSummary::of(&back, &[kept_by(600)]);
        let names: Vec<_> =
            found.causes.iter().map(|cause| cause.name.as_str()).collect();
        assert_eq!(names, ["delayed_work_timer_fn", "SCHED", "hrtimer_wakeup"]);
    }
}
