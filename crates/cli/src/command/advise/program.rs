//! `advise -- COMMAND`: what makes the run times of a program differ, and which settings help.

use ::advise::Advice;
use ::facts::{Facts, Root};
use ::report::{AdvisedMachine, AdvisedProgram};
use recording::Recording;
use summary::{MainMetric, SpreadCause};

use crate::args::Output;
use crate::command::advise::{AdviseArgs, machine};
use crate::destination::Destination;
use crate::outcome::{Failure, Outcome};
use crate::proving::Prover;
use crate::reporting::{none, show};

/// Repeats the program, tries what could help, and reports both.
pub(super) fn run(
    args: &AdviseArgs,
    mut prover: Prover,
    output: Output,
    files: &[Destination<'_>],
) -> Result<Outcome, Failure> {
    let facts = Facts::read(&Root::live());
    let mut machine = machine(args, &facts, None)?;
    let mut doubts = machine.doubts();
    let repeated =
        prover.repeat(args.proof.program(), args.cpus.as_ref(), &mut doubts)?;
    let main = repeated.main_metric();
    if let Some(MainMetric { spread: SpreadCause::Source { kind, name, .. }, .. }) = &main
    {
        machine = machine.slowed_by(*kind, name);
    }
    let advice = Advice::of(&machine, &args.goals());
    let (advice, outcome) =
        prover.prove_with(&repeated, advice, &machine, &mut doubts)?;
    let command = repeated.text();
    let advised = AdvisedMachine {
        facts: &facts,
        summary: None,
        program: Some(AdvisedProgram { command: &command, main: main.as_ref() }),
        advice: &advice,
        doubts: &doubts,
    };
    let (taken, tool) = (Recording::moment(), Recording::TOOL);
    let json = || ::report::advice_json(&advised, &taken, tool);
    show(output, files, json, || ::report::advice_document(&advised), none)?;
    Ok(outcome)
}
