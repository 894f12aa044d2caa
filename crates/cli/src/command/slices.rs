//! `slices`: time slices of CPU-bound processes, and what ends them.

use recording::{Policy, SlicesSpec, Spec, Step};
use session::{Plan, Trace};
use summary::Summary;
use units::{CpuSet, Nanos};

use crate::args::{Output, SaveOptions, cpu_list, seconds, span, step};
use crate::claiming::Claiming;
use crate::destination::Destination;
use crate::measured::Measured;
use crate::measuring::{self, finish_with};
use crate::outcome::{Failure, Outcome};
use crate::printing::print_document;

/// Number of spinners per sleeper, as in the program of the 2009 report.
const SPINNERS_EACH: u32 = 8;
/// Default number of rounds with several variants: the fewest in balanced order that show a spread.
const TURNS: u32 = 4;
/// Interval at which the program of the 2009 report printed.
const CLASSIC_SAMPLE: Nanos = Nanos::from_secs(1);

#[derive(Debug, clap::Args)]
pub(crate) struct SlicesArgs {
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    /// CPUs to run on, as 0-3,8 [default: all in this process's affinity mask].
    #[arg(short, long, value_name = "LIST", value_parser = cpu_list)]
    pub(crate) cpus: Option<CpuSet>,
    /// Do not trace scheduler switches; tracing adds a small cost to each switch.
    #[arg(long)]
    pub(crate) no_trace: bool,
    #[command(flatten)]
    pub(crate) saved: SaveOptions,
    #[command(flatten)]
    pub(crate) claiming: Claiming,
}

/// The processes, and the samples.
#[derive(Debug, clap::Args)]
pub(crate) struct LoadArgs {
    /// Number of processes that spin.
    #[arg(value_name = "N", default_value = "16", allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) spinners: u32,
    /// Call getrusage(2) every N iterations of the spinning processes; with EEVDF (Linux 6.6
    /// and newer) this can end a time slice.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) getrusage_every: Option<u32>,
    /// Number of processes that sleep and wake up periodically [default: one per 8 spinners].
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub(crate) sleepers: Option<u32>,
    /// Sleep time of these processes, with a unit (1ms).
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = span)]
    pub(crate) sleep: Nanos,
    /// Time they compute after each wake-up, with a unit (20us) [default: none].
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub(crate) burst: Option<Nanos>,
    /// Duration of all rounds of a variant together, in seconds or with a unit (500ms).
    #[arg(short, long, value_name = "TIME", default_value = "5", value_parser = seconds)]
    pub(crate) duration: Nanos,
    /// Pin each process to one of the CPUs, in round-robin order.
    #[arg(long)]
    pub(crate) pin: bool,
    /// Nice value of the processes.
    #[arg(long, value_name = "NICE", default_value = "0", allow_negative_numbers = true,
        value_parser = clap::value_parser!(i8).range(-20..=19))]
    pub(crate) nice: i8,
    /// Run the processes as SCHED_BATCH.
    #[arg(long)]
    pub(crate) batch: bool,
    /// Also measure with this setting, as for `try`: a scheduler feature (WAKEUP_PREEMPTION=off), a
    /// tunable (base_slice_ns=3000000), a sysctl; several, separated by commas, are one variant. Can
    /// be repeated, one variant each (root).
    #[arg(long = "step", value_name = "SETTING=VALUE", value_parser = step)]
    pub(crate) steps: Vec<Step>,
    /// Number of rounds, each of all variants; every second one is in reverse order (an even number
    /// balances a drift) [default: 4 with --step, else 1].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) turns: Option<u32>,
    /// Length of a sample, in seconds or with a unit (500ms) [default: a round].
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub(crate) sample: Option<Nanos>,
    /// Print the columns of the 2009 report's program, computed as it did, with the exact numbers
    /// beside them: one line per second.
    #[arg(long, conflicts_with = "steps")]
    pub(crate) classic: bool,
}

impl LoadArgs {
    /// The specification of the measurement on these CPUs.
    pub(crate) fn spec(&self, cpus: &CpuSet) -> SlicesSpec {
        let own = self.spinners.div_ceil(SPINNERS_EACH);
        let turns = if self.steps.is_empty() { 1 } else { TURNS };
        let second =
            (self.classic && self.duration > CLASSIC_SAMPLE).then_some(CLASSIC_SAMPLE);
        SlicesSpec {
            spinners: self.spinners,
            getrusage_every: self.getrusage_every,
            sleepers: self.sleepers.unwrap_or(own),
            sleep_ns: self.sleep,
            burst_ns: self.burst.unwrap_or(Nanos::ZERO),
            duration_ns: self.duration,
            cpus: cpus.clone(),
            pinned: self.pin,
            nice: self.nice,
            policy: if self.batch { Policy::Batch } else { Policy::Other },
            steps: self.steps.clone(),
            turns: self.turns.unwrap_or(turns),
            sample_ns: self.sample.or(second),
            phases: None,
            simulated: None,
        }
    }
}

pub(crate) fn run(args: &SlicesArgs, output: Output) -> Result<Outcome, Failure> {
    let files = args.saved.files();
    let output = output.beside(files.clone())?;
    let plan = Plan {
        access: args.claiming.access(),
        trace: if args.no_trace { Trace::NoSwitches } else { Trace::Switches },
        ..Plan::choose(args.cpus.as_ref(), |cpus, _| Spec::Slices(args.load.spec(&cpus)))?
    };
    let measured = measuring::measure(plan, output)?;
    finish(&measured, args.load.classic, &files, output)
}

/// Reports the slices; `classic`: as the program of the 2009 report.
pub(crate) fn finish(
    measured: &Measured,
    classic: bool,
    files: &[Destination<'_>],
    output: Output,
) -> Result<Outcome, Failure> {
    finish_with(measured, files, output, || match (classic, measured.summary()) {
        (true, Summary::Slices(summary)) => {
            let doubts = &measured.recording().doubts;
            print_document(&::report::slices_classic(summary, doubts), output.view())
        }
        (_, _) => print_document(&measured.screen(output), output.view()),
    })
}
