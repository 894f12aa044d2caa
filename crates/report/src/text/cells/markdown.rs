//! Cells as Markdown for a document: a table for each name of a cell, with a row for each
//! kernel and a column for each metric, named as in limits.
//!
//! Repeats are omitted; if their results differ, the cell has a doubt.

use itertools::Itertools;
use recording::{Cell, Ending};
use summary::metrics_of;

use crate::cell_doubts::doubts_by_name;
use crate::cells::Cells;
use crate::number::{NONE, metric};
use crate::text::cells::{idle_by_hz, trim};

/// The cells of an experiment as Markdown.
pub fn cells_markdown(cells: &Cells<'_>) -> String {
    let all: Vec<&Cell> = cells.cells.iter().filter(|cell| cell.repeat == 1).collect();
    let mut text = format!("# {}\n", cells.experiment);
    if !cells.about.is_empty() {
        text += &format!("\n{}\n", cells.about);
    }
    text += &kernels(&all);
    for name in all.iter().map(|cell| &cell.name).unique() {
        let same: Vec<&Cell> =
            all.iter().copied().filter(|cell| cell.name == *name).collect();
        text += &section(name, &same);
    }
    text += &idle_by_hz::markdown(cells);
    text += &trim::markdown(cells);
    text += &list("Lost cells", all.iter().filter_map(|cell| lost(cell)));
    let names: Vec<_> = all.iter().map(|cell| (*cell, full(cell))).collect();
    text += &list("Doubts", doubts_by_name(&names).into_iter());
    if all.len() < cells.planned && cells.cells.len() < cells.planned {
        let done = cells.cells.len();
        text += &format!("\nEnded early: {done} of {} cells are done.\n", cells.planned);
    }
    text
}

/// The image of each kernel.
fn kernels(cells: &[&Cell]) -> String {
    let found = cells.iter().filter(|cell| !cell.identity.is_empty());
    let images = found.map(|cell| [escape(&cell.asked), escape(&cell.kernel)]).unique();
    let rows = images.map(|image| image.to_vec()).collect::<Vec<_>>();
    table(&["kernel".to_owned(), "image".to_owned()], "---", &rows)
}

/// The cells of one name, with their metrics.
fn section(name: &str, cells: &[&Cell]) -> String {
    let numbers: Vec<_> = cells.iter().map(|cell| numbers(cell)).collect();
    let columns: Vec<&String> =
        numbers.iter().flatten().map(|(name, _)| name).unique().collect();
    let row = |(cell, numbers): (&&Cell, &Vec<(String, f64)>)| {
        let value = |column: &&String| {
            let found = numbers.iter().find(|(name, _)| name == *column);
            match (&cell.ending, found) {
                (Ending::Lost { .. }, _) => "lost".to_owned(),
                (_, Some((_, value))) => metric(*value),
                (_, None) => NONE.to_owned(),
            }
        };
        let values = columns.iter().map(value);
        std::iter::once(escape(&cell.asked)).chain(values).collect::<Vec<_>>()
    };
    let rows: Vec<Vec<String>> = cells.iter().zip(&numbers).map(row).collect();
    let head =
        std::iter::once("kernel".to_owned()).chain(columns.iter().copied().cloned());
    let about = cells.first().map(|cell| about(cell)).unwrap_or_default();
    if columns.is_empty() {
        return format!("\n## {name}\n\n{about}"); // all cells are lost
    }
    let table = table(&head.collect::<Vec<_>>(), "--:", &rows);
    format!("\n## {name}\n\n{about}{table}")
}

fn numbers(cell: &Cell) -> Vec<(String, f64)> {
    metrics_of(cell).into_iter().map(|metric| (metric.key, metric.value)).collect()
}

/// Workload, machine, boot parameters and settings of a cell.
fn about(cell: &Cell) -> String {
    let mut text = format!("{}; {}", cell.workload, cell.machine);
    for more in std::iter::once(&cell.params).chain(&cell.settings) {
        if !more.is_empty() {
            text += &format!("; `{more}`");
        }
    }
    text + "\n"
}

/// A table; `others` is the delimiter below the headings of all columns but the first.
fn table(head: &[String], others: &str, rows: &[Vec<String>]) -> String {
    let line = |fields: &[String]| format!("| {} |\n", fields.join(" | "));
    let rule = format!("|---|{}|\n", vec![others; head.len() - 1].join("|"));
    let rows: String = rows.iter().map(|row| line(row)).collect();
    format!("\n{}{rule}{rows}", line(head))
}

fn lost(cell: &Cell) -> Option<String> {
    match &cell.ending {
        Ending::Lost { why, .. } => Some(format!("{}: {why}", full(cell))),
        Ending::Done(_) => None,
    }
}

fn full(cell: &Cell) -> String {
    format!("{} on {}", cell.name, cell.asked)
}

/// A section with a list; empty without lines.
fn list(head: &str, lines: impl Iterator<Item = String>) -> String {
    let lines: String = lines.map(|line| format!("- {line}\n")).collect();
    if lines.is_empty() { lines } else { format!("\n## {head}\n\n{lines}") }
}

/// The text in a field of a table.
pub(crate) fn escape(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::cell::{NEW, OLD, cell, lost, tick_cost};
    use insta::assert_snapshot;

    /// Check that the cells of one name are a table with a row for each kernel, that a lost
    /// one is marked there and explained, and that a kernel without an image is not listed
    /// as one.
    #[test]
    fn page() {
        let tick = || tick_cost(&[2584, 2584, 10_911], &[(2571, 248), (10_898, 1)]);
        let requested =
            |asked: &str, cell: Cell| Cell { asked: asked.to_owned(), ..cell };
        let missing = cell("fifo", "debian:9.9", lost());
        let cells = [
            requested("debian:6.1-cloud", cell("other", OLD, tick())),
            requested("debian:6.1-cloud", cell("fifo", OLD, tick())),
            requested("debian:6.12-cloud", cell("fifo", NEW, tick())),
            requested("debian:9.9", Cell { identity: String::new(), ..missing }),
        ];
        let cells = Cells {
            experiment: "atlas",
            about: "what a tick costs",
            cells: &cells,
            planned: 4,
            made_with: None,
            violations: None,
            guests: 100,
            series: &[],
        };
        assert_snapshot!(cells_markdown(&cells), @r"
    # atlas

    what a tick costs

    | kernel | image |
    |---|---|
    | debian:6.1-cloud | 6.1.0-56-cloud-amd64 (6.1.192-2) |
    | debian:6.12-cloud | 6.12.117+deb12-cloud-amd64 (6.12.117-1~bpo12+1) |

    ## other

    noise on CPU 0 for 1 s; pc, 1 CPU of qemu64,-rdrand, 256 MiB

    | kernel | tick_instructions | tick_instructions_mean | tick_kernel_instructions | tick_kernel_instructions_mean |
    |---|--:|--:|--:|--:|
    | debian:6.1-cloud | 2584 | 5360 | 2571 | 2604 |

    ## fifo

    noise on CPU 0 for 1 s; pc, 1 CPU of qemu64,-rdrand, 256 MiB

    | kernel | tick_instructions | tick_instructions_mean | tick_kernel_instructions | tick_kernel_instructions_mean |
    |---|--:|--:|--:|--:|
    | debian:6.1-cloud | 2584 | 5360 | 2571 | 2604 |
    | debian:6.12-cloud | 2584 | 5360 | 2571 | 2604 |
    | debian:9.9 | lost | lost | lost | lost |

    ## Lost cells

    - fifo on debian:9.9: the kernel panicked: VFS: Unable to mount root fs on unknown-block(0,0)
    ");
    }
}
