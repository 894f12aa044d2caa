//! `latency`: timer wake-up latency.

use recording::{LatencySpec, Spec};
use session::{Access, Plan, Trace};
use summary::Limit;
use units::{CpuSet, Nanos};

use crate::args::{MomentOptions, Output, Priority, SourceOption, Where, seconds, span};
use crate::isolating::{Free, KeptOff};
use crate::measuring;
use crate::outcome::{Failure, Outcome};

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
    #[command(flatten)]
    pub(crate) priority: Priority,
    #[command(flatten)]
    pub(crate) source: SourceOption,
    /// Do not trace what delays wake-ups; tracing adds a small cost to each event.
    #[arg(long, conflicts_with_all = ["source", "trace"])]
    pub(crate) no_trace: bool,
    #[command(flatten)]
    pub(crate) moments: MomentOptions,
    /// Largest wake-up latency of any thread, with a unit (100us).
    #[arg(long, value_name = "TIME", value_parser = span)]
    #[arg(help_heading = "Limits (exit code 1 if exceeded)")]
    pub(crate) max_late: Option<Nanos>,
    #[command(flatten)]
    pub(crate) kept_off: KeptOff,
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

pub(crate) fn run(args: &LatencyArgs, output: Output) -> Result<Outcome, Failure> {
    let files = args.place.saved.files();
    let trace_to = args.moments.checked_destination()?;
    let output = output.beside(files.iter().copied().chain(trace_to))?;
    let plan = Plan::choose(args.place.cpus.as_ref(), |cpus, _| spec(args, cpus))?;
    let isolation = Some(Free::from(args.kept_off).plan());
    let plan = Plan { access: Access::Shared, isolation, trace: trace(args), ..plan };
    let measured = measuring::measure(plan, output)?;
    let acted = args.moments.act(measured.recording());
    let outcome = measuring::finish(&measured, &files, output)?;
    acted?;
    let limits =
        [args.max_late, args.moments.limit()].into_iter().flatten().map(Limit::late);
    Ok(measuring::judge(outcome, &measured, &limits.collect::<Vec<_>>()))
}

fn trace(args: &LatencyArgs) -> Trace {
    if args.no_trace {
        Trace::Nothing
    } else {
        args.source.trace(args.moments.has_trace())
    }
}

fn spec(args: &LatencyArgs, cpus: CpuSet) -> Spec {
    Spec::Latency(LatencySpec {
        cpus,
        interval_ns: args.interval,
        duration_ns: args.duration,
        timer: args.timer.of_recording(),
        fifo: args.priority.fifo,
        trigger: args.moments.trigger(),
    })
}
