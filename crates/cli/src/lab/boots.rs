//! `noisefloor try --boot`: boot parameters, tried in guests of a kernel.

use experiments::{BootRequest, BootWorkload, Experiment};
use recording::{Cell, Ending};
use report::{ComparedCells, compared_cells_json, tried_boot_text};
use stats::CellsComparison;
use units::{Cpu, CpuSet};

use crate::args::Output;
use crate::command::Command;
use crate::lab;
use crate::lab::args::How;
use crate::outcome::{Failure, Outcome};
use crate::printing::{print, print_json};

/// The CPU that is measured in the guest if none is named: CPU 0 has work that others do not have.
const DEFAULT_CPU: Cpu = Cpu::new(1);

/// Measures with the default boot parameters and with these, and prints the differences.
pub(crate) fn run(
    append: &str,
    kernel: &str,
    measurement: &Command,
    output: Output,
) -> Result<Outcome, Failure> {
    let workload = workload(measurement)?;
    let cpus = cpus(&workload);
    let (kernel, append) = (kernel.to_owned(), append.to_owned());
    let request = BootRequest { kernel, append, cpus, workload };
    let experiment = Experiment::of_boot(&request)?;
    let cells = lab::cells(&lab::open()?, experiment.cells(), &How::default(), output)?;
    for cell in &cells {
        if let Ending::Lost { why, .. } = &cell.ending {
            let text = format!("the guest of {} was lost: {why}", cell.kernel);
            return Err(Failure::exceeded(text));
        }
    }
    let [base, tried] = &cells[..] else {
        return Ok(Outcome::Doubtful); // interrupted
    };
    let comparisons = [CellsComparison::of(base, tried)];
    match output.json {
        true => {
            let compared = ComparedCells { cells: &cells, comparisons: &comparisons };
            print_json(&compared_cells_json(&compared).map_err(Failure::bug)?)?;
        }
        false => {
            let cells: Vec<Cell> = cells.iter().map(Cell::printable).collect();
            let compared = ComparedCells { cells: &cells, comparisons: &comparisons };
            print(&tried_boot_text(&compared))?;
        }
    }
    Ok(Outcome::Done)
}

/// The measurement in a guest.
fn workload(measurement: &Command) -> Result<BootWorkload, Failure> {
    if let Command::Noise(args) = measurement {
        let cpu = cpu(args.place.cpus.as_ref())?;
        Ok(BootWorkload::Noise { cpu, duration: args.duration, fifo: args.fifo })
    } else if let Command::Ticks(args) = measurement {
        let cpu = cpu(args.place.cpus.as_ref())?;
        let duration = args.interval.saturating_mul(args.count.unwrap_or(1));
        Ok(BootWorkload::Ticks { cpu, duration })
    } else if let Command::Latency(args) = measurement {
        let cpu = cpu(args.place.cpus.as_ref())?;
        let (interval, duration) = (args.interval, args.duration);
        Ok(BootWorkload::Latency { cpu, interval, duration, fifo: args.fifo })
    } else if let Command::Run(args) = measurement {
        let words = args.command.iter().map(|word| word.to_str().map(str::to_owned));
        let words = words.collect::<Option<Vec<String>>>();
        words.map(BootWorkload::Program).ok_or_else(|| {
            Failure::usage("--boot: an argument of the program is not UTF-8")
        })
    } else {
        Err(Failure::usage("--boot: guests measure noise, ticks, latency or run"))
    }
}

fn cpu(cpus: Option<&CpuSet>) -> Result<Cpu, Failure> {
    let Some(cpus) = cpus else { return Ok(DEFAULT_CPU) };
    match (cpus.first(), cpus.len()) {
        (Some(cpu), 1) => Ok(cpu),
        _ => Err(Failure::usage("--boot: one CPU is measured in a guest: -c CPU")),
    }
}

/// The number of CPUs of the guest: up to the measured one, and at least two.
fn cpus(workload: &BootWorkload) -> u32 {
    let measured = match workload {
        BootWorkload::Noise { cpu, .. }
        | BootWorkload::Ticks { cpu, .. }
        | BootWorkload::Latency { cpu, .. } => *cpu,
        BootWorkload::Program(_) => DEFAULT_CPU,
    };
    measured.get().saturating_add(1).max(2)
}
