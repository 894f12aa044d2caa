//! A measurement in two guests, with and without other boot parameters or another kernel, without a file.

use std::fmt::Write;

use toml::{Spanned, Value};
use units::{Cpu, Nanos};

use crate::error::{EntryError, Error};
use crate::experiment::Experiment;
use crate::program_request::{ProgramRequest, program_table};
use crate::table::source::{NOWHERE, Source};
use crate::table::{BootRow, Table};

/// The name of the experiment, and of the rows with boot parameters.
const NAME: &str = "try";
const BOOT: [&str; 2] = ["now", "boot"];

/// A measurement, and what differs between its two guests.
#[derive(Debug, Clone)]
pub struct BootRequest {
    /// What is booted.
    pub guests: GuestPair,
    /// The number of each guest's CPUs.
    pub cpus: u32,
    /// The measurement.
    pub workload: BootWorkload,
}

/// What two guests boot.
#[derive(Debug, Clone)]
pub enum GuestPair {
    /// One kernel, with these boot parameters; the lab's own ones only if a text is empty.
    Boots {
        /// The kernel.
        kernel: String,
        /// The parameters of each guest.
        appends: [String; 2],
    },
    /// Two kernels.
    Kernels([String; 2]),
}

/// A measurement of a guest.
#[derive(Debug, Clone)]
pub enum BootWorkload {
    /// A busy loop.
    Noise {
        /// Its CPU.
        cpu: Cpu,
        /// Its duration.
        duration: Nanos,
        /// Its `SCHED_FIFO` priority.
        fifo: Option<u8>,
    },
    /// Timer interrupts of an idle CPU.
    Ticks {
        /// The CPU.
        cpu: Cpu,
        /// The duration.
        duration: Nanos,
    },
    /// Timer wake-ups.
    Latency {
        /// The CPU.
        cpu: Cpu,
        /// The time between two expiries.
        interval: Nanos,
        /// The duration.
        duration: Nanos,
        /// The `SCHED_FIFO` priority of the thread.
        fifo: Option<u8>,
    },
    /// A program.
    Program(Vec<String>),
}

impl Experiment {
    /// The experiment of a measurement in two guests, in their order.
    ///
    /// # Errors
    /// An entry is invalid.
    pub fn of_boot(request: &BootRequest) -> Result<Self, Error> {
        let source = Source::new(NAME, "");
        let invalid = |why: EntryError| source.refuse(NOWHERE, why.to_string());
        let (kernels, boots) = match &request.guests {
            GuestPair::Kernels(kernels) => (kernels.to_vec(), vec![BootRow::default()]),
            GuestPair::Boots { kernel, appends } => {
                let rows = BOOT.iter().zip(appends).map(boot_row);
                let rows = rows.collect::<Result<_, _>>().map_err(invalid)?;
                (vec![kernel.clone()], rows)
            }
        };
        let mut table = if let BootWorkload::Program(run) = &request.workload {
            let run = run.clone();
            let program = ProgramRequest { kernels, run, ..Default::default() };
            program_table(&program, NAME).map_err(invalid)?
        } else {
            let text = text(&kernels, &request.workload);
            Source::new(NAME, &text).read::<Table>()?.with_first_rows()
        };
        let boots = boots.into_iter().map(|row| Spanned::new(NOWHERE, row));
        table.boot = boots.collect();
        table.machine.cpus = Some(request.cpus.to_string().parse().map_err(invalid)?);
        Self::from_table(source, table)
    }
}

/// A row with boot parameters; the default one without.
fn boot_row((name, append): (&&str, &String)) -> Result<BootRow, EntryError> {
    if append.is_empty() {
        return Ok(BootRow::default());
    }
    let name = Some(Spanned::new(NOWHERE, name.parse()?));
    Ok(BootRow { name, append: append.parse()?, ..BootRow::default() })
}

