//! All cells of an experiment as text: tables by what was measured, then what was lost.
//!
//! Exact repeats that found the same are one line that says how many they are.

use recording::{Cell, Doubt, Ending, Mode};
use stats::CellSummary;

use crate::cell_summary::{cell_doubts, cell_summary};
use crate::cell_tables::{Row, tables};
use crate::kernel_label::labels;
use crate::paragraph::paragraph;
use crate::table::{Side, aligned, columns, cut};

/// The longest short name that a list has room for.
const LEGEND: usize = 24;

/// An experiment's cells, for the terminal; `about` says in a sentence what it asks.
pub fn cells_text(experiment: &str, about: &str, cells: &[Cell]) -> String {
    let names: Vec<&str> = cells.iter().map(|cell| cell.kernel.as_str()).collect();
    let named: Vec<Named<'_>> = cells
        .iter()
        .zip(labels(&names))
        .map(|(cell, kernel)| Named { cell, kernel })
        .collect();
    let title = match about {
        "" => experiment.to_owned(),
        about => format!("{experiment}: {about}"),
    };
    let mut text = paragraph("", &title);
    text.push_str(&legend(&named));
    text.push_str(&tables(&rows(&named)));
    text.push_str(&units(&named));
    text.push_str(&lost(&named));
    text.push_str(&doubts(&named));
    text
}

/// A cell, and the label of its kernel.
struct Named<'a> {
    cell: &'a Cell,
    kernel: String,
}

impl Named<'_> {
    fn full(&self) -> String {
        let Cell { name, repeat, .. } = self.cell;
        let repeat = if *repeat > 1 { format!(" #{repeat}") } else { String::new() };
        format!("{name}{repeat} on {}", self.kernel)
    }
}

