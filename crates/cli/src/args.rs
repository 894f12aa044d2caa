//! The command line: one definition, from which help texts, errors, man pages and completions are
//! generated. Nothing here depends on the machine.

pub(crate) mod jitter;
pub(crate) mod lab;
pub(crate) mod output;
pub(crate) mod slices;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::styling::Styles;
use clap::{Parser, Subcommand};
use units::{Cause, Cpu, CpuListError, CpuSet, Nanos, NanosError, Ppm};

use crate::args::jitter::JitterArgs;
use crate::args::lab::LabCommand;
pub(crate) use crate::args::output::Output;
use crate::args::slices::SlicesArgs;
use crate::claiming::Claiming;
use crate::destination::Destination;
use crate::isolating::{Free, KeptOff};

const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  a limit was exceeded, or a lab cell failed
  2  usage error, or unreadable input file
  3  not supported on this machine, or insufficient privileges
  4  measurement incomplete or unreliable; see the warnings
  70 internal error (bug)";

/// Measure OS noise and scheduling jitter on Linux, attribute it to its sources, isolate CPUs
/// reversibly, and compare kernels exactly.
///
/// Without a command, `noisefloor check` is run.
#[derive(Debug, Parser)]
#[command(name = "noisefloor", version, after_help = EXIT_CODES, max_term_width = 80)]
#[command(styles = Styles::plain(), disable_help_subcommand = true)]
#[command(override_usage = "noisefloor [OPTIONS] [COMMAND]")]
pub(crate) struct Args {
    /// The command to run.
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Output options.
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Overview of this machine: settings, OS noise, its sources, what to do next.
    ///
    /// Counts timer interrupts while noisefloor sleeps, then runs a busy loop on all CPUs at once
    /// and records every gap. Takes about 12 seconds and changes no setting.
    #[command(after_help = "\
Example: fail a script on a noisy machine
  noisefloor check --max-noise-ppm 5000 --max-gap 1ms")]
    Check(CheckArgs),
    /// Kernel settings, each with the file it was read from.
    #[command(after_help = "\
Examples:
  noisefloor facts
  sudo noisefloor facts --json
  noisefloor facts --record tree   # copy the files read, to send or to compare
  noisefloor facts --root tree     # read that copy instead of this machine")]
    Facts(FactsArgs),
    /// Timer interrupts per second on each CPU, live, beside CONFIG_HZ.
    #[command(after_help = "\
Example: five seconds of CPUs 0 to 3
  noisefloor ticks -n 5 -c 0-3")]
    Ticks(TicksArgs),
    /// OS noise: time a busy loop loses to interrupts, threads and the hypervisor.
    ///
    /// One thread per CPU reads the time stamp counter in a loop. Where two readings are further
    /// apart than an ordinary iteration, something else used the CPU: a gap.
    #[command(after_help = "\
Examples:
  noisefloor noise -c 1 -d 60
  sudo noisefloor noise -c 3 --fifo 50 --unthrottled --max-gap 50us")]
    Noise(NoiseArgs),
    /// Variation of a workload's run time on one CPU.
    ///
    /// Runs a workload repeatedly, as a real-time task. The jitter of a test is the time of its
    /// slowest loop minus that of its fastest. The short options are those of Intel's tif_jitter,
    /// so -h is not help.
    #[command(
        disable_help_flag = true,
        after_help = "\
Examples:
  sudo noisefloor jitter                       # 20 seconds of TIF's workload
  sudo noisefloor jitter -a 3 -d1 -H my.hgrm   # a minute, for HdrHistogram's plots
  sudo noisefloor jitter -t 100 --workload memory:64M
  noisefloor jitter --fifo 0 --workload exec:./mine.so"
    )]
    Jitter(JitterArgs),
    /// Timer wake-up latency.
    ///
    /// One thread per CPU sleeps until a fixed time in each interval, and reads the clock when it
    /// wakes up. Timer expiries missed while the thread is late are samples, too.
    #[command(after_help = "\
