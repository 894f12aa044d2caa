//! The slices with a traced end: the stretches of measured tasks between two switches of a CPU.
//!
//! A slice belongs to the variant in whose round it ended. Its next task is that of the stretch that
//! starts exactly at its end; if none does, switches were lost, and the next task is unknown.

use std::collections::BTreeSet;

use recording::{
    CpuSwitches, End, LooseEnd, SlicesSeries, SlicesTask, SlicesTurn, Stretch,
};
use units::Nanos;

use crate::slices::turns::{turns, wall};

/// A stretch of a task on a CPU.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndedStretch<'a> {
    /// Its end.
    at: Nanos,
    /// `None` if its start was not traced.
    length: Option<Nanos>,
    task: &'a str,
    end: End,
}

/// A slice with a traced end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slice<'a> {
    pub(super) task: &'a str,
    pub(super) length: Option<Nanos>,
    pub(super) end: End,
    pub(super) next: Option<&'a str>,
}

/// The stretches of each CPU in order of their ends. `names` are those of the tasks.
pub(super) fn stretches<'a>(
    cpus: &[CpuSwitches],
    names: &'a [String],
) -> Vec<Vec<EndedStretch<'a>>> {
    let name = |task: u32| {
        let place = usize::try_from(task).unwrap_or(usize::MAX);
        names.get(place).map_or("?", String::as_str)
    };
    let whole = |stretch: &Stretch| EndedStretch {
        at: stretch.start_ns + stretch.ns,
        length: Some(stretch.ns),
        task: name(stretch.task),
        end: stretch.end,
    };
    let loose = |loose: &LooseEnd| EndedStretch {
        at: loose.at_ns,
        length: None,
        task: name(loose.task),
        end: loose.end,
    };
    let cpu = |cpu: &CpuSwitches| {
        let loose = cpu.loose_ends.iter().map(loose);
        let mut all: Vec<_> = cpu.stretches.iter().map(whole).chain(loose).collect();
        all.sort_by_key(|stretch| stretch.at);
        all
    };
    cpus.iter().map(cpu).collect()
}

/// The slices of these tasks that ended in rounds of a variant.
pub(super) fn slices<'a>(
    cpus: &[Vec<EndedStretch<'a>>],
    series: &SlicesSeries,
    step: usize,
    of: &[SlicesTask],
) -> Vec<Slice<'a>> {
    let window = |turn: &SlicesTurn| {
        let start = turn.samples.first()?.start_ns;
        Some((start, start + wall(turn)))
    };
    let windows: Vec<(Nanos, Nanos)> = turns(series, step).filter_map(window).collect();
    let is_within = |stretch: &EndedStretch<'_>| {
        windows.iter().any(|(from, to)| (*from..*to).contains(&stretch.at))
    };
    let names: BTreeSet<&str> = of.iter().map(|task| task.name.as_str()).collect();
    let mut slices = Vec::new();
    for cpu in cpus {
        let nexts = cpu.iter().skip(1).map(Some).chain([None]);
        for (stretch, next) in cpu.iter().zip(nexts) {
            if !names.contains(stretch.task) || !is_within(stretch) {
                continue;
            }
            let follows = |next: &&EndedStretch<'_>| {
                next.length.is_some_and(|length| next.at == stretch.at + length)
            };
            let next = next.filter(follows).map(|next| next.task);
            let EndedStretch { task, length, end, .. } = *stretch;
            slices.push(Slice { task, length, end, next });
        }
    }
    slices
}
