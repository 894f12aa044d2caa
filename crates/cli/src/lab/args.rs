//! The options of `noisefloor lab`.

use std::path::PathBuf;

use clap::Subcommand;
use kernels::SourceSpec;
use units::{Cause, Nanos};

use crate::args::{ReportFiles, seconds};
use crate::destination::Destination;

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    /// List the built-in experiments.
    List,
    /// Print the TOML file of an experiment.
    #[command(after_help = "\
Example:
  noisefloor lab show tick-cost > mine.toml")]
    Show(ShowArgs),
    /// Run an experiment: one guest per cell.
    ///
    /// The result of a cell is cached, and the cell is not run again while its inputs are the
    /// same.
    #[command(after_help = "\
Examples:
  noisefloor lab run tick-cost
  noisefloor lab run tick-cost --kernel debian:6.1-cloud --set seconds=2
  noisefloor lab run mine.toml --kernel ./bzImage --json
  noisefloor lab run atlas --markdown > atlas.md
  noisefloor lab run slices --beside sim
  noisefloor lab run web --chart web.svg --metric unit_instructions
  noisefloor lab run atlas --slurm --partition short")]
    Run(RunArgs),
    /// Run the cells of a task of Slurm, on a node; started by the script of `lab run --slurm`.
    #[command(hide = true)]
    Task(TaskArgs),
    /// Run an experiment and check it against the limits or the baseline in its file.
    ///
    /// The exit code is 1 if a cell exceeds one of them or fails; each such cell is listed on
    /// standard error.
    #[command(after_help = "\
Example: in the CI of a kernel
  noisefloor lab check tick.toml --kernel arch/x86/boot/bzImage
To find the commit that makes a kernel slower:
  git bisect run noisefloor lab check tick.toml --source .")]
    Check(CheckArgs),
    /// Find the options that change a metric between two kernel configurations.
    ///
    /// Builds and measures kernels between both, with ever fewer of the differing options, until each
    /// difference is that of one option (delta debugging). Exact metrics have no noise, so that the
    /// parts add up. What is built and measured stays in the cache: the same command continues an
    /// interrupted run. The exit code is 4 if it ends early.
    #[command(after_help = "\
Examples:
  noisefloor lab ablate --from A.config --to B.config --metric getpid_instructions
  noisefloor lab ablate --from build:debian:6.1,lean,HZ=1000 \\
    --to build:debian:6.1,lean,AUDIT=y --metric tick_instructions --budget 20")]
    Ablate(AblateArgs),
    /// Run a program in a guest of each kernel, and compare the instructions that are executed.
    ///
    /// The command runs once on this machine first, with all of its effects; the guest has a copy of the
    /// programs and files that it uses, except secrets (--no-observe does not run it here). Relative paths
    /// belong to the current directory here, and to /root there. It has no network but loopback. A program
    /// with services is an experiment: docs/experiments.md.
    #[command(after_help = "\
Examples:
  noisefloor lab cost -- ./my-benchmark --size 8
  noisefloor lab cost -k running -k ./bzImage -- gzip -k /usr/share/dict/words
  noisefloor lab cost --cpus 2 -- sort --parallel 2 data.txt
  noisefloor lab cost -- python3 -c 'print(sum(range(100000)))'
  noisefloor lab cost --no-observe --program sed -- sh -c 'sed -n 1p /etc/passwd'
  noisefloor lab cost --tif -- ./tif_jitter -t 10 -l 10")]
    Cost(CostArgs),
    /// Instructions of one tick, one system call or a whole phase, by function.
    #[command(after_help = "\
Examples:
  noisefloor lab explain tick-cost/fifo@debian:6.12-cloud
  noisefloor lab explain tick-cost/fifo@running --diff @debian:6.12-cloud
  noisefloor lab explain syscalls/calls@running --call getpid -o getpid.svg
  noisefloor lab explain 'idle-cost/nohz=off idle@running' --whole")]
    Explain(ExplainArgs),
    /// List the kernels that guests can boot, by suite of Debian's archive; download or build those
    /// named.
    #[command(
        args_conflicts_with_subcommands = true,
        after_help = "\
Examples:
  noisefloor lab kernels --fresh
  noisefloor lab kernels debian:6.12-rt debian:trixie-backports/6.18-cloud running
  noisefloor lab kernels build --source debian:6.1 -o HZ=40 -o NO_HZ=off"
    )]
    Kernels(KernelsArgs),
}

