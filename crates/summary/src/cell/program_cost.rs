//! The instructions of a program in a guest: of the command, of each service, and of the rest of
//! the guest.

use recording::{Answer, Profile, ProgramSeries, ProgramSpec};
use serde::Serialize;
use units::{Instructions, Nanos, PerSecond};

use crate::cell::counts::is_timer_entry;
use crate::explain::call_stack::function_name;
use crate::explain::phase::{EntryCost, EntryKind, PROGRAM, entry};
use crate::program::ProgramSummary;

mod means;

/// The number of functions in the summary of a group.
const FUNCTIONS: usize = 30;

/// The run of a program, and the instructions of the guest from its start to its end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProgramCost {
    /// The run; in exact mode a nanosecond is an instruction, or idle.
    #[serde(flatten)]
    pub run: ProgramSummary,
    /// All instructions of the guest.
    pub instructions: Instructions,
    /// Those of the kernel.
    pub kernel_instructions: Instructions,
    /// The number of timer interrupts.
    pub timer_interrupts: u64,
    /// That and more for a unit of work; null if the experiment names none.
    pub unit: Option<UnitCost>,
    /// The instructions of the command, of the services in their order, and of the rest of the
    /// guest. They add up to all.
    pub groups: Vec<GroupCost>,
}

/// The cost of a unit of work, such as a request.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UnitCost {
    /// Its name.
    pub name: String,
    /// The number of units.
    pub count: u64,
    /// Units per second of guest time.
    pub units_hz: Option<PerSecond>,
    /// Instructions of the guest for each.
    pub instructions: f64,
    /// Those of the kernel.
    pub kernel_instructions: f64,
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
    /// All its instructions.
    pub instructions: Instructions,
    /// Those in user mode.
    pub user_instructions: Instructions,
    /// Those of the kernel; an interrupt belongs to the thread that it interrupts.
    pub kernel_instructions: Instructions,
    /// All of them by what executed them, in descending order.
    pub entries: Vec<EntryCost>,
    /// Those of the kernel by function, the largest 30, in descending order.
    pub functions: Vec<FunctionShare>,
}

/// The instructions of one function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FunctionShare {
    /// The function.
    pub name: String,
    /// Its own instructions, without those of the functions that it called.
    pub own_instructions: Instructions,
}

impl UnitCost {
    /// The cost of each of `count` units that took so long, and so many instructions.
    fn new(
        name: &str,
        count: u64,
        elapsed: Nanos,
        all: Instructions,
        kernel: Instructions,
    ) -> Self {
        let each = |all: Instructions| all.get() as f64 / count as f64;
        Self {
            name: name.to_owned(),
            count,
            units_hz: PerSecond::of(count, elapsed),
            instructions: each(all),
            kernel_instructions: each(kernel),
        }
    }
}

impl GroupCost {
    fn of(
        profile: &Profile,
        number: u32,
        role: GroupRole,
        name: &str,
        user: Instructions,
    ) -> Self {
        let contexts = profile.contexts.iter().filter(|one| one.group == number);
        let costs = contexts.map(|context| {
            let frames = context.frames.iter().map(|&name| function_name(profile, name));
            (entry(&frames.collect::<Vec<_>>()), context.own, context.times)
        });
        let program = ((EntryKind::Program, PROGRAM), user, 0);
        let entries = EntryCost::added_up(costs.chain([program]));
        Self::new(role, name.to_owned(), entries, functions(profile, number))
    }

    fn new(
        role: GroupRole,
        name: String,
        entries: Vec<EntryCost>,
        functions: Vec<FunctionShare>,
    ) -> Self {
        let sum = |is_user: bool| -> Instructions {
            let own = |entry: &&EntryCost| (entry.kind == EntryKind::Program) == is_user;
            entries.iter().filter(own).map(|entry| entry.instructions).sum()
        };
        let (user, kernel) = (sum(true), sum(false));
        Self {
            role,
            name,
            instructions: user + kernel,
            user_instructions: user,
            kernel_instructions: kernel,
            entries,
            functions,
        }
    }

    /// Its instructions of that kind.
    pub fn of_kind(&self, kind: EntryKind) -> Instructions {
        let entries = self.entries.iter().filter(|entry| entry.kind == kind);
        entries.map(|entry| entry.instructions).sum()
    }
}

