//! `noisefloor lab explain`: one typical tick or call, taken apart.

use std::fs;
use std::path::Path;

use ::lab::{Cache, Lab, Plan};
use recording::{Cell, Ending};
use report::{
    explain_diff_json, explain_diff_text, explain_json, explain_text, flame_diff_svg,
    flame_svg, folded, folded_diff, stacks, typical_episode,
};
use stats::{Difference, Explanation, StackInput};

use crate::args::Output;
use crate::lab;
use crate::lab_args::{ExplainArgs, How};
use crate::outcome::{Failure, Outcome};
use crate::terminal::print;

/// Shorter beginnings of an identity could be names.
const IDENTITY_MIN: usize = 6;

/// Explains a cell, or how two differ.
pub(crate) fn run(args: &ExplainArgs, output: Output) -> Result<Outcome, Failure> {
    let one = find(&args.cell, &args.how, output)?;
    let other = args.diff.as_ref().map(|diff| {
        let named = other(&args.cell, diff);
        find(&named, &args.how, output)
    });
    match other.transpose()? {
        None => explain(args, output, &one),
        Some(other) => explain_both(args, output, &one, &other),
    }
}

fn explain(args: &ExplainArgs, output: Output, cell: &Cell) -> Result<Outcome, Failure> {
    let stacks = episode(cell, args.call.as_deref())?;
    let title = title(cell, args.call.as_deref());
    let explanation = Explanation::of(&stacks);
    if let Some(file) = &args.output {
        let svg = is_svg(file);
        write(file, &if svg { flame_svg(&title, &stacks) } else { folded(&stacks) })?;
    }
    let text = match output.json {
        true => explain_json(&title, &explanation).map_err(Failure::bug)? + "\n",
        false => explain_text(&title, &explanation),
    };
    print(&text)?;
    Ok(Outcome::Done)
}

fn explain_both(
    args: &ExplainArgs,
    output: Output,
    one: &Cell,
    other: &Cell,
) -> Result<Outcome, Failure> {
    let call = args.call.as_deref();
    let (a, b) = (episode(one, call)?, episode(other, call)?);
    let (title_a, title_b) = (title(one, call), title(other, call));
    let difference = Difference::of(&a, &b);
    if let Some(file) = &args.output {
        let text = match is_svg(file) {
            true => flame_diff_svg(&compared(one, other, call), &a, &b),
            false => folded_diff(&a, &b),
        };
        write(file, &text)?;
    }
    let text = match output.json {
        true => {
            explain_diff_json("why B is not A", [&title_a, &title_b], &difference)
                .map_err(Failure::bug)?
                + "\n"
        }
        false => explain_diff_text("Why B is not A", [&title_a, &title_b], &difference),
    };
    print(&text)?;
    Ok(Outcome::Done)
}

/// The typical episode of a cell, as stacks.
fn episode<'a>(
    cell: &'a Cell,
    call: Option<&str>,
) -> Result<Vec<StackInput<'a>>, Failure> {
    if let Ending::Lost { why, console } = &cell.ending {
        let text = format!("the cell was lost: {why} ({})", console.display());
        return Err(Failure::refused(text));
    }
    let Some((profile, episode)) = typical_episode(cell, call) else {
        return Err(Failure::usage(format!(
            "{}: no episode to explain was kept; name one of a cell's calls with --call, and \
             only exact cells under QEMU 10 or newer are counted by function",
            cell.name
        )));
    };
    Ok(stacks(profile, episode))
}

fn title(cell: &Cell, call: Option<&str>) -> String {
    let what = call.unwrap_or("one tick");
    format!("{what}, {} on {}", cell.name, cell.kernel)
}

/// What a picture of two cells is called: what differs, in the fewest words.
fn compared(one: &Cell, other: &Cell, call: Option<&str>) -> String {
    let what = call.unwrap_or("one tick");
    if one.name == other.name {
        format!("{what}, {}: {} against {}", one.name, other.kernel, one.kernel)
    } else {
        format!("{what}: {} against {}", other.name, one.name)
    }
}

fn is_svg(file: &Path) -> bool {
    file.extension().is_some_and(|ending| ending == "svg")
}

fn write(file: &Path, text: &str) -> Result<(), Failure> {
    fs::write(file, text)
        .map_err(|error| Failure::usage(format!("-o {}: {error}", file.display())))
}

/// The other cell's whole name, where only its kernel was given.
fn other(cell: &str, diff: &str) -> String {
    match (diff.strip_prefix('@'), cell.split_once('@')) {
        (Some(kernel), Some((name, _))) => format!("{name}@{kernel}"),
        (Some(kernel), None) => format!("{cell}@{kernel}"),
        (None, _) => diff.to_owned(),
    }
}

/// One cell: run, or taken from the cache, by its name; or a kept one by its identity.
fn find(name: &str, how: &How, output: Output) -> Result<Cell, Failure> {
    if name.len() >= IDENTITY_MIN && name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(Lab::open(Cache::find()?)?.kept(name)?);
    }
    let (rest, kernel) = match name.split_once('@') {
        Some((rest, kernel)) => (rest, Some(kernel.to_owned())),
        None => (name, None),
    };
    let (experiment, cell) = split(rest);
    let kernels = kernel.map_or(how.kernels.clone(), |kernel| vec![kernel]);
    let experiment = lab::find(experiment, &How { kernels, ..how.clone() })?;
    let is_it =
        |plan: &&Plan| cell.is_none_or(|cell| plan.name == cell) && plan.repeat == 1;
    let plans: Vec<Plan> = experiment.cells().iter().filter(is_it).cloned().collect();
    if let [_] = plans.as_slice() {
        let cells = lab::cells(&plans, how, output)?;
        return cells.into_iter().next().ok_or_else(|| Failure::refused("ended early"));
    }
    let name_of =
        |plan: &Plan| format!("{}/{}@{}", experiment.name(), plan.name, plan.kernel);
    let all: Vec<String> = experiment.cells().iter().map(name_of).collect();
    Err(Failure::usage(format!(
        "'{name}' names {} cells; there are {}",
        plans.len(),
        all.join(", ")
    )))
}

/// An experiment's name or file, and the name of a cell after its last slash.
fn split(name: &str) -> (&str, Option<&str>) {
    match name.rsplit_once('/') {
        Some((experiment, cell)) if !cell.ends_with(".toml") => (experiment, Some(cell)),
        _ => (name, None),
    }
}
