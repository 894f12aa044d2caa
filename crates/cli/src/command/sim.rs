//! `sim`: a measurement in virtual time, by the rules of a kernel's scheduler.

use recording::{Phases, Recording, Step};
use sim::scheduler::{Kind, Machine, NAMES, Rules, Steal};
use sim::slices::{Groups, Simulation};
use units::{Cause, CpuSet, Hz, Nanos};

use crate::args::{Output, RecordingFiles, cpu_list, span, step};
use crate::command::slices::{self, LoadArgs};
use crate::measured::Measured;
use crate::outcome::{Failure, Outcome};

/// The default rules.
const NEWEST: &str = NAMES[NAMES.len() - 1];

#[derive(Debug, clap::Subcommand)]
pub(crate) enum SimCommand {
    /// Time slices of CPU-bound processes on a simulated kernel.
    ///
    /// The load, the report and the recording are those of `noisefloor slices`; the scheduler's rules are
    /// those of a kernel version, in its own integer arithmetic. The same arguments give the same numbers
    /// on every machine. Needs no privileges.
    #[command(after_help = "\
Examples:
  noisefloor sim slices --rules 6.12 16 --sleepers 2
  noisefloor sim slices --rules 2.6.29 --cpus 2 --step NEW_FAIR_SLEEPERS=off --vruntime
  noisefloor sim slices --rules 2.6.29 --cpus 2 --set LAST_BUDDY=off --timer-slack 0us --classic
  noisefloor sim slices --rules 7.2 --step RUN_TO_PARITY=off -o slices.html")]
    Slices(SimSlicesArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct SimSlicesArgs {
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    /// Rules of the scheduler: 2.6.29, 2.6.32, 5.10, 6.1 (CFS), 6.6, 6.12, 6.18, 7.2 (EEVDF).
    #[arg(long, value_name = "VERSION", default_value = NEWEST)]
    pub(crate) rules: String,
    /// Change this setting of the rules, in all rounds, as --step does in some. Can be repeated.
    #[arg(long = "set", value_name = "SETTING=VALUE", value_parser = step)]
    pub(crate) settings: Vec<Step>,
    /// Number of CPUs.
    #[arg(long, value_name = "N", default_value = "1",
        value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) cpus: u32,
    /// Ticks per second (CONFIG_HZ).
    #[arg(long, value_name = "HZ", default_value = "250",
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) hz: u32,
    /// Whether the tick stops on idle CPUs, as the kernel's parameter.
    #[arg(long, value_name = "on|off", default_value = "on", value_parser = on_or_off,
        action = clap::ArgAction::Set)]
    pub(crate) nohz: bool,
    /// CPUs on which the tick also stops while a single process runs, as the kernel's parameter: 1,3-5
    /// [default: none].
    #[arg(long, value_name = "LIST", value_parser = cpu_list)]
    pub(crate) nohz_full: Option<CpuSet>,
    /// Put the spinners into a cgroup with this cpu.weight [default: none].
    #[arg(long, value_name = "WEIGHT", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) spinners_cgroup: Option<u32>,
    /// Put the sleepers into another cgroup with this cpu.weight [default: none].
    #[arg(long, value_name = "WEIGHT", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) sleepers_cgroup: Option<u32>,
    /// Longest delay of a tick's interrupt, with a unit (20us): each is delayed by a random part of it.
    #[arg(long, value_name = "TIME", default_value = "0us", value_parser = span)]
    pub(crate) tick_jitter: Nanos,
    /// Time that a hypervisor takes, and how often: 100us/10ms [default: none].
    #[arg(long, value_name = "TIME/TIME", value_parser = steal)]
    pub(crate) steal: Option<Steal>,
    /// Slack of the processes' timers, with a unit (prctl(2), PR_SET_TIMERSLACK).
    #[arg(long, value_name = "TIME", default_value = "50us", value_parser = span)]
    pub(crate) timer_slack: Nanos,
    /// The kernel's own work takes no time, and no kernel thread runs; otherwise both are as in the
    /// lab's exact guests.
    #[arg(long)]
    pub(crate) ideal: bool,
    /// Number of runs, each at another offset to the tick, which share the duration.
    #[arg(long, value_name = "N", default_value = "1",
        value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) phases: u32,
    /// Also report where each process that woke up was placed in the queue, and what the running one
    /// lost.
    #[arg(long)]
    pub(crate) vruntime: bool,
    /// Seed of random delays.
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) saved: RecordingFiles,
}

pub(crate) fn run(command: &SimCommand, output: Output) -> Result<Outcome, Failure> {
    match command {
        SimCommand::Slices(args) => slices(args, output),
    }
}

fn slices(args: &SimSlicesArgs, output: Output) -> Result<Outcome, Failure> {
    let files = args.saved.files();
    let output = output.beside(files.clone())?;
    let measured = Measured::new(simulate(args).map_err(failure)?);
    slices::finish(&measured, args.load.classic, &files, output)
}

fn simulate(args: &SimSlicesArgs) -> Result<Recording, sim::scheduler::Error> {
    let mut rules = Rules::named(&args.rules)?;
    for setting in args.settings.iter().flat_map(|step| &step.settings) {
        rules.set(&setting.name, &setting.value)?;
    }
    let hz = Hz::new(args.hz);
    let machine = Machine {
        tick_jitter_ns: args.tick_jitter,
        timer_slack_ns: args.timer_slack,
        steal: args.steal,
        stops_idle_tick: args.nohz,
        nohz_full: args.nohz_full.clone().unwrap_or_default(),
        ..match args.ideal {
            true => Machine::new(args.cpus, hz),
            false => Machine::measured(&rules, args.cpus, hz),
        }
    };
    let mut spec = args.load.spec(&machine.all_cpus());
    spec.phases = (args.phases > 1).then_some(Phases {
        count: args.phases,
        every_ns: hz.period(),
        step_ns: Phases::STEP,
    });
    let simulation = Simulation {
        rules,
        machine,
        groups: Groups { spinners: args.spinners_cgroup, sleepers: args.sleepers_cgroup },
        seed: args.seed,
        reads_itself: args.load.classic,
        traces: true,
        places: args.vruntime,
    };
    simulation.run(&spec)
}

fn failure(error: sim::scheduler::Error) -> Failure {
    match error.kind() {
        Kind::Rules | Kind::Setting | Kind::Load => Failure::usage(error),
    }
}

fn on_or_off(text: &str) -> Result<bool, Cause> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("expected on or off".into()),
    }
}

/// `100us/10ms`
fn steal(text: &str) -> Result<Steal, Cause> {
    let (ns, every_ns) =
        text.split_once('/').ok_or("expected TIME/TIME, as 100us/10ms")?;
    let steal = Steal { ns: span(ns)?, every_ns: span(every_ns)? };
    if steal.ns >= steal.every_ns || steal.ns.is_zero() {
        return Err("the first time must be shorter than the second one".into());
    }
    Ok(steal)
}
