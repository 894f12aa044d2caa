//! What may be typed after `noisefloor lab`.

use std::path::PathBuf;

use clap::Subcommand;
use units::Nanos;

use crate::args::seconds;
use crate::destination::Destination;

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// The experiments that come with this tool.
    List,
    /// An experiment's text, to read or to start from.
    #[command(after_help = "\
Example:
  noisefloor lab show tick-cost > mine.toml")]
    Show(ShowArgs),
    /// Run an experiment: each of its cells is a guest.
    ///
    /// A cell's result is kept and not run again while nothing that it depends on has
    /// changed.
    #[command(after_help = "\
Examples:
  noisefloor lab run tick-cost
  noisefloor lab run tick-cost --kernel debian:6.1-cloud --set seconds=2
  noisefloor lab run mine.toml --kernel ./bzImage --json
  noisefloor lab run atlas --markdown > atlas.md")]
    Run(RunArgs),
    /// Run an experiment and hold it to the limits or the baseline in its file.
    ///
    /// The exit code is 1 where a cell exceeds one, or was lost; each such cell is told on
    /// standard error.
    #[command(after_help = "\
Example: in the CI of a kernel
  noisefloor lab check tick.toml --kernel arch/x86/boot/bzImage")]
    Check(CheckArgs),
    /// Where the instructions of one tick, one system call or a whole phase go, function by
    /// function.
    #[command(after_help = "\
Examples:
  noisefloor lab explain tick-cost/fifo@debian:6.12-cloud
  noisefloor lab explain tick-cost/fifo@running --diff @debian:6.12-cloud
  noisefloor lab explain syscalls/calls@running --call getpid -o getpid.svg
  noisefloor lab explain 'idle-cost/nohz=off idle@running' --whole")]
    Explain(ExplainArgs),
    /// List the kernels that guests can boot, by suite of Debian's archive; get those named.
    #[command(after_help = "\
Examples:
  noisefloor lab kernels --fresh
  noisefloor lab kernels debian:6.12-rt debian:trixie-backports/6.18-cloud running")]
    Kernels(KernelsArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// A built-in experiment, or a file (TOML), which is checked.
    #[arg(value_name = "NAME|FILE")]
    pub(crate) name: String,
}

/// How to run cells.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct How {
    /// Instead of the experiment's kernels: running, a path, debian:6.12-rt,
    /// debian:trixie-backports/6.18; again for another.
    #[arg(short, long = "kernel", value_name = "KERNEL")]
    pub(crate) kernels: Vec<String>,
    /// Change the experiment: seconds=2, machine=microvm, repeats=20, workload=fifo; again
    /// for another.
    #[arg(short, long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// What guest time is: the count of instructions, or real time, which varies.
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<ModeArg>,
    /// How many cells side by side; one for each of this machine's CPUs if not given.
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// Run cells whose result is kept, too, and confirm it.
    #[arg(long)]
    pub(crate) fresh: bool,
    /// How much CPU time QEMU may use to boot a guest, and beyond the measured time to
    /// measure, before the guest is lost; time in which all of QEMU sleeps counts, too,
    /// waiting for a CPU does not. In seconds, or as 2m.
    #[arg(long, value_name = "TIME", default_value = "120", value_parser = deadline)]
    pub(crate) deadline: Nanos,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum ModeArg {
    /// Guest time is the count of guest instructions: exact, and says nothing of caches.
    Exact,
    /// Guest time is real time: lengths count, and vary.
    Timed,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// A built-in experiment, or a file (TOML).
    #[arg(value_name = "NAME|FILE")]
    pub(crate) experiment: String,
    #[command(flatten)]
    pub(crate) how: How,
    /// Print tables in Markdown, a row for each kernel and a column for each metric.
    #[arg(long)]
    pub(crate) markdown: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// A file (TOML) with limits or a baseline, or a built-in experiment.
    #[arg(value_name = "FILE")]
    pub(crate) experiment: String,
    #[command(flatten)]
    pub(crate) how: How,
    /// Print what was measured as a baseline for the file, instead of checking.
    #[arg(long)]
    pub(crate) print_baseline: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// EXPERIMENT/NAME@KERNEL, as far as it is needed to name one cell; or the beginning
    /// of a kept cell's identity, as lab run tells it.
    #[arg(value_name = "CELL")]
    pub(crate) cell: String,
    /// Explain how this cell differs; @KERNEL for the same on another kernel.
    #[arg(long, value_name = "CELL")]
    pub(crate) diff: Option<String>,
    /// Of a cell that makes calls: which one (getpid, pipe, ...).
    #[arg(long, value_name = "CALL")]
    pub(crate) call: Option<String>,
    /// Of a cell with ticks: which kind, by its place in the report of lab run; 1 is the
    /// cheapest one that at least 10 % of the ticks are of.
    #[arg(long, value_name = "N", default_value = "1", conflicts_with_all = ["call", "whole"])]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) kind: u16,
    /// Explain all that the measured CPUs executed instead of one tick or call: by interrupt,
    /// system call and kernel thread, and by function; with --call, while that was measured.
    #[arg(long, conflicts_with = "diff")]
    pub(crate) whole: bool,
    /// With --whole: the guest's CPU to explain [default: those measured].
    #[arg(long, value_name = "CPU", requires = "whole")]
    pub(crate) cpu: Option<u32>,
    /// Write a flame graph (SVG), or with another ending stacks as text; -: stacks to standard
    /// output, instead of the report.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) how: How,
}

impl ExplainArgs {
    /// Where the picture or the stacks are written.
    pub(crate) fn destination(&self) -> Option<Destination<'_>> {
        self.output.as_deref().map(|file| Destination::new("-o", file))
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct KernelsArgs {
    /// Kernels to get: debian:[SUITE/]VERSION[-FLAVOUR], running, a path.
    #[arg(value_name = "KERNEL")]
    pub(crate) get: Vec<String>,
    /// Get the newest package, even if an older one is kept; without a KERNEL, ask the
    /// archive what each suite has.
    #[arg(long)]
    pub(crate) fresh: bool,
}

/// How long a guest may take: a guest that boots within a second is not to be had.
fn deadline(text: &str) -> Result<Nanos, String> {
    let deadline = seconds(text)?;
    let shortest = Nanos::from_secs(1);
    match deadline < shortest {
        true => Err("a deadline is a second or longer".to_owned()),
        false => Ok(deadline),
    }
}
