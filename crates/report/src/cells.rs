//! The cells of an experiment: tables by kind of measurement, lost cells, doubts.
//!
//! Repeats of an exact cell with equal results are one line with their number (`×20`).

pub(crate) mod ablation;
pub(crate) mod beside;
pub(crate) mod doubts;
pub(crate) mod idle_by_hz;
pub(crate) mod kinds;
pub(crate) mod labelled;
pub(crate) mod legend;
pub(crate) mod made_with;
pub(crate) mod measured;
pub(crate) mod metrics;
pub(crate) mod nohz;
pub(crate) mod outputs;
pub(crate) mod programs;
pub(crate) mod table;
pub(crate) mod ticks;
pub(crate) mod traced;
pub(crate) mod trim;
pub(crate) mod variations;

use recording::{Cell, Ending, Mode};
use summary::{CellSummary, TrimSeries};

use crate::cells::doubts::doubts_by_name;
use crate::cells::kinds::sections;
use crate::cells::labelled::{Cells, LabelledCell};
use crate::cells::legend::legend;
use crate::cells::made_with::made_with;
use crate::cells::table::rows;
use crate::cells::variations::variations;
use crate::document::Document;
use crate::document::list::{Item, List};
use crate::document::text::{Text, text};
use crate::kernel_label::labels;

/// The cells of an experiment.
pub fn cells_document(cells: &Cells<'_>) -> Document {
    let all = cells.cells;
    let named = all.iter().zip(labels(all));
    let named = named.enumerate().map(|(place, (cell, kernel))| LabelledCell {
        cell,
        kernel,
        all,
        beside: cells.beside.get(place),
    });
    let named: Vec<LabelledCell<'_>> = named.collect();
    let title = match cells.about {
        "" => Text::from(cells.experiment),
        about => text!("{}: {}", cells.experiment, about),
    };
    let trims = trim::sections(cells);
    let sections = match trims.is_empty() {
        true => sections(&rows(&named)).add(idle_by_hz::tables(cells)),
        false => trims,
    };
    let names: Vec<_> = named.iter().map(|named| (named.cell, named.full())).collect();
    Document::from(title)
        .add(legend(&of_legend(&named, cells.series)))
        .add_full(cells.made_with.map(made_with))
        .add(sections)
        .add(beside::remarks(&named))
        .add(variations(&named))
        .add_full(units(&named))
        .add(end(cells, &names, true))
        .titled(format!("noisefloor lab, {}", cells.experiment))
}

/// The cells of the legend: of a series only those of its base, as the names of the other kernels
/// are in its tables.
fn of_legend<'a, 'b>(
    named: &'b [LabelledCell<'a>],
    series: &[TrimSeries],
) -> Vec<&'b LabelledCell<'a>> {
    let is_base = |named: &&LabelledCell<'_>| {
        series.is_empty() || series.iter().any(|series| series.base == named.cell.asked)
    };
    named.iter().filter(is_base).collect()
}

/// What numbers are, by the mode of their cell and whether they are counts.
const UNITS: [((Mode, bool), &str); 3] = [
    (
        (Mode::Exact, true),
        "Instruction counts are exact: the same inputs give the same numbers on every machine. \
         Instructions are not time: the cost of caches, branch prediction and memory is not \
         included.",
    ),
    (
        (Mode::Exact, false),
        "Times of exact cells are guest time: an instruction takes 1 ns, and while all CPUs are \
         idle, time passes without instructions.",
    ),
    (
        (Mode::Timed, false),
        "Times of timed cells are real time: they vary from run to run and from machine to machine.",
    ),
];

/// The units of the numbers: instructions, guest time or real time.
fn units(cells: &[LabelledCell<'_>]) -> Document {
    let kind = |named: &LabelledCell<'_>| {
        let summary = CellSummary::of(named.cell)?;
        Some((named.cell.mode, !matches!(summary, CellSummary::Measured(_))))
    };
    let kinds: Vec<(Mode, bool)> = cells.iter().filter_map(kind).collect();
    let words = UNITS.iter().filter(|(kind, _)| kinds.contains(kind));
    Document::default().add_all(words.map(|(_, words)| *words))
}

