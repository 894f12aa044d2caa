//! The command line: what may be typed, in one definition that help texts, errors, man
//! pages and completions all come from. Nothing here looks at the machine.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::styling::Styles;
use clap::{Parser, Subcommand};
use units::{Cpu, CpuSet, Nanos, Ppm};

use crate::claiming::Claiming;
use crate::destination::Destination;
use crate::isolating::{Free, KeptOff};
use crate::jitter_args::JitterArgs;
use crate::lab_args::LabCommand;
use crate::slices_args::SlicesArgs;

const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  a limit given was exceeded, or a cell of the lab was lost
  2  the question makes no sense (usage, unreadable file)
  3  this machine or these privileges do not allow it
  4  measured, but not trustworthy or not all; the doubts say why
  70 a bug";

/// What does Linux take from your program, who took it, how do you take it back?
///
/// Without a command: check.
#[derive(Debug, Parser)]
#[command(name = "noisefloor", version, after_help = EXIT_CODES, max_term_width = 80)]
#[command(styles = Styles::plain(), disable_help_subcommand = true)]
#[command(override_usage = "noisefloor [OPTIONS] [COMMAND]")]
pub(crate) struct Args {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// How to tell it.
    #[command(flatten)]
    pub(crate) output: Output,
}

/// How to tell what was found.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Output {
    /// Print one JSON object, and nothing else, on standard output.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// With --json: add the raw series that the summary was worked out from.
    #[arg(long, global = true, requires = "json")]
    pub(crate) series: bool,
    /// No progress and no remarks on standard error.
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// Whether standard output is for the report, and not for what `-o -` writes.
    #[arg(skip = true)]
    pub(crate) has_report: bool,
}

impl Output {
    /// Whether standard output is for people.
    pub(crate) fn is_text(self) -> bool {
        self.has_report && !self.json
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// One look at this machine: what it is set to, how much it takes, what to do next.
    ///
    /// Counts timer interrupts while this tool rests, then spins on all CPUs at once and
    /// records every gap. Takes about twelve seconds and changes nothing.
    #[command(after_help = "\
Example: in a script that must fail on a noisy machine
  noisefloor check --max-noise-ppm 5000 --max-gap 1ms")]
    Check(CheckArgs),
    /// What the kernel is set to, and where each fact was read.
    #[command(after_help = "\
Examples:
  noisefloor facts
  sudo noisefloor facts --json
  noisefloor facts --record tree   # keep what was read, to send or to compare
  noisefloor facts --root tree     # read that instead of this machine")]
    Facts(FactsArgs),
    /// Timer interrupts per second and CPU, live, beside CONFIG_HZ.
    #[command(after_help = "\
Example: five seconds of CPUs 0 to 3
  noisefloor ticks -n 5 -c 0-3")]
    Ticks(TicksArgs),
    /// How much a spinning CPU loses.
    ///
    /// One thread per CPU reads the CPU's counter over and over; wherever two readings are
    /// further apart than an ordinary pass of the loop, something else had the CPU.
    #[command(after_help = "\
Examples:
  noisefloor noise -c 1 -d 60
  sudo noisefloor noise -c 3 --fifo 50 --unthrottled --max-gap 50us")]
    Noise(NoiseArgs),
    /// How much a workload's run time varies on one CPU.
    ///
    /// Runs a workload over and over, as a real-time task. A test's jitter is the time of the
    /// slowest of its loops less that of the fastest. Options have the letters that they have
    /// in Intel's tif_jitter, so -h is not help.
    #[command(
        disable_help_flag = true,
        after_help = "\
Examples:
  sudo noisefloor jitter                       # 20 seconds of TIF's own workload
  sudo noisefloor jitter -a 3 -d1 -H my.hgrm   # a minute, for HdrHistogram's plots
  sudo noisefloor jitter -t 100 --workload memory:64M
  noisefloor jitter --fifo 0 --workload exec:./mine.so"
    )]
    Jitter(JitterArgs),
    /// How late a timer wakes a thread.
    ///
    /// One thread per CPU sleeps until times that are fixed beforehand, one each interval, and
    /// reads the clock when it wakes up. Expiries that come while it is late are samples too.
    #[command(after_help = "\
