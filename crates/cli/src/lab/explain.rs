//! `noisefloor lab explain`: instructions by function, of one typical tick or call, or of a phase.

use experiments::CellPlan;
use recording::{Body, Cell, Doubt, Ending, Mode};
use report::{
    Document, cell_doubts, explain_diff_document, explain_diff_json,
    explain_diff_pictures, explain_document, explain_json, explain_pictures,
    folded_stacks, folded_stacks_diff, phase_document, phase_json, phase_pictures,
};
use serde_json::{Value, json};
use summary::{Typical, WholePhase};
use units::Cpu;

use crate::args::Output;
use crate::lab;
use crate::lab::args::{ExplainArgs, How};
use crate::outcome::{Failure, Outcome};
use crate::printing::{print_document, print_json, say_document};

/// Shorter prefixes of an identity could be names.
const IDENTITY_MIN: usize = 6;

/// Explains a cell, or the difference of two. A file that cannot be written is an error before
/// anything boots.
pub(crate) fn run(args: &ExplainArgs, output: Output) -> Result<Outcome, Failure> {
    let output = output.beside(args.destination())?;
    let one = find(&args.cell, &args.how, output)?;
    if args.whole {
        return explain_whole(args, output, &one);
    }
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
    let typical = typical(cell, args)?;
    let explained = Explained {
        cells: &[cell],
        json: &|| explain_json(&typical),
        document: &|| explain_document(&typical),
        pictures: &|| explain_pictures(&typical),
        stacks: &|| folded_stacks(&typical.stacks),
    };
    explained.show(args, output)
}

/// Explains everything that was executed, rather than one tick or call.
fn explain_whole(
    args: &ExplainArgs,
    output: Output,
    cell: &Cell,
) -> Result<Outcome, Failure> {
    let call = args.call.as_deref();
    let phase = WholePhase::of(cell, call, args.cpu.map(Cpu::new))
        .ok_or_else(|| missing_phase(cell, args))?;
    let explained = Explained {
        cells: &[cell],
        json: &|| phase_json(&phase),
        document: &|| phase_document(&phase),
        pictures: &|| phase_pictures(&phase),
        stacks: &|| folded_stacks(&phase.stacks),
    };
    explained.show(args, output)
}

fn explain_both(
    args: &ExplainArgs,
    output: Output,
    one: &Cell,
    other: &Cell,
) -> Result<Outcome, Failure> {
    let (a, b) = (typical(one, args)?, typical(other, args)?);
    let explained = Explained {
        cells: &[one, other],
        json: &|| explain_diff_json(&a, &b),
        document: &|| explain_diff_document(&a, &b),
        pictures: &|| explain_diff_pictures(&a, &b),
        stacks: &|| folded_stacks_diff(&a.stacks, &b.stacks),
    };
    explained.show(args, output)
}

/// What is explained, in all forms.
struct Explained<'a> {
    cells: &'a [&'a Cell],
    json: &'a dyn Fn() -> serde_json::Result<String>,
    document: &'a dyn Fn() -> Document,
    pictures: &'a dyn Fn() -> Document,
    stacks: &'a dyn Fn() -> String,
}

impl Explained<'_> {
    /// Writes the file and prints the explanation, with the doubts about its cells; the exit code
    /// follows from the doubts as that of `lab run` does.
    fn show(&self, args: &ExplainArgs, output: Output) -> Result<Outcome, Failure> {
        let doubts = self.doubts();
        let document = || (self.document)().doubts(&doubts);
        if let Some(to) = args.destination() {
            match to.form() {
                None => to.write(&(self.stacks)())?,
                Some(form) => {
                    let page = document().titled("noisefloor lab explain");
                    to.write_report(form, &page.add((self.pictures)()), None)?;
                }
            }
        }
        if output.json {
            let json = (self.json)().and_then(|json| with_doubts(&json, &doubts));
            print_json(&json.map_err(Failure::bug)?)?;
        } else if output.has_report {
            print_document(&document(), output.view())?;
        } else {
            say_document(&Document::default().doubts(&doubts), output.view());
        }
        Ok(match doubts.iter().any(Doubt::is_grave) {
            true => Outcome::Doubtful,
            false => Outcome::Done,
        })
    }

    /// The doubts about its cells; both may have the same.
    fn doubts(&self) -> Vec<Doubt> {
        let mut doubts: Vec<Doubt> = Vec::new();
        for doubt in self.cells.iter().flat_map(|cell| cell_doubts(cell)) {
            if !doubts.contains(&doubt) {
                doubts.push(doubt);
            }
        }
        doubts
    }
}

/// The same JSON object with the doubts.
fn with_doubts(text: &str, doubts: &[Doubt]) -> serde_json::Result<String> {
    let mut object: serde_json::Map<String, Value> = serde_json::from_str(text)?;
    object.insert("doubts".to_owned(), json!(doubts));
    serde_json::to_string_pretty(&object)
}

/// The typical tick or call of a cell.
fn typical<'a>(cell: &'a Cell, args: &'a ExplainArgs) -> Result<Typical<'a>, Failure> {
    let call = args.call.as_deref();
    let place = usize::from(args.kind - 1);
    Typical::of_kind(cell, call, place).ok_or_else(|| match Typical::of(cell, call) {
        Some(_) => {
            let text = format!("{} has no kind of tick {}", cell.name, args.kind);
            Failure::usage(text)
        }
        None => missing(cell, call),
    })
}

