//! The load of idle guests by HZ: old figures beside those of cells, and the lines fitted to both.

use summary::{HzLine, IdleByHz, IdleLoad, Saved};
use units::PerSecond;

use crate::cells::Cells;
use crate::number;
use crate::text::cells::lines::section;
use crate::text::layout::fit::fitted;
use crate::text::layout::labels::cut_labels;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table};

/// The least and the most columns of a cell's name.
const NAMES: std::ops::RangeInclusive<usize> = 8..=30;

/// The limits of the comparison.
const LIMITS: &str = "\"old MHz\": load of the host's processor by one idle guest, read once on \
    one machine; the one at 40 Hz is the middle of 10 to 15. \"off\": deviation from the line below. \
    Instructions are neither cycles nor time of the host, which also does the hypervisor's work \
    for each exit of a guest, and the cost of caches is not included: only the shape of both \
    columns can be compared, not their size.";

/// The tables of all groups of cells; empty without one.
pub(crate) fn tables(cells: &Cells<'_>) -> String {
    let groups = IdleByHz::of_cells(cells.cells, cells.guests);
    groups.iter().map(table).collect()
}

fn table(group: &IdleByHz) -> String {
    let saves = format!("{} guests save", group.guests);
    let head = ["old MHz", "instructions/s", "ticks/s", "off", &saves];
    let right = head.map(|word| (word, Side::Right));
    let columns = [&[("HZ", Side::Left)], &right[..]].concat();
    let text = fitted(NAMES, |width| {
        let mut table = Table::new(2, &columns);
        let names = cut_labels(group.loads.iter().map(name), width);
        for (load, name) in group.loads.iter().zip(names) {
            table.row(std::iter::once(name).chain(fields(load)));
        }
        table.text()
    });
    let title =
        format!("Load of an idle guest by HZ ({} on {})", group.cell, group.version);
    let lines = [
        paragraph("  old figures  ", &old_line(&group.old_line)),
        paragraph("  these cells  ", &line(&group.line)),
    ];
    let words = format!(
        "{LIMITS} \"{saves}\": instructions per second of {} guests together, compared with the \
         highest HZ of a cell.",
        group.guests
    );
    section(&title, &format!("{text}\n{}", lines.concat()), &words)
}

/// The kind of tick: HZ, and the cell's name if its tick stops.
pub(crate) fn name(load: &IdleLoad) -> String {
    match (&load.tickless, load.hz) {
        (Some(name), Some(hz)) => format!("{} {name}", hz.get()),
        (Some(name), None) => name.clone(),
        (None, hz) => number::any(hz, |hz| hz.get().to_string()),
    }
}

fn fields(load: &IdleLoad) -> [String; 5] {
    [
        number::any(load.old_mhz, mhz),
        number::any(load.instructions_hz, number::bare_rate),
        number::any(load.timer_entries_hz, number::bare_rate),
        number::any(load.deviation_ppm, number::change),
        number::any(load.saved, saved),
    ]
}

fn saved(saved: Saved) -> String {
    let instructions = saved.instructions_hz;
    let size = number::rounded(instructions.abs(), number::short_count);
    if instructions < 0.0 { format!("-{size}") } else { size }
}

fn mhz(mhz: f64) -> String {
    number::metric(mhz)
}

/// The line through the old figures.
pub(crate) fn old_line(line: &HzLine) -> String {
    let cycles = number::rounded((line.per_tick * 1e6).round(), number::count);
    format!(
        "{:.1} MHz + {cycles} cycles per tick (the first four; {})",
        line.base,
        fit(line)
    )
}

/// The line through the cells.
pub(crate) fn line(line: &HzLine) -> String {
    format!(
        "{} instructions/s + {} instructions per tick ({})",
        number::bare_rate(PerSecond::new(line.base)),
        number::bare_rate(PerSecond::new(line.per_tick)),
        fit(line)
    )
}

fn fit(line: &HzLine) -> String {
    format!(
        "R² {:.5}, largest deviation {}",
        line.r_squared,
        number::share(line.deviation_ppm)
    )
}

