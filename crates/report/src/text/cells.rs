//! All cells of an experiment as text: tables by what was measured, then what was lost.
//!
//! Exact repeats that found the same are one line that says how many they are.

pub(crate) mod calls;
pub(crate) mod kernel_label;
pub(crate) mod legend;
pub(crate) mod made_with;
pub(crate) mod markdown;
pub(crate) mod nohz;
pub(crate) mod sleepers;
pub(crate) mod slices;
pub(crate) mod tables;
pub(crate) mod tick_kinds;
pub(crate) mod traced;

use recording::{Cell, Doubt, Ending, Mode};
use stats::CellSummary;

use crate::cell_doubts::cell_doubts;
use crate::cells::Cells;
use crate::text::cells::kernel_label::labels;
use crate::text::cells::legend::legend;
use crate::text::cells::made_with::made_with as made_with_line;
use crate::text::cells::sleepers::sleepers_table;
use crate::text::cells::tables::{Row, tables};
use crate::text::cells::traced::{added_table, culprits_table};
use crate::text::layout::doubts;
use crate::text::layout::paragraph::paragraph;

/// An experiment's cells, for the terminal.
pub fn cells_text(cells: &Cells<'_>) -> String {
    let Cells { experiment, about, cells, planned, made_with, .. } = *cells;
    let named: Vec<Named<'_>> = cells
        .iter()
        .zip(labels(cells))
        .map(|(cell, kernel)| Named { cell, kernel })
        .collect();
    let title = match about {
        "" => experiment.to_owned(),
        about => format!("{experiment}: {about}"),
    };
    let mut text = paragraph("", &title);
    text.push_str(&legend(&named));
    text.extend(made_with.map(made_with_line));
    let rows = rows(&named);
    text.push_str(&tables(&rows));
    text.extend(sleepers_table(&named));
    text.extend(added_table(&named));
    text.extend(culprits_table(&rows));
    text.push_str(&units(&named));
    text.push_str(&lost(&named));
    text.push_str(&early(cells.len(), planned));
    text.push_str(&doubts(&named));
    text
}

/// A cell, and the label of its kernel.
pub(crate) struct Named<'a> {
    pub(crate) cell: &'a Cell,
    pub(crate) kernel: String,
}

impl Named<'_> {
    fn full(&self) -> String {
        let Cell { name, repeat, .. } = self.cell;
        let repeat = if *repeat > 1 { format!(" #{repeat}") } else { String::new() };
        format!("{name}{repeat} on {}", self.kernel)
    }
}

