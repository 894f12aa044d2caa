//! What brought a tick back that had stopped.
//!
//! Of what was seen while the tick came back, that is a cause which happened at least a tenth as
//! often as the tick: a dependency; the timer softirq, where it was raised and never ran; a timer
//! of the timer wheel; and a high-resolution timer, which interrupts like a tick and is none.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};
use units::Nanos;

/// The only softirq that keeps the tick while it waits (`local_timer_softirq_pending`).
const TIMER: &str = "TIMER";
/// The threads that run it: with PREEMPT_RT since 6.13, and before or where it is left to them.
const RUN_BY: [&str; 2] = ["ktimers/", "ksoftirqd/"];
/// What is rarer than that part of the ticks brought none back.
const PART: u64 = 10;

/// What was seen while a tick came back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TickReturnInput<'a> {
    /// Whether the tick stopped again before, while it was watched.
    pub stopped: bool,
    /// For how long it was watched.
    pub span: Nanos,
    /// Timer interrupts in that time.
    pub ticks: u64,
    /// The dependencies, and how often each kept the tick.
    pub kept_by: Vec<(&'a str, u64)>,
    /// The softirqs, and how often each was raised and ran.
    pub softirqs: Vec<(&'a str, u64, u64)>,
    /// The functions of the timers of the timer wheel, and how often they expired.
    pub timers: Vec<(&'a str, u64)>,
    /// The same of high-resolution timers, without the tick.
    pub hrtimers: Vec<(&'a str, u64)>,
    /// The threads that waited for the CPU at the end: name and real-time priority.
    pub waiting: Vec<(&'a str, u8)>,
}

/// What brought a tick back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TickReturnSummary {
    /// Whether the tick stopped again before, while it was watched.
    pub stopped: bool,
    /// For how long it was watched.
    pub span_ns: Nanos,
    /// Timer interrupts in that time.
    pub ticks: u64,
    /// The causes, the most frequent first; empty where none was seen.
    pub causes: Vec<TickCause>,
}

/// A cause for which a tick came back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TickCause {
    /// What kind of cause it is.
    pub kind: TickCauseKind,
    /// The dependency's, the softirq's or the timer function's name.
    pub name: String,
    /// How often it was seen.
    pub times: u64,
    /// Of a softirq: the functions of the timers that it was raised for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub timers: Vec<String>,
    /// Of a softirq: the threads that run it and waited for the CPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<TickThread>,
}

/// The kind of a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TickCauseKind {
    /// A dependency, which the kernel names itself.
    Dependency,
    /// A softirq that is raised and does not run.
    Softirq,
    /// A timer of the timer wheel.
    Timer,
    /// A high-resolution timer.
    Hrtimer,
}

/// A thread that waited for the CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TickThread {
    /// Its name.
    pub name: String,
    /// Its real-time priority; 0 for an ordinary thread.
    pub rt_priority: u8,
}

impl TickReturnSummary {
    /// Finds the causes.
    pub fn of(input: &TickReturnInput<'_>) -> Self {
        use TickCauseKind::{Dependency, Hrtimer, Timer};
        let dependencies =
            input.kept_by.iter().map(|kept| TickCause::of(Dependency, kept));
        let waiting = softirq(input);
        // What expires only after the thread has left is in the softirq's cause.
        let timers = input.timers.iter().filter(|_| waiting.is_none());
        let timers = timers.map(|timer| TickCause::of(Timer, timer));
        let hrtimers = input.hrtimers.iter().map(|timer| TickCause::of(Hrtimer, timer));
        let all = dependencies.chain(timers).chain(hrtimers);
        let all = all.chain(waiting.clone());
        let is_frequent = |cause: &TickCause| cause.times * PART >= input.ticks;
        let mut causes: Vec<TickCause> = all.filter(is_frequent).collect();
        causes.sort_by_key(|cause| Reverse(cause.times));
        let TickReturnInput { stopped, span, ticks, .. } = *input;
        Self { stopped, span_ns: span, ticks, causes }
    }
}

impl TickCause {
    fn of(kind: TickCauseKind, (name, times): &(&str, u64)) -> Self {
        let (timers, threads) = (Vec::new(), Vec::new());
        Self { kind, name: (*name).to_owned(), times: *times, timers, threads }
    }
}

/// The timer softirq, where it was raised and never ran.
fn softirq(input: &TickReturnInput<'_>) -> Option<TickCause> {
    let (name, raised, _) =
        input.softirqs.iter().find(|(name, _, run)| *name == TIMER && *run == 0)?;
    let runs_it = |(name, _): &&(&str, u8)| RUN_BY.iter().any(|by| name.starts_with(by));
    let threads = input.waiting.iter().filter(runs_it);
    let thread = |(name, rt_priority): &(&str, u8)| TickThread {
        name: (*name).to_owned(),
        rt_priority: *rt_priority,
    };
    Some(TickCause {
        timers: input.timers.iter().map(|(function, _)| (*function).to_owned()).collect(),
        threads: threads.map(thread).collect(),
        ..TickCause::of(TickCauseKind::Softirq, &(name, *raised))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input() -> TickReturnInput<'static> {
        TickReturnInput {
            stopped: true,
            span: Nanos::from_secs(5),
            ticks: 1_000,
            kept_by: vec![("SCHED", 27)],
            softirqs: vec![("TIMER", 980, 0), ("RCU", 400, 0)],
            timers: vec![("process_timeout", 1)],
            hrtimers: vec![("inactive_task_timer", 1)],
            waiting: vec![("ktimers/1", 1), ("rcuc/1", 1)],
        }
    }

    /// Check the keys of a softirq that waits for the thread that runs it, and that what is much
    /// rarer than the tick is no cause.
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
        let found = TickReturnSummary::of(&input());
        assert_eq!(serde_json::to_value(found).unwrap(), expected);
    }

    /// Check that dependencies and timers are causes, the most frequent first, and that a
    /// softirq that runs is none.
    #[test]
    fn causes_by_frequency() {
        let found = TickReturnSummary::of(&TickReturnInput {
            kept_by: vec![("SCHED", 600)],
            softirqs: vec![("TIMER", 980, 979)],
            timers: vec![("delayed_work_timer_fn", 979)],
            hrtimers: vec![("hrtimer_wakeup", 100), ("watchdog_timer_fn", 99)],
            ..input()
        });
        let names: Vec<_> =
            found.causes.iter().map(|cause| cause.name.as_str()).collect();
        assert_eq!(names, ["delayed_work_timer_fn", "SCHED", "hrtimer_wakeup"]);
    }
}