Examples:
  noisefloor latency -c 1 -i 250us           # an ordinary task on CPU 1
  sudo noisefloor latency --fifo 80 -d 60    # real-time tasks
  sudo noisefloor latency --fifo 80 --dma-latency 0   # as cyclictest does
  noisefloor latency --timer timerfd --max-late 1ms")]
    Latency(LatencyArgs),
    /// Time slices of CPU-bound processes, and what ends them.
    ///
    /// Starts processes that spin and processes that wake up 1,000 times a second, and reads the
    /// CPU time and the involuntary context switches of each. Where the scheduler can be traced
    /// (eBPF: root), it also reports single slices and what ended them. With --step, rounds
    /// alternate between current settings and each variant; settings are restored afterwards.
    #[command(after_help = "\
Examples:
  sudo noisefloor slices 16 -o slices.html
  sudo noisefloor slices --step WAKEUP_PREEMPTION=off --step base_slice_ns=3000000
  noisefloor slices 16 --classic -d 10       # the columns of the 2009 report")]
    Slices(SlicesArgs),
    /// The threads that wake up most often, for how long they run, and which threads they preempt.
    ///
    /// Counts on the whole machine, in the kernel (eBPF: root, or CAP_BPF and CAP_PERFMON; Linux
    /// 5.18). A wake-up by a timer or a device is attributed to the interrupt or softirq, not to the
    /// thread that was interrupted.
    #[command(after_help = "\
Examples:
  sudo noisefloor wakers                 # all threads, for 5 seconds
  sudo noisefloor wakers -c 3 -d 60      # threads that wake up on CPU 3
  sudo noisefloor wakers -p 1234 -n 5    # a process, and the threads it wakes")]
    Wakers(WakersArgs),
    /// Whether the tick of a CPU really stops (nohz_full), and what prevents it.
    #[command(subcommand)]
    Nohz(NohzCommand),
    /// Restore settings left behind by a killed run.
    ///
    /// Every setting is written to a journal before it is changed, and is restored when the run
    /// ends. After a killed run, this command or any later one restores it. A setting that another
    /// program has changed since, or that another run still needs, is not touched.
    #[command(after_help = "\
Example:
  sudo noisefloor restore")]
    Restore,
    /// Run a program on isolated CPUs and report what interrupted it.
    ///
    /// The program and its children run on these CPUs only, as ordinary tasks unless --fifo is
    /// given. Standard input, standard output and the exit code are the program's. When it has
    /// ended, the report is printed to standard error: how often it was preempted, by what, and,
    /// where events can be traced (root), the longest interruptions with their causes. With --json
    /// the JSON object is printed there instead, after the program's own messages; --json-to writes
    /// it to a file. Signals are forwarded; killing noisefloor also kills the program and its
    /// children, except for processes of another user.
    #[command(after_help = "\
Exit codes: that of the program; 128 + N if signal N ended it; 127 if it was not
found; 126 if it could not be executed; 2 or 3 if it was not started.

Examples:
  sudo noisefloor run ./compute
  sudo noisefloor run -c 2-5 --fifo 50 -o run.json -- ./compute --size 8
  noisefloor run make                      # without root")]
    Run(RunArgs),
    /// Print the report of a saved recording.
    #[command(after_help = "\
Examples:
  noisefloor noise -d 60 -o before.json && noisefloor report before.json
  ssh node noisefloor noise -o - | noisefloor report -
  noisefloor report slices.json -o slices.html")]
    Report(ReportArgs),
    /// The same measurements on other kernels, in guests, exact to the instruction.
    #[command(subcommand)]
    Lab(LabCommand),
    /// Write man pages or shell completions.
    #[command(hide = true)]
    Generate(GenerateArgs),
}