/// The end of a report: lost cells, whether it is complete, and doubts. The path of a console is on a
/// line of its own, so that it can be copied.
pub(crate) fn end(
    cells: &Cells<'_>,
    names: &[(&Cell, String)],
    with_consoles: bool,
) -> Document {
    let lost = |(cell, name): &(&Cell, String)| {
        let Ending::Lost { why, console } = &cell.ending else { return None };
        let is_shown = with_consoles && !console.as_os_str().is_empty();
        let console = is_shown.then(|| format!("console: {}", console.display()));
        let item = Item::new(text!("{}: {}", name.as_str(), why.as_str()));
        Some(Item { verbatim: console, ..item })
    };
    let lost = List::bullets(names.iter().filter_map(lost));
    let (done, planned) = (cells.cells.len(), cells.planned);
    let early = (done < planned).then(|| {
        text!(
            "Ended early: {} of {} cells {} done. Results are cached; run the same command again to \
             continue.",
            done,
            planned,
            if done == 1 { "is" } else { "are" },
        )
    });
    Document::section("Lost cells", lost)
        .add(early)
        .reasons(doubts_by_name(names).into_iter().map(Text::from))
}

#[cfg(test)]
mod tests {
    use crate::fitting::columns::columns;
    use crate::terminal::{full_text, screen_text};
    use insta::assert_snapshot;
    use proptest::prelude::*;
    use recording::Call;

    use super::*;
    use crate::example;
    use crate::example::cell::{
        NEW, OLD, call_costs, cell, done, idle_cost, lost, tick_cost,
    };
    use crate::example::cells::{call_cells, tick_cells, timed_cells};

    fn page(experiment: &str, about: &str, cells: &[Cell]) -> String {
        full_text(&cells_document(&Cells {
            about,
            ..example::cells::page(experiment, cells)
        }))
    }

    /// Check the report of ticks: exact, idle and lost cells on two kernels.
    #[test]
    fn tick_page() {
        let about = "the cost of a tick for a program, and on an idle CPU";
        assert_snapshot!(page("tick-cost", about, &tick_cells()));
    }

    /// Check that there is a table with a column for each call for each kernel, and that a
    /// number is marked only if fewer than 90 % of the repeats have it.
    #[test]
    fn call_page() {
        assert_snapshot!(page("syscalls", "", &call_cells()));
    }