fn functions(profile: &Profile, group: u32) -> Vec<FunctionShare> {
    let own = profile.functions.iter().filter(|function| function.group == group);
    let own = own.map(|function| FunctionShare {
        name: function_name(profile, function.name).to_owned(),
        own_instructions: function.own,
    });
    FunctionShare::largest(own.collect())
}

impl FunctionShare {
    /// The largest of these, in descending order.
    fn largest(mut all: Vec<Self>) -> Vec<Self> {
        all.sort_by(|a, b| {
            b.own_instructions.cmp(&a.own_instructions).then_with(|| a.name.cmp(&b.name))
        });
        all.truncate(FUNCTIONS);
        all
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
        let (counts, profile) = (answer.counts.as_ref()?, answer.profile.as_ref()?);
        let cpus = counts.phases.iter().flat_map(|phase| &phase.cpus);
        let counted: Vec<_> = cpus.flat_map(|cpu| &cpu.groups).collect();
        if counted.is_empty() {
            return None;
        }
        let group = |number: u32, role, name: &str| {
            let own = counted.iter().filter(|of| of.group == number);
            GroupCost::of(profile, number, role, name, own.map(|of| of.user).sum())
        };
        let services = (1..).zip(&spec.services);
        let services =
            services.map(|(number, of)| group(number, GroupRole::Service, &of.name));
        let last = u32::try_from(spec.services.len()).unwrap_or(u32::MAX);
        let command = group(last.saturating_add(1), GroupRole::Command, "command");
        let other = group(0, GroupRole::Other, "other");
        let kernel: Instructions = counted.iter().map(|of| of.kernel).sum();
        let all = counted.iter().map(|of| of.user).sum::<Instructions>() + kernel;
        let unit = spec.unit.as_ref().map(|unit| {
            UnitCost::new(&unit.name, unit.count, series.elapsed_ns, all, kernel)
        });
        Some(Self {
            run: ProgramSummary::of(spec, series),
            instructions: all,
            kernel_instructions: kernel,
            unit,
            timer_interrupts: timer_interrupts(profile),
            groups: [command].into_iter().chain(services).chain([other]).collect(),
        })
    }

    /// The command.
    pub fn command(&self) -> Option<&GroupCost> {
        self.groups.first()
    }

    /// The kernel's instructions of all groups, by what executed them, in descending order.
    pub fn kernel_entries(&self) -> Vec<EntryCost> {
        let all = self.groups.iter().flat_map(|group| &group.entries);
        let kernel = all.filter(|entry| entry.kind != EntryKind::Program);
        EntryCost::added_up(
            kernel.map(|one| ((one.kind, &*one.name), one.instructions, one.times)),
        )
    }
}

/// The number of timer interrupts, of all groups.
fn timer_interrupts(profile: &Profile) -> u64 {
    let is_timer = |frames: &[usize]| matches!(frames, [entry] if is_timer_entry(function_name(profile, *entry)));
    let timers = profile.contexts.iter().filter(|context| is_timer(&context.frames));
    timers.map(|context| context.times).sum()
}

#[cfg(test)]
mod tests {
    use recording::{
        Context, Counts, CpuCounts, Ended, FunctionOwn, GroupCounts, KeptOutput,
        PhaseCounts, Recording, ServiceSpec, Words, WorkUnit,
    };
    use units::Cpu;

    use super::*;

    const NAMES: [&str; 5] = [
        "entry_SYSCALL_64",
        "__x64_sys_write",
        "handle_softirqs",
        "net_rx_action",
        "asm_sysvec_apic_timer_interrupt",
    ];

    fn spec() -> ProgramSpec {
        let words = |name: &str| Words::new([name.into()]);
        let service = ServiceSpec {
            name: "nginx".to_owned(),
            command: words("nginx"),
            ready: None,
        };
        ProgramSpec {
            command: words("ab"),
            services: vec![service],
            environment: vec![],
            directory: "/".to_owned(),
            exit_codes: vec![0],
            limit_ns: Nanos::from_secs(1),
            unit: Some(WorkUnit { name: "request".to_owned(), count: 4 }),
        }
    }