Examples:
  noisefloor latency -c 1 -i 250us           # an ordinary task of CPU 1
  sudo noisefloor latency --fifo 80 -d 60    # real-time tasks
  sudo noisefloor latency --fifo 80 --dma-latency 0   # as cyclictest does
  noisefloor latency --timer timerfd --max-late 1ms")]
    Latency(LatencyArgs),
    /// How long CPU-bound processes run before something preempts them, and who does it.
    ///
    /// Starts processes that spin, and some that wake up a thousand times a second, and reads
    /// how much CPU time each got and how often it had to give the CPU up. Where the scheduler
    /// can be watched (eBPF: root), single slices and who ended them are told, too. With steps,
    /// everything as it is and each step take turns, and everything is given back at the end.
    #[command(after_help = "\
Examples:
  sudo noisefloor slices 16 -o slices.html
  sudo noisefloor slices --step WAKEUP_PREEMPTION=off --step base_slice_ns=3000000
  noisefloor slices 16 --classic -d 10       # the columns of the 2009 report")]
    Slices(SlicesArgs),
    /// Which threads wake most often, for how long, and whom they preempt.
    ///
    /// Counts machine-wide, in the kernel (eBPF: root, or CAP_BPF and CAP_PERFMON; Linux 5.18).
    /// A wake-up by a timer or a device is the interrupt's, or the softirq's, whoever ran there
    /// just then.
    #[command(after_help = "\
Examples:
  sudo noisefloor wakers                 # five seconds of everybody
  sudo noisefloor wakers -c 3 -d 60      # who disturbs CPU 3
  sudo noisefloor wakers -p 1234 -n 5    # a process, and whom it wakes")]
    Wakers(WakersArgs),
    /// Whether the tick of a CPU really stops (nohz_full), and what keeps it.
    #[command(subcommand)]
    Nohz(NohzCommand),
    /// Put back what a killed run left changed.
    ///
    /// Every setting that a run changes stands in a journal before it is changed, and is given
    /// back when the run ends. What a killed run left, the next call puts back, or this one.
    /// What somebody else changed meanwhile stays as it is, and what another run still needs.
    #[command(after_help = "\
Example:
  sudo noisefloor restore")]
    Restore,
    /// Run a program on CPUs of its own, and report what interrupted it.
    ///
    /// The program and all that it starts run on these CPUs only, as ordinary tasks unless --fifo
    /// is given. Standard input and output are the program's, and so is the exit code; the report
    /// goes to standard error when the program has ended, with --json too, where it follows what the
    /// program prints there (--json-to FILE has it alone): how often the CPU was taken from it, what interrupted it, and, where events can be traced (root), the longest
    /// interruptions with their causes. Signals are forwarded; killing noisefloor also kills the
    /// program and all that it started, except for processes of another user.
    #[command(after_help = "\
Exit codes: the program's, and 128 + N where signal N ended it; 127 where it
is not there, 126 where it cannot be run; else, before it is started, 2 or 3.

Examples:
  sudo noisefloor run ./compute
  sudo noisefloor run -c 2-5 --fifo 50 -o run.json -- ./compute --size 8
  noisefloor run make                      # without root")]
    Run(RunArgs),
    /// Show a saved recording again.
    #[command(after_help = "\
Examples:
  noisefloor noise -d 60 -o before.json && noisefloor report before.json
  ssh node noisefloor noise -o - | noisefloor report -
  noisefloor report slices.json -o slices.html")]
    Report(ReportArgs),
    /// The same measurements on other kernels, in guests; exact to the instruction.
    #[command(subcommand)]
    Lab(LabCommand),
    /// Write man pages or shell completions.
    #[command(hide = true)]
    Generate(GenerateArgs),
}

/// What `nohz` does.
#[derive(Debug, Subcommand)]
pub(crate) enum NohzCommand {
    /// Enter the state in which the tick is stopped, and tell how long that took.
    ///
    /// A real-time thread takes the CPU and waits until the kernel has stopped its tick: by
    /// /proc/timer_list, and by the interrupts that no longer come. Where it does not stop, the
    /// kernel is asked what keeps it. Exit code 0: it stopped; 1: it did not; 3: it cannot here,
    /// and what would make it so.
    #[command(after_help = "\
Examples:
  sudo noisefloor nohz test
  sudo noisefloor nohz test -a 3 --forced --stay 10")]
    Test(NohzTestArgs),
    /// Do that over and over, until it fails.
    #[command(after_help = "\
Example: a thousand times, or until the first failure
  sudo noisefloor nohz stress -n 1000")]
    Stress(NohzStressArgs),
}

