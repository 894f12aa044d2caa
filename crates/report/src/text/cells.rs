//! The cells of an experiment as text: tables by kind of measurement, lost cells, doubts.
//!
//! Repeats of an exact cell with equal results are one line with their number (`×20`).

pub(crate) mod ablation;
pub(crate) mod calls;
pub(crate) mod grid;
pub(crate) mod idle_by_hz;
pub(crate) mod idle_stretches;
pub(crate) mod kernel_label;
pub(crate) mod legend;
pub(crate) mod lines;
pub(crate) mod made_with;
pub(crate) mod markdown;
pub(crate) mod nohz;
pub(crate) mod outputs;
pub(crate) mod programs;
pub(crate) mod sleepers;
pub(crate) mod slices;
pub(crate) mod tables;
pub(crate) mod tick_kinds;
pub(crate) mod traced;
pub(crate) mod trim;

use std::iter;

use recording::{Cell, Ending, Mode};
use summary::{CellSummary, TrimSeries};

use crate::cell_doubts::doubts_by_name;
use crate::cells::Cells;
use crate::text::cells::kernel_label::labels;
use crate::text::cells::legend::legend;
use crate::text::cells::lines::Line;
use crate::text::cells::lines::Row;
use crate::text::cells::made_with::made_with_text;
use crate::text::cells::sleepers::sleepers_table;
use crate::text::cells::tables::Tables;
use crate::text::cells::traced::{added_table, culprits_table};
use crate::text::layout::doubts;
use crate::text::layout::paragraph::paragraph;

/// The cells of an experiment, for the terminal.
pub fn cells_text(cells: &Cells<'_>) -> String {
    let (by_hz, trims) = (idle_by_hz::tables(cells), trim::sections(cells));
    let Cells { experiment, about, cells, planned, made_with, series, .. } = *cells;
    let labelled = cells.iter().zip(labels(cells));
    let named: Vec<LabelledCell<'_>> =
        labelled.map(|(cell, kernel)| LabelledCell { cell, kernel }).collect();
    let title = match about {
        "" => experiment.to_owned(),
        about => format!("{experiment}: {about}"),
    };
    let mut text = paragraph("", &title);
    text.push_str(&legend(&of_legend(&named, series)));
    text.extend(made_with.map(made_with_text));
    if trims.is_empty() {
        text.push_str(&tables(&named, &by_hz));
    }
    text.push_str(&trims);
    text.push_str(&units(&named));
    text.push_str(&lost_cells(&named));
    text.push_str(&incomplete(cells.len(), planned));
    let names: Vec<_> = named.iter().map(|named| (named.cell, named.full())).collect();
    text.push_str(&doubts::section(doubts_by_name(&names).into_iter()));
    text
}

/// The tables of all cells.
fn tables(named: &[LabelledCell<'_>], by_hz: &str) -> String {
    let rows = rows(named);
    let tables = Tables::of(&rows);
    let mut text = tables.text();
    text.push_str(by_hz);
    text.extend(sleepers_table(named));
    text.extend(added_table(named));
    text.extend(culprits_table(&tables.culprits));
    text
}

/// The cells of the legend: of a series only those of its base, as the names of the other kernels
/// are in its tables.
fn of_legend<'a>(
    named: &[LabelledCell<'a>],
    series: &[TrimSeries],
) -> Vec<LabelledCell<'a>> {
    let is_base = |named: &&LabelledCell<'_>| {
        series.is_empty() || series.iter().any(|series| series.base == named.cell.asked)
    };
    let own = |named: &LabelledCell<'a>| LabelledCell {
        cell: named.cell,
        kernel: named.kernel.clone(),
    };
    named.iter().filter(is_base).map(own).collect()
}

/// A cell with the label of its kernel.
pub(crate) struct LabelledCell<'a> {
    pub(crate) cell: &'a Cell,
    pub(crate) kernel: String,
}

impl LabelledCell<'_> {
    fn full(&self) -> String {
        let Cell { name, repeat, .. } = self.cell;
        let repeat = if *repeat > 1 { format!(" #{repeat}") } else { String::new() };
        format!("{name}{repeat} on {}", self.kernel)
    }

    pub(crate) fn line<const N: usize>(&self, fields: [String; N]) -> Line<'_, N> {
        let (kernel, cell) = (&self.kernel, &self.cell.name);
        Line { kernel, cell, repeats: String::new(), fields }
    }

    /// Lines of which only the first has the cell's name.
    pub(crate) fn lines<const N: usize>(
        &self,
        fields: impl Iterator<Item = [String; N]>,
    ) -> impl Iterator<Item = Line<'_, N>> {
        let names = iter::once(self.cell.name.as_str()).chain(iter::repeat(""));
        fields.zip(names).map(|(fields, cell)| Line { cell, ..self.line(fields) })
    }
}

