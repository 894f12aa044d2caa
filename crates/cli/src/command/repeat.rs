//! `repeat`: repeated runs of a measurement as a set, with different settings in turn; or of two programs.

mod duet;

use std::ffi::OsString;

use ::facts::{Facts, Root};
use recording::Step;
use report::{RepeatedRuns, repeated_document, repeated_json, repeated_pictures};
use units::CpuSet;

use crate::args::{Output, cpu_list, step};
use crate::command::measurement;
use crate::outcome::{Failure, Outcome};
use crate::printing::say;
use crate::repeating::folder::SetFolder;
use crate::repeating::options::RepeatOptions;
use crate::repeating::{Repeated, Variant, repeat};
use crate::reporting::show;

#[derive(Debug, clap::Args)]
pub(crate) struct RepeatArgs {
    /// Measurement with its options, and for `run` the program: noise -c 1 -d 10.
    #[arg(value_name = "MEASUREMENT", required_unless_present = "duet")]
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) measurement: Vec<OsString>,
    /// Run two commands at once, in pairs, on two CPUs near each other, which they swap in balanced random order:
    /// noise that hits both CPUs is not part of the difference. -n is the number of pairs. What a shell would
    /// interpret is run by /bin/sh.
    #[arg(long, value_names = ["CMD_A", "CMD_B"], num_args = 2)]
    #[arg(conflicts_with_all = ["measurement", "steps"], allow_hyphen_values = true)]
    pub(crate) duet: Vec<OsString>,
    /// With --duet: run one command after the other on one CPU, in balanced random order, instead of both
    /// at once.
    #[arg(long, requires = "duet")]
    pub(crate) in_turn: bool,
    /// With --duet: the two CPUs, as 2,3 [default: two of one core, else of one last-level cache, else of one NUMA
    /// node]; with --in-turn: the CPU [default: as for `run`].
    #[arg(short, long, value_name = "LIST", value_parser = cpu_list, requires = "duet")]
    pub(crate) cpus: Option<CpuSet>,
    /// Also measure with this setting, as for `try`; several, separated by commas, are one variant.
    /// Can be repeated, one variant each. Runs with the current settings and with each variant
    /// alternate in balanced random order; settings are restored after each run (root).
    #[arg(long = "step", value_name = "SETTING=VALUE", value_parser = step)]
    pub(crate) steps: Vec<Step>,
    #[command(flatten)]
    pub(crate) options: RepeatOptions,
}

pub(crate) fn run(args: &RepeatArgs, output: Output) -> Result<Outcome, Failure> {
    if let [a, b] = args.duet.as_slice() {
        return duet::run(args, [a, b], output);
    }
    // clap does not refuse them, because --duet conflicts with a measurement.
    let of_duet = [("--in-turn", args.in_turn), ("--cpus", args.cpus.is_some())];
    if let Some((option, _)) = of_duet.iter().find(|(_, is_given)| *is_given) {
        let text =
            format!("{option} belongs to --duet; a measurement has its own options");
        return Err(Failure::usage(text));
    }
    run_sets(args, output)
}

fn run_sets(args: &RepeatArgs, output: Output) -> Result<Outcome, Failure> {
    let (measurement, _) = measurement::parse(&args.measurement)?;
    let files = args.options.report_files();
    let output = output.beside(files.clone())?;
    let facts = Facts::read(&Root::live());
    let steps = args.steps.iter().map(|step| Variant::of(&step.settings, &facts));
    let mut variants = vec![Variant::current()];
    variants.extend(steps.collect::<Result<Vec<_>, _>>()?);
    let plan = args.options.plan(measurement, variants, output);
    let mut folders = args.options.folders(&plan)?;
    let known: Vec<u32> = folders.iter().map(SetFolder::known).collect();
    let Repeated { sets, doubts, outcome } = repeat(&plan, &mut folders)?;
    if !output.json && sets.iter().all(|set| set.runs() == 0) {
        say("nothing to report: the runs ended before one was complete");
        return Ok(outcome);
    }
    let names: Vec<String> = plan.variants.iter().map(Variant::name).collect();
    let paths = folders.iter().map(|folder| folder.path().display().to_string());
    let runs = RepeatedRuns {
        measurement: &plan.measurement.text(),
        variants: &names,
        sets: &sets,
        folders: &paths.collect::<Vec<_>>(),
        files: &folders.iter().map(SetFolder::saved).collect::<Vec<_>>(),
        known: &known,
        seed: plan.schedule.seed,
        doubts: &doubts,
    };
    show(
        output,
        &files,
        || repeated_json(&runs),
        || repeated_document(&runs),
        |medium| repeated_pictures(&runs, medium),
    )?;
    Ok(outcome)
}