/// Where a tick is to stop, and how.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct NohzPlace {
    /// The CPU; the first nohz_full one if not given.
    #[arg(short = 'a', long, value_name = "CPU", value_parser = cpu)]
    pub(crate) cpu: Option<Cpu>,
    /// How long to wait at most, in seconds or as 500ms.
    #[arg(long, value_name = "TIME", default_value = "5", value_parser = some_seconds)]
    pub(crate) limit: Nanos,
    /// Leave the CPU now and then while waiting, and come back.
    #[arg(short, long)]
    pub(crate) forced: bool,
    /// The waiting thread's SCHED_FIFO priority, 1 to 99; 0: an ordinary thread.
    #[arg(long, value_name = "PRIO", default_value = "99",
        value_parser = clap::value_parser!(u8).range(0..=99))]
    pub(crate) fifo: u8,
    /// Save the recording for `noisefloor report`; -: to standard output, instead of the report.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) free: Free,
    #[command(flatten)]
    pub(crate) claiming: Claiming,
}

#[derive(Debug, clap::Args)]
pub(crate) struct NohzTestArgs {
    /// How long to stay then, and count what comes nevertheless.
    #[arg(long, value_name = "TIME", default_value = "1", value_parser = seconds)]
    pub(crate) stay: Nanos,
    #[command(flatten)]
    pub(crate) place: NohzPlace,
}

#[derive(Debug, clap::Args)]
pub(crate) struct NohzStressArgs {
    /// How often; until it fails, or Ctrl-C, if not given.
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    #[command(flatten)]
    pub(crate) place: NohzPlace,
}

/// Where to look, and where to keep what was seen.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Where {
    /// The CPUs to measure, as 0-3,8; all that this process may use if not given.
    #[arg(short, long, value_name = "LIST", value_parser = cpu_list)]
    pub(crate) cpus: Option<CpuSet>,
    /// Save the recording, raw series included, for `noisefloor report`; -: to standard output,
    /// instead of the report.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

impl Where {
    /// Where the recording is saved.
    pub(crate) fn destination(&self) -> Option<Destination<'_>> {
        self.output.as_deref().map(|file| Destination::new("-o", file))
    }
}

/// Limits that make the exit code 1.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Limits (exit code 1 where exceeded)")]
pub(crate) struct Limits {
    /// The largest share that any CPU may lose, in parts per million.
    #[arg(long, value_name = "PPM", value_parser = ppm)]
    pub(crate) max_noise_ppm: Option<Ppm>,
    /// The longest gap that any CPU may show, as 50us.
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub(crate) max_gap: Option<Nanos>,
}

