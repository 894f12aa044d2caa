//! The rows of the table of metrics, and how they are read.

use std::borrow::Borrow;

use units::{Cpu, Instructions, Nanos, PerSecond, Ppm};

use crate::metrics::definition::{Definition, Metric};

/// Another run may differ by this many times the deviation of a single phase, if the metric
/// depends on rare events.
pub(crate) const RARE: f64 = 2.0;
/// A value, and by how much it may differ in another run of the same kernel.
pub(crate) type Reading = (f64, f64);

/// A row of the table: a metric, and the function that reads it.
pub(crate) struct Row<S: 'static> {
    pub(crate) about: Definition,
    pub(crate) read: fn(&S) -> Option<Reading>,
}

pub(crate) type Rows<S> = &'static [Row<S>];

impl<S> Row<S> {
    fn metric(&'static self, cpu: Option<Cpu>, summary: &S) -> Option<Metric> {
        let (value, tolerance) = (self.read)(summary)?;
        let about = &self.about;
        let key = about.key.to_owned();
        Some(Metric { key, cpu, value, tolerance, varied: None, about })
    }
}

/// Metrics that are not of a CPU.
pub(crate) fn whole<'a, S>(
    rows: Rows<S>,
    summary: impl Into<Option<&'a S>>,
) -> Vec<Metric> {
    let summary = summary.into();
    rows.iter().filter_map(|row| row.metric(None, summary?)).collect()
}

pub(crate) fn of_call<S>(rows: Rows<S>, call: &str, summary: &S) -> Vec<Metric> {
    let named = |metric: Metric| Metric {
        key: metric.key.replace(Definition::CALL, call),
        ..metric
    };
    whole(rows, summary).into_iter().map(named).collect()
}

/// Metrics of each CPU.
pub(crate) fn each<S>(rows: Rows<S>, cpus: &[S], cpu: fn(&S) -> Cpu) -> Vec<Metric> {
    parts(rows, cpus.iter().map(|of| (Some(cpu(of)), of)))
}

/// Metrics of parts of the summaries of CPUs, where the CPU is known.
pub(crate) fn parts<S, P: Borrow<S>>(
    rows: Rows<S>,
    cpus: impl IntoIterator<Item = (Option<Cpu>, P)>,
) -> Vec<Metric> {
    let of = |(cpu, part): (Option<Cpu>, P)| {
        rows.iter().filter_map(|row| row.metric(cpu, part.borrow())).collect::<Vec<_>>()
    };
    cpus.into_iter().flat_map(of).collect()
}

/// A value that is the same in each run, or that has no phases to derive a tolerance from.
pub(crate) fn exact<T>(value: Option<T>, number: fn(T) -> f64) -> Option<Reading> {
    value.map(|value| (number(value), 0.0))
}

pub(crate) fn ns(length: Option<Nanos>) -> Option<Reading> {
    exact(length, |length| length.get() as f64)
}

pub(crate) fn ppm(share: Option<Ppm>) -> Option<Reading> {
    exact(share, Ppm::get)
}

pub(crate) fn hz(rate: Option<PerSecond>) -> Option<Reading> {
    exact(rate, PerSecond::get)
}

pub(crate) fn instructions(cost: Option<Instructions>) -> Option<Reading> {
    exact(cost, |cost| cost.get() as f64)
}

pub(crate) fn count(count: Option<u64>) -> Option<Reading> {
    exact(count, |count| count as f64)
}

/// A value that another run may differ from by this much.
pub(crate) fn within(value: Option<Reading>, off: Option<f64>) -> Option<Reading> {
    value.map(|(value, _)| (value, off.unwrap_or(0.0)))
}

/// A value that rare events affect, and the largest deviation of a phase.
pub(crate) fn rare(value: Option<Reading>, off: Option<Reading>) -> Option<Reading> {
    within(value, off.map(|(off, _)| off * RARE))
}
