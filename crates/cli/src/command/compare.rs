//! `compare`: whether two sets of recordings, or two cells of the lab, differ, and by how much.

mod gate;
mod subject;

use recording::Cell;
use report::{
    ComparedCells, ComparedSets, compared_cells_document, compared_cells_json,
    compared_sets_document, compared_sets_json, compared_sets_pictures,
};
use summary::{
    CellsComparison, Comparison, Condition, Judged, RunSet, any_worse, any_worse_cells,
    compare,
};
use units::Ppm;

use crate::args::{Output, ReportFiles, percent};
use crate::command::compare::gate::GateOptions;
use crate::command::compare::subject::Subjects;
use crate::outcome::{Failure, Outcome};
use crate::printing::say;
use crate::reporting::{none, show};

/// An error names so many metrics.
const METRICS_NAMED: usize = 24;

#[derive(Debug, clap::Args)]
pub(crate) struct CompareArgs {
    /// Recordings or files of other tools, folders of them (*.json, *.hlog, *.txt, or *.csv), folders or
    /// baselines of Criterion (target/criterion/main), entries of the history (history:1-20), or
    /// cells of the lab: EXPERIMENT/NAME@KERNEL, after the first also @KERNEL, or 6 or more digits
    /// of a cached cell's hash.
    #[arg(value_name = "FILE|DIR|ENTRIES|CELL", num_args = 2.., required = true)]
    pub(crate) subjects: Vec<String>,
    /// Smallest relative difference of interest, in percent: smaller ones need not be found.
    #[arg(long, value_name = "PERCENT", default_value = "10", value_parser = percent)]
    pub(crate) smallest: Ppm,
    /// Exit code 1 if the difference of a metric is larger (>) or smaller (<) than stated, on any
    /// CPU: METRIC>+10%, METRIC<-5us. The sign is required; a number without % or a unit of
    /// time is in the metric's unit. The metrics of benchmarks are NAME:UNIT, as in sort:ns>+5%.
    /// Exit code 4 if there is not enough data. Can be repeated.
    #[arg(long, value_name = "CONDITION")]
    pub(crate) fail_if: Vec<Condition>,
    #[command(flatten)]
    pub(crate) gate: GateOptions,
    #[command(flatten)]
    pub(crate) written: ReportFiles,
}

pub(crate) fn run(args: &CompareArgs, output: Output) -> Result<Outcome, Failure> {
    let output = output.beside(args.written.files()?)?;
    args.gate.check(output)?;
    match subject::read(&args.subjects, output)? {
        Subjects::Sets(sets) => run_sets(args, &sets, output),
        Subjects::Cells(cells) => run_cells(args, &cells, output),
    }
}

fn run_sets(
    args: &CompareArgs,
    sets: &[RunSet],
    output: Output,
) -> Result<Outcome, Failure> {
    let Some((base, others)) = sets.split_first() else { return Ok(Outcome::Done) };
    let comparisons = compare(base, others, args.smallest);
    for (comparison, name) in comparisons.iter().zip(&args.subjects[1..]) {
        refuse_unlike(comparison, &args.subjects[0], name, sets)?;
    }
    check_conditions(&args.fail_if, &comparisons)?;
    args.gate.refuse_undirected(&comparisons)?;
    let names = &args.subjects;
    let compared =
        ComparedSets { names, sets, comparisons: &comparisons, smallest: args.smallest };
    let files = args.written.files()?;
    let shown = || {
        show(
            output,
            &files,
            || compared_sets_json(&compared),
            || compared_sets_document(&compared),
            |medium| compared_sets_pictures(&compared, medium),
        )
    };
    args.gate.show(&compared, shown)?;
    let conditions = judge(&args.fail_if, |condition| {
        Judged::any(comparisons.iter().map(|one| condition.judge(one)))
    });
    let gate = args
        .gate
        .judge(|by| Judged::any(comparisons.iter().map(|one| any_worse(one, by))));
    Ok(args.gate.outcome([conditions, gate]))
}

