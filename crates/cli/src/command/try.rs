//! `try`: the effect of a setting on this machine.

use std::ffi::OsString;

use ::facts::{Facts, Root};
use experiments::BootWorkload;
use recording::{Code, Doubt, StepSetting};
use report::{ComparedSets, TriedSettings};
use report::{compared_sets_pictures, tried_document, tried_json};
use stats::BetterSet;
use summary::{Comparison, compare};
use units::{Cpu, CpuSet, Ppm};

use crate::args::{Output, percent, setting};
use crate::command::{Command, measurement};
use crate::lab::boots;
use crate::outcome::{Failure, Outcome};
use crate::printing::say;
use crate::repeating::options::RepeatOptions;
use crate::repeating::{Plan, Repeated, Variant, repeat};
use crate::reporting::show;

#[derive(Debug, clap::Args)]
pub(crate) struct TryArgs {
    /// Settings to try, together: a sysctl (vm.stat_interval=10), a file (/sys/...=VALUE), a scheduler
    /// feature (HRTICK=off) or tunable (base_slice_ns=3000000), preempt=, governor=, thp=,
    /// irqs=CPUS, workqueues=CPUS, idle_latency_us=, partition=CPUS.
    #[arg(value_name = "SETTING=VALUE", required_unless_present = "boot")]
    #[arg(value_parser = setting)]
    pub(crate) settings: Vec<StepSetting>,
    /// Settings to compare with, together [default: the current ones].
    #[arg(long, value_name = "SETTING=VALUE", num_args = 1.., value_parser = setting)]
    pub(crate) vs: Vec<StepSetting>,
    /// Boot parameters to try ("nohz_full=1 isolcpus=1"), in guests of this machine's kernel (or of
    /// --kernel) instead: exact, but without this machine's devices and programs. Measures noise,
    /// ticks, latency, or the program of `run`.
    #[arg(long, value_name = "PARAMETERS", allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["settings", "vs", "keep", "runs", "min_runs", "warmup", "prepare",
        "pause", "timeout", "seed", "ignore_failure", "show_output"])]
    pub(crate) boot: Option<String>,
    /// Kernel of the guests, as for `lab run`.
    #[arg(long, value_name = "KERNEL", requires = "boot", default_value = "running")]
    pub(crate) kernel: String,
    /// Leave the better settings in place until the next boot.
    #[arg(long)]
    pub(crate) keep: bool,
    /// Smallest relative difference of interest, in percent: smaller ones need not be found.
    #[arg(long, value_name = "PERCENT", default_value = "10", value_parser = percent)]
    pub(crate) smallest: Ppm,
    #[command(flatten)]
    pub(crate) options: RepeatOptions,
    /// Measurement with its options, and for `run` the program: noise -c 1 -d 10.
    #[arg(value_name = "MEASUREMENT", required = true, last = true)]
    #[arg(allow_hyphen_values = true)]
    pub(crate) measurement: Vec<OsString>,
}

pub(crate) fn run(args: &TryArgs, output: Output) -> Result<Outcome, Failure> {
    let (measurement, parsed) = measurement::parse(&args.measurement)?;
    let files = args.options.report_files();
    let output = output.beside(files.clone())?;
    if let Some(append) = &args.boot {
        if let Some(folder) = args.options.folder()? {
            return Err(folder.refuse("--boot saves no recordings"));
        }
        return boots::run(append, &args.kernel, workload(&parsed)?, &files, output);
    }
    let facts = Facts::read(&Root::live());
    let other = Variant::of(&args.settings, &facts)?;
    let base = match args.vs.as_slice() {
        [] => Variant::current(),
        settings => Variant::of(settings, &facts)?,
    };
    let plan = args.options.plan(measurement, vec![base, other], output);
    let mut folders = args.options.folders(&plan)?;
    let Repeated { sets, mut doubts, outcome } = repeat(&plan, &mut folders)?;
    if sets.iter().any(|set| set.runs() == 0) {
        say("nothing to compare: the runs ended before each variant had one");
        return Ok(outcome);
    }
    let names: Vec<String> = plan.variants.iter().map(Variant::name).collect();
    let comparisons = compare(&sets[0], &sets[1..], args.smallest);
    let better = comparisons.first().map_or(BetterSet::Unknown, Comparison::better);
    let better_settings = better_settings(&plan, better);
    let is_complete = !doubts.iter().any(|doubt| doubt.code == Code::Interrupted);
    let is_in_place = args.keep && is_complete && !better_settings.is_empty();
    if is_in_place {
        keep(&plan, better, &facts)?;
    } else if args.keep && !is_complete {
        let text = "nothing was left in place: the runs ended early";
        doubts.push(Doubt::new(Code::Interrupted, text));
    }
    let tried = TriedSettings {
        measurement: &plan.measurement.text(),
        compared: ComparedSets {
            names: &names,
            sets: &sets,
            comparisons: &comparisons,
            smallest: args.smallest,
        },
        better,
        better_settings,
        is_in_place,
        seed: plan.schedule.seed,
        doubts: &doubts,
    };
    show(
        output,
        &files,
        || tried_json(&tried),
        || tried_document(&tried),
        |medium| compared_sets_pictures(&tried.compared, medium),
    )?;
    Ok(outcome)
}

fn better_variant(plan: &Plan, better: BetterSet) -> Option<&Variant> {
    match better {
        BetterSet::Base => plan.variants.first(),
        BetterSet::Other => plan.variants.last(),
        BetterSet::Mixed | BetterSet::Unknown => None,
    }
}

fn better_settings(plan: &Plan, better: BetterSet) -> &[StepSetting] {
    better_variant(plan, better).map_or(&[], |variant| &variant.settings)
}

/// Changes the better settings, and does not restore them.
fn keep(plan: &Plan, better: BetterSet, facts: &Facts) -> Result<(), Failure> {
    match better_variant(plan, better) {
        Some(variant) => variant.leave_in_place(facts),
        None => Ok(()),
    }
}

/// The measurement in a guest.
fn workload(measurement: &Command) -> Result<BootWorkload, Failure> {
    if let Command::Noise(args) = measurement {
        let cpu = cpu(args.place.cpus.as_ref())?;
        Ok(BootWorkload::Noise { cpu, duration: args.duration, fifo: args.priority.fifo })
    } else if let Command::Ticks(args) = measurement {
        let cpu = cpu(args.place.cpus.as_ref())?;
        let duration = args.interval.saturating_mul(args.count.unwrap_or(1));
        Ok(BootWorkload::Ticks { cpu, duration })
    } else if let Command::Latency(args) = measurement {
        let cpu = cpu(args.place.cpus.as_ref())?;
        let (interval, duration) = (args.interval, args.duration);
        Ok(BootWorkload::Latency { cpu, interval, duration, fifo: args.priority.fifo })
    } else if let Command::Run(args) = measurement {
        let words = args.command.iter().map(|word| word.to_str().map(str::to_owned));
        let words = words.collect::<Option<Vec<String>>>();
        words.map(BootWorkload::Program).ok_or_else(|| {
            Failure::usage("--boot: an argument of the program is not UTF-8")
        })
    } else {
        Err(Failure::usage("--boot: guests measure noise, ticks, latency or run"))
    }
}

fn cpu(cpus: Option<&CpuSet>) -> Result<Cpu, Failure> {
    let Some(cpus) = cpus else { return Ok(boots::DEFAULT_CPU) };
    match (cpus.first(), cpus.len()) {
        (Some(cpu), 1) => Ok(cpu),
        _ => Err(Failure::usage("--boot: one CPU is measured in a guest: -c CPU")),
    }
}
