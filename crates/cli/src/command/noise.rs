//! `noise`: OS noise of each CPU, and its sources.

use std::path::PathBuf;

use recording::{Code, Doubt, NoiseSeries, NoiseSpec, Recording, Spec};
use report::Document;
use session::{Plan, Threads, Trace};
use summary::Limit;
use units::{CpuSet, Nanos};

use crate::args::{Limits, Output, Priority, SourceOption, Where, seconds, span};
use crate::claiming::Claiming;
use crate::destination::Destination;
use crate::isolating::{Free, Requirement};
use crate::measured::Measured;
use crate::measuring;
use crate::outcome::{Failure, Outcome};
use crate::printing::print_document;

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
    #[command(flatten)]
    pub(crate) priority: Priority,
    /// Disable RT throttling and the fair server during the run, so that --fifo gets all of the
    /// CPU's time; restored at the end (root).
    #[arg(long, requires = "fifo")]
    pub(crate) unthrottled: bool,
    #[command(flatten)]
    pub(crate) requirement: Requirement,
    /// Stop at the first gap longer than TIME, with a unit (50us), and print the events around it;
    /// exit code 1.
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub(crate) stop_above: Option<Nanos>,
    /// Write gaps and events to FILE as a trace for Perfetto or Chrome (JSON); `-`: to standard
    /// output, instead of the report.
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) source: SourceOption,
    #[command(flatten)]
    pub(crate) limits: Limits,
    #[command(flatten)]
    pub(crate) claiming: Claiming,
}

pub(crate) fn run(args: &NoiseArgs, output: Output) -> Result<Outcome, Failure> {
    let trace_to = args.trace.as_deref().map(|file| Destination::new("--trace", file));
    let files = args.place.saved.files();
    let output = output.beside(files.iter().copied().chain(trace_to))?;
    let plan = Plan {
        access: args.claiming.access(),
        isolation: args.unthrottled.then(|| Free::unthrottled(args.requirement).plan()),
        trace: trace(args),
        ..Plan::choose(args.place.cpus.as_ref(), |cpus, _| spec(args, cpus))?
    };
    let mut measured = measuring::measure(plan, output)?;
    if !args.unthrottled {
        add_hint(measured.doubts_mut());
    }
    let print = || print_document(&document(&measured, args, output), output.view());
    let outcome = measuring::finish_with(&measured, &files, output, print);
    let written = trace_to.map(|file| write_trace(measured.recording(), file));
    let outcome = outcome?;
    written.transpose()?;
    let mut limits = args.limits.of_noise();
    limits.extend(args.stop_above.map(Limit::gap));
    Ok(measuring::judge(outcome, &measured, &limits))
}

/// Events are stored for a trace, and for the text around the gap that ends the run.
fn trace(args: &NoiseArgs) -> Trace {
    let source = args.source.of_recording();
    let stores = args.trace.is_some() || args.stop_above.is_some();
    Trace::Events { source, threads: Threads::Others, stores }
}

/// If real-time tasks were throttled, adds a hint how to disable that.
fn add_hint(doubts: &mut [Doubt]) {
    let throttled = |doubt: &&mut Doubt| doubt.code == Code::RtThrottled;
    for doubt in doubts.iter_mut().filter(throttled) {
        doubt.text += "; hint: --unthrottled disables that during the run (root)";
    }
}

fn spec(args: &NoiseArgs, cpus: CpuSet) -> Spec {
    Spec::Noise(NoiseSpec {
        cpus,
        duration_ns: args.duration,
        threshold_ns: args.threshold,
        fifo: args.priority.fifo,
        stop_above_ns: args.stop_above,
        phases: None,
    })
}

/// The report, with the events around the gap that ended the measurement.
fn document(measured: &Measured, args: &NoiseArgs, output: Output) -> Document {
    let around = |series: &NoiseSeries| ::report::around(series, args.stop_above?);
    let around = measured.recording().body.noise().and_then(around);
    measured.screen(output).add(around)
}

fn write_trace(recording: &Recording, to: Destination) -> Result<(), Failure> {
    let trace = recording.body.noise().and_then(::report::trace_json);
    trace.map_or(Ok(()), |trace| to.write(&trace))
}