/// Lines for the tables: equal repeats of an exact cell are one.
fn rows(cells: &[Named<'_>]) -> Vec<Row> {
    let mut groups: Vec<(&Named<'_>, CellSummary, u64)> = Vec::new();
    for named in cells {
        let Some(summary) = CellSummary::of(named.cell) else { continue };
        let is_same = |(other, found, _): &&mut (&Named<'_>, CellSummary, u64)| {
            is_repeat(named.cell, other.cell) && *found == summary
        };
        match groups.iter_mut().find(is_same) {
            Some((_, _, times)) => *times += 1,
            None => groups.push((named, summary, 1)),
        }
    }
    let row = |(named, summary, times): (&Named<'_>, CellSummary, u64)| {
        let repeats = match (times, named.cell.repeat) {
            (1, 0 | 1) => String::new(),
            (1, repeat) => format!(" #{repeat}"),
            _ => format!(" ×{times}"),
        };
        let (kernel, name) = (named.kernel.clone(), named.cell.name.clone());
        let as_it_comes = is_as_it_comes(named.cell);
        let is_watched = named.cell.watch.is_some();
        Row { kernel, name, repeats, as_it_comes, is_watched, summary }
    };
    groups.into_iter().map(row).collect()
}

/// Whether nothing was changed in how the kernel boots and is set.
pub(crate) fn is_as_it_comes(cell: &Cell) -> bool {
    cell.params.is_empty() && cell.settings.is_empty()
}

fn is_repeat(a: &Cell, b: &Cell) -> bool {
    let same = (&a.name, &a.kernel, &a.identity) == (&b.name, &b.kernel, &b.identity);
    same && [a.mode, b.mode] == [Mode::Exact; 2]
}

/// What the numbers are: work or time.
fn units(cells: &[Named<'_>]) -> String {
    let kind = |named: &Named<'_>| {
        Some((named.cell.mode, is_work(&CellSummary::of(named.cell)?)))
    };
    let kinds: Vec<(Mode, bool)> = cells.iter().filter_map(kind).collect();
    let words = [
        (
            (Mode::Exact, true),
            "These are instructions, counted to the last one: the same inputs give the same \
             numbers on every machine. Instructions are not time: what caches, branch \
             prediction and memory cost is not in them.",
        ),
        (
            (Mode::Exact, false),
            "Where exact cells tell lengths of time, their instructions were not counted: it is \
             the guest's time, in which an instruction takes 1 ns and idling no work at all.",
        ),
        (
            (Mode::Timed, false),
            "Where timed cells tell lengths of time, the guest ran in real time: they vary from \
             run to run and from machine to machine.",
        ),
    ];
    let words = words.iter().filter(|(kind, _)| kinds.contains(kind));
    words.map(|(_, words)| format!("\n{}", paragraph("", words))).collect()
}

/// Whether a summary tells instructions rather than time.
fn is_work(summary: &CellSummary) -> bool {
    use CellSummary::{CallCosts, IdleCost, NohzCost, SlicesCost, TickCost};
    let work = matches!(summary, TickCost(_) | IdleCost(_) | CallCosts(_));
    work || matches!(summary, NohzCost(_) | SlicesCost(_))
}

/// Why cells were lost; where their consoles are stands in lines of its own, unbroken,
/// to be copied.
fn lost(cells: &[Named<'_>]) -> String {
    let mut text = String::new();
    for named in cells {
        if let Ending::Lost { why, console } = &named.cell.ending {
            text.push_str(&paragraph("  - ", &format!("{}: {why}", named.full())));
            if !console.as_os_str().is_empty() {
                text.push_str(&format!("    its console: {}\n", console.display()));
            }
        }
    }
    if text.is_empty() { text } else { format!("\nLost cells\n{text}") }
}

/// That somebody ended it, and how to go on.
fn early(done: usize, planned: usize) -> String {
    if done >= planned {
        return String::new();
    }
    let are = if done == 1 { "is" } else { "are" };
    let words = format!(
        "Ended early: {done} of {planned} cells {are} done. What is done is kept; the same \
         command goes on from there."
    );
    format!("\n{}", paragraph("", &words))
}

/// Each doubt once, with the cells that have it.
fn doubts(cells: &[Named<'_>]) -> String {
    let mut reasons: Vec<(Doubt, Vec<String>)> = Vec::new();
    for named in cells {
        for doubt in cell_doubts(named.cell) {
            match reasons.iter_mut().find(|(other, _)| *other == doubt) {
                Some((_, names)) => names.push(named.full()),
                None => reasons.push((doubt, vec![named.full()])),
            }
        }
    }
    let line = |(doubt, names): &(Doubt, Vec<String>)| {
        let who = if names.len() == cells.len() && names.len() > 1 {
            "all cells".to_owned()
        } else {
            names.join(", ")
        };
        format!("{who}: {doubt}")
    };
    doubts::section(reasons.iter().map(line))
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
            breaches: None,
        })
    }

    /// Check the page of ticks: exact, idle, and lost cells, and two kernels.
    #[test]
    fn tick_page() {
        let about = "what one tick costs a program, and what it costs an idle CPU";
        assert_snapshot!(page("tick-cost", about, &tick_cells()), @r#"
    tick-cost: what one tick costs a program, and what it costs an idle CPU

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

    What one tick costs, in instructions

      kernel    cell    gap  in kernel  mean  ±  ticks    most
      6.1.0     other  2584       2571  2572  -    250  10,911
      6.1.0     fifo   2345       2332  2332  -    250    2999
      6.1.0     idle      -       1920  1991  0     16    2204
      6.12.117  other  2812       2799  2799  -    250    2812

    "gap": the median stretch in which the guest's loop did not run, a pass of the
    loop included. "in kernel": the median number of kernel instructions from the
    timer's interruption to its return. "mean": of the same; "±": by how much a
    single phase of the measurement is off the mean at most; "most": the longest
    gap, or else the most expensive tick.

    What idle CPUs still execute

      kernel  cell  CPU  instructions/s  ticks/s  counted/s  one tick
      6.1.0   idle    0          16,928        9          8      1920

    "ticks/s": timer interrupts by /proc/interrupts; "counted/s": the same by the
    lab's counter. "one tick": the median number of kernel instructions of one.

    These are instructions, counted to the last one: the same inputs give the same
    numbers on every machine. Instructions are not time: what caches, branch
    prediction and memory cost is not in them.

    Lost cells
      - fifo on 6.12.117: the kernel panicked: VFS: Unable to mount root fs on
        unknown-block(0,0)
        its console: /home/me/.cache/noisefloor/lost/5e1f0c.console
    "#);
    }

    /// Check that calls stand side by side, a table for each kernel, and that a number
    /// is marked only where it is not that of nearly all repeats.
    #[test]
    fn call_page() {
        assert_snapshot!(page("syscalls", "", &call_cells()), @r"
    syscalls

    Kernels
      6.1.0     6.1.0-56-cloud-amd64 (6.1.192-2)
      6.12.117  6.12.117+deb12-cloud-amd64 (6.12.117-1~bpo12+1)

    Machine   pc, 1 CPU of qemu64,-rdrand, 256 MiB
    Workload  every call 200 times on CPU 1

    Cells                     6.1.0         6.12.117
      calls                   68299f65d6f1  22f20268a82e  the kernel as it comes
      mitigations=auto calls  2b47504603d3  8183264b2c8e  booted with
                                                          mitigations=auto
      nohz_full=1 calls       342f41d48831  126fc96c2bc8  booted with nohz_full=1
                                                          isolcpus=1 rcu_nocbs=1

    What requests to the kernel cost, in instructions

      6.1.0                      clock_                        page_
      cell              getpid  gettime   futex  pipe  switch  fault    fork   timer
      (as it comes)        412      633  11,873  5210    4101  1988*  88,120  13,954
      mitigations=auto     412      633  11,873  5210    4101  1988*  88,120  13,954
      nohz_full=1          412      633  11,873  5210    4101  1988*  88,120  13,954

      6.12.117                   clock_                        page_
      cell              getpid  gettime   futex  pipe  switch  fault    fork   timer
      (as it comes)        782     1003  12,243  5580    4471   2358  88,490  14,324
      mitigations=auto     782     1003  12,243  5580    4471   2358  88,490  14,324
      nohz_full=1          782     1003  12,243  5580    4471   2358  88,490  14,324

    The median number from one repeat's start to the next one's, the program's own
    instructions and the kernel's. An asterisk: fewer than 90 % of the repeats took
    just that number.

    These are instructions, counted to the last one: the same inputs give the same
    numbers on every machine. Instructions are not time: what caches, branch
    prediction and memory cost is not in them.
    ");
    }

    /// Check that kernels stand side by side where each has one cell.
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

    /// Check that cells' names are whole where numbers can be shorter or kernels can have
    /// lines of their own, and cut only beyond that.
    #[test]
    fn names_are_whole() {
        let gaps = [vec![2345; 249], vec![47_751_804_123]].concat();
        let told = |name: &str, kernels: &[&str]| {
            let ending = || tick_cost(&gaps, &[(2332, 250)]);
            let cells: Vec<Cell> =
                kernels.iter().map(|kernel| cell(name, kernel, ending())).collect();
            let text = page("tick-cost", "", &cells);
            let table = text.split("in instructions\n\n").nth(1).unwrap();
            table.split("\n\n").next().unwrap().to_owned()
        };
        assert_snapshot!(told("nohz=off highres=off idle", &[OLD, NEW]), @r"
    kernel    cell                        gap  in kernel  mean  ±  ticks    most
    6.1.0     nohz=off highres=off idle  2345       2332  2332  -    250  47.8 G
    6.12.117  nohz=off highres=off idle  2345       2332  2332  -    250  47.8 G
    ");
        assert_snapshot!(told("nohz=off highres=off the-workload", &[OLD, NEW]), @r"
    kernel, cell                          gap  in kernel  mean  ±  ticks    most
    6.1.0
      nohz=off highres=off the-workload  2345       2332  2332  -    250  47.8 G
    6.12.117
      nohz=off highres=off the-workload  2345       2332  2332  -    250  47.8 G
    ");
        let long = "nohz=off highres=off mitigations=off the-workload";
        assert_snapshot!(told(long, &[OLD]), @r"
    kernel, cell                            gap  in kernel  mean  ±  ticks    most
    6.1.0
      nohz=off highres=off mitigations=o…  2345       2332  2332  -    250  47.8 G
    ");
    }

    /// Check that a machine stands beside a cell where machines differ, and that two
    /// builds of one release are told apart by their paths.
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
        its console: /home/me/.cache/noisefloor/lost/5e1f0c.console
      - other on new/bzImage: the kernel panicked: VFS: Unable to mount root fs on
        unknown-block(0,0)
        its console: /home/me/.cache/noisefloor/lost/5e1f0c.console
    "#);
    }

    /// Check that a run that was ended early says so before the doubts.
    #[test]
    fn early() {
        let mut cells = timed_cells();
        let told = |cells: &[Cell], planned| {
            let (experiment, about, breaches) = ("mine", "", None);
            cells_text(&Cells {
                experiment,
                about,
                cells,
                planned,
                made_with: None,
                breaches,
            })
        };
        let words = "\nEnded early: 3 of 6 cells are done. What is done is kept; the same \
                     command goes\non from there.\n\nDoubts (";
        assert!(told(&cells, 6).contains(words), "{}", told(&cells, 6));
        assert!(!told(&cells, 3).contains("Ended early"));
        cells.truncate(1);
        assert!(told(&cells, 2).contains("\nEnded early: 1 of 2 cells is done. "));
    }

    /// Check the pages of timed cells, and that each doubt names its cells.
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

    What a spinning CPU lost, in time

      kernel  cell   CPU     lost  gaps/s  typical  longest
      6.1.0   noise    0  0.111 %     250  4.45 µs   5.8 µs
      6.1.0   noise    1  0.200 %     250  4.51 µs  1.70 ms

    "lost": the part of its time in which the loop did not run; "typical": half of
    these gaps are not longer.

    Timer interrupts of resting CPUs

      kernel  cell   CPU  ticks/s  busy
      6.1.0   ticks    0     11.5   1 %

    "ticks/s": timer interrupts by /proc/interrupts; "busy": time not idle.

    How long requests to the kernel took

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

    The median from one repeat's start to the next one's.

    Where timed cells tell lengths of time, the guest ran in real time: they vary
    from run to run and from machine to machine.

    Doubts (reasons not to trust a number)
      - noise on 6.1.0: the kernel said: rcu: INFO: rcu_sched detected stalls
    "#);
    }

    /// Check that equal repeats are one line, and that one that differs stands out; and
    /// that two counts that contradict each other are doubted.
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
      idle  93eb31f34b18  the kernel as it comes

    What idle CPUs still execute

      kernel  cell     CPU  instructions/s  ticks/s  counted/s  one tick
      6.1.0   idle ×3    0          20,200       10         10      1920
      6.1.0   idle #3    0          20,200       45         10      1920

    "ticks/s": timer interrupts by /proc/interrupts; "counted/s": the same by the
    lab's counter. "one tick": the median number of kernel instructions of one.

    These are instructions, counted to the last one: the same inputs give the same
    numbers on every machine. Instructions are not time: what caches, branch
    prediction and memory cost is not in them.

    Doubts (reasons not to trust a number)
      - idle #3 on 6.1.0: CPU 0: /proc/interrupts counted 90 timer interrupts, the
        lab's counter 20
    "#);
    }

    /// Check that an exact cell that was not counted says so, and a lost one nothing.
    #[test]
    fn uncounted() {
        let told = |mode, counts| {
            let done = done(example::calls(example::MUTE), counts);
            let cells =
                [Cell { mode, ..cell("calls", OLD, done) }, cell("gone", OLD, lost())];
            let text = page("calls", "", &cells);
            ["These are", "were not counted", "real time"]
                .map(|words| text.contains(words))
        };
        assert_eq!(told(Mode::Exact, None), [false, true, false]);
        assert_eq!(told(Mode::Timed, None), [false, false, true]);
    }

    /// Check that an experiment of nothing but lost cells, or of none, is a page too.
    #[test]
    fn nothing() {
        assert_eq!(page("empty", "", &[]), "empty\n");
        let text = page("all-lost", "", &[cell("fifo", NEW, lost())]);
        assert!(
            text.contains("\nLost cells\n  - fifo on 6.12.117: the kernel"),
            "{text}"
        );
    }

    fn fits(text: &str) {
        for line in text.lines() {
            assert!(columns(line) <= 80, "{line}");
            assert_eq!(line.trim_end(), line);
        }
    }

    proptest! {
        /// Check that no line is wider than 80 columns, whatever cells and kernels are
        /// called, and however large numbers are.
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
            fits(&page("an experiment", "about something", &cells));
        }
    }
}