/// The same as Markdown.
pub(crate) fn markdown(cells: &Cells<'_>) -> String {
    let groups = IdleByHz::of_cells(cells.cells, cells.guests);
    groups.iter().map(markdown_table).collect()
}

fn markdown_table(group: &IdleByHz) -> String {
    let row = |load: &IdleLoad| {
        let fields = std::iter::once(name(load)).chain(fields(load));
        format!("| {} |\n", fields.collect::<Vec<_>>().join(" | "))
    };
    format!(
        "\n## Load of an idle guest by HZ\n\n{} on {}\n\n\
         | HZ | old MHz | instructions/s | ticks/s | off the line | {} guests save |\n\
         |---|--:|--:|--:|--:|--:|\n{}\n- old figures: {}\n- these cells: {}\n\n{LIMITS}\n",
        group.cell,
        group.version,
        group.guests,
        group.loads.iter().map(row).collect::<String>(),
        old_line(&group.old_line),
        line(&group.line),
    )
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::{Cell, Ending};

    use super::*;
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
        let of = |cells| Cells {
            experiment: "idle-hz",
            about: "",
            cells,
            planned: 4,
            made_with: None,
            violations: None,
            guests: 50,
            series: &[],
        };
        assert_eq!(tables(&of(&cells[..2])), "");
        assert_snapshot!(tables(&of(&cells)), @r#"

    Load of an idle guest by HZ (nohz=off idle on 6.1.192)

      HZ                old MHz  instructions/s  ticks/s      off  50 guests save
      1000                   60       1,901,000     1000  +0.01 %               0
      500                    36               -        -        -               -
      250                     -         476,000      250  -0.19 %          71.3 M
      200                    25               -        -        -               -
      100                    20               -        -        -               -
      40                   12.5          78,900       41  +0.89 %          91.1 M
      250 nohz=on idle       70          18,100        9        -          94.1 M

      old figures  15.5 MHz + 43,980 cycles per tick (the first four; R² 0.99686,
                   largest deviation 3.87 %)
      these cells  2259 instructions/s + 1899 instructions per tick (R² 1.00000,
                   largest deviation 0.894 %)

    "old MHz": load of the host's processor by one idle guest, read once on one
    machine; the one at 40 Hz is the middle of 10 to 15. "off": deviation from the
    line below. Instructions are neither cycles nor time of the host, which also
    does the hypervisor's work for each exit of a guest, and the cost of caches is
    not included: only the shape of both columns can be compared, not their size.
    "50 guests save": instructions per second of 50 guests together, compared with
    the highest HZ of a cell.
    "#);
        assert_snapshot!(markdown(&of(&cells)), @r#"

    ## Load of an idle guest by HZ

    nohz=off idle on 6.1.192

    | HZ | old MHz | instructions/s | ticks/s | off the line | 50 guests save |
    |---|--:|--:|--:|--:|--:|
    | 1000 | 60 | 1,901,000 | 1000 | +0.01 % | 0 |
    | 500 | 36 | - | - | - | - |
    | 250 | - | 476,000 | 250 | -0.19 % | 71.3 M |
    | 200 | 25 | - | - | - | - |
    | 100 | 20 | - | - | - | - |
    | 40 | 12.5 | 78,900 | 41 | +0.89 % | 91.1 M |
    | 250 nohz=on idle | 70 | 18,100 | 9 | - | 94.1 M |

    - old figures: 15.5 MHz + 43,980 cycles per tick (the first four; R² 0.99686, largest deviation 3.87 %)
    - these cells: 2259 instructions/s + 1899 instructions per tick (R² 1.00000, largest deviation 0.894 %)

    "old MHz": load of the host's processor by one idle guest, read once on one machine; the one at 40 Hz is the middle of 10 to 15. "off": deviation from the line below. Instructions are neither cycles nor time of the host, which also does the hypervisor's work for each exit of a guest, and the cost of caches is not included: only the shape of both columns can be compared, not their size.
    "#);
    }
}
