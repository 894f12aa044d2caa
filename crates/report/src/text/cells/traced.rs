//! Traced cells: the cost of tracing, compared with the same cell without, and the causes of
//! gaps.

use recording::{Cell, Source};
use summary::{Added, CulpritSummary};

use crate::number;
use crate::text::cells::LabelledCell;
use crate::text::cells::lines::Row;
use crate::text::cells::lines::section_by_kernel;
use crate::text::layout::table::Side;
use crate::text::noise::culprits::{kind_word, names};

/// The maximum number of causes for each cell.
const LISTED: usize = 6;
/// The maximum width of a cause.
const NAME: usize = 24;

/// The table of the cost of tracing; `None` if no cells can be compared.
pub(crate) fn added_table(cells: &[LabelledCell<'_>]) -> Option<String> {
    let all: Vec<Cell> = cells.iter().map(|named| named.cell.clone()).collect();
    let head = [
        ("traced by", Side::Left),
        ("event", Side::Left),
        ("untraced", Side::Right),
        ("traced", Side::Right),
        ("added", Side::Right),
    ];
    let once = cells.iter().filter(|named| named.cell.repeat <= 1);
    let lines = once.flat_map(|named| {
        let added = Added::of_cell(named.cell, &all);
        added.into_iter().map(|added| named.line(added_fields(named.cell, &added)))
    });
    let words = "Cost of one event without and with tracing, and the difference: of ticks the \
                 cheapest frequent kind, of calls the median. A repeat of \"switch\" is two \
                 switches.";
    let title = "Cost of tracing, in instructions";
    section_by_kernel(title, head, &lines.collect::<Vec<_>>(), words)
}

fn added_fields(cell: &Cell, added: &Added) -> [String; 5] {
    let event = match added.events {
        1 => added.event.clone(),
        events => format!("{events} × {}", added.event),
    };
    [
        cell.watch.map_or("", Source::name).to_owned(),
        event,
        number::count(added.untraced_instructions.get()),
        number::count(added.traced_instructions.get()),
        number::difference(added.added_instructions),
    ]
}

/// The table of the events that gaps of traced cells are attributed to, or that ran on idle
/// CPUs; `None` without events.
pub(crate) fn culprits_table(rows: &[(&Row<'_>, &[CulpritSummary])]) -> Option<String> {
    let head = [
        ("cause", Side::Left),
        ("gaps", Side::Right),
        ("time", Side::Right),
        ("noise", Side::Right),
        ("longest", Side::Right),
    ];
    let traced = rows.iter().filter(|(row, _)| row.named.cell.watch.is_some());
    let lines = traced.flat_map(|(row, culprits)| {
        let more = culprits.len().saturating_sub(LISTED);
        let more = (more > 0).then(|| {
            let mut fields = [const { String::new() }; 5];
            fields[0] = format!("{more} more, in --json");
            fields
        });
        row.named.lines(listed(culprits).into_iter().chain(more))
    });
    let words = "\"time\" is guest time: in exact cells an instruction takes 1 ns. \"noise\": share \
                 of the time of all gaps. A gap may have several causes. On an idle CPU a gap is a \
                 period of work.";
    section_by_kernel("Causes of gaps", head, &lines.collect::<Vec<_>>(), words)
}

fn listed(culprits: &[CulpritSummary]) -> Vec<[String; 5]> {
    let listed = &culprits[..culprits.len().min(LISTED)];
    let words = listed.iter().map(|culprit| kind_word(culprit.kind).len());
    let names = names(listed.iter(), NAME.saturating_sub(words.max().unwrap_or(0)));
    listed
        .iter()
        .zip(names)
        .map(|(culprit, name)| culprit_fields(culprit, &name))
        .collect()
}

fn culprit_fields(culprit: &CulpritSummary, name: &str) -> [String; 5] {
    let word = kind_word(culprit.kind);
    [
        format!("{word} {name}").trim_start().to_owned(),
        number::count(culprit.gaps),
        number::duration(culprit.ns),
        number::known(culprit.noise_ppm, number::share),
        number::duration(culprit.max_ns),
    ]
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::{Call, Mode};

    use super::*;
    use crate::cells::Cells;
    use crate::example;
    use crate::example::cell::{NEW, OLD, call_costs, cell, tick_cost};
    use crate::text::cells::cells_text;

    /// A traced cell with attributed gaps.
    fn traced(
        name: &str,
        kernel: &str,
        source: Source,
        ending: recording::Ending,
    ) -> Cell {
        let mut cell = Cell { watch: Some(source), ..cell(name, kernel, ending) };
        if let recording::Ending::Done(answer) = &mut cell.ending {
            answer.recording = example::blamed(answer.recording.clone());
        }
        cell
    }

    fn cells() -> Vec<Cell> {
        let tick = |cost: u64| tick_cost(&[cost; 40], &[(cost - 16, 40)]);
        let switch = |cost: u64| call_costs(&[(Call::Switch, &[(cost, 200)])]);
        let switches = |cell: Cell| Cell { workload: "1 call".to_owned(), ..cell };
        vec![
            cell("tick", OLD, tick(2_346)),
            traced("tick-bpf", OLD, Source::Bpf, tick(2_898)),
            traced("tick-classic", OLD, Source::BpfClassic, tick(3_462)),
            switches(cell("switch", OLD, switch(3_527))),
            switches(traced("switch-bpf", OLD, Source::Bpf, switch(5_008))),
            switches(traced("switch-bpf", NEW, Source::Bpf, switch(5_008))),
        ]
    }

    /// Check the cost of tracing by event, only for cells that were also run without it; the
    /// causes of gaps by cell; and that the list of cells has the event source.
    #[test]
    fn page() {
        let all = cells();
        let page = Cells {
            experiment: "probe-cost",
            about: "",
            cells: &all,
            planned: all.len(),
            made_with: None,
            violations: None,
            guests: 100,
            series: &[],
        };
        let text = cells_text(&page);
        let listed = text.split("\n\n").find(|part| part.starts_with("Cells")).unwrap();
        let from = |title: &str| text.split_once(title).unwrap().1;
        let added = from("Cost of tracing").split("Causes of gaps").next().unwrap();
        let causes = from("Causes of gaps").split("Instruction counts").next().unwrap();
        assert_snapshot!(format!("{listed}\n---\n{added}---\n{causes}"), @r#"
    Cells           6.1.0         6.12.117
      tick          2c8fbe4c17ac  -             noise on CPU 0 for 1 s
      tick-bpf      31e40485911c  -             noise on CPU 0 for 1 s; traced by
                                                bpf
      tick-classic  ae3b23c4bf3d  -             noise on CPU 0 for 1 s; traced by
                                                bpf_classic
      switch        cc102852952d  -             1 call
      switch-bpf    bd302fe10e87  6e0a834dc910  1 call; traced by bpf
    ---
    , in instructions

      kernel, cell    traced by    event       untraced  traced   added
      6.1.0
        tick-bpf      bpf          tick            2330    2882    +552
        tick-classic  bpf_classic  tick            2330    3446   +1116
        switch-bpf    bpf          2 × switch      3527    5008  +740.5

    Cost of one event without and with tracing, and the difference: of ticks the
    cheapest frequent kind, of calls the median. A repeat of "switch" is two
    switches.

    ---


      kernel, cell    cause                    gaps     time   noise  longest
      6.1.0
        tick-bpf      timer tick_nohz_handler    40  59.4 µs  51.5 %  1.49 µs
                      softirq SCHED              40    28 µs  24.3 %   700 ns
                      unexplained                40    28 µs  24.3 %   700 ns
        tick-classic  timer tick_nohz_handler    40  82.0 µs  59.4 %  2.05 µs
                      softirq SCHED              40    28 µs  20.3 %   700 ns
                      unexplained                40    28 µs  20.3 %   700 ns

    "time" is guest time: in exact cells an instruction takes 1 ns. "noise": share
    of the time of all gaps. A gap may have several causes. On an idle CPU a gap is
    a period of work.
    "#);
    }

    /// Check that a cell is not compared with one of another kernel, other boot parameters or
    /// another mode.
    #[test]
    fn only_the_same() {
        let all = cells();
        let added = |cell: &Cell| Added::of_cell(cell, &all).len();
        assert_eq!(all.iter().map(added).collect::<Vec<_>>(), [0, 1, 1, 0, 1, 0]);
        assert_eq!(added(&Cell { params: "nohz=off".to_owned(), ..all[1].clone() }), 0);
        assert_eq!(added(&Cell { mode: Mode::Timed, ..all[1].clone() }), 0);
    }
}
