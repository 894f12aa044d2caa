//! `repeat --duet`: two programs in pairs of runs.

use std::ffi::OsString;

use ::facts::{Facts, Root};
use isolate::{CpuPair, Nearness};
use report::{ComparedPrograms, CpuChoice, duet_document, duet_json, duet_pictures};
use summary::DuetSummary;
use units::{CpuSet, printable};

use crate::args::Output;
use crate::command::repeat::RepeatArgs;
use crate::isolating::describe;
use crate::outcome::{Failure, Outcome};
use crate::printing::say;
use crate::repeating::duet::command_line::words;
use crate::repeating::duet::{DuetPlan, DuetRuns, folder_names, run_pairs};
use crate::repeating::folder::SetFolder;
use crate::reporting::show;

pub(super) fn run(
    args: &RepeatArgs,
    commands: [&OsString; 2],
    output: Output,
) -> Result<Outcome, Failure> {
    let files = args.options.report_files();
    let output = output.beside(files.clone())?;
    let words = words(commands.map(OsString::as_os_str))?;
    let facts = Facts::read(&Root::live());
    let cpus = cpus(args, &facts)?;
    let schedule = args.options.schedule(true, output);
    let at_once = !args.in_turn;
    let plan = DuetPlan { commands: words, cpus: cpus.cpus.clone(), at_once, schedule };
    let mut folders = args.options.folders_named(folder_names())?;
    let DuetRuns { sets, pairs, mut doubts, outcome } = run_pairs(&plan, &mut folders)?;
    if !output.json && pairs.is_empty() {
        say("nothing to report: the runs ended before one pair was complete");
        return Ok(outcome);
    }
    let summary = DuetSummary::of(&pairs, at_once);
    doubts.extend(summary.as_ref().and_then(DuetSummary::doubt));
    let paths = folders.iter().map(SetFolder::path);
    let compared = ComparedPrograms {
        commands: &commands.map(|command| printable(&command.to_string_lossy()).into()),
        sets: &sets,
        pairs: &pairs,
        summary: summary.as_ref(),
        at_once,
        cpus: &cpus,
        seed: plan.schedule.seed,
        folders: &paths.map(|path| path.display().to_string()).collect::<Vec<_>>(),
        doubts: &doubts,
    };
    show(
        output,
        &files,
        || duet_json(&compared),
        || duet_document(&compared),
        |medium| duet_pictures(&compared, medium),
    )?;
    Ok(outcome)
}

/// Two CPUs for programs that run at once, else one.
fn cpus(args: &RepeatArgs, facts: &Facts) -> Result<CpuChoice, Failure> {
    let requested = args.cpus.as_ref();
    if !args.in_turn {
        let usage = requested.filter(|cpus| cpus.len() != 2);
        if let Some(cpus) = usage {
            let text = format!("--cpus: expected two CPUs, not {} ({cpus})", cpus.len());
            return Err(Failure::usage(text));
        }
        let pair = isolate::pick_pair(requested, facts);
        return pair.map(|pair| of_pair(&pair)).map_err(|why| match requested {
            Some(_) => Failure::from(why),
            None => {
                let help = "--in-turn runs the commands one after the other";
                Failure::refused(format!("{}; hint: {help}", units::chain(&why)))
            }
        });
    }
    if let Some(cpus) = requested.filter(|cpus| cpus.len() != 1) {
        let text = format!("--cpus: expected one CPU with --in-turn, not {cpus}");
        return Err(Failure::usage(text));
    }
    let pick = isolate::pick_all(requested, facts)?;
    Ok(CpuChoice { cpus: pick.cpu.into(), why: describe(pick.why).to_owned() })
}

fn of_pair(pair: &CpuPair) -> CpuChoice {
    let shared = match pair.nearness {
        Nearness::Core => {
            "they share a core, so that each program takes longer than alone"
        }
        Nearness::Cache => "they share the last-level cache, but no core",
        Nearness::Node => "they are of one NUMA node, and share no cache",
        Nearness::Machine => "they share no core, cache or NUMA node that is known",
    };
    let requested = if pair.is_requested { "requested; " } else { "" };
    let cpus: CpuSet = pair.cpus.into_iter().collect();
    CpuChoice { cpus, why: format!("{requested}{shared}") }
}
