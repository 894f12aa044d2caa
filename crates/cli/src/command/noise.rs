//! `noise`: OS noise of each CPU, and its sources.

use std::path::PathBuf;

use recording::{Code, Doubt, NoiseSeries, NoiseSpec, Recording, Spec};
use session::{Plan, Threads, Trace};
use stats::Limit;
use units::{CpuSet, Nanos};

use crate::args::{Limits, Output, Source, Where, seconds, span};
use crate::claiming::Claiming;
use crate::destination::Destination;
use crate::isolating::Free;
use crate::measuring;
use crate::outcome::{Failure, Outcome};

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

pub(crate) fn run(args: &NoiseArgs, output: Output) -> Result<Outcome, Failure> {
    let trace_to = args.trace.as_deref().map(|file| Destination::new("--trace", file));
    let files = args.place.destination().into_iter().chain(trace_to);
    let output = output.beside(files)?;
    let plan = Plan {
        access: args.claiming.access(),
        isolation: args.unthrottled.then(|| Free::UNTHROTTLED.options()),
        trace: trace(args),
        ..Plan::choose(args.place.cpus.as_ref(), |cpus, _| spec(args, cpus))?
    };
    let mut recording = measuring::measure(plan, output)?;
    if !args.unthrottled {
        add_hint(&mut recording);
    }
    let text = report_text(&mut recording, args);
    let outcome = measuring::finish(&recording, &args.place, output, || text);
    let written = trace_to.map(|file| write_trace(&mut recording, file));
    let outcome = outcome?;
    written.transpose()?;
    let mut limits = args.limits.of_noise();
    limits.extend(args.stop_above.map(Limit::gap));
    Ok(measuring::judge(outcome, &recording, &limits))
}

/// Events are stored for a trace, and for the text around the gap that ends the run.
fn trace(args: &NoiseArgs) -> Trace {
    let source = args.source.map(Source::of_recording);
    let stores = args.trace.is_some() || args.stop_above.is_some();
    Trace::Events { source, threads: Threads::Others, stores }
}

/// If real-time tasks were throttled, adds a hint how to disable that.
fn add_hint(recording: &mut Recording) {
    let throttled = |doubt: &&mut Doubt| doubt.code == Code::RtThrottled;
    for doubt in recording.doubts.iter_mut().filter(throttled) {
        doubt.text += "; hint: --unthrottled disables that during the run (root)";
    }
}

fn spec(args: &NoiseArgs, cpus: CpuSet) -> Spec {
    Spec::Noise(NoiseSpec {
        cpus,
        duration_ns: args.duration,
        threshold_ns: args.threshold,
        fifo: args.fifo,
        stop_above_ns: args.stop_above,
        phases: None,
    })
}

/// The recording as text, with the events around the gap that ended it.
fn report_text(recording: &mut Recording, args: &NoiseArgs) -> String {
    let text = ::report::text(recording);
    let around = |series: &mut NoiseSeries| ::report::around(series, args.stop_above?);
    text + &recording.body.noise_mut().and_then(around).unwrap_or_default()
}

fn write_trace(recording: &mut Recording, to: Destination) -> Result<(), Failure> {
    let trace =
        recording.body.noise_mut().and_then(|series| ::report::trace_json(series));
    trace.map_or(Ok(()), |trace| to.write(&trace))
}
