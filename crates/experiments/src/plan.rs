//! The plan of one cell: everything that is requested of one guest run.
//!
//! Plans come from an experiment's rows (`combination`). They have the kernel's name as the
//! user wrote it; it is resolved to an image later.

pub(crate) mod combination;
pub(crate) mod program;
mod workload;

use recording::{
    BackgroundLoad, GuestSetting, Mode, Phases, ServiceSpec, Source as Watch, Spec,
};
use units::Nanos;

use self::combination::Combination;
use self::program::ProgramFiles;
use crate::error::Error;
use crate::machine::Machine;
use crate::table::Table;
use crate::table::number::Number;
use crate::table::source::Source;
use crate::variations::Variations;

/// Whole periods of the tick, whatever `CONFIG_HZ` of 100, 250, 300 and 1000 it has.
const PHASE_EVERY: Nanos = Nanos::from_millis(20);

/// The plan of one guest run.
#[derive(Debug, Clone, PartialEq)]
pub struct CellPlan {
    /// The cell's name: the names of its boot row, setting row and workload.
    pub name: String,
    /// The kernel's name, as the user wrote it: `debian:6.1-cloud`.
    pub kernel: String,
    /// The boot parameters that are added to the lab's own; may be empty.
    pub params: String,
    /// The guest's machine.
    pub machine: Machine,
    /// Kernel settings, in the order in which they are written.
    pub settings: Vec<GuestSetting>,
    /// Services that run beside what is measured, started in that order after the settings are written.
    pub services: Vec<ServiceSpec>,
    /// The background load.
    pub background: Vec<BackgroundLoad>,
    /// The measurement.
    pub spec: Spec,
    /// What a program and the services need in the guest; `None` without any.
    pub files: Option<ProgramFiles>,
    /// The event source, if events are traced.
    pub watch: Option<Watch>,
    /// A short description of what runs and is measured.
    pub workload: String,
    /// The mode of guest time.
    pub mode: Mode,
    /// How many variations of the cell are run.
    pub variations: Variations,
    /// Which repeat of the same cell this is, from 1.
    pub repeat: u32,
}

/// The plans of a table's own cells on a kernel.
pub(crate) fn of_kernel(
    source: &Source,
    table: &Table,
    kernel: &str,
) -> Result<Vec<CellPlan>, Error> {
    let combinations = combination::combinations(source, table)?;
    let is_for =
        |rows: &&Combination<'_>| rows.boot.is_for(kernel) && rows.setting.is_for(kernel);
    let mut plans = Vec::new();
    for combination in combinations.iter().filter(is_for) {
        let plan = plan(source, table, kernel, combination)?;
        let repeats = 1..=table.repeats.get();
        plans.extend(repeats.map(|repeat| CellPlan { repeat, ..plan.clone() }));
    }
    Ok(plans)
}

/// The plan of a cell's first run.
fn plan(
    source: &Source,
    table: &Table,
    kernel: &str,
    rows: &Combination<'_>,
) -> Result<CellPlan, Error> {
    let machine = machine(source, table, rows)?;
    let phases = phases(table);
    let work = workload::work(source, rows.workload, machine.cpus, phases)?;
    Ok(CellPlan {
        name: rows.name(),
        kernel: kernel.to_owned(),
        params: rows.boot.append.as_str().to_owned(),
        machine,
        settings: settings(rows),
        services: program::services(source, &rows.setting.service)?,
        background: work.background,
        variations: variations(table, &work.spec),
        spec: work.spec,
        files: files(source, table, rows, work.files),
        watch: work.watch,
        workload: work.words,
        mode: table.mode.0,
        repeat: 1,
    })
}

/// The phases of a cell. Real time has no selectable phases: there each repeat is another one.
fn phases(table: &Table) -> Option<Phases> {
    (table.mode.0 == Mode::Exact).then_some(Phases {
        count: table.phases.get(),
        every_ns: PHASE_EVERY,
        step_ns: Phases::STEP,
    })
}

/// The variations of a cell. In real time each repeat is another one.
fn variations(table: &Table, spec: &Spec) -> Variations {
    match (table.mode.0, table.variations) {
        (Mode::Timed, _) => Variations::Exactly(1),
        (Mode::Exact, Some(variations)) => variations,
        (Mode::Exact, None) => Variations::usual(spec),
    }
}

/// The machine of the boot row, else that of the experiment.
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
    let memory_mib = row.memory_mib.or(all.memory_mib);
    let usual = Machine::default();
    Ok(Machine {
        kind: row.kind.or(all.kind).unwrap_or(usual.kind),
        cpu: cpu.map_or(usual.cpu, |cpu| cpu.get_ref().as_str().to_owned()),
        cpus: row.cpus.or(all.cpus).map_or(usual.cpus, Number::get),
        memory_mib: memory_mib.map_or(usual.memory_mib, Number::get),
    })
}

/// What the program, if there is one, and the services need.
fn files(
    source: &Source,
    table: &Table,
    rows: &Combination<'_>,
    of_program: Option<ProgramFiles>,
) -> Option<ProgramFiles> {
    let services = &rows.setting.service;
    let of_services = || ProgramFiles { folder: source.folder(), ..Default::default() };
    let mut files = of_program.or_else(|| (!services.is_empty()).then(of_services))?;
    files.grows = !has_memory(table, rows);
    files.hints.extend(program::hints(services));
    Some(files)
}

/// Whether the size of the guest's memory is specified.
fn has_memory(table: &Table, rows: &Combination<'_>) -> bool {
    rows.boot.memory_mib.or(table.machine.memory_mib).is_some()
}

fn settings(rows: &Combination<'_>) -> Vec<GuestSetting> {
    let written = rows.setting.write.iter().map(|(path, value)| GuestSetting {
        path: path.get_ref().as_str().to_owned(),
        value: value.as_str().to_owned(),
    });
    written.collect()
}
