//! The load of idle guests by HZ: old figures beside those of cells, and the lines fitted to both.

use summary::{HzLine, IdleByHz, IdleLoad, Saved};
use units::PerSecond;

use crate::cells::labelled::Cells;
use crate::document::Document;
use crate::document::list::List;
use crate::document::table::{Column, Table};
use crate::document::text::{Text, text};
use crate::number;

/// The tables of all groups of cells; empty without one.
pub(crate) fn tables(cells: &Cells<'_>) -> Document {
    let groups = IdleByHz::of_cells(cells.cells, cells.guests);
    Document::default().add_all(groups.iter().map(section))
}

fn section(group: &IdleByHz) -> Document {
    let (cell, version) = (Text::name(&group.cell), Text::name(&group.version));
    let title = text!("Load of an idle guest by HZ ({} on {})", cell, version);
    let lines = [
        text!("old figures: {}", old_line(&group.old_line)),
        text!("these cells: {}", line(&group.line)),
    ];
    Document::section(title, table(group))
        .add(List::bullets(lines))
        .add_full(limits(group))
}

fn table(group: &IdleByHz) -> Table {
    let saves = Column::number("guests save").above(group.guests.to_string());
    let table = Table::of(&group.loads)
        .column(Column::name("HZ", 8..=30), name)
        .number("old MHz", |load| number::any(load.old_mhz.map(number::metric)))
        .number("instructions/s", |load| number::any(load.instructions_hz))
        .number("ticks/s", |load| number::any(load.timer_entries_hz))
        .column(Column::number("the line").above("off"), |load| {
            number::any(load.deviation_ppm.map(number::change))
        })
        .column(saves, |load| number::any(load.saved.map(saved)))
        .table;
    table.legend(
        "\"old MHz\": load of the host's processor by one idle guest, read once on one machine. \"off \
         the line\": deviation from the line below.",
    )
}

/// The limits of the comparison.
fn limits(group: &IdleByHz) -> Text {
    let guests = group.guests.to_string();
    text!(
        "The old load at 40 Hz is the middle of 10 to 15. Instructions are neither cycles nor time of \
         the host, which also does the hypervisor's work for each exit of a guest, and the cost of \
         caches is not included: only the shape of both columns can be compared, not their size. \"{} \
         guests save\": instructions per second of {} guests together, compared with the highest HZ \
         of a cell.",
        guests.as_str(),
        guests.as_str(),
    )
}

/// The kind of tick: HZ, and the cell's name if its tick stops.
fn name(load: &IdleLoad) -> Text {
    match (&load.tickless, load.hz) {
        (Some(name), Some(hz)) => text!("{} {}", hz.get().to_string(), Text::name(name)),
        (Some(name), None) => Text::name(name),
        (None, hz) => number::any(hz.map(|hz| hz.get().to_string())),
    }
}

fn saved(saved: Saved) -> Text {
    let instructions = saved.instructions_hz;
    let size = number::rounded(instructions.abs(), number::short_count);
    if instructions < 0.0 { Text::number(format!("-{size}")) } else { size }
}

/// The line through the old figures.
fn old_line(line: &HzLine) -> Text {
    text!(
        "{} MHz + {} cycles per tick (the first four; {})",
        format!("{:.1}", line.base),
        number::rounded((line.per_tick * 1e6).round(), number::count),
        fit(line)
    )
}

/// The line through the cells.
fn line(line: &HzLine) -> Text {
    text!(
        "{} instructions/s + {} instructions per tick ({})",
        PerSecond::new(line.base),
        PerSecond::new(line.per_tick),
        fit(line)
    )
}

fn fit(line: &HzLine) -> Text {
    text!(
        "R² {}, largest deviation {}",
        format!("{:.5}", line.r_squared),
        line.deviation_ppm
    )
}

#[cfg(test)]
mod tests {
    use crate::terminal::full_text;
    use insta::assert_snapshot;
    use recording::{Cell, Ending};

    use super::*;
    use crate::example;
    use crate::example::cell::{cell, idle_cost};
    use crate::example::facts;

    /// An idle guest in two intervals of a second, with a tick of 1900 instructions.
    fn idle(name: &str, hz: u32, mode: &str, ticks: u64) -> Cell {
        let mut ending = idle_cost(2 * ticks, &[(1900, ticks)]);
        if let Ending::Done(answer) = &mut ending {
            let tick = format!(r#""tick": {{"hz": {hz}, "mode": "{mode}"}}"#);
            answer.recording.facts = facts(&tick);
        }
        cell(name, "6.1.192", ending)
    }

    /// Check the table with lines, a missing HZ, and a tick that stops; and that two values of HZ are
    /// no table.
    #[test]
    fn page() {
        let cells = [
            idle("nohz=off idle", 1000, "periodic", 1000),
            idle("nohz=off idle", 250, "periodic", 250),
            idle("nohz=off idle", 40, "periodic", 41),
            idle("nohz=on idle", 250, "idle", 9),
        ];
        let of = |cells| Cells { guests: 50, ..example::cells::page("idle-hz", cells) };
        assert!(tables(&of(&cells[..2])).is_empty());
        assert_snapshot!(full_text(&tables(&of(&cells))));
    }
}
