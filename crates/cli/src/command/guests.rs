//! `guests`: the cost of the virtual machines on this host.

use ::facts::{Facts, Root};
use recording::{GuestsSpec, Spec};
use session::Plan;
use summary::Limit;
use units::{Cause, Nanos, PerSecond, Ppm};

use crate::args::{Output, SaveOptions, seconds};
use crate::measuring::{finish, judge, measure};
use crate::outcome::{Failure, Outcome};

#[derive(Debug, clap::Args)]
pub(crate) struct GuestsArgs {
    #[command(flatten)]
    pub(crate) saved: SaveOptions,
    /// Duration, in seconds or with a unit (500ms).
    #[arg(short, long, value_name = "TIME", default_value = "10", value_parser = seconds)]
    pub(crate) duration: Nanos,
    /// Number of rows in each table (guests by CPU time, vCPU threads by wake-ups).
    #[arg(short = 'n', long, value_name = "N", default_value = "20",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) top: u32,
    /// A guest is busy, and not compared, if one of its threads uses more than this share of a CPU,
    /// in parts per million.
    #[arg(long, value_name = "PPM", default_value = "100000",
        value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    pub(crate) busy_ppm: u32,
    #[command(flatten)]
    pub(crate) limits: Limits,
}

/// Limits; if one is exceeded, the exit code is 1.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Limits (exit code 1 if exceeded)")]
pub(crate) struct Limits {
    /// Most wake-ups per second and vCPU of any idle guest.
    #[arg(long, value_name = "RATE", value_parser = number)]
    max_wakeups: Option<f64>,
    /// Largest CPU time of all guests, in parts per million of one CPU.
    #[arg(long, value_name = "PPM", value_parser = number)]
    max_cpu_ppm: Option<f64>,
    /// Largest CPU time that could be saved, in parts per million of one CPU.
    #[arg(long, value_name = "PPM", value_parser = number)]
    max_saving_ppm: Option<f64>,
}

impl Limits {
    fn of_guests(self) -> Vec<Limit> {
        let wakeups = |most| Limit::guest_wakeups(PerSecond::new(most));
        let cpu = |most| Limit::guests_cpu(Ppm::new(most));
        let saving = |most| Limit::guests_saving(Ppm::new(most));
        let wakeups = self.max_wakeups.map(wakeups).into_iter();
        let others = self.max_saving_ppm.map(saving);
        wakeups.chain(self.max_cpu_ppm.map(cpu)).chain(others).collect()
    }
}

fn number(text: &str) -> Result<f64, Cause> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number >= 0.0 => Ok(number),
        _ => Err("expected a number that is not negative".into()),
    }
}

pub(crate) fn run(args: &GuestsArgs, output: Output) -> Result<Outcome, Failure> {
    let files = args.saved.files();
    let output = output.beside(files.clone())?;
    let spec = Spec::Guests(GuestsSpec {
        duration_ns: args.duration,
        busy_above_ppm: args.busy_ppm,
        top: args.top,
    });
    let plan = Plan::new(spec, Facts::read(&Root::live()));
    measure::refuse(&plan.spec, &plan.facts)?;
    let measured = measure(plan, output)?;
    let outcome = finish(&measured, &files, output)?;
    Ok(judge(outcome, &measured, &args.limits.of_guests()))
}
