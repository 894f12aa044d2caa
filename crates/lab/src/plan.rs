//! The plan of one cell: everything that is asked of one guest run.
//!
//! Plans come from an experiment's rows (`combination`). They name the kernel as the user
//! does; which image that is, is found out later.

use std::fmt;
use std::str::FromStr;

use agent::{Company, Setting, Task};
use recording::{Mode, Phases, Source as Watch};
use serde::de::{Deserialize, Deserializer};
use units::Nanos;

use crate::combination::{self, Combination};
use crate::entry::read_from_text;
use crate::error::Error;
use crate::rows::{Cpus, MemoryMib, Table};
use crate::toml_place::Source;
use crate::workload;

/// QEMU's oldest 64-bit model, without the one instruction that asks for randomness.
const CPU: &str = "qemu64,-rdrand";
const CPUS: Cpus = Cpus::of::<1>();
const MEMORY_MIB: MemoryMib = MemoryMib::of::<256>();
/// Whole periods of the tick, whatever `CONFIG_HZ` of 100, 250, 300 and 1000 it has.
const PHASE_EVERY: Nanos = Nanos::from_millis(20);
/// Offsets that lie well apart in the period of each of these ticks, and that begin at other
/// passes of the measuring loop.
const PHASE_STEP: Nanos = Nanos::from_nanos(1_381_967);

/// What is asked of one guest run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The cell's name: the names of its boot row, setting row and workload.
    pub name: String,
    /// The kernel, as the user asks for it: `debian:6.1-cloud`.
    pub kernel: String,
    /// The boot parameters that are added to the lab's own; may be empty.
    pub params: String,
    /// The guest's machine.
    pub machine: Machine,
    /// Kernel settings, in the order in which they are written.
    pub settings: Vec<Setting>,
    /// What else runs meanwhile.
    pub company: Vec<Company>,
    /// What is measured.
    pub task: Task,
    /// Who watches the kernel's events meanwhile, if anybody does.
    pub watch: Option<Watch>,
    /// What runs and is measured, in a few words.
    pub workload: String,
    /// What guest time is.
    pub mode: Mode,
    /// Which repeat of the same cell this is, from 1.
    pub repeat: u32,
}

impl Plan {
    /// The plan of a boot that asks a kernel for its symbols.
    pub(crate) fn of_symbols(kernel: &str) -> Self {
        Self::of_task(kernel, Task::Symbols)
    }

    /// The plan of an exact boot for that task, on the usual machine.
    pub(crate) fn of_task(kernel: &str, task: Task) -> Self {
        Self {
            name: String::new(),
            kernel: kernel.to_owned(),
            params: String::new(),
            machine: Machine {
                kind: MachineKind::Pc,
                cpu: CPU.to_owned(),
                cpus: CPUS.get(),
                memory_mib: MEMORY_MIB.get(),
            },
            settings: Vec::new(),
            company: Vec::new(),
            task,
            watch: None,
            workload: String::new(),
            mode: Mode::Exact,
            repeat: 1,
        }
    }
}

/// A guest's machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The board.
    pub kind: MachineKind,
    /// What QEMU's `-cpu` takes.
    pub cpu: String,
    /// How many CPUs, from 1.
    pub cpus: u32,
    /// Memory in MiB.
    pub memory_mib: u32,
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, cpu, cpus, memory_mib } = self;
        let s = if *cpus == 1 { "" } else { "s" };
        write!(f, "{}, {cpus} CPU{s} of {cpu}, {memory_mib} MiB", kind.name())
    }
}

/// A guest's board.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum MachineKind {
    /// The usual PC, QEMU's `pc`.
    #[default]
    Pc,
    /// QEMU's `microvm`: fewer devices, boots in half the time, and its tick is cheaper.
    Microvm,
}

impl MachineKind {
    /// What it is called in experiments.
    fn name(self) -> &'static str {
        match self {
            Self::Pc => "pc",
            Self::Microvm => "microvm",
        }
    }
}

impl FromStr for MachineKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut kinds = [Self::Pc, Self::Microvm].into_iter();
        kinds.find(|kind| kind.name() == text).ok_or_else(|| {
            format!("'{}' is no machine: pc or microvm", text.escape_debug())
        })
    }
}

read_from_text!(MachineKind);

/// The plans of all cells: by kernel, boot row, setting row, workload and repeat.
pub(crate) fn plans(source: &Source, table: &Table) -> Result<Vec<Plan>, Error> {
    let combinations = combination::combinations(source, table)?;
    let mut plans = Vec::new();
    for kernel in table.kernels.iter() {
        let kernel = kernel.get_ref().as_str();
        for combination in combinations.iter().filter(|rows| rows.setting.is_for(kernel))
        {
            let plan = plan(source, table, kernel, combination)?;
            let repeats = 1..=table.repeats.get();
            plans.extend(repeats.map(|repeat| Plan { repeat, ..plan.clone() }));
        }
    }
    if plans.is_empty() {
        let why = "there is no cell: no setting row is for one of these kernels, or goes with \
                   a boot row that something runs with";
        return Err(source.refuse(table.name.span(), why));
    }
    Ok(plans)
}

/// The plan of a cell's first run.
fn plan(
    source: &Source,
    table: &Table,
    kernel: &str,
    rows: &Combination<'_>,
) -> Result<Plan, Error> {
    let machine = machine(source, table, rows)?;
    let phases = phases(table);
    let work = workload::work(source, rows.workload, machine.cpus, phases)?;
    Ok(Plan {
        name: rows.name(),
        kernel: kernel.to_owned(),
        params: rows.boot.append.as_str().to_owned(),
        machine,
        settings: settings(rows),
        company: work.company,
        task: work.task,
        watch: work.watch,
        workload: work.words,
        mode: table.mode.0,
        repeat: 1,
    })
}

/// In which phases a cell is measured. Real time has no phases to choose: there each repeat
/// is another one.
fn phases(table: &Table) -> Option<Phases> {
    (table.mode.0 == Mode::Exact).then_some(Phases {
        count: table.phases.get(),
        every_ns: PHASE_EVERY,
        step_ns: PHASE_STEP,
    })
}

/// The machine: what the boot row says, else what the experiment says.
fn machine(
    source: &Source,
    table: &Table,
    rows: &Combination<'_>,
) -> Result<Machine, Error> {
    let (row, all) = (rows.boot, &table.machine);
    let cpu = row.cpu.as_ref().or(all.cpu.as_ref());
    if let Some(cpu) = cpu.filter(|cpu| cpu.get_ref().is_host()) {
        if table.mode.0 == Mode::Exact {
            let why = "exact mode emulates the CPU: it cannot be the host's; use max";
            return Err(source.refuse(cpu.span(), why));
        }
    }
    Ok(Machine {
        kind: row.kind.or(all.kind).unwrap_or_default(),
        cpu: cpu.map_or(CPU, |cpu| cpu.get_ref().as_str()).to_owned(),
        cpus: row.cpus.or(all.cpus).unwrap_or(CPUS).get(),
        memory_mib: row.memory_mib.or(all.memory_mib).unwrap_or(MEMORY_MIB).get(),
    })
}

fn settings(rows: &Combination<'_>) -> Vec<Setting> {
    let written = rows.setting.write.iter().map(|(path, value)| Setting {
        path: path.get_ref().as_str().to_owned(),
        value: value.as_str().to_owned(),
    });
    written.collect()
}
