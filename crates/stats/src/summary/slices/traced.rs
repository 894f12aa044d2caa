//! The slices that were seen to end, where each switch was traced.

use std::collections::BTreeSet;

use recording::{
    CpuSwitches, End, LooseEnd, SlicesSeries, SlicesTask, SlicesTurn, Stretch,
};
use units::Nanos;

use super::turns::{turns, wall};

/// A task that ran on a CPU, and left it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Left<'a> {
    at: Nanos,
    /// How long it had run; `None` where its beginning was not seen.
    length: Option<Nanos>,
    task: &'a str,
    end: End,
}

/// A slice that was seen to end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slice<'a> {
    pub(super) task: &'a str,
    pub(super) length: Option<Nanos>,
    pub(super) end: End,
    pub(super) next: Option<&'a str>,
}

/// What ran, CPU by CPU, in its order. `names` are those of the tasks that ran.
pub(super) fn stretches<'a>(
    cpus: &[CpuSwitches],
    names: &'a [String],
) -> Vec<Vec<Left<'a>>> {
    let name = |task: u32| {
        let place = usize::try_from(task).unwrap_or(usize::MAX);
        names.get(place).map_or("?", String::as_str)
    };
    let whole = |stretch: &Stretch| Left {
        at: stretch.start_ns + stretch.ns,
        length: Some(stretch.ns),
        task: name(stretch.task),
        end: stretch.end,
    };
    let loose = |loose: &LooseEnd| Left {
        at: loose.at_ns,
        length: None,
        task: name(loose.task),
        end: loose.end,
    };
    let cpu = |cpu: &CpuSwitches| {
        let loose = cpu.loose_ends.iter().map(loose);
        let mut all: Vec<_> = cpu.stretches.iter().map(whole).chain(loose).collect();
        all.sort_by_key(|left| left.at);
        all
    };
    cpus.iter().map(cpu).collect()
}

/// The slices of these tasks that ended in turns of a step.
pub(super) fn slices<'a>(
    cpus: &[Vec<Left<'a>>],
    series: &SlicesSeries,
    step: usize,
    of: &[SlicesTask],
) -> Vec<Slice<'a>> {
    let window = |turn: &SlicesTurn| {
        let start = turn.samples.first()?.start_ns;
        Some((start, start + wall(turn)))
    };
    let windows: Vec<(Nanos, Nanos)> = turns(series, step).filter_map(window).collect();
    let is_within = |left: &Left<'_>| {
        windows.iter().any(|(from, to)| (*from..*to).contains(&left.at))
    };
    let meant: BTreeSet<&str> = of.iter().map(|task| task.name.as_str()).collect();
    let mut slices = Vec::new();
    for cpu in cpus {
        let nexts = cpu.iter().skip(1).map(Some).chain([None]);
        for (left, next) in cpu.iter().zip(nexts) {
            if !meant.contains(left.task) || !is_within(left) {
                continue;
            }
            let follows = |next: &&Left<'_>| {
                next.length.is_some_and(|length| next.at == left.at + length)
            };
            let next = next.filter(follows).map(|next| next.task);
            let Left { task, length, end, .. } = *left;
            slices.push(Slice { task, length, end, next });
        }
    }
    slices
}
