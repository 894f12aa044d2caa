//! The options of `slices`.

use std::path::PathBuf;
use std::str::FromStr;

use recording::{Policy, SlicesSpec, Step, StepSetting};
use units::{CpuSet, Nanos};

use crate::args::{cpu_list, seconds, span};
use crate::claiming::Claiming;

/// As many sleepers as the 2009 report's program had: one for eight spinners.
const SPINNERS_EACH: u32 = 8;
/// Turns of each step, where there are several and nobody says how many: as few as show a
/// spread.
const TURNS: u32 = 3;
/// How often the 2009 report's program printed.
const CLASSIC_SAMPLE: Nanos = Nanos::from_secs(1);

#[derive(Debug, clap::Args)]
pub(crate) struct SlicesArgs {
    /// How many processes spin.
    #[arg(value_name = "N", default_value = "16", allow_negative_numbers = true,
        value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) spinners: u32,
    /// Let the spinning processes ask the kernel after so many passes of their loops how much
    /// time they have used, as programs do that measure themselves: with EEVDF (Linux 6.6) that
    /// ends slices.
    #[arg(long, value_name = "PASSES", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) asking: Option<u32>,
    /// How many processes sleep again and again; one for eight spinners, if not given.
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    pub(crate) sleepers: Option<u32>,
    /// How long a sleeper sleeps each time.
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = span)]
    pub(crate) sleep: Nanos,
    /// How long it then works, as 20us; not at all, if not given.
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub(crate) burst: Option<Nanos>,
    /// How long each step is measured, in seconds or as 500ms.
    #[arg(short, long, value_name = "TIME", default_value = "5", value_parser = seconds)]
    pub(crate) duration: Nanos,
    /// The CPUs to run on, as 0-3,8; all that this process may use if not given.
    #[arg(short, long, value_name = "LIST", value_parser = cpu_list)]
    pub(crate) cpus: Option<CpuSet>,
    /// Keep each process on one of the CPUs, in turns.
    #[arg(long)]
    pub(crate) pin: bool,
    /// The processes' nice value.
    #[arg(long, value_name = "NICE", default_value = "0", allow_negative_numbers = true,
        value_parser = clap::value_parser!(i8).range(-20..=19))]
    pub(crate) nice: i8,
    /// Run the processes as SCHED_BATCH.
    #[arg(long)]
    pub(crate) batch: bool,
    /// Measure with other settings of the scheduler, too: a feature, as
    /// WAKEUP_PREEMPTION=off, or a tunable, as base_slice_ns=3000000; several of one step
    /// with commas. Can be repeated: one step each (root).
    #[arg(long = "step", value_name = "SETTING=VALUE", value_parser = one_step)]
    pub(crate) steps: Vec<Step>,
    /// How many turns each step has; 3 if there are steps, else 1.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) turns: Option<u32>,
    /// How long a sample is; a whole turn, if not given.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub(crate) sample: Option<Nanos>,
    /// Print what the program of the 2009 report would have printed, with its arithmetic, and
    /// the exact numbers beside it: one line a second.
    #[arg(long, conflicts_with = "steps")]
    pub(crate) classic: bool,
    /// Do not watch the scheduler's switches, which costs a little at each of them.
    #[arg(long)]
    pub(crate) unwatched: bool,
    /// Write a picture (FILE.svg, FILE.html), or save the recording for `noisefloor report`
    /// (any other; -: to standard output, instead of the report). Can be repeated.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) claiming: Claiming,
}

impl SlicesArgs {
    /// What is to be measured on these CPUs.
    pub(crate) fn spec(&self, cpus: &CpuSet) -> SlicesSpec {
        let own = self.spinners.div_ceil(SPINNERS_EACH);
        let turns = if self.steps.is_empty() { 1 } else { TURNS };
        let second =
            (self.classic && self.duration > CLASSIC_SAMPLE).then_some(CLASSIC_SAMPLE);
        SlicesSpec {
            spinners: self.spinners,
            asking: self.asking,
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
        }
    }
}

/// `NAME=VALUE`, or several with commas.
fn one_step(text: &str) -> Result<Step, String> {
    let settings = text.split(',').map(one_setting).collect::<Result<_, _>>()?;
    Ok(Step { settings })
}

fn one_setting(text: &str) -> Result<StepSetting, String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| format!("'{text}' is not SETTING=VALUE: WAKEUP_PREEMPTION=off"))?;
    let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
    isolate::Tuning::from_str(&format!("{name}={value}"))
        .map_err(|why| why.to_string())?;
    Ok(StepSetting { name, value })
}
