//! The causes of late wake-ups: what happened on a CPU from the expiry of a timer until the thread that
//! it wakes had read the clock.

use serde::{Deserialize, Serialize};
use units::{Nanos, Span};

use crate::blame::Culprit;

/// A part of the time from an expiry to the reading of the clock; the parts follow each other.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum WakePart {
    /// From the expiry to the timer's interrupt: interrupts are disabled, the CPU leaves an idle state,
    /// the hypervisor runs others, or the timer has slack (a culprit of that name).
    Expiry,
    /// The timer's interrupt, which wakes the thread.
    Interrupt,
    /// From there to the switch to the thread.
    Scheduling,
    /// From the switch to the reading of the clock in user mode.
    Return,
}

impl WakePart {
    /// All parts, in order.
    pub const ALL: [Self; 4] =
        [Self::Expiry, Self::Interrupt, Self::Scheduling, Self::Return];
}

/// The time of one culprit in one part of all wake-ups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeShare {
    /// The part.
    pub part: WakePart,
    /// The culprit's index in the list of culprits. In [`WakePart::Return`] the thread itself is one, for
    /// up to twice the usual time. In [`WakePart::Expiry`] a thread that had the CPU is not: why the
    /// interrupt came late is unexplained.
    pub culprit: usize,
    /// The number of wake-ups with a share of it.
    pub wakeups: u64,
    /// The sum of its shares.
    pub ns: Nanos,
    /// The longest share.
    pub max_ns: Nanos,
}

/// A moment of a late wake-up, and what had the CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeMoment {
    /// The part; `None` before the expiry.
    pub part: Option<WakePart>,
    /// The index of what had the CPU in the list of culprits.
    pub culprit: usize,
    /// When, from the beginning of the list.
    pub span: Span,
}

/// What happened before and during one wake-up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateWakeup {
    /// The wake-up's index in the list of wake-ups.
    pub wakeup: usize,
    /// The time from the beginning of the list to the expiry.
    pub before_ns: Nanos,
    /// All moments, in order and without a pause.
    pub moments: Vec<WakeMoment>,
}

/// The causes of one CPU's wake-ups. The shares add up to the latency of all stored wake-ups.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeupCauses {
    /// All culprits.
    pub culprits: Vec<Culprit>,
    /// The time by part and culprit.
    pub shares: Vec<WakeShare>,
    /// The latest wake-ups, the latest first.
    pub latest: Vec<LateWakeup>,
    /// The number of events that were lost during the measurement. The time of a wake-up during which
    /// events were lost has no culprit.
    pub lost: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blame::CulpritKind;

    /// Check the keys and the form of every value in files.
    #[test]
    fn contract() {
        let ns = Nanos::from_nanos;
        let span = Span { start: ns(3), length: ns(4) };
        let culprit = Culprit {
            kind: CulpritKind::Timer,
            name: "hrtimer_wakeup".to_owned(),
            thread: None,
        };
        let causes = WakeupCauses {
            culprits: vec![culprit],
            shares: vec![WakeShare {
                part: WakePart::Interrupt,
                culprit: 0,
                wakeups: 2,
                ns: ns(900),
                max_ns: ns(700),
            }],
            latest: vec![LateWakeup {
                wakeup: 5,
                before_ns: ns(3),
                moments: vec![WakeMoment { part: None, culprit: 0, span }],
            }],
            lost: 0,
        };
        let expected = serde_json::json!({
            "culprits": [{"kind": "timer", "name": "hrtimer_wakeup"}],
            "shares": [{"part": "interrupt", "culprit": 0, "wakeups": 2, "ns": 900,
                "max_ns": 700}],
            "latest": [{"wakeup": 5, "before_ns": 3,
                "moments": [{"part": null, "culprit": 0, "span": [3, 4]}]}],
            "lost": 0,
        });
        assert_eq!(serde_json::to_value(&causes).unwrap(), expected);
        assert_eq!(serde_json::from_value::<WakeupCauses>(expected).unwrap(), causes);
    }
}
