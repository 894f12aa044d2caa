//! Moments: measured values above the limit of `--stop-above`, and what happened then.
//!
//! A measurement ends at its first moment, or goes on and keeps the worst ones ([`Trigger`]).

use serde::{Deserialize, Serialize};
use units::{Cpu, Nanos};

use crate::blame::{Culprit, Event};

/// The limit above which a measured value is a moment, and how many of them to keep. Part of the
/// parameters of the measurements that have moments.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trigger {
    /// A value above this is a moment; `None`: there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_above_ns: Option<Nanos>,
    /// The number of moments to keep, the worst ones; `None`: the first one ends the
    /// measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<u32>,
}

impl Trigger {
    /// The largest number of moments to keep.
    pub const KEEP_MAX: u32 = 100;

    /// The largest number of moments.
    pub fn moments_max(self) -> usize {
        usize::try_from(self.keep.unwrap_or(1)).unwrap_or(usize::MAX)
    }
}

/// What is above the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MomentKind {
    /// A gap of `noise`.
    Gap,
    /// A wake-up of `latency`.
    Wakeup,
    /// The slowest loop of a test of `jitter`.
    Loop,
    /// An interruption of the program of `run`.
    Interruption,
    /// A kind of a later version.
    #[serde(other)]
    Other,
}

/// A measured value above the limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// What it is.
    pub kind: MomentKind,
    /// Where it happened.
    pub cpu: Cpu,
    /// Its beginning: `CLOCK_MONOTONIC`, the clock of the kernel's events.
    pub at_ns: Nanos,
    /// The same as the time of day: RFC 3339, UTC, with microseconds.
    pub time: String,
    /// From the beginning of the measurement on its CPU to this one.
    pub after_ns: Nanos,
    /// Its length: of a wake-up its latency, of a loop its run time.
    pub length_ns: Nanos,
    /// What is above the limit: of a loop by how much it was slower than the fastest one of its test,
    /// else the length.
    pub value_ns: Nanos,
    /// What took the value, the largest part first; the parts add up to it. `None` if events were not
    /// traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub causes: Option<Vec<MomentCause>>,
    /// The last events that ended before its beginning.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<MomentEvent>,
    /// The longest events between its beginning and its end, in the order in which they began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub during: Vec<MomentEvent>,
}

/// What one culprit took of a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MomentCause {
    /// The culprit.
    #[serde(flatten)]
    pub culprit: Culprit,
    /// Its time.
    pub ns: Nanos,
}

/// An event before or during a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MomentEvent {
    /// The culprit.
    #[serde(flatten)]
    pub culprit: Culprit,
    /// From the moment's beginning to that of the event; negative: before it.
    pub start_ns: i64,
    /// The time between its tracepoints, with the events that interrupted it.
    pub ns: Nanos,
}

/// The moments of a measurement.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moments {
    /// The moments, in the order in which they began.
    #[serde(default, rename = "moments", skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<Moment>,
    /// The events of the time around them on each traced CPU; empty unless they were requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trace: Vec<CpuTrace>,
}

/// The events on a CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTrace {
    /// The CPU.
    pub cpu: Cpu,
    /// All culprits.
    pub culprits: Vec<Culprit>,
    /// The events in the order in which they began, on `CLOCK_MONOTONIC`.
    pub events: Vec<Event>,
}

#[cfg(test)]
mod tests {
    use units::Span;

    use super::*;
    use crate::blame::{CulpritKind, Thread};

    /// Check the keys and the form of every value in files.
    #[test]
    fn contract() {
        let thread =
            Thread { tid: 40, pid: 40, prio: 0, owner: None, unit: None, own: false };
        let culprit = Culprit {
            kind: CulpritKind::Thread,
            name: "pathd".to_owned(),
            thread: Some(thread),
        };
        let ns = Nanos::from_micros(2);
        let moment = Moment {
            kind: MomentKind::Wakeup,
            cpu: Cpu::new(1),
            at_ns: Nanos::from_secs(70),
            time: "2026-11-20T06:30:12.000070Z".to_owned(),
            after_ns: Nanos::from_secs(1),
            length_ns: ns,
            value_ns: ns,
            causes: Some(vec![MomentCause { culprit: culprit.clone(), ns }]),
            before: vec![],
            during: vec![MomentEvent { culprit: culprit.clone(), start_ns: -5, ns }],
        };
        let event = Event { culprit: 0, span: Span { start: ns, length: ns } };
        let trace =
            CpuTrace { cpu: Cpu::new(1), culprits: vec![culprit], events: vec![event] };
        let moments = Moments { found: vec![moment], trace: vec![trace] };
        let named = serde_json::json!({
            "kind": "thread", "name": "pathd", "thread": {"tid": 40, "pid": 40, "prio": 0},
        });
        let with = |more: &[(&str, i64)]| {
            let mut object = named.clone();
            more.iter().for_each(|(key, value)| object[*key] = (*value).into());
            object
        };
        let expected = serde_json::json!({
            "moments": [{
                "kind": "wakeup", "cpu": 1, "at_ns": 70_000_000_000_u64,
                "time": "2026-11-20T06:30:12.000070Z", "after_ns": 1_000_000_000,
                "length_ns": 2_000, "value_ns": 2_000,
                "causes": [with(&[("ns", 2_000)])],
                "during": [with(&[("start_ns", -5), ("ns", 2_000)])],
            }],
            "trace": [{"cpu": 1, "culprits": [named.clone()], "events": [[0, [2_000, 2_000]]]}],
        });
        assert_eq!(serde_json::to_value(&moments).unwrap(), expected);
        assert_eq!(serde_json::from_value::<Moments>(expected).unwrap(), moments);
        let none = serde_json::json!({});
        assert_eq!(serde_json::to_value(Moments::default()).unwrap(), none);
    }
}