/// The subcommands of `nohz`.
#[derive(Debug, Subcommand)]
pub(crate) enum NohzCommand {
    /// Measure how long it takes the tick to stop.
    ///
    /// A real-time thread runs alone on the CPU and waits until the kernel has stopped the tick,
    /// according to /proc/timer_list and to the interrupts counted. If the tick does not stop, the
    /// report says what prevents it. Exit code 0: it stopped; 1: it did not; 3: not supported on
    /// this machine, and what is missing.
    #[command(after_help = "\
Examples:
  sudo noisefloor nohz test
  sudo noisefloor nohz test -a 3 --forced --observe 10")]
    Test(NohzTestArgs),
    /// Repeat `nohz test` until it fails.
    #[command(after_help = "\
Example: 1,000 times, or until the first failure
  sudo noisefloor nohz stress -n 1000")]
    Stress(NohzStressArgs),
}

/// The CPU whose tick is stopped, and how.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct NohzPlace {
    /// CPU to test [default: the first nohz_full CPU].
    #[arg(short = 'a', long, value_name = "CPU", value_parser = cpu)]
    pub(crate) cpu: Option<Cpu>,
    /// Longest time to wait for the tick to stop, in seconds or with a unit (500ms).
    #[arg(long, value_name = "TIME", default_value = "5", value_parser = some_seconds)]
    pub(crate) limit: Nanos,
    /// Move to another CPU and back from time to time while waiting.
    #[arg(short, long)]
    pub(crate) forced: bool,
    /// SCHED_FIFO priority of the waiting thread, 1 to 99 (root or CAP_SYS_NICE); 0: SCHED_OTHER.
    #[arg(long, value_name = "PRIO", default_value = "99",
        value_parser = clap::value_parser!(u8).range(0..=99))]
    pub(crate) fifo: u8,
    /// Save the recording to FILE, for `noisefloor report`; `-`: to standard output, instead of
    /// the report.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) free: Free,
    #[command(flatten)]
    pub(crate) claiming: Claiming,
}

#[derive(Debug, clap::Args)]
pub(crate) struct NohzTestArgs {
    /// Then observe for TIME and count remaining interrupts, in seconds or with a unit (500ms).
    #[arg(long, value_name = "TIME", default_value = "1", value_parser = seconds)]
    pub(crate) observe: Nanos,
    #[command(flatten)]
    pub(crate) place: NohzPlace,
}

#[derive(Debug, clap::Args)]
pub(crate) struct NohzStressArgs {
    /// Number of repetitions [default: until it fails, or Ctrl-C].
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
    #[command(flatten)]
    pub(crate) place: NohzPlace,
}

/// The CPUs to measure, and where the recording is saved.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Where {
    /// CPUs to measure, as 0-3,8 [default: all in this process's affinity mask].
    #[arg(short, long, value_name = "LIST", value_parser = cpu_list)]
    pub(crate) cpus: Option<CpuSet>,
    /// Save the recording with its raw series to FILE, for `noisefloor report`; `-`: to standard
    /// output, instead of the report.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

impl Where {
    /// Where the recording is saved.
    pub(crate) fn destination(&self) -> Option<Destination<'_>> {
        self.output.as_deref().map(|file| Destination::new("-o", file))
    }
}

