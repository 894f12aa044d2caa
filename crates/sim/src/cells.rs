//! Cells of the lab in virtual time: the load of a cell that measured time slices, on a machine like its
//! guest.
//!
//! The guest's recording has the load, the kernel's release, `CONFIG_HZ` and the CPUs; the cell has the
//! settings that were written and the boot parameters. The kernel's own work takes the time that was
//! measured in Debian's kernels (`Machine::measured`).
//!
//! Cannot see: a kernel's patches and configuration, other processes of the guest, and what the tracing of
//! a traced cell executes.

mod kernel;
mod settings;

use facts::TickMode;
use recording::{BackgroundLoad, Body, Cell, Ending, Mode, Recording, SlicesSpec};

use crate::scheduler::{Error, KernelThread, Kind, Machine, Rules};
use crate::slices::{Groups, Simulation};

/// Boot parameters without which DAMON's thread runs in Debian's kernels since 6.18 (`mm/damon/stat.c`).
const NO_DAMON: [&str; 3] =
    ["damon_stat.enabled=0", "damon_stat.enabled=n", "damon_stat.enabled=N"];

/// The simulation of a cell.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedCell {
    /// The name of the rules: `6.12`.
    pub rules: &'static str,
    /// How the guest differs from what was simulated, each as a sentence without its full stop.
    pub remarks: Vec<String>,
    /// The simulated measurements, as many as the cell has variations: the tasks' start differs.
    pub recordings: Vec<Recording>,
}

impl SimulatedCell {
    /// Simulates the variations of a cell, which had this background load.
    ///
    /// # Errors
    /// `Kind::Load` if the cell is lost, not exact, or measured something else; `Kind::Rules` if its kernel is
    /// older than all rules or unknown; `Kind::Setting` if the rules do not have one of its settings.
    pub fn of(cell: &Cell, background: &[BackgroundLoad]) -> Result<Self, Error> {
        let (guest, spec) = measured(cell)?;
        if cell.mode == Mode::Timed {
            return refused("in timed mode guest time is real time, which varies");
        }
        if !background.is_empty() {
            return refused("its background load is not simulated");
        }
        if !cell.services.is_empty() {
            return refused("the services that run beside it are not simulated");
        }
        let release = guest.facts.kernel.release.get();
        let (mut rules, other) = kernel::rules(release.map(String::as_str))?;
        settings::apply(&cell.settings, &mut rules)?;
        let name = rules.name();
        let machine = machine(guest, &rules, &cell.params)?;
        let simulated = |variation: u64| {
            let simulation = Simulation {
                machine: machine.clone(),
                rules: rules.clone(),
                groups: Groups::default(),
                seed: variation << 32,
                reads_itself: false,
                traces: cell.watch.is_some(),
                places: false,
            };
            simulation.run(spec)
        };
        let variations = 0..=cell.variations.len() as u64;
        let recordings = variations.map(simulated).collect::<Result<_, _>>()?;
        let remarks = [other, parameters(&cell.params), traced(cell)];
        let remarks = remarks.into_iter().flatten().collect();
        Ok(Self { rules: name, remarks, recordings })
    }
}

/// The guest's recording, and its load.
fn measured(cell: &Cell) -> Result<(&Recording, &SlicesSpec), Error> {
    let Ending::Done(answer) = &cell.ending else { return refused("it is lost") };
    let Body::Slices { spec, .. } = &answer.recording.body else {
        return refused("it does not measure time slices");
    };
    Ok((&answer.recording, spec))
}

fn refused<T>(why: &str) -> Result<T, Error> {
    Err(Error::new(Kind::Load, why))
}

/// A machine like the guest, which had these boot parameters.
fn machine(guest: &Recording, rules: &Rules, params: &str) -> Result<Machine, Error> {
    let facts = &guest.facts;
    let Some(hz) = facts.tick.hz.get().copied() else {
        return refused("its CONFIG_HZ is unknown");
    };
    let Some(cpus) = facts.cpus.online.get().filter(|cpus| !cpus.is_empty()) else {
        return refused("its number of CPUs is unknown");
    };
    let cpus = u32::try_from(cpus.len()).unwrap_or(u32::MAX);
    let mut machine = Machine::measured(rules, cpus, hz);
    if params.split_whitespace().any(|word| NO_DAMON.contains(&word)) {
        machine.threads.retain(|thread| thread.name != KernelThread::DAMON);
    }
    Ok(Machine {
        nohz_full: facts.tick.nohz_full.get().cloned().unwrap_or_default(),
        stops_idle_tick: facts.tick.mode.get() != Some(&TickMode::Periodic),
        ..machine
    })
}

/// A remark about boot parameters that have no effect on the simulation.
fn parameters(params: &str) -> Option<String> {
    let is_other = |word: &&str| {
        let simulated = ["nohz=", "nohz_full="];
        !simulated.iter().any(|one| word.starts_with(one)) && !NO_DAMON.contains(word)
    };
    let others: Vec<&str> = params.split_whitespace().filter(is_other).collect();
    let names = others.join(" ");
    (!others.is_empty()).then(|| format!("boot parameters are not simulated: {names}"))
}

/// A remark about the cost of tracing.
fn traced(cell: &Cell) -> Option<String> {
    cell.watch.map(|source| {
        format!("the instructions of tracing ({}) are not simulated", source.name())
    })
}

#[cfg(test)]
mod tests;
