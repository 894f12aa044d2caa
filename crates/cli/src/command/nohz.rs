//! `nohz test` and `nohz stress`: whether the tick of a CPU stops, how long that takes, how often
//! it fails, and what prevents it.

use clap::Subcommand;
use recording::{Body, NohzSpec, Recording, Spec};
use session::Plan;
use units::{Cpu, Nanos};

use crate::args::{Output, SaveOptions, cpu, seconds, some_seconds};
use crate::claiming::Claiming;
use crate::isolating::{Free, report_choice};
use crate::measured::Measured;
use crate::measuring;
use crate::outcome::{Failure, Outcome};
use crate::remarks::Remarks;
use crate::terminal::Terminal;

/// The subcommands of `nohz`.
#[derive(Debug, Subcommand)]
pub(crate) enum NohzCommand {
    /// Measure how long it takes the tick to stop.
    ///
    /// A real-time thread runs alone on the CPU and waits until the kernel has stopped the tick,
    /// according to /proc/timer_list and to the interrupts counted. If the tick does not stop, the
    /// report says what prevents it; if timer interrupts remain, which timers expire in them (root,
    /// or CAP_PERFMON). Exit code 0: it stopped; 1: it did not; 3: not supported on
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
    #[command(flatten)]
    pub(crate) saved: SaveOptions,
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

pub(crate) fn run(command: &NohzCommand, output: Output) -> Result<Outcome, Failure> {
    let (place, tries, stay) = match command {
        NohzCommand::Test(test) => (&test.place, Some(1), test.observe),
        NohzCommand::Stress(stress) => (&stress.place, stress.count, Nanos::ZERO),
    };
    let files = place.saved.files();
    let output = output.beside(files.clone())?;
    let spec = |cpu| {
        let spec = spec(place, cpu, tries, stay);
        match command {
            NohzCommand::Test(_) => Spec::NohzTest(spec),
            NohzCommand::Stress(_) => Spec::NohzStress(spec),
        }
    };
    let (pick, plan) = Plan::pick(place.cpu, spec)?;
    let (access, isolation) = (place.claiming.access(), place.free.at(place.fifo));
    let isolation = Some(isolation.plan());
    let plan = Plan { access, isolation, ..plan };
    let claimed = plan.claim(&mut Remarks { quiet: output.quiet })?;
    let mut terminal = Terminal::new(output.quiet, None)?;
    report_choice(&pick, output.quiet);
    let measured = Measured::new(claimed.run(&terminal.control(), &mut terminal)?);
    let outcome = measuring::finish(&measured, &files, output)?;
    Ok(if failed(measured.recording()) { Outcome::Exceeded } else { outcome })
}

fn spec(place: &NohzPlace, cpu: Cpu, tries: Option<u64>, observe_ns: Nanos) -> NohzSpec {
    NohzSpec {
        cpu,
        tries,
        limit_ns: place.limit,
        forced: place.forced,
        fifo: (place.fifo > 0).then_some(place.fifo),
        observe_ns,
        phases: None,
    }
}

/// Whether the tick failed to stop.
fn failed(recording: &Recording) -> bool {
    let (Body::NohzTest { series, .. } | Body::NohzStress { series, .. }) =
        &recording.body
    else {
        return false;
    };
    series.tries.iter().any(|tried| !tried.entered)
}