/// The rows of the tables: equal repeats of an exact cell are one.
fn rows<'a>(cells: &'a [LabelledCell<'a>]) -> Vec<Row<'a>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for named in cells {
        let Some(summary) = CellSummary::of(named.cell) else { continue };
        let is_same = |row: &&mut Row<'_>| {
            is_repeat(named.cell, row.named.cell) && row.summary == summary
        };
        match rows.iter_mut().find(is_same) {
            Some(row) => row.times += 1,
            None => rows.push(Row { named, times: 1, summary }),
        }
    }
    rows
}

/// Whether the cell adds neither boot parameters nor settings.
pub(crate) fn is_unmodified(cell: &Cell) -> bool {
    cell.params.is_empty() && cell.settings.is_empty()
}

fn is_repeat(a: &Cell, b: &Cell) -> bool {
    let same = (&a.name, &a.kernel, &a.identity) == (&b.name, &b.kernel, &b.identity);
    same && [a.mode, b.mode] == [Mode::Exact; 2]
}

/// The units of the numbers: instructions, guest time or real time.
fn units(cells: &[LabelledCell<'_>]) -> String {
    let kind = |named: &LabelledCell<'_>| {
        let summary = CellSummary::of(named.cell)?;
        Some((named.cell.mode, !matches!(summary, CellSummary::Measured(_))))
    };
    let kinds: Vec<(Mode, bool)> = cells.iter().filter_map(kind).collect();
    let words = [
        (
            (Mode::Exact, true),
            "Instruction counts are exact: the same inputs give the same numbers on every \
             machine. Instructions are not time: the cost of caches, branch prediction and \
             memory is not included.",
        ),
        (
            (Mode::Exact, false),
            "Times of exact cells are guest time: an instruction takes 1 ns, and while all CPUs \
             are idle, time passes without instructions.",
        ),
        (
            (Mode::Timed, false),
            "Times of timed cells are real time: they vary from run to run and from machine to \
             machine.",
        ),
    ];
    let words = words.iter().filter(|(kind, _)| kinds.contains(kind));
    words.map(|(_, words)| format!("\n{}", paragraph("", words))).collect()
}