    /// Check the same if each kernel has one cell.
    #[test]
    fn calls_of_two_kernels() {
        let cells = [call_cells()[0].clone(), call_cells()[4].clone()];
        let text = page("syscalls", "", &cells);
        let table = text.split("in instructions\n\n").nth(1).unwrap();
        let table = table.split("\n\n").next().unwrap();
        assert_snapshot!(table, @r#"
                               clock_                    page_
    kernel, cell       getpid gettime  futex pipe switch fault   fork  timer
    6.1.0
      (unmodified)        412     633 11,873 5210   4101 1988* 88,120 13,954
    6.12.117
      mitigations=auto    782    1003 12,243 5580   4471 2358  88,490 14,324
    "#);
    }

    /// Check that names of cells are cut only if abbreviated numbers and kernels on lines of
    /// their own do not make enough space.
    #[test]
    fn names_are_whole() {
        let gaps = [vec![2345; 249], vec![47_751_804_123]].concat();
        let table = |name: &str, kernels: &[&str]| {
            let ending = || tick_cost(&gaps, &[(2332, 250)]);
            let cells: Vec<Cell> =
                kernels.iter().map(|kernel| cell(name, kernel, ending())).collect();
            let text = page("tick-cost", "", &cells);
            let table = text.split("in instructions\n\n").nth(1).unwrap();
            table.split("\n\n").next().unwrap().to_owned()
        };
        assert_snapshot!(table("nohz=off highres=off idle", &[OLD, NEW]), @r"
    kernel    cell                        gap  in kernel  mean  ±  ticks     max
    6.1.0     nohz=off highres=off idle  2345       2332  2332  -    250  47.8 G
    6.12.117  nohz=off highres=off idle  2345       2332  2332  -    250  47.8 G
    ");
        assert_snapshot!(table("nohz=off highres=off the-workload", &[OLD, NEW]), @r"
    kernel, cell                          gap  in kernel  mean  ±  ticks     max
    6.1.0
      nohz=off highres=off the-workload  2345       2332  2332  -    250  47.8 G
    6.12.117
      nohz=off highres=off the-workload  2345       2332  2332  -    250  47.8 G
    ");
        let long = "nohz=off highres=off mitigations=off the-workload";
        assert_snapshot!(table(long, &[OLD]), @r"
    kernel, cell                             gap  in kernel  mean  ±  ticks     max
    6.1.0
      nohz=off highres=off mitigations=of…  2345       2332  2332  -    250  47.8 G
    ");
    }

    /// Check that machines are listed by cell if they differ, and that two builds of one
    /// release are distinguished by their paths.
    #[test]
    fn legend_of_differences() {
        let mut cells = [(); 2].map(|()| cell("other", "6.1.9", lost()));
        for (cell, asked) in cells.iter_mut().zip(["./old/bzImage", "./new/bzImage"]) {
            cell.asked = asked.to_owned();
        }
        cells[1].machine = "microvm, 2 CPUs of max, 256 MiB".to_owned();
        assert_snapshot!(page("builds", "", &cells));
    }

    /// Check that one screen has the numbers and what failed, and full names of kernels only if their
    /// labels do not say which is which.
    #[test]
    fn one_screen() {
        let mut cells = tick_cells();
        let screen = |cells: &[Cell]| {
            let page = cells_document(&example::cells::page("tick-cost", cells));
            screen_text(&page)
        };
        assert_snapshot!(screen(&cells));
        for (end, cell) in ["a", "b", "a", "b", "a"].iter().zip(&mut cells) {
            cell.kernel = format!("6.1.0-with-a-name-too-long-to-print-{end}");
        }
        assert!(screen(&cells).contains("Kernels\n kernel 1  6.1.0-with-a-name"));
    }

    /// Check that the note about a run that was ended early precedes the doubts.
    #[test]
    fn early() {
        let mut cells = timed_cells();
        let render = |cells: &[Cell], planned| {
            full_text(&cells_document(&Cells {
                planned,
                ..example::cells::page("mine", cells)
            }))
        };
        let words = "\nEnded early: 3 of 6 cells are done. Results are cached; run the same \
                     command\nagain to continue.\n\nDoubts (";
        assert!(render(&cells, 6).contains(words), "{}", render(&cells, 6));
        assert!(!render(&cells, 3).contains("Ended early"));
        cells.truncate(1);
        assert!(render(&cells, 2).contains("\nEnded early: 1 of 2 cells is done. "));
    }

    /// Check the report of timed cells, and that each doubt names its cells.
    #[test]
    fn timed_page() {
        assert_snapshot!(page("mine.toml", "my own.", &timed_cells()));
    }

    /// Check that equal repeats are one line and a different one is another, and that two
    /// contradicting counts are a doubt.
    #[test]
    fn repeats() {
        let mut cells = vec![cell("idle", OLD, idle_cost(20, &[(1920, 10)])); 4];
        cells[2].ending = idle_cost(90, &[(1920, 10)]);
        for (repeat, cell) in (1..).zip(&mut cells) {
            cell.repeat = repeat;
        }
        assert_snapshot!(page("again", "", &cells));
    }

    /// Check the units of cells that were not counted, and that a lost cell has none.
    #[test]
    fn uncounted() {
        let units = |mode, counts| {
            let done = done(example::calls(example::MUTE), counts);
            let cells =
                [Cell { mode, ..cell("calls", OLD, done) }, cell("lost", OLD, lost())];
            let text = page("calls", "", &cells);
            ["are exact", "are guest time", "real time"].map(|words| text.contains(words))
        };
        assert_eq!(units(Mode::Exact, None), [false, true, false]);
        assert_eq!(units(Mode::Timed, None), [false, false, true]);
    }

    /// Check the reports of an experiment without cells, and with lost cells only.
    #[test]
    fn nothing() {
        assert_eq!(page("empty", "", &[]), "empty\n");
        let text = page("all-lost", "", &[cell("fifo", NEW, lost())]);
        assert!(
            text.contains("\nLost cells\n  - fifo on 6.12.117: the kernel"),
            "{text}"
        );
    }

    fn check_width(text: &str) {
        for line in text.lines() {
            assert!(columns(line) <= 80, "{line}");
            assert_eq!(line.trim_end(), line);
        }
    }

    proptest! {
        /// Check that no line is wider than 80 columns for any names of cells and kernels and
        /// for large numbers.
        #[test]
        fn fits_the_terminal(
            names in prop::collection::vec("[a-z ,=/#-]{1,60}", 8),
            kernels in prop::collection::vec("[0-9a-z.+/ ()-]{1,90}", 1..5),
            scale in 1u64..1_000,
        ) {
            let mut cells = [tick_cells(), call_cells(), timed_cells()].concat();
            let big = tick_cost(&[2584 * scale; 3], &[(2571 * scale, 3)]);
            cells.push(cell("big", OLD, big));
            cells.push(cell("big", NEW, call_costs(&[(Call::Fork, &[(u64::MAX, 9)])])));
            for (at, cell) in cells.iter_mut().enumerate() {
                cell.name.clone_from(&names[at % names.len()]);
                cell.kernel.clone_from(&kernels[at % kernels.len()]);
            }
            check_width(&page("an experiment", "about something", &cells));
        }
    }
}
