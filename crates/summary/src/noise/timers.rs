//! The timer interrupts of a CPU while its loop ran, by the first timer that expired in each.
//!
//! Each is an event of the trace, whether it was in a gap or not. One without a timer has the name of
//! the interrupt (`local timer`).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use recording::{Blamed, CulpritKind};
use serde::Serialize;
use units::{Nanos, PerSecond};

/// Timer interrupts of one cause.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TimerRate {
    /// The function of the first timer that expired, or the name of the interrupt.
    pub name: String,
    /// The number of interrupts.
    pub count: u64,
    /// That per second.
    pub rate_hz: Option<PerSecond>,
}

impl TimerRate {
    /// The timer interrupts in that time, the most frequent first.
    pub(crate) fn of(blamed: &Blamed, elapsed: Nanos) -> Vec<Self> {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for (culprit, events) in blamed.culprits.iter().zip(&blamed.events) {
            if culprit.kind == CulpritKind::Timer && *events > 0 {
                *counts.entry(&culprit.name).or_default() += events;
            }
        }
        let rate = |(name, count): (&str, u64)| Self {
            name: name.to_owned(),
            count,
            rate_hz: PerSecond::of(count, elapsed),
        };
        let mut rates: Vec<Self> = counts.into_iter().map(rate).collect();
        rates.sort_by_key(|rate| Reverse(rate.count));
        rates
    }
}

#[cfg(test)]
mod tests {
    use recording::Culprit;

    use super::*;

    /// Check the keys, and that the events of timers are counted by name, in gaps or not.
    #[test]
    fn contract() {
        let culprit =
            |kind, name: &str| Culprit { kind, name: name.to_owned(), thread: None };
        let blamed = Blamed {
            culprits: vec![
                culprit(CulpritKind::Timer, "watchdog_timer_fn"),
                culprit(CulpritKind::Softirq, "SCHED"),
                culprit(CulpritKind::Timer, "tick_nohz_handler"),
                culprit(CulpritKind::Timer, "local timer"),
            ],
            events: vec![2, 9, 5, 0],
            ..Blamed::default()
        };
        let expected = serde_json::json!([
            {"name": "tick_nohz_handler", "count": 5, "rate_hz": 1.0},
            {"name": "watchdog_timer_fn", "count": 2, "rate_hz": 0.4},
        ]);
        let found = TimerRate::of(&blamed, Nanos::from_secs(5));
        assert_eq!(serde_json::to_value(found).unwrap(), expected);
    }
}
