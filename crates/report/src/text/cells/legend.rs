//! The kernels, machines and cells behind the short names in tables.
//!
//! What all cells have in common is listed once. A cell's identity is a hash, shortened to
//! digits that are unique in practice; the JSON has all of them.

use itertools::Itertools;
use recording::{Cell, Ending, Mode};

use crate::number;
use crate::text::cells::kernel_label::full_name;
use crate::text::cells::{LabelledCell, is_unmodified};
use crate::text::layout::labels::cut_labels;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, aligned, columns};
use crate::text::layout::width::width as terminal;

/// The maximum width of a name.
const NAME: usize = 36;
/// The number of digits of an identity.
const IDENTITY: usize = 12;
/// The minimum width of descriptions beside identities.
const WORDS: usize = 24;

/// The legend, in the order of the cells.
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

/// What all cells have in common; `None` if they differ, or it is unknown.
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

    /// The rest of a cell: workload, event source, boot parameters, settings, machine.
    fn words(&self, named: &LabelledCell<'_>) -> String {
        let cell = named.cell;
        let mut words = Vec::new();
        if self.workload.is_none() && !cell.workload.is_empty() {
            words.push(cell.workload.clone());
        }
        if let Some(source) = cell.watch {
            words.push(format!("traced by {}", source.name()));
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
        if words.is_empty() && is_unmodified(cell) {
            words.push("unmodified kernel".to_owned());
        }
        words.join("; ")
    }
}

/// A cell on all kernels: name, description, and its identity for each kernel's label.
struct Entry<'a> {
    name: String,
    words: String,
    identities: Vec<(&'a str, String)>,
}

fn entries(cells: &[LabelledCell<'_>], common: &Common<'_>) -> String {
    let mut entries: Vec<Entry<'_>> = Vec::new();
    let mut kernels: Vec<&str> = Vec::new();
    let names = cut_labels(cells.iter().map(|named| &named.cell.name), NAME);
    for (named, name) in cells.iter().zip(names) {
        let words = common.words(named);
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

/// The kernel's label and the cell's identity, if the cache has its result.
fn identity<'a>(named: &'a LabelledCell<'_>) -> Option<(&'a str, String)> {
    let cell = named.cell;
    let is_cached = cell.mode == Mode::Exact && matches!(cell.ending, Ending::Done(_));
    is_cached
        .then(|| (named.kernel.as_str(), cell.identity.chars().take(IDENTITY).collect()))
}

/// The list, with a column of identities for each kernel if all fit.
fn list(entries: &[Entry<'_>], kernels: &[&str]) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let name = entries.iter().map(|entry| columns(&entry.name)).max().unwrap_or(0);
    let width = |kernel: &&str| columns(kernel).max(IDENTITY);
    let all: usize = kernels.iter().map(|kernel| width(kernel) + 2).sum();
    let fits = 2 + name + 2 + all + WORDS <= terminal();
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