    fn answer() -> Answer {
        let count = Instructions::new;
        let group = |group, user, kernel| GroupCounts {
            group,
            user: count(user),
            kernel: count(kernel),
        };
        let context = |group, frames: &[usize], own, times| Context {
            group,
            frames: frames.to_vec(),
            own: count(own),
            times,
        };
        let cpu = CpuCounts {
            cpu: Cpu::new(0),
            user: count(101),
            kernel: count(75),
            steps: vec![],
            interruptions: vec![],
            idle_ns: None,
            groups: vec![group(0, 1, 5), group(1, 40, 30), group(2, 60, 40)],
        };
        let profile = Profile {
            names: NAMES.map(str::to_owned).to_vec(),
            contexts: vec![
                context(0, &[4], 5, 2),
                context(1, &[0, 1, 2, 3], 20, 7),
                context(1, &[0, 1], 10, 3),
                context(2, &[0, 1], 35, 4),
                context(2, &[4], 5, 1),
            ],
            functions: vec![
                FunctionOwn { group: 2, name: 1, own: count(9) },
                FunctionOwn { group: 2, name: 3, own: count(31) },
            ],
            ..Profile::default()
        };
        let counts = Counts { phases: vec![PhaseCounts { cpus: vec![cpu] }] };
        let body = recording::Body::Program { spec: spec(), series: series() };
        let facts = serde_json::from_str(r#"{"sources": {}, "unknown": {}}"#).unwrap();
        let (taken, tool) = (String::new(), Recording::TOOL.to_owned());
        let moments = recording::Moments::default();
        let recording = Recording {
            taken,
            tool,
            facts,
            body,
            doubts: vec![],
            moments,
            hardware: None,
            repeat: None,
        };
        Answer { recording, counts: Some(counts), profile: Some(profile), host: None }
    }

    fn series() -> ProgramSeries {
        ProgramSeries {
            elapsed_ns: Nanos::from_nanos(300),
            ended: Some(Ended::Exited(0)),
            usage: recording::Usage::default(),
            output: KeptOutput::default(),
            services: vec![KeptOutput::default()],
            failure: None,
        }
    }

    /// Check that the command is the group after those of the services, that the parts add up, and
    /// that softirqs in a system call are apart from it.
    #[test]
    fn groups() {
        let cost = ProgramCost::of(&spec(), &series(), &answer()).unwrap();
        let numbers = |group: &GroupCost| {
            let of = |kind| group.of_kind(kind).get();
            (
                group.name.clone(),
                group.instructions.get(),
                of(EntryKind::SystemCall),
                of(EntryKind::Softirq),
                of(EntryKind::Interrupt),
            )
        };
        let groups: Vec<_> = cost.groups.iter().map(numbers).collect();
        let expected = [
            ("command".to_owned(), 100, 35, 0, 5),
            ("nginx".to_owned(), 70, 10, 20, 0),
            ("other".to_owned(), 6, 0, 0, 5),
        ];
        assert_eq!(groups, expected);
        assert_eq!((cost.instructions.get(), cost.kernel_instructions.get()), (176, 75));
        assert_eq!(cost.timer_interrupts, 3);
        let unit = cost.unit.as_ref().unwrap();
        assert_eq!((unit.instructions, unit.kernel_instructions), (44.0, 18.75));
        let functions = &cost.command().unwrap().functions;
        assert_eq!(functions[0].name, "net_rx_action");
        let entries = cost.kernel_entries();
        assert_eq!((entries[0].name.as_str(), entries[0].times), ("write", 7));
        let sum: Instructions = entries.iter().map(|entry| entry.instructions).sum();
        assert_eq!(sum, cost.kernel_instructions);
    }

    /// Check that the means of runs add up, and that those of one run are its own numbers.
    #[test]
    fn means() {
        let cost = || ProgramCost::of(&spec(), &series(), &answer()).unwrap();
        assert_eq!(cost().averaged_with(&[]), cost());
        assert_eq!(cost().averaged_with(&[cost(), cost()]), cost());
        let mut other = cost();
        let entry = &mut other.groups[0].entries[0];
        entry.instructions = entry.instructions + Instructions::new(31);
        other.run.elapsed_ns = Nanos::from_nanos(500);
        let mean = cost().averaged_with(&[other]);
        assert_eq!(mean.run.elapsed_ns, Nanos::from_nanos(400));
        assert_eq!(mean.instructions.get(), 176 + 16);
        let sum = |part: fn(&GroupCost) -> Instructions| -> Instructions {
            mean.groups.iter().map(part).sum()
        };
        assert_eq!(sum(|group| group.instructions), mean.instructions);
        assert_eq!(sum(|group| group.kernel_instructions), mean.kernel_instructions);
        assert_eq!(mean.unit.as_ref().unwrap().instructions, 192.0 / 4.0);
    }
}
