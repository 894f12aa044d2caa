//! The timer interrupts of a CPU whose tick has stopped, by the timers that expired in them.
//!
//! The counts of the causes and of the unexplained interrupts add up to that of `/proc/interrupts`.

use recording::{ExpiredTimer, RemainingTimers, TimerInterrupts};
use serde::Serialize;
use units::{Nanos, PerSecond};

/// The timer interrupts of a traced observation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RemainingSummary {
    /// The length of the trace.
    pub span_ns: Nanos,
    /// The number of timer interrupts in that time.
    pub count: u64,
    /// That per second.
    pub rate_hz: Option<PerSecond>,
    /// The timers that expired, the most frequent first.
    pub causes: Vec<RemainingCause>,
    /// The other interrupts, in which no timer expired.
    pub unexplained: u64,
    /// That per second.
    pub unexplained_hz: Option<PerSecond>,
    /// The number of lost records of the trace, whose timers are missing.
    pub lost: u64,
}

/// Timer interrupts in which the same timers expired.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RemainingCause {
    /// The timers, in the order in which they expired; none: the interrupts came before their timers,
    /// which expired in the next ones.
    pub timers: Vec<ExpiredTimer>,
    /// The number of interrupts.
    pub count: u64,
    /// That per second.
    pub rate_hz: Option<PerSecond>,
}

impl RemainingSummary {
    /// Computes rates, and what is unexplained.
    pub(crate) fn of(remaining: &RemainingTimers) -> Self {
        let RemainingTimers { span_ns, count, ref interrupts, lost } = *remaining;
        let cause = |one: &TimerInterrupts| RemainingCause {
            timers: one.timers.clone(),
            count: one.times,
            rate_hz: PerSecond::of(one.times, span_ns),
        };
        let explained: u64 = interrupts.iter().map(|one| one.times).sum();
        let unexplained = count.saturating_sub(explained);
        Self {
            span_ns,
            count,
            rate_hz: PerSecond::of(count, span_ns),
            causes: interrupts.iter().map(cause).collect(),
            unexplained,
            unexplained_hz: PerSecond::of(unexplained, span_ns),
            lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use recording::{TimerKind, TimerReason};

    use super::*;

    /// Check the keys, and that interrupts without a timer are unexplained.
    #[test]
    fn contract() {
        let server = ExpiredTimer {
            kind: TimerKind::Hrtimer,
            function: "dl_task_timer".to_owned(),
            reason: Some(TimerReason::FairServer),
        };
        let remaining = RemainingTimers {
            span_ns: Nanos::from_secs(5),
            count: 7,
            interrupts: vec![TimerInterrupts { timers: vec![server], times: 5 }],
            lost: 0,
        };
        let expected = serde_json::json!({
            "span_ns": 5_000_000_000_u64, "count": 7, "rate_hz": 1.4,
            "causes": [{
                "timers": [{
                    "kind": "hrtimer", "function": "dl_task_timer", "reason": "fair_server",
                }],
                "count": 5, "rate_hz": 1.0,
            }],
            "unexplained": 2, "unexplained_hz": 0.4, "lost": 0,
        });
        let found = RemainingSummary::of(&remaining);
        assert_eq!(serde_json::to_value(found).unwrap(), expected);
    }
}