/// Limits; where one is exceeded, the exit code is 1.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Limits (exit code 1 if exceeded)")]
pub(crate) struct Limits {
    /// Largest share of its time that any CPU may lose, in parts per million.
    #[arg(long, value_name = "PPM", value_parser = ppm)]
    pub(crate) max_noise_ppm: Option<Ppm>,
    /// Longest gap on any CPU, with a unit (50us).
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
    /// Duration of the busy loop, in seconds or with a unit (500ms).
    #[arg(short, long, value_name = "TIME", default_value = "7", value_parser = seconds)]
    pub(crate) duration: Nanos,
    /// Duration of the count of timer interrupts before that, while noisefloor sleeps.
    #[arg(long, value_name = "TIME", default_value = "4", value_parser = seconds)]
    pub(crate) rest: Nanos,
    /// Event source [default: the best available].
    #[arg(long, value_name = "SOURCE")]
    pub(crate) source: Option<Source>,
    #[command(flatten)]
    pub(crate) limits: Limits,
    #[command(flatten)]
    pub(crate) claiming: Claiming,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FactsArgs {
    /// Read a directory written by --record instead of this machine.
    #[arg(long, value_name = "DIR", conflicts_with = "record")]
    pub(crate) root: Option<PathBuf>,
    /// Copy the files that facts are read from to DIR, without secrets.
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TicksArgs {
    #[command(flatten)]
    pub(crate) place: Where,
    /// Time between two readings, in seconds or with a unit (500ms).
    #[arg(short, long, value_name = "TIME", default_value = "1", value_parser = seconds)]
    pub(crate) interval: Nanos,
    /// Number of readings [default: until Ctrl-C].
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) count: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct NoiseArgs {
    #[command(flatten)]
    pub(crate) place: Where,
    /// Duration of the busy loop, in seconds or with a unit (500ms).
    #[arg(short, long, value_name = "TIME", default_value = "10", value_parser = seconds)]
    pub(crate) duration: Nanos,
    /// Shortest gap to record, with a unit (200ns) [default: 40 iterations of the loop].
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub(crate) threshold: Option<Nanos>,
    /// SCHED_FIFO priority of the busy loop, 1 to 99 (root or CAP_SYS_NICE).
    #[arg(long, value_name = "PRIO", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub(crate) fifo: Option<u8>,
    /// Disable RT throttling and the fair server during the run, so that --fifo gets all of the
    /// CPU's time; restored at the end (root).
    #[arg(long, requires = "fifo")]
    pub(crate) unthrottled: bool,
    /// Stop at the first gap longer than TIME, with a unit (50us), and print the events around it;
    /// exit code 1.
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub(crate) stop_above: Option<Nanos>,
    /// Write gaps and events to FILE as a trace for Perfetto or Chrome (JSON); `-`: to standard
    /// output, instead of the report.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Event source [default: the best available].
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
    /// Duration, in seconds or with a unit (500ms).
    #[arg(short, long, value_name = "TIME", default_value = "10", value_parser = seconds)]
    pub(crate) duration: Nanos,
    /// Time between two timer expiries, with a unit (250us). The default is not a multiple of the
    /// tick's period, so that expiries meet all phases of the tick.
    #[arg(short, long, value_name = "TIME", default_value = "997us", value_parser = seconds)]
    pub(crate) interval: Nanos,
    /// Timer that wakes the threads.
    #[arg(long, value_name = "TIMER", default_value = "clock_nanosleep")]
    pub(crate) timer: Timer,
    /// SCHED_FIFO priority of the threads, 1 to 99 (root or CAP_SYS_NICE).
    #[arg(long, value_name = "PRIO", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub(crate) fifo: Option<u8>,
    /// Largest wake-up latency of any thread, with a unit (100us).
    #[arg(long, value_name = "TIME", value_parser = span)]
    #[arg(help_heading = "Limits (exit code 1 if exceeded)")]
    pub(crate) max_late: Option<Nanos>,
    #[command(flatten)]
    pub(crate) kept_off: KeptOff,
}

#[derive(Debug, clap::Args)]
pub(crate) struct WakersArgs {
    /// Count only threads woken on these CPUs, as 0-3,8.
    #[arg(short, long, value_name = "LIST", value_parser = cpu_list)]
    pub(crate) cpus: Option<CpuSet>,
    /// Save the recording with all threads to FILE, for `noisefloor report`; `-`: to standard
    /// output, instead of the report.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Duration, in seconds or with a unit (500ms).
    #[arg(short, long, value_name = "TIME", default_value = "5", value_parser = seconds)]
    pub(crate) duration: Nanos,
    /// Number of threads to list, the most frequent first.
    #[arg(short = 'n', long, value_name = "N", default_value = "20",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) top: u32,
    /// Count only wake-ups of or by the threads of this process.
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) pid: Option<u32>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// Program and its arguments.
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) command: Vec<OsString>,
    /// CPUs to run it on, as 2-5,8 [default: the first nohz_full CPU, else the first isolated
    /// one, else the one with the fewest interrupts since boot, but not CPU 0].
    #[arg(short, long, value_name = "LIST", value_parser = cpu_list, alias = "cpu")]
    pub(crate) cpus: Option<CpuSet>,
    /// SCHED_FIFO priority of all its threads and processes, 1 to 99 (root or CAP_SYS_NICE); 0:
    /// SCHED_OTHER.
    ///
    /// If real-time threads of the program keep one of its own threads from running for 3 s, or any
    /// other task for 20 s, the program becomes an ordinary task, and a warning is printed.
    #[arg(long, value_name = "PRIO", default_value = "0",
        value_parser = clap::value_parser!(u8).range(0..=99))]
    pub(crate) fifo: u8,
    /// Save the recording with the command line to FILE, for `noisefloor report`.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Write the JSON object that --json prints to FILE; the text report is printed unless
    /// --quiet is given.
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) json_to: Option<PathBuf>,
    /// Number of interruptions to list, the longest first.
    #[arg(short = 'n', long, value_name = "N", default_value = "10")]
    pub(crate) top: u32,
    /// Event source [default: the best available].
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
    /// Recording saved with -o, at most 512 MiB; `-`: standard input.
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Write a picture (FILE.svg, FILE.html) of a recording of slices. Can be repeated.
    #[arg(short, long, value_name = "PICTURE")]
    pub(crate) output: Vec<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct GenerateArgs {
    /// What to generate.
    pub(crate) what: Generated,
    /// Output directory.
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

fn cpu(text: &str) -> Result<Cpu, CpuListError> {
    text.parse()
}

pub(crate) fn cpu_list(text: &str) -> Result<CpuSet, Cause> {
    let cpus: CpuSet = text.parse()?;
    if cpus.is_empty() { Err("the CPU list is empty".into()) } else { Ok(cpus) }
}

pub(crate) fn span(text: &str) -> Result<Nanos, NanosError> {
    text.parse()
}

/// A bare number is seconds, as in other measuring programs.
pub(crate) fn seconds(text: &str) -> Result<Nanos, NanosError> {
    span(text).or_else(|refused| span(&format!("{text}s")).map_err(|_| refused))
}

/// The same, but greater than 0.
fn some_seconds(text: &str) -> Result<Nanos, Cause> {
    match seconds(text)? {
        time if time.is_zero() => Err("the time must be greater than 0".into()),
        time => Ok(time),
    }
}

fn ppm(text: &str) -> Result<Ppm, Cause> {
    match text.parse::<f64>() {
        Ok(ppm) if (0.0..=1e6).contains(&ppm) => Ok(Ppm::new(ppm)),
        _ => Err("expected a number from 0 to 1000000 (parts per million)".into()),
    }
}

/// Source of the events that gaps are attributed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Source {
    /// eBPF programs attached to tracepoints (root, or CAP_BPF and CAP_PERFMON).
    Bpf,
    /// Trace events, in a tracefs instance of noisefloor's own (root).
    Tracefs,
    /// Counters in /proc, without privileges: totals only, single gaps are not attributed.
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

/// Timer that wakes a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Timer {
    /// clock_nanosleep(2) until each expiry; timer slack applies to ordinary tasks.
    #[value(name = "clock_nanosleep")]
    ClockNanosleep,
    /// A periodic timerfd, which counts its expiries; without timer slack.
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

    /// Check that the definition is consistent.
    #[test]
    fn definition_is_sound() {
        Args::command().debug_assert();
    }

    /// Check that bare numbers are seconds, and that units are parsed.
    #[test]
    fn durations() {
        assert_eq!(seconds("3"), Ok(Nanos::from_secs(3)));
        assert_eq!(seconds("0.5"), Ok(Nanos::from_millis(500)));
        assert_eq!(seconds("20ms"), Ok(Nanos::from_millis(20)));
        assert!(seconds("soon").unwrap_err().to_string().contains("'soon'"));
    }
}
