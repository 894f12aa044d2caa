//! Everything that a cell's measured CPUs executed, in all of its phases or in those of a call.
//!
//! Not known where the lab did not keep all of it.

use std::ops::Range;

use recording::{Answer, Body, Cell, CpuCounts, PhaseCalls, Profile};
use units::{Cpu, CpuSet, Instructions, Nanos};

use crate::counts::phases_each;
use crate::explain::typical::NAMELESS;
use crate::{CallStack, PROGRAM, PhaseExplanation, answer};

/// Everything that a cell's measured CPUs executed in its phases, or in that of one call.
#[derive(Debug, Clone)]
pub struct WholePhase<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// The call; `None`: all phases.
    pub call: Option<&'a str>,
    /// The CPUs.
    pub cpus: CpuSet,
    /// How long the phases were, where the recording says so.
    pub elapsed: Option<Nanos>,
    /// What was executed, with the functions' names.
    pub stacks: Vec<CallStack<'a>>,
}

impl<'a> WholePhase<'a> {
    /// All phases of a cell, or that of one call; on the CPUs that were measured, or on
    /// that one. `None` where not all of it was recorded.
    pub fn of(cell: &'a Cell, call: Option<&'a str>, cpu: Option<Cpu>) -> Option<Self> {
        let answer = answer(cell)?;
        let (counts, profile) = (answer.counts.as_ref()?, answer.profile.as_ref()?);
        let phases = match call {
            Some(call) => places(answer, call)?,
            None => 0..counts.phases.len(),
        };
        let cpus = cpu.map_or_else(|| measured(answer), |cpu| CpuSet::from_iter([cpu]));
        let counted = counts.phases.get(phases.clone())?.iter();
        let counted = counted.flat_map(|phase| &phase.cpus);
        let counted: Vec<_> = counted.filter(|on| cpus.contains(on.cpu)).collect();
        let kept =
            |kept: &&PhaseCalls| phases.contains(&kept.phase) && cpus.contains(kept.cpu);
        let kept = profile.phases.iter().filter(kept);
        let mut stacks: Vec<_> = kept.flat_map(|kept| stacks_of(profile, kept)).collect();
        // The counter keeps the first phases; a part of a whole would explain nothing.
        let kernel: Instructions = stacks.iter().map(CallStack::own).sum();
        let is_whole = kernel == counted.iter().map(|on| on.kernel).sum();
        let program = |on: &&CpuCounts| CallStack::new(vec![PROGRAM], on.user);
        stacks.extend(counted.iter().map(program));
        let elapsed = if call.is_none() { elapsed(answer) } else { None };
        let is_there = is_whole && !counted.is_empty();
        is_there.then_some(Self { cell, call, cpus, elapsed, stacks })
    }

    /// Where all of it went.
    pub fn explanation(&self) -> PhaseExplanation {
        PhaseExplanation::of(self.elapsed, &self.stacks)
    }
}

/// The phases of a call: each call has phases of its own.
fn places(answer: &Answer, name: &str) -> Option<Range<usize>> {
    let Body::Calls { spec, .. } = &answer.recording.body else { return None };
    let place = spec.calls.iter().position(|call| call.name() == name)?;
    let each = phases_each(spec);
    Some(place * each..(place + 1) * each)
}

/// The CPUs that were measured; all, where all were.
fn measured(answer: &Answer) -> CpuSet {
    match &answer.recording.body {
        Body::Noise { spec, .. } => spec.cpus.clone(),
        Body::Ticks { spec, .. } => spec.cpus.clone(),
        Body::Calls { spec, .. } => CpuSet::from_iter([spec.cpu]),
        Body::NohzTest { spec, .. } => CpuSet::from_iter([spec.cpu]),
        Body::Check { .. }
        | Body::Latency { .. }
        | Body::Run { .. }
        | Body::Wakers { .. }
        | Body::NohzStress { .. }
        | Body::Jitter { .. }
        | Body::Slices { .. } => {
            let phases = answer.counts.iter().flat_map(|counts| &counts.phases);
            phases.flat_map(|phase| phase.cpus.iter().map(|cpu| cpu.cpu)).collect()
        }
    }
}

/// How long the phases were together, where the recording says so.
fn elapsed(answer: &Answer) -> Option<Nanos> {
    match &answer.recording.body {
        Body::Noise { series, .. } => series.cpus.iter().map(|cpu| cpu.elapsed_ns).max(),
        Body::Ticks { series, .. } => {
            Some(series.samples.iter().map(|sample| sample.span_ns).sum())
        }
        Body::Check { .. }
        | Body::Calls { .. }
        | Body::Latency { .. }
        | Body::Run { .. }
        | Body::Wakers { .. }
        | Body::NohzTest { .. }
        | Body::NohzStress { .. }
        | Body::Jitter { .. }
        | Body::Slices { .. } => None,
    }
}

fn stacks_of<'a>(profile: &'a Profile, kept: &'a PhaseCalls) -> Vec<CallStack<'a>> {
    let name = |place: usize| profile.names.get(place).map_or(NAMELESS, String::as_str);
    let mut paths: Vec<Vec<&str>> = Vec::new();
    for called in &kept.calls {
        // A caller stands before what it calls; one that does not is none.
        let above = called.caller.and_then(|place| paths.get(place));
        let mut path = above.cloned().unwrap_or_default();
        path.push(name(called.name));
        paths.push(path);
    }
    let stacks = paths.into_iter().zip(&kept.calls);
    stacks.map(|(path, called)| CallStack::new(path, called.own)).collect()
}