fn run_cells(
    args: &CompareArgs,
    cells: &[Cell],
    output: Output,
) -> Result<Outcome, Failure> {
    args.gate.refuse_cells()?;
    let Some((base, others)) = cells.split_first() else { return Ok(Outcome::Done) };
    let comparisons: Vec<CellsComparison> =
        others.iter().map(|other| CellsComparison::of(base, other)).collect();
    let has_value =
        |of: &CellsComparison| of.metrics.iter().any(|one| one.difference.is_some());
    if let Some(at) = comparisons.iter().position(|one| !has_value(one)) {
        let (a, b) = (&args.subjects[0], &args.subjects[at + 1]);
        return Err(Failure::usage(format!("'{a}' and '{b}' have no metric in common")));
    }
    let keys = || comparisons[0].metrics.iter().map(|one| one.metric.as_str());
    for condition in &args.fail_if {
        known_metric(condition, &mut keys())?;
    }
    let compared = ComparedCells { cells, comparisons: &comparisons };
    let files = args.written.files()?;
    show(
        output,
        &files,
        || compared_cells_json(&compared),
        || compared_cells_document(&compared),
        none,
    )?;
    let conditions = judge(&args.fail_if, |condition| {
        Judged::any(comparisons.iter().map(|one| condition.judge_cells(one)))
    });
    let gate = args
        .gate
        .judge(|by| Judged::any(comparisons.iter().map(|one| any_worse_cells(one, by))));
    Ok(args.gate.outcome([conditions, gate]))
}

/// Refuses sets without a common metric.
fn refuse_unlike(
    comparison: &Comparison,
    base: &str,
    other: &str,
    sets: &[RunSet],
) -> Result<(), Failure> {
    if !comparison.metrics.is_empty() {
        return Ok(());
    }
    let mut kinds: Vec<String> =
        sets.iter().map(|set| set.kinds().join(" and ")).collect();
    kinds.dedup();
    let kinds = match kinds.as_slice() {
        [_] => String::new(),
        several => format!(": they are recordings of {}", several.join(" and ")),
    };
    let cpus = match &comparison.only_in {
        [a, b] if !a.is_empty() && !b.is_empty() => ", or of no common CPU",
        _ => "",
    };
    Err(Failure::usage(format!(
        "'{base}' and '{other}' have no metric in common{cpus}{kinds}"
    )))
}

/// Refuses conditions on metrics that were not compared.
fn check_conditions(
    conditions: &[Condition],
    comparisons: &[Comparison],
) -> Result<(), Failure> {
    let all = || comparisons.iter().flat_map(|one| &one.metrics);
    for condition in conditions {
        known_metric(condition, &mut all().filter_map(|one| one.quantity.metric()))?;
        let own = all().find(|one| one.quantity.metric() == Some(condition.metric()));
        if own.is_some_and(|one| !condition.fits(one.unit)) {
            let metric = condition.metric();
            return Err(Failure::usage(format!(
                "--fail-if '{condition}': {metric} is no time"
            )));
        }
    }
    Ok(())
}

fn known_metric(
    condition: &Condition,
    keys: &mut dyn Iterator<Item = &str>,
) -> Result<(), Failure> {
    let mut known: Vec<&str> = Vec::new();
    for key in keys {
        if key == condition.metric() {
            return Ok(());
        }
        if !known.contains(&key) {
            known.push(key);
        }
    }
    let more = known.len().saturating_sub(METRICS_NAMED);
    let more =
        if more > 0 { format!(", and {more} more (see --json)") } else { String::new() };
    known.truncate(METRICS_NAMED);
    let known: Vec<_> = known.into_iter().map(units::printable).collect();
    let (metric, known) = (condition.metric(), known.join(", ") + &more);
    Err(Failure::usage(format!(
        "--fail-if '{condition}': '{metric}' was not compared; the metrics are: {known}"
    )))
}

/// Prints each condition that holds or is undecided; whether any does.
fn judge(conditions: &[Condition], judge: impl Fn(&Condition) -> Judged) -> Judged {
    let each = conditions.iter().map(|condition| {
        let judged = judge(condition);
        match judged {
            Judged::True => say(format_args!("--fail-if: {condition}")),
            Judged::Undecided => {
                say(format_args!("--fail-if: not enough data to decide '{condition}'"));
            }
            Judged::False => {}
        }
        judged
    });
    Judged::any(each)
}
