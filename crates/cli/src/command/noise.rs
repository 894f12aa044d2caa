//! `noise`: OS noise of each CPU, and its sources.

use recording::{Code, Doubt, NoiseSpec, Spec};
use session::{Plan, Threads, Trace};
use summary::Limit;
use units::{CpuSet, Nanos};

use crate::args::{
    AtScaleOptions, Limits, MomentOptions, Output, Priority, SourceOption, Where,
    seconds, span,
};
use crate::claiming::Claiming;
use crate::isolating::{Free, Requirement};
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
    #[command(flatten)]
    pub(crate) priority: Priority,
    /// Disable RT throttling and the fair server during the run, so that --fifo gets all of the
    /// CPU's time; restored at the end (root).
    #[arg(long, requires = "fifo")]
    pub(crate) unthrottled: bool,
    #[command(flatten)]
    pub(crate) requirement: Requirement,
    #[command(flatten)]
    pub(crate) source: SourceOption,
    #[command(flatten)]
    pub(crate) moments: MomentOptions,
    #[command(flatten)]
    pub(crate) at_scale: AtScaleOptions,
    #[command(flatten)]
    pub(crate) limits: Limits,
    #[command(flatten)]
    pub(crate) claiming: Claiming,
}

pub(crate) fn run(args: &NoiseArgs, output: Output) -> Result<Outcome, Failure> {
    let trace_to = args.moments.destination();
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
    let acted = args.moments.act(measured.recording());
    let outcome = measuring::finish(&measured, &files, output)?;
    acted?;
    let mut limits = args.limits.of_noise();
    limits.extend(args.moments.limit().map(Limit::gap));
    Ok(measuring::judge(outcome, &measured, &limits))
}

/// Events are stored for a trace, and required for what happened at a gap above the limit.
fn trace(args: &NoiseArgs) -> Trace {
    let source = args.source.of_recording();
    let stores = args.moments.has_trace() || args.moments.limit().is_some();
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
        trigger: args.moments.trigger(),
        phases: None,
        at_scale: args.at_scale.of_recording(),
    })
}
