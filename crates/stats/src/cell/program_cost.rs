//! The instructions of a program in a guest: of the command, of each service, and of the rest of
//! the guest.

use recording::{Answer, GroupCounts, PhaseCalls, Profile, ProgramSeries, ProgramSpec};
use serde::Serialize;
use units::Instructions;

use crate::counts::timer_entries;
use crate::explain::whole_phase::stacks_of;
use crate::{
    CallStack, EntryKind, PROGRAM, PhaseEntry, PhaseExplanation, ProgramSummary,
};

/// The number of functions in the summary; `lab explain` has all.
const FUNCTIONS: usize = 30;

/// The run of a program, and the instructions of the guest from its start to its end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProgramCost {
    /// The run; in exact mode a nanosecond is an instruction, or idle.
    #[serde(flatten)]
    pub run: ProgramSummary,
    /// All instructions of the guest.
    pub instructions: Instructions,
    /// The number of timer interrupts.
    pub timer_interrupts: u64,
    /// The instructions of the command, of the services in their order, and of the rest of the
    /// guest. They add up to all.
    pub groups: Vec<GroupCost>,
}

/// A part of a guest's threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupRole {
    /// The command, and the processes that it has started.
    Command,
    /// A service, and the processes that it has started.
    Service,
    /// Kernel threads, idle CPUs and the guest's agent.
    Other,
}

/// The instructions of one part of a guest's threads.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupCost {
    /// What it is.
    pub role: GroupRole,
    /// The name of the service; that of the command and of the rest is their role.
    pub name: String,
    /// Its instructions, by what executed them. An interrupt belongs to the thread that it
    /// interrupts.
    #[serde(flatten)]
    pub phase: PhaseExplanation,
}

impl GroupCost {
    /// Its instructions of that kind.
    pub fn of_kind(&self, kind: EntryKind) -> Instructions {
        let entries = self.phase.entries.iter().filter(|entry| entry.kind == kind);
        entries.map(|entry| entry.instructions).sum()
    }

    /// All its instructions.
    pub fn instructions(&self) -> Instructions {
        self.phase.explanation.total_instructions
    }
}

impl ProgramCost {
    /// `None` if the run was not counted. The groups are numbered as they began: the services,
    /// then the command.
    pub(super) fn of(
        spec: &ProgramSpec,
        series: &ProgramSeries,
        answer: &Answer,
    ) -> Option<Self> {
        let counts = answer.counts.as_ref()?;
        let profile = answer.profile.as_ref()?;
        let [phase] = counts.phases.as_slice() else { return None };
        let on_cpus = || phase.cpus.iter();
        let group = |number: u32, role, name: &str| {
            let counted = on_cpus().flat_map(|cpu| &cpu.groups);
            let user = counted.filter(|of| of.group == number).map(|of| of.user).sum();
            let mut phase = PhaseExplanation::of(None, &stacks(profile, number, user));
            phase.explanation.functions.truncate(FUNCTIONS);
            GroupCost { role, name: name.to_owned(), phase }
        };
        let mut groups = Vec::new();
        let mut number = 0;
        for service in &spec.services {
            number += 1;
            groups.push(group(number, GroupRole::Service, &service.name));
        }
        groups.insert(0, group(number + 1, GroupRole::Command, "command"));
        groups.push(group(0, GroupRole::Other, "other"));
        let all = |of: &GroupCounts| of.user + of.kernel;
        Some(Self {
            run: ProgramSummary::of(spec, series),
            instructions: on_cpus().flat_map(|cpu| &cpu.groups).map(all).sum(),
            timer_interrupts: on_cpus().map(timer_entries).sum(),
            groups,
        })
    }

    /// The command.
    pub fn command(&self) -> Option<&GroupCost> {
        self.groups.first()
    }

    /// The kernel's instructions of all groups, by what executed them, in descending order.
    pub fn entries(&self) -> Vec<PhaseEntry> {
        let mut sums: Vec<PhaseEntry> = Vec::new();
        let entries = self.groups.iter().flat_map(|group| &group.phase.entries);
        for entry in entries.filter(|entry| entry.kind != EntryKind::Program) {
            let same =
                |sum: &&mut PhaseEntry| sum.kind == entry.kind && sum.name == entry.name;
            match sums.iter_mut().find(same) {
                Some(sum) => sum.instructions = sum.instructions + entry.instructions,
                None => sums.push(entry.clone()),
            }
        }
        sums.sort_by_key(|entry| std::cmp::Reverse(entry.instructions));
        sums
    }

    /// The instructions of the kernel, of all groups.
    pub fn kernel_instructions(&self) -> Instructions {
        self.groups.iter().map(|group| group.phase.kernel_instructions).sum()
    }
}

/// The stacks of a group, which has executed that many instructions in user mode.
fn stacks(profile: &Profile, group: u32, user: Instructions) -> Vec<CallStack<'_>> {
    let is_of = |calls: &&PhaseCalls| calls.group == group;
    let kernel = profile.phases.iter().filter(is_of);
    let kernel = kernel.flat_map(|calls| stacks_of(profile, calls));
    kernel.chain([CallStack::new(vec![PROGRAM], user)]).collect()
}