/// A table with that workload, as TOML.
fn text(kernels: &[String], workload: &BootWorkload) -> String {
    let (kind, cpu, duration, interval, fifo) = match *workload {
        BootWorkload::Noise { cpu, duration, fifo } => {
            ("noise", cpu, duration, None, fifo)
        }
        BootWorkload::Ticks { cpu, duration } => ("ticks", cpu, duration, None, None),
        BootWorkload::Latency { cpu, interval, duration, fifo } => {
            ("latency", cpu, duration, Some(interval), fifo)
        }
        BootWorkload::Program(_) => return String::new(),
    };
    let kernels = Value::from(kernels.to_vec());
    let mut text = format!(
        "name = \"{NAME}\"\nkernels = {kernels}\n[[workload]]\nname = \"{kind}\"\n\
         [workload.{kind}]\ncpu = {cpu}\nduration = \"{}\"\n",
        spelled(duration)
    );
    // Writing to a string does not fail.
    if let Some(interval) = interval {
        let _ = writeln!(text, "interval = \"{}\"", spelled(interval));
    }
    if let Some(fifo) = fifo {
        let _ = writeln!(text, "fifo = {fifo}");
    }
    text
}

/// A duration in the largest unit of which it is a whole number: reports show it.
fn spelled(duration: Nanos) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "us")];
    let whole = units.into_iter().find(|(unit, _)| duration.get() % unit == 0);
    let (unit, name) = whole.unwrap_or((1, "ns"));
    format!("{}{name}", duration.get() / unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(workload: BootWorkload) -> BootRequest {
        let appends = [String::new(), "nohz_full=1 isolcpus=1".to_owned()];
        let guests = GuestPair::Boots { kernel: "debian:6.12-cloud".to_owned(), appends };
        BootRequest { guests, cpus: 2, workload }
    }

    /// Check that each workload makes two cells, which differ in their boot parameters only.
    #[test]
    fn two_cells() {
        let (cpu, duration) = (Cpu::new(1), Nanos::from_secs(1));
        let interval = Nanos::from_micros(997);
        for workload in [
            BootWorkload::Noise { cpu, duration, fifo: Some(50) },
            BootWorkload::Ticks { cpu, duration },
            BootWorkload::Latency { cpu, interval, duration, fifo: None },
            BootWorkload::Program(vec!["true".to_owned()]),
        ] {
            let experiment = Experiment::of_boot(&request(workload)).unwrap();
            let [base, tried] = experiment.cells() else { panic!() };
            assert_eq!(base.params, "");
            assert_eq!(tried.params, "nohz_full=1 isolcpus=1");
            assert_eq!(base.machine, tried.machine);
        }
    }

    /// Check that another kernel makes two cells, which differ in their kernel only.
    #[test]
    fn two_kernels() {
        let (cpu, duration) = (Cpu::new(1), Nanos::from_secs(1));
        let workload = BootWorkload::Ticks { cpu, duration };
        let kernels = ["debian:6.12-cloud", "build:debian:6.12,lean,HZ=100"];
        let guests = GuestPair::Kernels(kernels.map(str::to_owned));
        let request = BootRequest { guests, ..request(workload) };
        let experiment = Experiment::of_boot(&request).unwrap();
        let [base, tried] = experiment.cells() else { panic!() };
        assert_eq!([&base.kernel, &tried.kernel], kernels);
        assert_eq!((&base.params, &base.workload), (&tried.params, &tried.workload));
    }

    /// Check that guests with different parameters are two cells, in their order.
    #[test]
    fn two_appends() {
        let (cpu, duration) = (Cpu::new(1), Nanos::from_secs(1));
        let workload = BootWorkload::Ticks { cpu, duration };
        for appends in [["nohz=off", "nohz=on"], ["nohz=off", ""]] {
            let kernel = "debian:6.12-cloud".to_owned();
            let guests = GuestPair::Boots { kernel, appends: appends.map(str::to_owned) };
            let request = BootRequest { guests, ..request(workload.clone()) };
            let experiment = Experiment::of_boot(&request).unwrap();
            let [base, tried] = experiment.cells() else { panic!() };
            assert_eq!([&base.params, &tried.params], appends);
        }
    }

    /// Check that invalid entries are errors.
    #[test]
    fn refused() {
        let cpu = Cpu::new(9);
        let noise =
            BootWorkload::Noise { cpu, duration: Nanos::from_secs(1), fifo: None };
        let outside = Experiment::of_boot(&request(noise)).unwrap_err();
        assert!(outside.to_string().contains("cpu"), "{outside}");
    }
}