impl Limits {
    pub(crate) fn of_noise(self) -> stats::Limits {
        stats::Limits { noise: self.max_noise_ppm, gap: self.max_gap, late: None }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) place: Where,
    /// How long to spin, in seconds or as 500ms.
    #[arg(short, long, value_name = "TIME", default_value = "7", value_parser = seconds)]
    pub(crate) duration: Nanos,
    /// How long to count ticks at rest before that.
    #[arg(long, value_name = "TIME", default_value = "4", value_parser = seconds)]
    pub(crate) rest: Nanos,
    /// Who is to see what took the time; whoever can, if not given.
    #[arg(long, value_name = "SOURCE")]
    pub(crate) source: Option<Source>,
    #[command(flatten)]
    pub(crate) limits: Limits,
    #[command(flatten)]
    pub(crate) claiming: Claiming,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FactsArgs {
    /// Read a recorded tree instead of this machine.
    #[arg(long, value_name = "DIR", conflicts_with = "record")]
    pub(crate) root: Option<PathBuf>,
    /// Keep the files that facts are read from below this directory, without secrets.
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TicksArgs {
    #[command(flatten)]
    pub(crate) place: Where,
    /// The time between two readings, in seconds or as 500ms.
    #[arg(short, long, value_name = "TIME", default_value = "1", value_parser = seconds)]
    pub(crate) interval: Nanos,
    /// How many readings; until Ctrl-C if not given.
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct NoiseArgs {
    #[command(flatten)]
    pub(crate) place: Where,
    /// How long to spin, in seconds or as 500ms.
    #[arg(short, long, value_name = "TIME", default_value = "10", value_parser = seconds)]
    pub(crate) duration: Nanos,
    /// The shortest gap to keep, as 200ns; forty ordinary passes if not given.
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub(crate) threshold: Option<Nanos>,
    /// Spin at this SCHED_FIFO priority, 1 to 99 (needs root or CAP_SYS_NICE).
    #[arg(long, value_name = "PRIO", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub(crate) fifo: Option<u8>,
    /// With --fifo: let real-time tasks have all of the CPU meanwhile, by switching off RT
    /// throttling and the fair server; restored at the end (root).
    #[arg(long, requires = "fifo")]
    pub(crate) unthrottled: bool,
    /// End at the first gap that is longer, as 50us, and tell what went on around it (exit
    /// code 1).
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub(crate) stop_above: Option<Nanos>,
    /// Write gaps and events as a trace for Perfetto or Chrome (JSON); -: to standard output,
    /// instead of the report.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Who is to see what took the time; whoever can, if not given.
    #[arg(long, value_name = "SOURCE")]
    pub(crate) source: Option<Source>,
    #[command(flatten)]
    pub(crate) limits: Limits,
    #[command(flatten)]
    pub(crate) claiming: Claiming,
}

#[derive(Debug, clap::Args)]
pub(crate) struct LatencyArgs {
    #[command(flatten)]
    pub(crate) place: Where,
    /// How long to go on, in seconds or as 500ms.
    #[arg(short, long, value_name = "TIME", default_value = "10", value_parser = seconds)]
    pub(crate) duration: Nanos,
    /// The time from one expiry to the next, as 250us; the default is not round, so that
    /// expiries meet the tick in all its phases.
    #[arg(short, long, value_name = "TIME", default_value = "997us", value_parser = seconds)]
    pub(crate) interval: Nanos,
    /// What wakes the threads.
    #[arg(long, value_name = "TIMER", default_value = "clock_nanosleep")]
    pub(crate) timer: Timer,
    /// Run at this SCHED_FIFO priority, 1 to 99 (needs root or CAP_SYS_NICE).
    #[arg(long, value_name = "PRIO", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub(crate) fifo: Option<u8>,
    /// The latest that any thread may wake up, as 100us.
    #[arg(long, value_name = "TIME", value_parser = span)]
    #[arg(help_heading = "Limits (exit code 1 where exceeded)")]
    pub(crate) max_late: Option<Nanos>,
    #[command(flatten)]
    pub(crate) kept_off: KeptOff,
}

#[derive(Debug, clap::Args)]
pub(crate) struct WakersArgs {
    /// Count only wake-ups on these CPUs, as 0-3,8: where the woken thread is put.
    #[arg(short, long, value_name = "LIST", value_parser = cpu_list)]
    pub(crate) cpus: Option<CpuSet>,
    /// Save the recording, all threads included, for `noisefloor report`; -: to standard
    /// output, instead of the report.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// How long to count, in seconds or as 500ms.
    #[arg(short, long, value_name = "TIME", default_value = "5", value_parser = seconds)]
    pub(crate) duration: Nanos,
    /// How many threads to tell of, the most frequent first.
    #[arg(short = 'n', long, value_name = "N", default_value = "20",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) top: u32,
    /// Count only wake-ups of this process's threads, or by them.
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pid: Option<u32>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// The program, and what it is given.
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) command: Vec<OsString>,
    /// CPUs to run it on, as 2-5,8 [default: the first nohz_full CPU, else the first isolated
    /// one, else the one with the fewest interrupts since boot, but not CPU 0].
    #[arg(short, long, value_name = "LIST", value_parser = cpu_list, alias = "cpu")]
    pub(crate) cpus: Option<CpuSet>,
    /// SCHED_FIFO priority of all its threads and processes, 1 to 99 (needs root or
    /// CAP_SYS_NICE); 0: an ordinary task.
    ///
    /// Where a thread of the program's cannot run for 3 s, or any other task for 20 s, because
    /// real-time threads of the program hold its CPU, the program becomes an ordinary task, and
    /// a warning says so.
    #[arg(long, value_name = "PRIO", default_value = "0",
        value_parser = clap::value_parser!(u8).range(0..=99))]
    pub(crate) fifo: u8,
    /// Save the recording, the command with it, for `noisefloor report`.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write the JSON object that --json prints to FILE; the text report is printed unless
    /// --quiet is given.
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) json_to: Option<PathBuf>,
    /// How many of the longest interruptions to tell of.
    #[arg(short = 'n', long, value_name = "N", default_value = "10")]
    pub(crate) top: u32,
    /// Who is to see what interrupted it; whoever can, if not given.
    #[arg(long, value_name = "SOURCE")]
    pub(crate) source: Option<Source>,
    #[command(flatten)]
    pub(crate) free: Free,
    #[command(flatten)]
    pub(crate) claiming: Claiming,
}

