//! All instructions of a cell's measured CPUs, in all of its phases or in those of one call.
//!
//! Unknown if the lab did not store the stacks of all these phases.

use recording::{Answer, Body, Cell, CpuCounts, PhaseCalls, Profile};
use units::{Cpu, CpuSet, Instructions, Nanos};

use crate::cell::answer;
use crate::cell::counts::call_phases;
use crate::explain::call_stack::{CallStack, function_name};
use crate::explain::explanation::Explanation;
use crate::explain::phase::{PROGRAM, PhaseExplanation};

/// All instructions of a cell's measured CPUs, in all phases or in those of one call.
#[derive(Debug, Clone)]
pub struct WholePhase<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// The call; `None` for all phases.
    pub call: Option<&'a str>,
    /// The CPUs.
    pub cpus: CpuSet,
    /// The duration of the phases, if it is recorded.
    pub elapsed: Option<Nanos>,
    /// The stacks; of a program's cell, only the entries into the kernel.
    pub stacks: Vec<CallStack<'a>>,
    /// The functions of a program's cell, whose callers were not recorded.
    functions: Option<Vec<(&'a str, Instructions)>>,
}

impl<'a> WholePhase<'a> {
    /// All phases of a cell, or those of one call, on the measured CPUs, or on this one. `None` if not
    /// all stacks were recorded.
    pub fn of(cell: &'a Cell, call: Option<&'a str>, cpu: Option<Cpu>) -> Option<Self> {
        let answer = answer(cell)?;
        let (counts, profile) = (answer.counts.as_ref()?, answer.profile.as_ref()?);
        let phases = match call {
            Some(call) => call_phases(answer, call)?,
            None => 0..counts.phases.len(),
        };
        let cpus = cpu.map_or_else(|| measured(answer), |cpu| CpuSet::from_iter([cpu]));
        let counted = counts.phases.get(phases.clone())?.iter();
        let counted = counted.flat_map(|phase| &phase.cpus);
        let counted: Vec<_> = counted.filter(|on| cpus.contains(on.cpu)).collect();
        let is_of = |calls: &&PhaseCalls| {
            phases.contains(&calls.phase) && cpus.contains(calls.cpu)
        };
        let recorded = profile.phases.iter().filter(is_of);
        let contexts = profile.contexts.iter().filter(|_| cpu.is_none());
        let contexts = contexts.map(|context| {
            let frames = context.frames.iter().map(|&name| function_name(profile, name));
            CallStack::new(frames.collect(), context.own)
        });
        let mut stacks: Vec<_> = recorded
            .flat_map(|calls| stacks_of(profile, calls))
            .chain(contexts)
            .collect();
        // The counter stores only the first phases; stacks of some phases would be misleading.
        let kernel: Instructions = stacks.iter().map(CallStack::own).sum();
        let is_whole = kernel == counted.iter().map(|on| on.kernel).sum();
        let program = |on: &&CpuCounts| CallStack::new(vec![PROGRAM], on.user);
        stacks.extend(counted.iter().map(program));
        let own =
            profile.functions.iter().map(|of| (function_name(profile, of.name), of.own));
        let user = counted.iter().map(|on| (PROGRAM, on.user));
        let has_entries = !profile.contexts.is_empty() && cpu.is_none();
        let functions = has_entries.then(|| own.chain(user).collect());
        let elapsed = if call.is_none() { elapsed(answer) } else { None };
        let is_known = is_whole && !counted.is_empty();
        is_known.then_some(Self { cell, call, cpus, elapsed, stacks, functions })
    }

    /// The instructions by entry and by function.
    pub fn explanation(&self) -> PhaseExplanation {
        let explanation = match &self.functions {
            None => Explanation::of(&self.stacks),
            Some(own) => Explanation::without_callers(own.iter().copied()),
        };
        PhaseExplanation::of(self.elapsed, &self.stacks, explanation)
    }

    /// Whether the callers of functions were recorded.
    pub fn has_callers(&self) -> bool {
        self.functions.is_none()
    }
}

/// The measured CPUs; all CPUs for measurements that are not of single ones.
#[expect(clippy::wildcard_enum_match_arm, reason = "other kinds: all counted CPUs")]
fn measured(answer: &Answer) -> CpuSet {
    match &answer.recording.body {
        Body::Noise { spec, .. } => spec.cpus.clone(),
        Body::Ticks { spec, .. } => spec.cpus.clone(),
        Body::Calls { spec, .. } => CpuSet::from_iter([spec.cpu]),
        Body::NohzTest { spec, .. } => CpuSet::from_iter([spec.cpu]),
        _ => {
            let phases = answer.counts.iter().flat_map(|counts| &counts.phases);
            phases.flat_map(|phase| phase.cpus.iter().map(|cpu| cpu.cpu)).collect()
        }
    }
}

/// The duration of all phases, if it is recorded.
#[expect(clippy::wildcard_enum_match_arm, reason = "other kinds do not record it")]
fn elapsed(answer: &Answer) -> Option<Nanos> {
    match &answer.recording.body {
        Body::Noise { series, .. } => series.cpus.iter().map(|cpu| cpu.elapsed_ns).max(),
        Body::Ticks { series, .. } => {
            Some(series.samples.iter().map(|sample| sample.span_ns).sum())
        }
        Body::Program { series, .. } => Some(series.elapsed_ns),
        _ => None,
    }
}

fn stacks_of<'a>(profile: &'a Profile, calls: &'a PhaseCalls) -> Vec<CallStack<'a>> {
    let mut paths: Vec<Vec<&str>> = Vec::new();
    for called in &calls.calls {
        // A caller precedes its callees; any other index is invalid, and is ignored.
        let above = called.caller.and_then(|place| paths.get(place));
        let mut path = above.cloned().unwrap_or_default();
        path.push(function_name(profile, called.name));
        paths.push(path);
    }
    let stacks = paths.into_iter().zip(&calls.calls);
    stacks.map(|(path, called)| CallStack::new(path, called.own)).collect()
}