/// The reasons why cells were lost. The path of a console is on a line of its own and is not
/// wrapped, so that it can be copied.
fn lost_cells(cells: &[LabelledCell<'_>]) -> String {
    let mut text = String::new();
    for named in cells {
        if let Ending::Lost { why, console } = &named.cell.ending {
            text.push_str(&paragraph("  - ", &format!("{}: {why}", named.full())));
            if !console.as_os_str().is_empty() {
                text.push_str(&format!("    console: {}\n", console.display()));
            }
        }
    }
    if text.is_empty() { text } else { format!("\nLost cells\n{text}") }
}

/// The note that the run was ended early, and how to continue.
fn incomplete(done: usize, planned: usize) -> String {
    if done >= planned {
        return String::new();
    }
    let are = if done == 1 { "is" } else { "are" };
    let words = format!(
        "Ended early: {done} of {planned} cells {are} done. Results are cached; run the same \
         command again to continue."
    );
    format!("\n{}", paragraph("", &words))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;
    use recording::Call;

    use super::*;
    use crate::example;
    use crate::example::cell::{
        NEW, OLD, call_costs, cell, done, idle_cost, lost, tick_cost,
    };
    use crate::example::cells::{call_cells, tick_cells, timed_cells};
    use crate::text::layout::table::columns;

    fn page(experiment: &str, about: &str, cells: &[Cell]) -> String {
        let planned = cells.len();
        cells_text(&Cells {
            experiment,
            about,
            cells,
            planned,
            made_with: None,
            violations: None,
            guests: 100,
            series: &[],
        })
    }

    /// Check the report of ticks: exact, idle and lost cells on two kernels.
    #[test]
    fn tick_page() {
        let about = "the cost of a tick for a program, and on an idle CPU";
        assert_snapshot!(page("tick-cost", about, &tick_cells()), @r#"
    tick-cost: the cost of a tick for a program, and on an idle CPU

    Kernels
      6.1.0     6.1.0-56-cloud-amd64 (6.1.192-2)
      6.12.117  6.12.117+deb12-cloud-amd64 (6.12.117-1~bpo12+1)

    Machine   pc, 1 CPU of qemu64,-rdrand, 256 MiB

    Cells    6.1.0         6.12.117
      other  a92bd5254f6f  cd3ccd45c5cd  noise on CPU 0 for 1 s
      fifo   06a4b5133d70  -             noise on CPU 0 for 1 s; with
                                         kernel.sched_rt_runtime_us=-1
      idle   93eb31f34b18  -             ticks on CPU 0 for 2 s; booted with nohz=on
      fifo   -             -             noise on CPU 0 for 1 s

    Cost of a tick, in instructions

      kernel    cell    gap  in kernel  mean  ±  ticks     max
      6.1.0     other  2584       2571  2572  -    250  10,911
      6.1.0     fifo   2345       2332  2332  -    250    2999
      6.1.0     idle      -       1920  1991  0     16    2204
      6.12.117  other  2812       2799  2799  -    250    2812

    "gap": median gap in the guest's busy loop, one pass of the loop included. "in
    kernel": median number of kernel instructions from the timer interrupt to its
    return; "mean": their mean; "±": largest difference between the mean of a single
    phase of the measurement and that mean; "max": the longest gap, or on idle CPUs
    the most expensive tick.

    Instructions of idle CPUs

      kernel  cell  CPU  instructions/s  ticks/s  counted/s  one tick
      6.1.0   idle    0          16,928        9          8      1920

    "ticks/s": timer interrupts in /proc/interrupts; "counted/s": the same, counted
    by the lab. "one tick": median number of kernel instructions of a tick.

    Instruction counts are exact: the same inputs give the same numbers on every
    machine. Instructions are not time: the cost of caches, branch prediction and
    memory is not included.

    Lost cells
      - fifo on 6.12.117: the kernel panicked: VFS: Unable to mount root fs on
        unknown-block(0,0)
        console: /home/me/.cache/noisefloor/lost/5e1f0c.console
    "#);
    }

    /// Check that there is a table with a column for each call for each kernel, and that a
    /// number is marked only if fewer than 90 % of the repeats have it.
    #[test]
    fn call_page() {
        assert_snapshot!(page("syscalls", "", &call_cells()), @r#"
    syscalls

    Kernels
      6.1.0     6.1.0-56-cloud-amd64 (6.1.192-2)
      6.12.117  6.12.117+deb12-cloud-amd64 (6.12.117-1~bpo12+1)

    Machine   pc, 1 CPU of qemu64,-rdrand, 256 MiB
    Workload  every call 200 times on CPU 1

    Cells                     6.1.0         6.12.117
      calls                   68299f65d6f1  22f20268a82e  unmodified kernel
      mitigations=auto calls  2b47504603d3  8183264b2c8e  booted with
                                                          mitigations=auto
      nohz_full=1 calls       342f41d48831  126fc96c2bc8  booted with nohz_full=1
                                                          isolcpus=1 rcu_nocbs=1

    Cost of requests to the kernel, in instructions

      6.1.0                      clock_                        page_
      cell              getpid  gettime   futex  pipe  switch  fault    fork   timer
      (unmodified)         412      633  11,873  5210    4101  1988*  88,120  13,954
      mitigations=auto     412      633  11,873  5210    4101  1988*  88,120  13,954
      nohz_full=1          412      633  11,873  5210    4101  1988*  88,120  13,954

      6.12.117                   clock_                        page_
      cell              getpid  gettime   futex  pipe  switch  fault    fork   timer
      (unmodified)         782     1003  12,243  5580    4471   2358  88,490  14,324
      mitigations=auto     782     1003  12,243  5580    4471   2358  88,490  14,324
      nohz_full=1          782     1003  12,243  5580    4471   2358  88,490  14,324

    Median number of instructions from the start of one repeat to the start of the
    next, in the program and the kernel. "*": fewer than 90 % of the repeats
    executed exactly that number.

    Instruction counts are exact: the same inputs give the same numbers on every
    machine. Instructions are not time: the cost of caches, branch prediction and
    memory is not included.
    "#);
    }

    /// Check that there is a column for each kernel if each has one cell.
    #[test]
    fn calls_by_request() {
        let cells = [call_cells()[0].clone(), call_cells()[4].clone()];
        let text = page("syscalls", "", &cells);
        let table = text.split("\n\n").nth(5).unwrap();
        assert_snapshot!(table, @r#"
                     6.1.0                6.12.117
    request          calls  mitigations=auto calls
    getpid            412                      782
    clock_gettime     633                     1003
    futex          11,873                   12,243
    pipe             5210                     5580
    switch           4101                     4471
    page_fault       1988*                    2358
    fork           88,120                   88,490
    timer          13,954                   14,324
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
    kernel, cell                            gap  in kernel  mean  ±  ticks     max
    6.1.0
      nohz=off highres=off mitigations=o…  2345       2332  2332  -    250  47.8 G
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
        assert_snapshot!(page("builds", "", &cells), @r#"
    builds

    Kernels
      old/bzImage  ./old/bzImage: 6.1.9
      new/bzImage  ./new/bzImage: 6.1.9

    Workload  noise on CPU 0 for 1 s

    Cells
      other  on pc, 1 CPU of qemu64,-rdrand, 256 MiB
      other  on microvm, 2 CPUs of max, 256 MiB

    Lost cells
      - other on old/bzImage: the kernel panicked: VFS: Unable to mount root fs on
        unknown-block(0,0)
        console: /home/me/.cache/noisefloor/lost/5e1f0c.console
      - other on new/bzImage: the kernel panicked: VFS: Unable to mount root fs on
        unknown-block(0,0)
        console: /home/me/.cache/noisefloor/lost/5e1f0c.console
    "#);
    }

    /// Check that the note about a run that was ended early precedes the doubts.
    #[test]
    fn early() {
        let mut cells = timed_cells();
        let render = |cells: &[Cell], planned| {
            let (experiment, about, violations) = ("mine", "", None);
            cells_text(&Cells {
                experiment,
                about,
                cells,
                planned,
                made_with: None,
                violations,
                guests: 100,
                series: &[],
            })
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
        assert_snapshot!(page("mine.toml", "my own.", &timed_cells()), @r#"
    mine.toml: my own.

    Kernels
      6.1.0  6.1.0-56-cloud-amd64 (6.1.192-2)

    Machine   pc, 1 CPU of qemu64,-rdrand, 256 MiB

    Cells
      noise  noise on CPU 0
      ticks  ticks on CPU 0
      calls  calls on CPU 0

    OS noise of busy CPUs

      kernel  cell   CPU    noise  gaps/s   median  longest
      6.1.0   noise    0  0.111 %     250  4.45 µs   5.8 µs
      6.1.0   noise    1  0.200 %     250  4.51 µs  1.70 ms

    "noise": share of time in which the busy loop did not run; "median", "longest":
    of the gaps.

    Timer interrupts on idle CPUs

      kernel  cell   CPU  ticks/s  busy  host
      6.1.0   ticks    0     11.5   1 %     -

    "ticks/s": timer interrupts in /proc/interrupts; "busy": time not idle; "host":
    CPU time of the guest's process on the host, as a share of one CPU, while the
    agent prepared and measured.

    Duration of requests to the kernel

                       6.1.0
      request          calls
      getpid           73 ns
      clock_gettime   140 ns
      futex           2.9 µs
      pipe            3.4 µs
      switch          810 ns
      page_fault      690 ns
      fork             61 µs
      timer          1.95 µs

    Median time from the start of one repeat to the start of the next.

    Times of timed cells are real time: they vary from run to run and from machine
    to machine.

    Doubts (reasons not to trust a number)
      - noise on 6.1.0: the kernel reported: rcu: INFO: rcu_sched detected stalls
    "#);
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
        assert_snapshot!(page("again", "", &cells), @r#"
    again

    Kernels
      6.1.0  6.1.0-56-cloud-amd64 (6.1.192-2)

    Machine   pc, 1 CPU of qemu64,-rdrand, 256 MiB
    Workload  noise on CPU 0 for 1 s

    Cells   6.1.0
      idle  93eb31f34b18  unmodified kernel

    Instructions of idle CPUs

      kernel  cell     CPU  instructions/s  ticks/s  counted/s  one tick
      6.1.0   idle ×3    0          20,200       10         10      1920
      6.1.0   idle #3    0          20,200       45         10      1920

    "ticks/s": timer interrupts in /proc/interrupts; "counted/s": the same, counted
    by the lab. "one tick": median number of kernel instructions of a tick.

    Instruction counts are exact: the same inputs give the same numbers on every
    machine. Instructions are not time: the cost of caches, branch prediction and
    memory is not included.

    Doubts (reasons not to trust a number)
      - idle #3 on 6.1.0: CPU 0: 90 timer interrupts in /proc/interrupts, but 20
        counted by the lab
    "#);
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