/// The default of `--deadline` in seconds, as text for clap.
const DEADLINE: &str = "120";
const DEADLINE_SECS: u64 = 120;

#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// Built-in experiment, or a TOML file, which is checked.
    #[arg(value_name = "NAME|FILE")]
    pub(crate) name: String,
}

/// How to run cells.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct How {
    /// Kernel to boot instead of the experiment's: running, a path, debian:6.12-rt,
    /// debian:trixie-backports/6.18, build:SOURCE[,...]. Can be repeated.
    #[arg(short, long = "kernel", value_name = "KERNEL")]
    pub(crate) kernels: Vec<String>,
    /// Override a key of the experiment: seconds=2, machine=microvm, repeats=20, workload=fifo. Can
    /// be repeated.
    #[arg(short, long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Clock of the guest: the instruction count, or real time.
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<ModeArg>,
    /// Number of cells to run in parallel [default: the number of CPUs].
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// Run cached cells again and compare the results.
    #[arg(long)]
    pub(crate) fresh: bool,
    /// CPU time that QEMU may use to boot a guest, and to measure in addition to the measured time,
    /// before the cell fails; in seconds or with a unit (2m). Time during which QEMU sleeps counts,
    /// time during which it waits for a CPU does not.
    #[arg(long, value_name = "TIME", default_value = DEADLINE, value_parser = deadline)]
    pub(crate) deadline: Nanos,
}