impl RunArgs {
    /// Where the recording is saved.
    pub(crate) fn destination(&self) -> Option<Destination<'_>> {
        self.output.as_deref().map(|file| Destination::new("-o", file))
    }

    /// Where the JSON object is written.
    pub(crate) fn json_destination(&self) -> Option<Destination<'_>> {
        self.json_to.as_deref().map(|file| Destination::new("--json-to", file))
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReportArgs {
    /// A recording saved with -o, at most 512 MiB; -: standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Write a picture of it (FILE.svg, FILE.html); of slices only. Can be repeated.
    #[arg(short, long, value_name = "PICTURE")]
    pub(crate) output: Vec<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct GenerateArgs {
    /// What to write.
    pub(crate) what: Generated,
    /// The directory to write to.
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
}

#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum Generated {
    /// One man page per command.
    Man,
    /// Completions for bash, zsh and fish.
    Completions,
}

fn cpu(text: &str) -> Result<Cpu, String> {
    text.parse().map_err(|error: units::CpuListError| error.to_string())
}

pub(crate) fn cpu_list(text: &str) -> Result<CpuSet, String> {
    let cpus: CpuSet = text.parse().map_err(|e: units::CpuListError| e.to_string())?;
    if cpus.is_empty() { Err("no CPU is named".to_owned()) } else { Ok(cpus) }
}

pub(crate) fn span(text: &str) -> Result<Nanos, String> {
    text.parse().map_err(|error: units::NanosError| error.to_string())
}

/// A bare number is seconds, as everywhere in this field.
pub(crate) fn seconds(text: &str) -> Result<Nanos, String> {
    span(text).or_else(|refused| span(&format!("{text}s")).map_err(|_| refused))
}

/// The same, but not none.
fn some_seconds(text: &str) -> Result<Nanos, String> {
    match seconds(text) {
        Ok(time) if time.is_zero() => Err("it takes some time".to_owned()),
        other => other,
    }
}

fn ppm(text: &str) -> Result<Ppm, String> {
    match text.parse::<f64>() {
        Ok(ppm) if (0.0..=1e6).contains(&ppm) => Ok(Ppm::new(ppm)),
        _ => Err("a share is between 0 and 1000000 parts per million".to_owned()),
    }
}

/// Who is to see the events that gaps are blamed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Source {
    /// eBPF programs at the kernel's tracepoints (root, or CAP_BPF and CAP_PERFMON).
    Bpf,
    /// The kernel's trace events, in a trace of their own (root; tracefs).
    Tracefs,
    /// What /proc counts meanwhile, without privileges: nobody is blamed for single gaps.
    Proc,
}

impl Source {
    pub(crate) fn of_recording(self) -> recording::Source {
        match self {
            Self::Bpf => recording::Source::Bpf,
            Self::Tracefs => recording::Source::Tracefs,
            Self::Proc => recording::Source::Proc,
        }
    }
}

/// What wakes a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Timer {
    /// Sleeps anew until each expiry; an ordinary task has timer slack.
    #[value(name = "clock_nanosleep")]
    ClockNanosleep,
    /// Reads one periodic timer, which counts its expiries; without slack.
    Timerfd,
}

impl Timer {
    pub(crate) fn of_recording(self) -> recording::Timer {
        match self {
            Self::ClockNanosleep => recording::Timer::ClockNanosleep,
            Self::Timerfd => recording::Timer::Timerfd,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// Check that the definition is sound in itself.
    #[test]
    fn definition_is_sound() {
        Args::command().debug_assert();
    }

    /// Check that bare numbers are seconds, and units are read.
    #[test]
    fn durations() {
        assert_eq!(seconds("3"), Ok(Nanos::from_secs(3)));
        assert_eq!(seconds("0.5"), Ok(Nanos::from_millis(500)));
        assert_eq!(seconds("20ms"), Ok(Nanos::from_millis(20)));
        assert!(seconds("soon").unwrap_err().contains("'soon'"));
    }
}
