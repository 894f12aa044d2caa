//! `jitter`: variation of a workload's run time.
//!
//! A user's library may crash, so it runs in a second process, which this one supervises. The short
//! options are those of Intel's `tif_jitter`; `-h` is one of them, so that help is `--help` only.

use std::path::{Path, PathBuf};

use clap::ArgAction;
use isolate::Retain;
use recording::{Body, JitterSpec, Recording, Spec, Workload};
use report::Document;
use session::{Access, Plan, Trace};
use summary::Summary;
use units::{Cause, Cpu, LengthUnit, Nanos, NanosError};

use crate::args::{MomentOptions, Output, SaveOptions, SourceOption, span};
use crate::claiming::Claiming;
use crate::destination::Destination;
use crate::isolating::{Free, report_choice};
use crate::jitter_watcher::JitterWatcher;
use crate::measured::Measured;
use crate::measuring;
use crate::outcome::{Failure, Outcome};
use crate::printing::print_document;
use crate::remarks::Remarks;
use crate::supervisor::{self, Supervisor};

/// Where `-h` writes.
const HISTOGRAM: &str = "tif.hist";

#[derive(Debug, clap::Args)]
pub(crate) struct JitterArgs {
    /// CPU to measure [default: the first nohz_full CPU, else the first isolated one, else the one
    /// with the fewest interrupts since boot, but not CPU 0].
    #[arg(short = 'a', long, value_name = "CPU", value_parser = one_cpu)]
    pub(crate) cpu: Option<Cpu>,
    /// Number of tests [default: as many as the duration allows].
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) tests: Option<u32>,
    /// Number of times each test runs the workload [default: 1000; without -t, -d and -D as many
    /// as allow more than 100 tests in 20 seconds].
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) loops: Option<u32>,
    /// Duration, in minutes or with a unit (90s); takes precedence over -t [default: 20s].
    #[arg(short = 'd', long, value_name = "TIME", overrides_with = "hours",
        value_parser = minutes)]
    pub(crate) minutes: Option<Nanos>,
    /// Duration, in hours or with a unit.
    #[arg(short = 'D', long, value_name = "TIME", overrides_with = "minutes",
        value_parser = hours)]
    pub(crate) hours: Option<Nanos>,
    /// Print times in cycles of the time stamp counter (TSC) instead of nanoseconds.
    #[arg(short = 'c', long)]
    pub(crate) ticks: bool,
    /// Write the jitter of each test to the file tif.hist.
    #[arg(short = 'h', long)]
    pub(crate) histogram: bool,
    /// Write the jitter of each test to FILE; if the name ends in .hgrm, percentiles for the
    /// plotters of HdrHistogram.
    #[arg(short = 'H', long, value_name = "FILE")]
    pub(crate) histogram_file: Option<PathBuf>,
    /// Workload: tif, memory, memory:SIZE (64K, 8M, 1G), compute, syscall, or exec:LIBRARY.so, a
    /// shared library that exports void nf_workload(void), or else TIF's nohz_workload or
    /// tif_workload.
    #[arg(short, long, value_name = "NAME", default_value = "tif")]
    pub(crate) workload: Workload,
    /// SCHED_FIFO priority of the workload, 1 to 99 (root or CAP_SYS_NICE); 0: SCHED_OTHER.
    #[arg(long, value_name = "PRIO", default_value = "99",
        value_parser = clap::value_parser!(u8).range(0..=99))]
    pub(crate) fifo: u8,
    #[command(flatten)]
    pub(crate) source: SourceOption,
    /// Do not trace what makes loops slow; tracing adds a small cost to each event.
    #[arg(long, conflicts_with_all = ["source", "trace"])]
    pub(crate) no_trace: bool,
    #[command(flatten)]
    pub(crate) moments: MomentOptions,
    #[command(flatten)]
    pub(crate) saved: SaveOptions,
    /// Print help.
    #[arg(long, action = ArgAction::HelpLong)]
    help: Option<bool>,
    #[command(flatten)]
    pub(crate) free: Free,
    #[command(flatten)]
    pub(crate) claiming: Claiming,
}

impl JitterArgs {
    /// The duration, if given.
    pub(crate) fn duration(&self) -> Option<Nanos> {
        self.minutes.or(self.hours)
    }

    /// The histogram's file.
    pub(crate) fn histogram(&self) -> Option<Destination<'_>> {
        let own = self.histogram_file.as_deref();
        own.map(|file| Destination::new("-H", file)).or_else(|| {
            self.histogram.then_some(Destination::new("-h", Path::new(HISTOGRAM)))
        })
    }
}

fn one_cpu(text: &str) -> Result<Cpu, Cause> {
    let number = text.parse::<u32>().map(Cpu::new);
    number.map_err(|_| format!("'{text}' is not a CPU number").into())
}

fn minutes(text: &str) -> Result<Nanos, NanosError> {
    span(text).or_else(|refused| span(&format!("{text}m")).map_err(|_| refused))
}

fn hours(text: &str) -> Result<Nanos, NanosError> {
    span(text).or_else(|refused| span(&format!("{text}h")).map_err(|_| refused))
}

pub(crate) fn run(args: &JitterArgs, output: Output) -> Result<Outcome, Failure> {
    let trace_to = args.moments.checked_destination()?;
    let files = args.saved.files().into_iter().chain(args.histogram()).chain(trace_to);
    let output = output.beside(files)?;
    let (pick, plan) = Plan::pick(args.cpu, |cpu| Spec::Jitter(spec(args, cpu)))?;
    if supervisor::is_supervised() {
        // The supervisor has done everything else that needs a capability.
        isolate::drop_capabilities(Retain::SysNice)?;
        return supervisor::supervised(|| measure(args, pick.cpu, plan, output));
    }
    let isolation = Some(args.free.at(args.fifo).plan());
    let plan = Plan { isolation, ..plan };
    report_choice(&pick, output.quiet);
    if let Workload::Exec(library) = &args.workload {
        // The process that loads it has no capability to trace.
        if let Some(file) = trace_to {
            return Err(file.refuse("the process of a library cannot trace"));
        }
        return supervise(args, pick.cpu, plan, library, output);
    }
    measure(args, pick.cpu, Plan { trace: trace(args), ..plan }, output)
}