impl Default for How {
    /// Cells as they are in their experiment.
    fn default() -> Self {
        Self {
            kernels: Vec::new(),
            set: Vec::new(),
            mode: None,
            jobs: None,
            fresh: false,
            deadline: Nanos::from_secs(DEADLINE_SECS),
        }
    }
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum ModeArg {
    /// Guest time is the instruction count: exact and repeatable; cache effects are not modelled.
    Exact,
    /// Guest time is real time: durations are meaningful, and vary.
    Timed,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// Built-in experiment, or a TOML file.
    #[arg(value_name = "NAME|FILE")]
    pub(crate) experiment: String,
    #[command(flatten)]
    pub(crate) how: How,
    /// Print the output of programs after the report.
    #[arg(long)]
    pub(crate) show_output: bool,
    /// Print Markdown tables with one row per kernel and one column per metric.
    #[arg(long)]
    pub(crate) markdown: bool,
    #[command(flatten)]
    pub(crate) written: ReportFiles,
    #[command(flatten)]
    pub(crate) chart: ChartArgs,
    /// Number of idle guests for which the report of idle guests by HZ computes what less frequent
    /// ticks save.
    #[arg(long, value_name = "N", default_value_t = GUESTS)]
    pub(crate) guests: u64,
    /// Also simulate each cell that measures time slices in exact mode, and report both.
    #[arg(long, value_name = "SOURCE", conflicts_with = "markdown")]
    pub(crate) beside: Option<BesideArg>,
    #[command(flatten)]
    pub(crate) slurm: SlurmArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SlurmArgs {
    /// Run the cells as a job array of Slurm, whose nodes share the cache; -j limits the tasks that run at
    /// the same time. In exact mode each task takes one CPU, and the memory of its guest; in timed mode, a
    /// node. Other options of sbatch are its variables: SBATCH_TIMELIMIT, SBATCH_ACCOUNT, SBATCH_QOS, ...
    #[arg(long)]
    pub(crate) slurm: bool,
    /// Partition of Slurm [default: that of the cluster].
    #[arg(long, value_name = "NAME", requires = "slurm", value_parser = partition)]
    pub(crate) partition: Option<String>,
    /// Print the batch script; submit and create nothing.
    #[arg(long, requires = "slurm")]
    pub(crate) dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TaskArgs {
    /// Folder of the array.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Index of the task.
    #[arg(value_name = "N")]
    pub(crate) index: usize,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum BesideArg {
    /// The same load by the rules of the kernel's scheduler, in virtual time.
    Sim,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ChartArgs {
    /// Write a bar chart of one metric (FILE.svg): for each workload, a bar for each kernel.
    #[arg(long, value_name = "FILE", requires = "metric")]
    pub(crate) chart: Option<PathBuf>,
    /// Metric of the chart, one of those that --markdown prints.
    #[arg(long, value_name = "METRIC", requires = "chart")]
    pub(crate) metric: Option<String>,
}

/// The default of `--guests`.
pub(crate) const GUESTS: u64 = 100;

/// The help of `--kernel` for `lab cost`, which has no experiment.
const KERNELS_HELP: &str = "\
    Kernel to boot: running, a path, debian:6.12-rt, debian:trixie-backports/6.18, \
    build:SOURCE[,...] [default: debian:6.1-cloud and debian:6.12-cloud]. Can be repeated";
/// That of `--set`.
const SET_HELP: &str = "\
    Set a key of the guest or of the run, as in an experiment: machine=microvm, append=audit=0, \
    repeats=20. Can be repeated";

#[derive(Debug, clap::Args)]
#[command(mut_arg("kernels", |arg| arg.help(KERNELS_HELP)))]
#[command(mut_arg("set", |arg| arg.help(SET_HELP)))]
pub(crate) struct CostArgs {
    #[command(flatten)]
    pub(crate) how: How,
    /// For programs written for Intel's TIF: a guest of two CPUs whose CPU 1 is isolated and stops its
    /// tick (nohz_full=1 isolcpus=1 rcu_nocbs=1), with libtif; prints the output, too.
    #[arg(long)]
    pub(crate) tif: bool,
    /// Number of the guest's CPUs, 1 to 8 [default: 1].
    #[arg(long, value_name = "N")]
    pub(crate) cpus: Option<u32>,
    /// Memory of the guest, as 512M or 2G, up to 4G [default: 256M, more if the files need it].
    #[arg(long, value_name = "SIZE", value_parser = memory_mib)]
    pub(crate) memory: Option<u32>,
    /// Copy a file or a folder into the guest, to the absolute path GUEST [default: the same path;
    /// relative paths start at /root], also if it may be secret. Can be repeated.
    #[arg(short, long = "file", value_name = "HOST[:GUEST]", value_parser = file)]
    pub(crate) files: Vec<(String, Option<String>)>,
    /// Copy a program that the command starts, with its libraries; those that it starts when it runs here
    /// are copied anyway. Can be repeated.
    #[arg(short, long = "program", value_name = "NAME")]
    pub(crate) programs: Vec<String>,
    /// Set an environment variable; PATH and HOME have defaults, no other variable is set. Can be
    /// repeated.
    #[arg(short, long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
    /// Exit code of the command that counts as success [default: 0]. Can be repeated.
    #[arg(long, value_name = "CODE")]
    pub(crate) exit: Vec<u8>,
    /// Longest run time of the command, in guest time, up to 1h; --deadline limits the host's
    /// [default: 60s].
    #[arg(long, value_name = "TIME")]
    pub(crate) limit: Option<String>,
    /// Do not run the command here to find the files that it uses: the guest has the program, its
    /// libraries and what is named. Implied by --tif.
    #[arg(long)]
    pub(crate) no_observe: bool,
    /// Print the output of the command after the report.
    #[arg(long)]
    pub(crate) show_output: bool,
    /// Print Markdown tables with one row per kernel and one column per metric.
    #[arg(long)]
    pub(crate) markdown: bool,
    #[command(flatten)]
    pub(crate) written: ReportFiles,
    #[command(flatten)]
    pub(crate) chart: ChartArgs,
    /// The program and its arguments, after `--`.
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// TOML file with limits or a baseline, or a built-in experiment.
    #[arg(value_name = "FILE")]
    pub(crate) experiment: String,
    #[command(flatten)]
    pub(crate) how: How,
    /// Print the results as a baseline to add to the file, instead of checking.
    #[arg(long)]
    pub(crate) print_baseline: bool,
    /// Build this source (a source tree, an archive of one, debian:6.1) and check it, with base and
    /// options of the kernels that the file builds, or a lean kernel. For `git bisect run`: the exit
    /// code is 125 if it does not build or boot, and 128 or more if the check itself fails.
    #[arg(long, value_name = "SOURCE", conflicts_with_all = ["kernels", "print_baseline"])]
    pub(crate) source: Option<SourceSpec>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct AblateArgs {
    /// First configuration: a file, or a kernel to build (build:debian:6.1,lean,HZ=1000).
    #[arg(long, value_name = "CONFIG")]
    pub(crate) from: String,
    /// Second configuration.
    #[arg(long, value_name = "CONFIG")]
    pub(crate) to: String,
    /// Metric to explain: getpid_instructions, tick_instructions, ...
    #[arg(long, value_name = "METRIC")]
    pub(crate) metric: String,
    /// Source of the kernels: debian:6.1, a source tree, or an archive of one [default: that of the
    /// kernels to build, or Debian's of the version in the file of the first configuration].
    #[arg(long, value_name = "SOURCE")]
    pub(crate) source: Option<SourceSpec>,
    /// Experiment that measures it: built-in, or a TOML file; its first cell with the metric is used
    /// [default: the built-in one for this metric].
    #[arg(long, value_name = "NAME|FILE")]
    pub(crate) experiment: Option<String>,
    /// Override a key of the experiment: workload=fifo, seconds=2. Can be repeated.
    #[arg(short, long = "set", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// End after this number of builds, or after this time (30m, 2h); both ends are always built
    /// [default: no limit].
    #[arg(long, value_name = "N|TIME", value_parser = budget)]
    pub(crate) budget: Option<Budget>,
    /// Number of processes of a build to run in parallel [default: the number of CPUs].
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// CPU time that QEMU may use to boot a guest, and to measure in addition to the measured time,
    /// before the cell fails; in seconds or with a unit (2m).
    #[arg(long, value_name = "TIME", default_value = DEADLINE, value_parser = deadline)]
    pub(crate) deadline: Nanos,
    #[command(flatten)]
    pub(crate) written: ReportFiles,
}

/// When `lab ablate` ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Budget {
    /// After so many builds.
    Builds(usize),
    /// After that time.
    Time(Nanos),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// EXPERIMENT/NAME@KERNEL (any unambiguous part), or a prefix of a cached cell's hash, as
    /// `lab run --full` prints it (6 or more digits).
    #[arg(value_name = "CELL")]
    pub(crate) cell: String,
    /// Compare with this cell; @KERNEL: the same cell on another kernel.
    #[arg(long, value_name = "CELL")]
    pub(crate) diff: Option<String>,
    /// System call to explain (getpid, pipe, ...), in a cell that measures calls.
    #[arg(long, value_name = "CALL")]
    pub(crate) call: Option<String>,
    /// Kind of tick to explain, by its position in the report of `lab run`; 1 is the cheapest kind
    /// that at least 10 % of the ticks belong to.
    #[arg(long, value_name = "N", default_value = "1", conflicts_with_all = ["call", "whole"])]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) kind: u16,
    /// Explain everything that the measured CPUs executed, not a single tick or call: by interrupt,
    /// system call, kernel thread and function; with --call, during the phase of that call.
    #[arg(long, conflicts_with = "diff")]
    pub(crate) whole: bool,
    /// Guest CPU to explain [default: the measured CPUs].
    #[arg(long, value_name = "CPU", requires = "whole")]
    pub(crate) cpu: Option<u32>,
    /// Write a flame graph (FILE.svg), the report with it as a page (FILE.html) or Markdown (FILE.md),
    /// or folded stacks as text (any other name; `-`: to standard output, instead of the report).
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
    #[command(subcommand)]
    pub(crate) command: Option<KernelsCommand>,
    /// Kernels to download or build: debian:[SUITE/]VERSION[-FLAVOUR], build:SOURCE,BASE,...,
    /// running, a path.
    #[arg(value_name = "KERNEL")]
    pub(crate) get: Vec<String>,
    /// Download the newest package even if an older one is cached; without KERNEL, ask the archive
    /// which kernels each suite has.
    #[arg(long)]
    pub(crate) fresh: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KernelsCommand {
    /// Build a kernel from its source, in the cache; print its name for --kernel.
    ///
    /// The source is never changed. A kernel is built once for each source, configuration and
    /// compiler; the same inputs give the same image. An interrupted build is continued by the
    /// same command.
    #[command(after_help = "\
Examples:
  noisefloor lab kernels build --source debian:6.1 -o HZ=40 -o NO_HZ=off
  noisefloor lab kernels build --source ./linux --base debian -o AUDIT=n --fragment my.config
  noisefloor lab kernels build build:debian:6.1,lean,HZ=1000 build:debian:6.12,lean --output out")]
    Build(BuildArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct BuildArgs {
    // Not a comment: rustdoc would read brackets as links.
    #[arg(
        help = "Kernels to build, instead of --source: \
                build:SOURCE[,BASE][,FRAGMENT|OPTION=VALUE]...",
        value_name = "KERNEL",
        conflicts_with = "source",
        required_unless_present = "source"
    )]
    pub(crate) names: Vec<String>,
    /// Source: debian:6.1 (the newest linux-source package), a source tree, or an archive of one.
    #[arg(long, value_name = "SOURCE")]
    pub(crate) source: Option<SourceSpec>,
    /// Configuration that the options change: lean (what guests and programs need), debian or
    /// debian-cloud (Debian's for this version, without modules), none (all off), or a file.
    #[arg(long, value_name = "BASE", default_value = "lean", conflicts_with = "names")]
    pub(crate) base: String,
    /// Option of the kernel: HZ=N (any that the kernel's headers accept), NO_HZ=off|idle|full,
    /// PREEMPT=none|voluntary|full|lazy, or any of Kconfig's: AUDIT=n. Can be repeated.
    #[arg(short, long = "option", value_name = "OPTION=VALUE", conflicts_with = "names")]
    pub(crate) options: Vec<String>,
    /// File with options, which -o overrides. Can be repeated.
    #[arg(long = "fragment", value_name = "FILE", conflicts_with = "names")]
    pub(crate) fragments: Vec<PathBuf>,
    /// Number of processes to run in parallel [default: the number of CPUs].
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) jobs: Option<u16>,
    /// Copy image and configuration to this directory, as vmlinuz-NAME and config-NAME.
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Look for a newer package of the source.
    #[arg(long)]
    pub(crate) fresh: bool,
}

/// A number of builds, or a time with its unit.
fn budget(text: &str) -> Result<Budget, Cause> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        let builds =
            text.parse().map_err(|_| "expected a number of builds, or a time")?;
        return Ok(Budget::Builds(builds));
    }
    Ok(Budget::Time(seconds(text)?))
}

/// The name of a partition of Slurm, or several, separated by commas.
fn partition(text: &str) -> Result<String, Cause> {
    match text.is_empty() || text.contains(|c: char| c.is_control() || c.is_whitespace())
    {
        true => Err("expected the name of a partition".into()),
        false => Ok(text.to_owned()),
    }
}

/// A size in MiB: `512M`, `2G`.
fn memory_mib(text: &str) -> Result<u32, Cause> {
    let units = [("GiB", 1024), ("MiB", 1), ("G", 1024), ("M", 1)];
    let read = || {
        let (digits, unit) = units.iter().find_map(|(name, unit)| {
            text.strip_suffix(name).map(|digits| (digits, unit))
        })?;
        digits.parse::<u32>().ok()?.checked_mul(*unit)
    };
    read().ok_or_else(|| "expected a size as 512M or 2G".into())
}

/// A path of this machine, and one of the guest after a colon.
fn file(text: &str) -> Result<(String, Option<String>), Cause> {
    match text.rsplit_once(':') {
        Some((host, guest)) if guest.starts_with('/') => {
            Ok((host.to_owned(), Some(guest.to_owned())))
        }
        _ => Ok((text.to_owned(), None)),
    }
}

/// The name and the value of an environment variable.
fn variable(text: &str) -> Result<(String, String), Cause> {
    let pair = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((pair.0.to_owned(), pair.1.to_owned()))
}

/// The deadline of a guest, at least one second: no guest boots faster.
fn deadline(text: &str) -> Result<Nanos, Cause> {
    let deadline = seconds(text)?;
    let shortest = Nanos::from_secs(1);
    match deadline < shortest {
        true => Err("the deadline must be at least 1 s".into()),
        false => Ok(deadline),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the default deadline is the one of the help text.
    #[test]
    fn default_deadline() {
        assert_eq!(deadline(DEADLINE).unwrap(), How::default().deadline);
    }
}
