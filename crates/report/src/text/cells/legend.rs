//! What the short names in tables of cells stand for: kernels, the machine, cells.
//!
//! What all cells have in common is said once. A cell's identity is shortened to what
//! tells it from any other in practice; the JSON has it in full.

use itertools::Itertools;
use recording::{Cell, Ending, Mode};

use crate::number;
use crate::text::cells::kernel_label::full_name;
use crate::text::cells::{LabelledCell, is_as_it_comes};
use crate::text::layout::paragraph::{WIDTH, paragraph};
use crate::text::layout::table::{Side, aligned, columns, cut};

/// The longest short name that a list has room for.
const NAME: usize = 36;
/// How much of an identity is shown.
const IDENTITY: usize = 12;
/// The least room for words, so that identities may stand beside them.
const WORDS: usize = 24;

/// What short names stand for, each once, in the order in which they come.
pub(crate) fn legend(cells: &[LabelledCell<'_>]) -> String {
    let common = Common::of(cells);
    kernels(cells) + &common.lines() + &entries(cells, &common)
}

fn kernels(cells: &[LabelledCell<'_>]) -> String {
    let width = cells.iter().map(|named| columns(&named.kernel)).max().unwrap_or(0);
    let line = |LabelledCell { cell, kernel }: &LabelledCell<'_>| {
        let lead = format!("  {}  ", aligned(kernel, width, Side::Left));
        paragraph(&lead, &full_name(cell))
    };
    let lines: String = cells.iter().unique_by(|named| &named.kernel).map(line).collect();
    if lines.is_empty() { lines } else { format!("\nKernels\n{lines}") }
}

/// What all cells have in common; `None` where they differ, or nothing is known.
struct Common<'a> {
    machine: Option<&'a str>,
    workload: Option<&'a str>,
}

impl<'a> Common<'a> {
    fn of(cells: &[LabelledCell<'a>]) -> Self {
        let common = |part: fn(&'a Cell) -> &'a str| {
            let first = cells.first().map(|named| part(named.cell))?;
            let is_same = cells.iter().all(|named| part(named.cell) == first);
            (is_same && !first.is_empty()).then_some(first)
        };
        Self {
            machine: common(|cell| &cell.machine),
            workload: common(|cell| &cell.workload),
        }
    }

    fn lines(&self) -> String {
        let line = |lead, words: Option<&str>| {
            words.map_or_else(String::new, |words| paragraph(lead, words))
        };
        let lines = line("Machine   ", self.machine) + &line("Workload  ", self.workload);
        if lines.is_empty() { lines } else { format!("\n{lines}") }
    }

    /// What a cell is beyond that: what ran, on a kernel booted and set how, and where.
    fn words(&self, named: &LabelledCell<'_>) -> String {
        let cell = named.cell;
        let mut words = Vec::new();
        if self.workload.is_none() && !cell.workload.is_empty() {
            words.push(cell.workload.clone());
        }
        if let Some(watch) = cell.watch {
            words.push(format!("watched by {}", watch.name()));
        }
        if !cell.params.is_empty() {
            words.push(format!("booted with {}", cell.params));
        }
        if !cell.settings.is_empty() {
            words.push(format!("with {}", cell.settings.join(", ")));
        }
        if self.machine.is_none() && !cell.machine.is_empty() {
            words.push(format!("on {}", cell.machine));
        }
        if words.is_empty() && is_as_it_comes(cell) {
            words.push("the kernel as it comes".to_owned());
        }
        words.join("; ")
    }
}

/// A cell on all kernels: name, words, and the kernels' labels with the identities.
struct Entry<'a> {
    name: String,
    words: String,
    identities: Vec<(&'a str, String)>,
}

fn entries(cells: &[LabelledCell<'_>], common: &Common<'_>) -> String {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    let mut kernels: Vec<&str> = Vec::new();
    for named in cells {
        let (name, words) = (cut(&named.cell.name, NAME), common.words(named));
        let identity = identity(named);
        kernels.extend(identity.iter().map(|(kernel, _)| kernel));
        match entries.iter_mut().find(|e| e.name == name && e.words == words) {
            Some(entry) => entry.identities.extend(identity),
            None => {
                let identities = identity.into_iter().collect();
                entries.push(Entry { name, words, identities });
            }
        }
    }
    list(&entries, &kernels.into_iter().unique().collect::<Vec<_>>())
}

/// The kernel's label and the cell's identity, where that names a result that is kept.
fn identity<'a>(named: &'a LabelledCell<'_>) -> Option<(&'a str, String)> {
    let cell = named.cell;
    let is_kept = cell.mode == Mode::Exact && matches!(cell.ending, Ending::Done(_));
    is_kept
        .then(|| (named.kernel.as_str(), cell.identity.chars().take(IDENTITY).collect()))
}

/// The list, with a column of identities for each kernel where there is room for all.
fn list(entries: &[Entry<'_>], kernels: &[&str]) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let name = entries.iter().map(|entry| columns(&entry.name)).max().unwrap_or(0);
    let width = |kernel: &&str| columns(kernel).max(IDENTITY);
    let all: usize = kernels.iter().map(|kernel| width(kernel) + 2).sum();
    let fits = 2 + name + 2 + all + WORDS <= WIDTH;
    let shown = if fits { kernels } else { &[] };
    let line = |lead: &str, name_width: usize, cells: &dyn Fn(&str) -> String| {
        let mut line = format!("{}  ", aligned(lead, name_width, Side::Left));
        for kernel in shown {
            line += &aligned(&cells(kernel), width(kernel), Side::Left);
            line += "  ";
        }
        line
    };
    let mut text = line("Cells", name + 2, &str::to_owned).trim_end().to_owned();
    text.push('\n');
    for entry in entries {
        let lead = line(&format!("  {}", entry.name), name + 2, &|kernel| {
            let found = entry.identities.iter().find(|(label, _)| *label == kernel);
            found.map_or(number::NONE, |(_, identity)| identity).to_owned()
        });
        text.push_str(&paragraph(&lead, &entry.words));
    }
    format!("\n{text}")
}
