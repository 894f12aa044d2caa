//! The kernels, machines and cells behind the short names in tables.
//!
//! What all cells have in common is listed once. A cell's identity is a hash, shortened to
//! digits that are unique in practice; the JSON has all of them.

use itertools::Itertools;
use recording::{Cell, Ending, Mode};

use crate::cells::labelled::{LabelledCell, is_unmodified};
use crate::document::Document;
use crate::document::table::{Column, Table};
use crate::document::text::{Text, text};
use crate::kernel_label::full_name;
use crate::number;

/// The number of digits of an identity.
const IDENTITY: usize = 12;
/// Identities on more kernels are in the JSON only.
const KERNELS: usize = 2;

/// The legend, in the order of the cells. The kernels are always shown if their labels are numbers.
pub(crate) fn legend(cells: &[&LabelledCell<'_>]) -> Document {
    let common = |part: fn(&Cell) -> &str| {
        let part = cells.iter().map(|named| part(named.cell)).all_equal_value();
        part.ok().filter(|part| !part.is_empty())
    };
    let (machine, workload) =
        (common(|cell| &cell.machine), common(|cell| &cell.workload));
    let shared = [
        machine.map(|words| ["Machine", words]),
        workload.map(|words| ["Workload", words]),
    ];
    let shared = Table::terms(shared.into_iter().flatten());
    let about = |cell: &Cell| about(cell, machine.is_some(), workload.is_some());
    let kernels = cells.iter().unique_by(|named| &named.kernel);
    let kernels = Table::terms(
        kernels.map(|of| [Text::name(&of.kernel), Text::name(full_name(of.cell))]),
    );
    let kernels = Document::section("Kernels", kernels);
    let is_clear =
        |named: &&LabelledCell<'_>| full_name(named.cell).contains(&named.kernel);
    let legend = match cells.iter().all(is_clear) {
        true => Document::default().add_full(kernels),
        false => kernels,
    };
    legend.add_full(shared).add_full(descriptions(cells, about))
}

/// What is special about a cell: workload and machine if they are not common, event source, boot
/// parameters, settings, services.
fn about(cell: &Cell, is_machine_common: bool, is_workload_common: bool) -> Text {
    let mut words = Vec::new();
    if !is_workload_common && !cell.workload.is_empty() {
        words.push(cell.workload.as_str().into());
    }
    words.extend(cell.watch.map(|source| text!("traced by {}", source.name())));
    if !cell.params.is_empty() {
        words.push(text!("booted with {}", Text::command(&cell.params)));
    }
    if !cell.settings.is_empty() {
        let settings = Text::join(cell.settings.iter().map(Text::command), ", ");
        words.push(text!("with {}", settings));
    }
    if !cell.services.is_empty() {
        let services = Text::join(cell.services.iter().map(Text::command), ", ");
        words.push(text!("beside {}", services));
    }
    if !is_machine_common && !cell.machine.is_empty() {
        words.push(text!("on {}", cell.machine.as_str()));
    }
    match words.is_empty() && is_unmodified(cell) {
        true => "unmodified kernel".into(),
        false => Text::join(words, "; "),
    }
}

/// A line for each cell, with a column of identities for each kernel if they are few.
fn descriptions(cells: &[&LabelledCell<'_>], about: impl Fn(&Cell) -> Text) -> Table {
    let kernels = cells.iter().filter(|named| is_cached(named.cell));
    let kernels: Vec<&str> =
        kernels.map(|named| named.kernel.as_str()).unique().collect();
    let shown = if kernels.len() > KERNELS { &[] } else { &kernels[..] };
    let identities = shown.iter().map(|kernel| Column::words(Text::name(*kernel)));
    let columns = [Column::name("cell", 8..=36)].into_iter().chain(identities);
    let mut table = Table::new(columns.chain([Column::prose("")]));
    let key = |named: &&LabelledCell<'_>| {
        (named.cell.name.clone(), about(named.cell).to_string())
    };
    for first in cells.iter().copied().unique_by(key) {
        let same = || cells.iter().filter(|named| key(named) == key(&first));
        let identity = |kernel: &&str| {
            let found = same().find(|it| it.kernel == *kernel && is_cached(it.cell));
            number::any(found.map(|named| {
                named.cell.identity.chars().take(IDENTITY).collect::<String>()
            }))
        };
        let name = [Text::name(&first.cell.name)].into_iter();
        table.row(name.chain(shown.iter().map(identity)).chain([about(first.cell)]));
    }
    table
}

/// Whether the cache has its result.
fn is_cached(cell: &Cell) -> bool {
    cell.mode == Mode::Exact && matches!(cell.ending, Ending::Done(_))
}