/// Isolates the CPU, on which a supervised process then measures.
fn supervise(
    args: &JitterArgs,
    cpu: Cpu,
    plan: Plan,
    library: &Path,
    output: Output,
) -> Result<Outcome, Failure> {
    let supervisor = Supervisor::new()?;
    let mut remarks = Remarks { quiet: output.quiet };
    let claimed = Plan { access: Access::Shared, ..plan }.claim(&mut remarks)?;
    let again = args.cpu.is_none().then(|| format!("--cpu={cpu}"));
    let isolated = claimed.isolate(&mut remarks)?;
    let outcome =
        supervisor.watch_over(library, again.as_deref(), isolated.doubt().as_ref());
    isolated.end(&mut remarks);
    outcome
}

/// Measures on an isolated CPU (which a supervisor may have isolated already), reports and saves.
fn measure(
    args: &JitterArgs,
    cpu: Cpu,
    plan: Plan,
    output: Output,
) -> Result<Outcome, Failure> {
    let facts = plan.facts.clone();
    let plan = Plan { access: args.claiming.access(), locks_memory: true, ..plan };
    let claimed = plan.claim(&mut Remarks { quiet: output.quiet })?;
    let mut watcher = JitterWatcher::new(spec(args, cpu), facts, output)?;
    if args.tests.is_some() && args.duration().is_some() {
        watcher.remark("-d and -D take precedence over -t: the number of tests depends on the duration");
    }
    let mut recording = claimed.run(&watcher.control(), &mut watcher).map_err(refused)?;
    recording.doubts.extend(supervisor::not_isolated());
    let measured = Measured::new(recording);
    let files = args.saved.files();
    let acted = args.moments.act(measured.recording());
    let print = || print_document(&close(&measured), output.view());
    let outcome = measuring::finish_with(&measured, &files, output, print);
    let written =
        args.histogram().map(|file| write_histogram(measured.recording(), file));
    let outcome = outcome?;
    written.transpose()?;
    acted?;
    Ok(measuring::judge(outcome, &measured, &[]))
}

fn trace(args: &JitterArgs) -> Trace {
    if args.no_trace {
        Trace::Nothing
    } else {
        args.source.trace(args.moments.has_trace())
    }
}

fn spec(args: &JitterArgs, cpu: Cpu) -> JitterSpec {
    let duration_ns = args.duration();
    JitterSpec {
        cpu,
        workload: args.workload.clone(),
        tests: args.tests.filter(|_| duration_ns.is_none()),
        loops: args.loops,
        duration_ns,
        unit: if args.ticks { LengthUnit::Ticks } else { LengthUnit::Ns },
        fifo: Some(args.fifo).filter(|&priority| priority > 0),
        trigger: args.moments.trigger(),
    }
}

/// Without the privilege, an ordinary task can still be measured.
fn refused(error: session::Error) -> Failure {
    let hint = "--fifo 0 measures as an ordinary task, which others preempt";
    Failure::with_hint(error, hint)
}

/// The report below the rows; the header above them says what is run.
fn close(measured: &Measured) -> Document {
    match (&measured.recording().body, measured.summary()) {
        (Body::Jitter { series, .. }, Summary::Jitter(summary)) => {
            ::report::jitter_results(measured.recording(), series, summary)
        }
        _ => Document::default(),
    }
}

fn write_histogram(recording: &Recording, to: Destination) -> Result<(), Failure> {
    let Body::Jitter { spec, series } = &recording.body else { return Ok(()) };
    let is_hgrm = to.file().extension().is_some_and(|end| end == "hgrm");
    let write = if is_hgrm { ::report::jitter_hgrm } else { ::report::jitter_list };
    to.write(&write(spec, series))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    #[command(disable_help_flag = true)]
    struct Line {
        #[command(flatten)]
        jitter: JitterArgs,
    }

    fn parsed(line: &str) -> JitterArgs {
        Line::parse_from(line.split(' ')).jitter
    }

    /// Check that the short options mean the same as in `tif_jitter`.
    #[test]
    fn letters() {
        let args = parsed("jitter -a 3 -t 20 -l 7 -c -h");
        assert_eq!((args.cpu, args.tests), (Some(Cpu::new(3)), Some(20)));
        assert_eq!((args.loops, args.ticks), (Some(7), true));
        let file = |option, file| Some(Destination::new(option, Path::new(file)));
        assert_eq!(args.histogram(), file("-h", "tif.hist"));
        assert_eq!((args.duration(), args.fifo), (None, 99));
        let args = parsed("jitter -h -H my.hist -d1");
        assert_eq!(args.histogram(), file("-H", "my.hist"));
        assert_eq!(args.duration(), Some(Nanos::from_secs(60)));
    }

    /// Check minutes and hours, that the last of both is used, and that units are parsed.
    #[test]
    fn durations() {
        let duration = |line| parsed(line).duration();
        assert_eq!(duration("jitter -d 2 -D 1"), Some(Nanos::from_secs(3600)));
        assert_eq!(duration("jitter -D 1 -d 2"), Some(Nanos::from_secs(120)));
        assert_eq!(duration("jitter -d 0.5"), Some(Nanos::from_secs(30)));
        assert_eq!(duration("jitter -d 90s"), Some(Nanos::from_secs(90)));
    }
}
