//! The lines of cells that are compared with the same cell without sleepers or without tracing, and
//! of the causes of gaps of traced cells.

use summary::{Added, CellSummary, CulpritSummary, SleepersCost, StepSlices, Summary};

use crate::cells::measured::measured;
use crate::cells::table::{Line, Row, cut, value, words};
use crate::document::table::{Cell, Column};
use crate::document::text::Text;
use crate::measurements::noise::culprits::{of_kind, thread};
use crate::number;

/// The maximum number of causes for each cell.
const LISTED: usize = 6;

pub(crate) fn sleepers(row: &Row<'_>) -> Vec<Line> {
    let named = row.named;
    let cost = SleepersCost::of_cell(named.cell, named.all);
    let found = StepSlices::of_cell(named.cell).zip(cost);
    let Some((slices, cost)) = found.filter(|_| named.cell.repeat <= 1) else {
        return Vec::new();
    };
    let each = number::any(cost.each_wakeup_ns.map(|each| each.get()));
    vec![vec![
        value("wake-ups/s each", number::any(slices.wakeups_hz)),
        value("work lost", cost.work_ppm),
        value("each wake-up", each),
    ]]
}

pub(crate) fn added(row: &Row<'_>) -> Vec<Line> {
    let named = row.named;
    let source = named.cell.watch.map_or("", |source| source.name());
    let line = |added: Added| {
        let event = match added.events {
            1 => added.event.clone(),
            events => format!("{events} × {}", added.event),
        };
        vec![
            words("traced by", source),
            words("event", event),
            value("untraced", added.untraced_instructions.get()),
            value("traced", added.traced_instructions.get()),
            value("added", number::difference(added.added_instructions)),
        ]
    };
    match named.cell.repeat {
        0 | 1 => Added::of_cell(named.cell, named.all).into_iter().map(line).collect(),
        _ => Vec::new(),
    }
}

/// The events that gaps of traced cells are attributed to, or that ran on idle CPUs.
pub(crate) fn causes(row: &Row<'_>) -> Vec<Line> {
    let culprits: &[CulpritSummary] = match (&row.summary, measured(row)) {
        _ if row.named.cell.watch.is_none() => &[],
        (CellSummary::TickCost(cost), _) => &cost.culprits,
        (CellSummary::IdleCost(cost), _) => &cost.culprits,
        (_, Some(Summary::Noise(noise))) => &noise.culprits,
        _ => &[],
    };
    let mut lines = culprits.iter().map(cause).collect();
    cut(&mut lines, LISTED, 0);
    lines
}

fn cause(culprit: &CulpritSummary) -> Line {
    let name = of_kind(culprit.kind, Text::name(&culprit.name));
    let name = Cell::from(name).tail(thread(culprit));
    vec![
        (Column::name("cause", 16..=36), name),
        value("gaps", culprit.gaps),
        value("time", culprit.ns),
        value("noise", number::known(culprit.noise_ppm)),
        value("longest", culprit.max_ns),
    ]
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::{Call, Cell, Mode, Source};

    use super::*;
    use crate::cells::cells_document;
    use crate::example;
    use crate::example::cell::{NEW, OLD, call_costs, cell, tick_cost};
    use crate::example::cells::page;
    use crate::terminal::full_text;

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
    fn compared_cells() {
        let all = cells();
        let text = full_text(&cells_document(&page("probe-cost", &all)));
        let listed = text.split("\n\n").find(|part| part.starts_with(" cell")).unwrap();
        let from = |title: &str| text.split_once(title).unwrap().1;
        let added = from("Cost of tracing").split("Causes of gaps").next().unwrap();
        let causes = from("Causes of gaps").split("Instruction counts").next().unwrap();
        assert_snapshot!(format!("{listed}\n---\n{added}---\n{causes}"));
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
