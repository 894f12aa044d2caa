//! `noisefloor try --boot`: boot parameters, tried in guests of a kernel.

use experiments::{BootRequest, BootWorkload, Experiment, GuestPair};
use recording::Ending;
use report::{ComparedCells, compared_cells_json, tried_boot_document};
use summary::CellsComparison;
use units::Cpu;

use crate::args::Output;
use crate::destination::Destination;
use crate::lab;
use crate::lab::args::How;
use crate::outcome::{Failure, Outcome};
use crate::reporting::{none, show};

/// The CPU that is measured in the guest if none is named: CPU 0 has work that others do not have.
pub(crate) const DEFAULT_CPU: Cpu = Cpu::new(1);

/// Measures with the default boot parameters and with these; prints the differences, and writes them
/// to the files.
pub(crate) fn run(
    append: &str,
    kernel: &str,
    workload: BootWorkload,
    files: &[Destination<'_>],
    output: Output,
) -> Result<Outcome, Failure> {
    let cpus = cpus(&workload);
    let appends = [String::new(), append.to_owned()];
    let guests = GuestPair::Boots { kernel: kernel.to_owned(), appends };
    let request = BootRequest { guests, cpus, workload };
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
    let compared = ComparedCells { cells: &cells, comparisons: &comparisons };
    show(
        output,
        files,
        || compared_cells_json(&compared),
        || tried_boot_document(&compared),
        none,
    )?;
    Ok(Outcome::Done)
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
