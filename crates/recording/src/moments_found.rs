//! The moments of measured values: those above the limit of the parameters.

use jiff::Timestamp;
use rustix::time::{ClockId, clock_gettime};
use units::{Cpu, Nanos, Span};

use crate::{Body, Moment, MomentKind, Spec, Trigger};

/// A moment that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundMoment {
    /// The moment, without its causes.
    pub moment: Moment,
    /// The index of its value in the list of those of its CPU: a gap, a wake-up, a test; of all
    /// interruptions of a program.
    pub place: usize,
}

/// A value and its time, from the beginning and on `CLOCK_MONOTONIC`.
pub(crate) struct Value {
    pub(crate) cpu: Cpu,
    pub(crate) place: usize,
    pub(crate) after: Nanos,
    pub(crate) span: Span,
    pub(crate) value: Nanos,
}

/// The values of a series, in their order.
pub(crate) type Values<'a> = Box<dyn Iterator<Item = Value> + 'a>;

impl Spec {
    /// The limit above which a value is a moment, and what such a value is; `None` without a limit.
    pub fn trigger(&self) -> Option<(MomentKind, Trigger)> {
        #[expect(clippy::wildcard_enum_match_arm, reason = "the others have no moments")]
        let (kind, trigger) = match self {
            Self::Noise(spec) => (MomentKind::Gap, spec.trigger),
            Self::Latency(spec) => (MomentKind::Wakeup, spec.trigger),
            Self::Jitter(spec) => (MomentKind::Loop, spec.trigger),
            Self::Run(spec) => (MomentKind::Interruption, spec.trigger),
            _ => return None,
        };
        trigger.stop_above_ns.map(|_| (kind, trigger))
    }
}

impl Body {
    /// The limit of its parameters, which only some kinds have.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the others have no moments")]
    pub fn trigger(&self) -> Trigger {
        match self {
            Self::Noise { spec, .. } => spec.trigger,
            Self::Latency { spec, .. } => spec.trigger,
            Self::Jitter { spec, .. } => spec.trigger,
            Self::Run { spec, .. } => spec.trigger,
            _ => Trigger::default(),
        }
    }

    /// The moments, in the order in which they began: the first value above the limit, or the
    /// largest ones. The time of day is that of the present offset between both clocks.
    pub fn moments(&self) -> Vec<FoundMoment> {
        #[expect(clippy::wildcard_enum_match_arm, reason = "the others have no moments")]
        let (kind, values) = match self {
            Self::Noise { series, .. } => (MomentKind::Gap, series.values()),
            Self::Latency { spec, series } => (MomentKind::Wakeup, series.values(spec)),
            Self::Jitter { spec, series } => (MomentKind::Loop, series.values(spec.cpu)),
            Self::Run { spec, series } => (MomentKind::Interruption, series.values(spec)),
            _ => return Vec::new(),
        };
        let offset = offset_of_day();
        let found = |value: Value| FoundMoment {
            place: value.place,
            moment: Moment {
                kind,
                cpu: value.cpu,
                at_ns: value.span.start,
                time: time_of_day(value.span.start, offset),
                after_ns: value.after,
                length_ns: value.span.length,
                value_ns: value.value,
                causes: None,
                before: Vec::new(),
                during: Vec::new(),
            },
        };
        chosen(values, self.trigger()).into_iter().map(found).collect()
    }
}

/// The values above the limit that are moments.
fn chosen(values: impl Iterator<Item = Value>, trigger: Trigger) -> Vec<Value> {
    let Some(limit) = trigger.stop_above_ns else { return Vec::new() };
    let mut above: Vec<Value> = values.filter(|value| value.value > limit).collect();
    if trigger.keep.is_some() {
        above.sort_by_key(|value| std::cmp::Reverse(value.value));
        above.truncate(trigger.moments_max());
    }
    above.sort_by_key(|value| value.span.start);
    above.truncate(trigger.moments_max());
    above
}

/// A time since the beginning on the kernel's clock; both were read at two times.
pub(crate) fn monotonic(since: Nanos, [begin, end]: [(Nanos, Nanos); 2]) -> Nanos {
    let wide = |nanos: Nanos| i128::from(nanos.get());
    let (ours, theirs) = (wide(end.0) - wide(begin.0), wide(end.1) - wide(begin.1));
    let passed = wide(since) - wide(begin.0);
    let passed = if ours > 0 { passed * theirs / ours } else { passed };
    let at = (wide(begin.1) + passed).max(0);
    Nanos::from_nanos(u64::try_from(at).unwrap_or(u64::MAX))
}

/// The time of day when `CLOCK_MONOTONIC` was 0, in nanoseconds since 1970.
fn offset_of_day() -> i128 {
    let now = clock_gettime(ClockId::Monotonic);
    let now = i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec);
    Timestamp::now().as_nanosecond() - now
}

fn time_of_day(at: Nanos, offset: i128) -> String {
    let time = Timestamp::from_nanosecond(offset + i128::from(at.get()));
    time.unwrap_or_default().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(place: usize, at: u64, value: u64) -> Value {
        let span =
            Span { start: Nanos::from_nanos(at), length: Nanos::from_nanos(value) };
        Value { cpu: Cpu::new(0), place, after: span.start, span, value: span.length }
    }

    /// Check that the first value above the limit is the moment, or the largest ones in the order of
    /// time, and that a value at the limit is none.
    #[test]
    fn first_or_worst() {
        let values = || {
            [(0, 50, 9), (1, 40, 12), (2, 10, 10), (3, 20, 11), (4, 70, 99)]
                .into_iter()
                .map(|(place, at, length)| value(place, at, length))
        };
        let limit = |above: u64, keep| Trigger {
            stop_above_ns: Some(Nanos::from_nanos(above)),
            keep,
        };
        let places = |trigger| {
            let chosen = chosen(values(), trigger);
            chosen.iter().map(|value| value.place).collect::<Vec<_>>()
        };
        assert_eq!(places(limit(10, None)), [3]);
        assert_eq!(places(limit(10, Some(2))), [1, 4]);
        assert_eq!(places(limit(10, Some(9))), [3, 1, 4]);
        assert_eq!(places(limit(99, Some(9))), [0; 0]);
        assert_eq!(places(Trigger::default()), [0; 0]);
    }

    /// Check the conversion to the kernel's clock, which may run at another rate, and the time of day.
    #[test]
    fn clocks() {
        let pair = |ours, theirs| (Nanos::from_nanos(ours), Nanos::from_nanos(theirs));
        let at = |since| {
            let clocks = [pair(100, 5_000), pair(1_100, 7_000)];
            monotonic(Nanos::from_nanos(since), clocks).get()
        };
        assert_eq!([0, 100, 600, 2_100].map(at), [4_800, 5_000, 6_000, 9_000]);
        let hour = Nanos::from_secs(3_600) + Nanos::from_micros(7);
        assert_eq!(time_of_day(hour, 0), "1970-01-01T01:00:00.000007Z");
    }
}