/// The reason why a cell has no such episode.
fn missing(cell: &Cell, call: Option<&str>) -> Failure {
    let name = &cell.name;
    let answer = match &cell.ending {
        Ending::Done(answer) => answer,
        Ending::Lost { why, console } if console.as_os_str().is_empty() => {
            return Failure::refused(format!("{name} was lost: {why}"));
        }
        Ending::Lost { why, console } => {
            let console = console.display();
            return Failure::refused(format!("{name} was lost: {why}; {console}"));
        }
    };
    if cell.mode == Mode::Timed {
        let text = format!(
            "{name} was run in timed mode; instructions are counted in exact mode only"
        );
        return Failure::usage(text);
    }
    if answer.profile.is_none() {
        let text = format!("{name} was not counted: QEMU did not load the counter");
        return Failure::refused(text);
    }
    if matches!(answer.recording.body, Body::Program { .. }) {
        let text = format!("{name} is a program; hint: --whole explains all of it");
        return Failure::usage(text);
    }
    let calls: Vec<&str> = if let Body::Calls { spec, .. } = &answer.recording.body {
        spec.calls.iter().map(|call| call.name()).collect()
    } else {
        Vec::new()
    };
    let there = calls.join(", ");
    Failure::usage(match call {
        Some(_) if calls.is_empty() => {
            format!("{name} measures no calls; hint: omit --call")
        }
        Some(call) => format!("{name} does not measure '{call}'; it measures: {there}"),
        None if calls.is_empty() => format!("{name} has no tick that could be explained"),
        None => {
            format!("{name} measures several calls; hint: name one with --call: {there}")
        }
    })
}

/// The reason why a cell has no profile of everything that its CPUs executed.
fn missing_phase(cell: &Cell, args: &ExplainArgs) -> Failure {
    let call = args.call.as_deref();
    let is_there = |cpu| WholePhase::of(cell, call, cpu).is_some();
    match args.cpu {
        Some(cpu) if is_there(None) => {
            Failure::usage(format!("{} has no CPU {cpu}", cell.name))
        }
        _ if Typical::of(cell, call).is_some() => {
            let why = "only the profiles of its first 128 phases are stored";
            Failure::refused(format!("{}: {why}", cell.name))
        }
        _ => missing(cell, call),
    }
}

/// The other cell's full name, if only its kernel was given.
pub(crate) fn other(cell: &str, diff: &str) -> String {
    match (diff.strip_prefix('@'), cell.split_once('@')) {
        (Some(kernel), Some((name, _))) => format!("{name}@{kernel}"),
        (Some(kernel), None) => format!("{cell}@{kernel}"),
        (None, _) => diff.to_owned(),
    }
}

/// Whether a name is (the beginning of) a cell's identity.
pub(crate) fn is_identity(name: &str) -> bool {
    name.len() >= IDENTITY_MIN && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// One cell of an experiment as it is in its file, on the kernel in its name.
pub(crate) fn cell(name: &str, output: Output) -> Result<Cell, Failure> {
    find(name, &How::default(), output)
}

/// One cell: run, or read from the cache, by its name; or a cached one by its identity.
fn find(name: &str, how: &How, output: Output) -> Result<Cell, Failure> {
    if is_identity(name) {
        return Ok(lab::open()?.cached(name)?);
    }
    let (rest, kernel) = match name.split_once('@') {
        Some((rest, kernel)) => (rest, Some(kernel.to_owned())),
        None => (name, None),
    };
    let (experiment, cell) = split(rest);
    let kernels = kernel.map_or(how.kernels.clone(), |kernel| vec![kernel]);
    let experiment = lab::find(experiment, &How { kernels, ..how.clone() })?;
    let is_it =
        |plan: &&CellPlan| cell.is_none_or(|cell| plan.name == cell) && plan.repeat == 1;
    let plans: Vec<CellPlan> = experiment.cells().iter().filter(is_it).cloned().collect();
    if let [_] = plans.as_slice() {
        let cells = lab::cells(&lab::open()?, &plans, how, output)?;
        return cells.into_iter().next().ok_or_else(|| Failure::refused("ended early"));
    }
    let name_of = |plan: &CellPlan| {
        format!("\n  '{}/{}@{}'", experiment.name(), plan.name, plan.kernel)
    };
    let (found, shown) = match plans.as_slice() {
        [] => ("is not a cell; the cells are:".to_owned(), experiment.cells()),
        several => (format!("matches {} cells; name one:", several.len()), several),
    };
    let shown = shown.iter().filter(|plan| plan.repeat == 1).map(name_of);
    Err(Failure::usage(format!("'{name}' {found}{}", shown.collect::<String>())))
}

/// An experiment's name or file, and the name of a cell after its last slash.
fn split(name: &str) -> (&str, Option<&str>) {
    match name.rsplit_once('/') {
        Some((experiment, cell)) if !cell.ends_with(".toml") => (experiment, Some(cell)),
        _ => (name, None),
    }
}