/// What short names stand for, each once, in the order in which they come.
fn legend(cells: &[Named<'_>]) -> String {
    let kernels =
        cells.iter().map(|named| (named.kernel.clone(), named.cell.kernel.clone()));
    let names = cells.iter().map(|named| (named.cell.name.clone(), what(named.cell)));
    list("Kernels", kernels) + &list("Cells", names)
}

fn list(title: &str, items: impl Iterator<Item = (String, String)>) -> String {
    let mut distinct: Vec<(String, String)> = Vec::new();
    for (name, words) in items.map(|(name, words)| (cut(&name, LEGEND), words)) {
        if !distinct.contains(&(name.clone(), words.clone())) {
            distinct.push((name, words));
        }
    }
    let width = distinct.iter().map(|(name, _)| columns(name)).max().unwrap_or(0);
    let line = |(name, words): &(String, String)| {
        paragraph(&format!("  {}  ", aligned(name, width, Side::Left)), words)
    };
    let lines: String = distinct.iter().map(line).collect();
    if lines.is_empty() { lines } else { format!("\n{title}\n{lines}") }
}

/// What a cell is: what ran, on a kernel booted and set how.
fn what(cell: &Cell) -> String {
    let mut words = cell.workload.clone();
    if !cell.params.is_empty() {
        words.push_str(&format!("; booted with {}", cell.params));
    }
    if !cell.settings.is_empty() {
        words.push_str(&format!("; with {}", cell.settings.join(", ")));
    }
    words
}

/// Lines for the tables: equal repeats of an exact cell are one.
fn rows(cells: &[Named<'_>]) -> Vec<Row> {
    let mut groups: Vec<(&Named<'_>, CellSummary, u64)> = Vec::new();
    for named in cells {
        let Some(summary) = cell_summary(named.cell) else { continue };
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
        Row { kernel, name, repeats, summary }
    };
    groups.into_iter().map(row).collect()
}

fn is_repeat(a: &Cell, b: &Cell) -> bool {
    let same = (&a.name, &a.kernel, &a.identity) == (&b.name, &b.kernel, &b.identity);
    same && [a.mode, b.mode] == [Mode::Exact; 2]
}

/// What the numbers are: work or time.
fn units(cells: &[Named<'_>]) -> String {
    let kind =
        |named: &Named<'_>| Some((named.cell.mode, is_work(&cell_summary(named.cell)?)));
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
    use CellSummary::{CallCosts, IdleCost, TickCost};
    matches!(summary, TickCost(_) | IdleCost(_) | CallCosts(_))
}

fn lost(cells: &[Named<'_>]) -> String {
    let mut text = String::new();
    for named in cells {
        if let Ending::Lost { why, console } = &named.cell.ending {
            let console = console.display();
            let line = format!("{}: {why} (its console: {console})", named.full());
            text.push_str(&paragraph("  - ", &line));
        }
    }
    if text.is_empty() { text } else { format!("\nLost cells\n{text}") }
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
        paragraph("  - ", &format!("{who}: {doubt}"))
    };
    let lines: String = reasons.iter().map(line).collect();
    if lines.is_empty() {
        return lines;
    }
    format!("\nDoubts: reasons to take these numbers with care\n{lines}")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use proptest::prelude::*;
    use recording::Call;

    use super::*;
    use crate::cell_example::{
        NEW, OLD, call_costs, cell, done, doubt, idle_cost, lost, tick_cost,
    };
    use crate::example;

    fn tick_cells() -> Vec<Cell> {
        let other = [vec![2584; 240], vec![2601; 9], vec![10_911]].concat();
        let fifo = [vec![2345; 249], vec![2999]].concat();
        let mut cells = vec![
            cell("other", OLD, tick_cost(&other, &[(2571, 240), (2588, 9)])),
            cell("fifo", OLD, tick_cost(&fifo, &[(2332, 249)])),
            cell("idle", OLD, idle_cost(18, &[(1920, 6), (2204, 2)])),
            cell("other", NEW, tick_cost(&[2812; 250], &[(2799, 250)])),
            cell("fifo", NEW, lost()),
        ];
        cells[1].settings = vec!["kernel.sched_rt_runtime_us=-1".to_owned()];
        cells[2].workload = "ticks on CPU 0 for 2 s".to_owned();
        cells[2].params = "nohz=on".to_owned();
        cells
    }

    /// Every call on both kernels, with and without mitigations.
    fn call_cells() -> Vec<Cell> {
        let costs = |more: u64| {
            call_costs(&[
                (Call::Getpid, &[(412 + more, 999), (2_996 + more, 1)]),
                (Call::Pipe, &[(5_210 + more, 1000)]),
                (Call::Fork, &[(88_120 + more, 990), (88_301 + more, 10)]),
            ])
        };
        let kernels = [(OLD, 0), (NEW, 37)];
        let of = |(kernel, more)| {
            ["mitigations=auto", "mitigations=off", "audit=0", "nohz_full"]
                .map(|name| cell(name, kernel, costs(more)))
        };
        kernels.into_iter().flat_map(of).collect()
    }

    fn timed(name: &str, ending: Ending) -> Cell {
        let workload = format!("{name} on CPU 0");
        Cell { mode: Mode::Timed, workload, ..cell(name, OLD, ending) }
    }

    fn timed_cells() -> Vec<Cell> {
        let mut noise = example::noise(example::METAL, 2);
        noise.doubts = vec![doubt()];
        let (ticks, calls) =
            (example::ticks(example::MUTE, 1, 2), example::calls(example::MUTE));
        [("noise", noise), ("ticks", ticks), ("calls", calls)]
            .map(|(name, recording)| timed(name, done(recording, None)))
            .to_vec()
    }

    /// Check the page of ticks: exact, idle, and lost cells, and two kernels.
    #[test]
    fn tick_page() {
        let about = "what one tick costs a program, and what it costs an idle CPU";
        assert_snapshot!(cells_text("tick-cost", about, &tick_cells()), @r#"
    tick-cost: what one tick costs a program, and what it costs an idle CPU

    Kernels
      6.1.0     6.1.0-56-cloud-amd64 (6.1.192-2)
      6.12.117  6.12.117+deb12-cloud-amd64 (6.12.117-1~bpo12+1)

    Cells
      other  noise on CPU 0 for 1 s
      fifo   noise on CPU 0 for 1 s; with kernel.sched_rt_runtime_us=-1
      idle   ticks on CPU 0 for 2 s; booted with nohz=on
      fifo   noise on CPU 0 for 1 s

    What one tick costs, in instructions

      kernel    cell    gap  in kernel  ticks  distinct  smallest  largest
      6.1.0     other  2584       2571    250         3      2584   10,911
      6.1.0     fifo   2345       2332    250         2      2345     2999
      6.1.0     idle      -       1920     16         2      1920     2204
      6.12.117  other  2812       2799    250         1      2812     2812

    "gap": the most frequent stretch in which the guest's loop did not run, a pass
    of the loop included. "in kernel": the most frequent number from the timer's
    interruption of a program to its return. Then, of the gaps or else of the
    kernel's: how many, how many different ones, and the extremes.

    What idle CPUs still execute

      kernel  cell  CPU  instructions/s  ticks/s  counted/s  one tick
      6.1.0   idle    0          16,928        9          8      1920

    "ticks/s": timer interrupts by /proc/interrupts; "counted/s": the same by the
    lab's counter. "one tick": the most frequent number of kernel instructions of
    one.

    These are instructions, counted to the last one: the same inputs give the same
    numbers on every machine. Instructions are not time: what caches, branch
    prediction and memory cost is not in them.

    Lost cells
      - fifo on 6.12.117: the kernel panicked: VFS: Unable to mount root fs on
        unknown-block(0,0) (its console:
        /home/me/.cache/noisefloor/lost/5e1f0c.console)
    "#);
    }

    /// Check that calls stand side by side, in blocks where there are many cells.
    #[test]
    fn call_page() {
        assert_snapshot!(cells_text("syscalls", "", &call_cells()), @r#"
    syscalls

    Kernels
      6.1.0     6.1.0-56-cloud-amd64 (6.1.192-2)
      6.12.117  6.12.117+deb12-cloud-amd64 (6.12.117-1~bpo12+1)

    Cells
      mitigations=auto  noise on CPU 0 for 1 s
      mitigations=off   noise on CPU 0 for 1 s
      audit=0           noise on CPU 0 for 1 s
      nohz_full         noise on CPU 0 for 1 s

    What requests to the kernel cost, in instructions

                          6.1.0            6.1.0    6.1.0      6.1.0
      request  mitigations=auto  mitigations=off  audit=0  nohz_full
      getpid               412*             412*     412*       412*
      pipe                5210             5210     5210       5210
      fork              88,120*          88,120*  88,120*    88,120*

                       6.12.117         6.12.117  6.12.117   6.12.117
      request  mitigations=auto  mitigations=off   audit=0  nohz_full
      getpid               449*             449*      449*       449*
      pipe                5247             5247      5247       5247
      fork              88,157*          88,157*   88,157*    88,157*

    The most frequent number from one repeat's start to the next one's, the
    program's own instructions and the kernel's. An asterisk: not every repeat took
    the same number.

    These are instructions, counted to the last one: the same inputs give the same
    numbers on every machine. Instructions are not time: what caches, branch
    prediction and memory cost is not in them.
    "#);
    }

    /// Check the pages of timed cells, and that each doubt names its cells.
    #[test]
    fn timed_page() {
        assert_snapshot!(cells_text("mine.toml", "my own.", &timed_cells()), @r#"
    mine.toml: my own.

    Kernels
      6.1.0  6.1.0-56-cloud-amd64 (6.1.192-2)

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

    Doubts: reasons to take these numbers with care
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
        assert_snapshot!(cells_text("again", "", &cells), @r#"
    again

    Kernels
      6.1.0  6.1.0-56-cloud-amd64 (6.1.192-2)

    Cells
      idle  noise on CPU 0 for 1 s

    What idle CPUs still execute

      kernel  cell     CPU  instructions/s  ticks/s  counted/s  one tick
      6.1.0   idle ×3    0          20,200       10         10      1920
      6.1.0   idle #3    0          20,200       45         10      1920

    "ticks/s": timer interrupts by /proc/interrupts; "counted/s": the same by the
    lab's counter. "one tick": the most frequent number of kernel instructions of
    one.

    These are instructions, counted to the last one: the same inputs give the same
    numbers on every machine. Instructions are not time: what caches, branch
    prediction and memory cost is not in them.

    Doubts: reasons to take these numbers with care
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
            let text = cells_text("calls", "", &cells);
            ["These are", "were not counted", "real time"]
                .map(|words| text.contains(words))
        };
        assert_eq!(told(Mode::Exact, None), [false, true, false]);
        assert_eq!(told(Mode::Timed, None), [false, false, true]);
    }

    /// Check that an experiment of nothing but lost cells, or of none, is a page too.
    #[test]
    fn nothing() {
        assert_eq!(cells_text("empty", "", &[]), "empty\n");
        let text = cells_text("all-lost", "", &[cell("fifo", NEW, lost())]);
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
            fits(&cells_text("an experiment", "about something", &cells));
        }
    }
}
