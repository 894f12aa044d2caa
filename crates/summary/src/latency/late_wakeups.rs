//! The latest wake-ups: what happened before and during each, and what took most of it.

use std::collections::BTreeMap;

use recording::{CpuLatency, CulpritKind, LateWakeup, WakePart, WakeupCauses};
use serde::Serialize;
use units::{Nanos, Span};

use crate::latency::cause::WakeCause;

/// What had the CPU for the longest time of one wake-up.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MainCause {
    /// The part with most of that time.
    pub part: WakePart,
    /// The culprit.
    #[serde(flatten)]
    pub cause: WakeCause,
    /// Its time between the expiry and the end.
    pub ns: Nanos,
    /// How long it had the CPU before the expiry, as far as that is stored; zero if it did not have it
    /// at the expiry.
    pub before_ns: Nanos,
}

/// A moment of a wake-up, or before it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WakeMomentSummary {
    /// The part; null before the expiry.
    pub part: Option<WakePart>,
    /// When it began, from the expiry: negative before it.
    pub after_ns: i64,
    /// How long it took.
    pub ns: Nanos,
    /// What had the CPU.
    #[serde(flatten)]
    pub cause: WakeCause,
}

/// One of the latest wake-ups.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LateWakeupSummary {
    /// The expiry, from the recording's beginning.
    pub at_ns: Nanos,
    /// The latency.
    pub late_ns: Nanos,
    /// What took most of it.
    pub main: MainCause,
    /// What happened before and during the wake-up.
    pub moments: Vec<WakeMomentSummary>,
}

/// The latest wake-ups of a CPU, the latest first.
pub(crate) fn late_wakeups(
    interval: Nanos,
    cpu: &CpuLatency,
    causes: &WakeupCauses,
) -> Vec<LateWakeupSummary> {
    let spans: Vec<Span> = cpu.spans(interval).collect();
    let latest = causes.latest.iter().filter_map(|late| {
        let moments = moments(causes, late);
        let Span { start, length } = *spans.get(late.wakeup)?;
        Some(LateWakeupSummary {
            at_ns: start,
            late_ns: length,
            main: main_cause(&moments)?,
            moments,
        })
    });
    latest.collect()
}

fn moments(causes: &WakeupCauses, late: &LateWakeup) -> Vec<WakeMomentSummary> {
    let signed = |ns: Nanos| i64::try_from(ns.get()).unwrap_or(i64::MAX);
    let moments = late.moments.iter().filter_map(|moment| {
        let Span { start, length } = moment.span;
        Some(WakeMomentSummary {
            part: moment.part,
            after_ns: signed(start).saturating_sub(signed(late.before_ns)),
            ns: length,
            cause: WakeCause::of(causes, moment.culprit)?,
        })
    });
    moments.collect()
}

/// What took most of a wake-up; `None` if it was not late.
fn main_cause(moments: &[WakeMomentSummary]) -> Option<MainCause> {
    let mut times: BTreeMap<&WakeCause, BTreeMap<WakePart, Nanos>> = BTreeMap::new();
    for moment in moments {
        let Some(part) = moment.part else { continue };
        let time = times.entry(&moment.cause).or_default().entry(part).or_default();
        *time = *time + moment.ns;
    }
    let sum = |parts: &BTreeMap<WakePart, Nanos>| parts.values().copied().sum::<Nanos>();
    let (cause, parts) = times.into_iter().max_by_key(|(_, parts)| sum(parts))?;
    let (part, _) = parts.iter().max_by_key(|(_, time)| **time)?;
    Some(MainCause {
        part: *part,
        cause: cause.clone(),
        ns: sum(&parts),
        before_ns: before(moments, cause),
    })
}

/// How long a culprit had the CPU until the expiry; others may have interrupted it.
fn before(moments: &[WakeMomentSummary], cause: &WakeCause) -> Nanos {
    let before = moments.iter().filter(|moment| moment.part.is_none());
    let threads = before.filter(|moment| moment.cause.kind == CulpritKind::Thread);
    let last = threads.rev().take_while(|moment| moment.cause == *cause);
    last.map(|moment| moment.ns).sum()
}
