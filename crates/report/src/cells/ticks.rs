//! The lines of ticks: their cost on busy and idle CPUs, their kinds, and what idle CPUs do besides.

use itertools::Itertools;
use stats::Spread;
use summary::{
    CellSummary, CpuIdleCost, IDLE_TABLES, IdleCost, KindDifference, PROCESSOR_STATES,
    TickKind,
};
use units::Nanos;

use crate::cells::table::{Line, Row, any, count, cut, known, rounded, value};
use crate::document::table::{Cell, Column};
use crate::document::text::{Text, text};
use crate::number;

/// The maximum number of kinds for each cell.
const LISTED: usize = 4;
/// The processor and the state of a column, and its heading; JSON has all states.
const STATES: [(&str, &str, &str); 4] = [
    ("Skylake", "C6", "SKL C6"),
    ("Skylake", "C8", "SKL C8"),
    ("Skylake", "C10", "SKL C10"),
    ("Sapphire Rapids", "C6", "SPR C6"),
];

fn idle<'a>(row: &'a Row<'_>) -> Option<&'a IdleCost> {
    let CellSummary::IdleCost(cost) = &row.summary else { return None };
    Some(cost)
}

/// An idle CPU runs no loop, so that a tick there causes no gap.
pub(crate) fn costs(row: &Row<'_>) -> Vec<Line> {
    if let CellSummary::TickCost(cost) = &row.summary {
        let gap = cost.gap_instructions.as_ref();
        return vec![tick(median(gap), gap, cost.kernel_instructions.as_ref())];
    }
    let ticks = idle(row).map(|idle| &idle.tick_kernel_instructions);
    let line = |ticks| tick(number::NONE.into(), None, Some(ticks));
    ticks.map(line).into_iter().collect()
}

fn tick(median_gap: Cell, gap: Option<&Spread>, kernel: Option<&Spread>) -> Line {
    let (first, all) = (kernel.or(gap), gap.or(kernel));
    let deviation = |spread: &Spread| any(spread.mean_deviation, rounded);
    vec![
        value("gap", median_gap),
        value("in kernel", median(kernel)),
        value("mean", known(first, |spread| any(spread.mean, rounded))),
        value("±", known(first, deviation)),
        value("ticks", known(all, |spread| count(spread.count()))),
        value("max", known(all, |spread| any(spread.max(), |max| count(max.get())))),
    ]
}

fn median(spread: Option<&Spread>) -> Cell {
    known(spread, |spread| any(spread.p50, |median| count(median.get())))
}

pub(crate) fn kinds(row: &Row<'_>) -> Vec<Line> {
    let kinds = match (&row.summary, idle(row)) {
        (CellSummary::TickCost(cost), _) => cost.kinds.as_ref(),
        (_, idle) => idle.map(|idle| &idle.kinds),
    };
    let kinds = kinds.into_iter().flat_map(|kinds| &kinds.kinds);
    let mut lines = kinds.map(kind).collect();
    cut(&mut lines, LISTED, 3);
    lines
}

/// Of the difference the function that differs most; `...` stands for others.
fn kind(kind: &TickKind) -> Line {
    let [difference, name] = match kind.differs.as_slice() {
        [] => [Cell::default(), Cell::default()],
        [KindDifference { name, difference, .. }, others @ ..] => {
            let more = if others.is_empty() { "" } else { ", ..." };
            let name = Cell::from(Text::name(name)).tail(more);
            [number::exact_difference(*difference).into(), name]
        }
    };
    vec![
        value("ticks", number::any(kind.share_ppm)),
        value("each", kind.instructions.get()),
        value("difference", difference),
        (Column::name("function", 12..=36), name),
    ]
}

pub(crate) fn idle_costs(row: &Row<'_>) -> Vec<Line> {
    let line = |cost: &IdleCost, cpu: &CpuIdleCost| {
        let one = cost.tick_kernel_instructions.p50;
        vec![
            value("CPU", cpu.cpu),
            value("instructions/s", number::known(cpu.instructions_hz)),
            value("ticks/s", number::known(cpu.timer_hz)),
            value("counted/s", number::known(cpu.timer_entries_hz)),
            value("one tick", any(one, |one| count(one.get()))),
        ]
    };
    let lines = |cost: &IdleCost| cost.cpus.iter().map(|cpu| line(cost, cpu)).collect();
    idle(row).map_or_else(Vec::new, lines)
}

/// The idle stretches of CPUs, and the share of idle time that is long enough for idle states; of CPUs
/// for which they are known.
pub(crate) fn stretches(row: &Row<'_>) -> Vec<Line> {
    let cpus = idle(row).into_iter().flat_map(|cost| &cost.cpus);
    cpus.filter_map(stretch).collect()
}

fn stretch(cpu: &CpuIdleCost) -> Option<Line> {
    let idle = cpu.idle.as_ref()?;
    let state = |(processor, name, head): (&str, &str, &str)| {
        let state = idle.state(processor, name)?;
        let residency = Nanos::from_micros(state.state.target_residency_us);
        let column = Column::number(residency).above(head);
        Some((column, number::any(state.share_ppm).into()))
    };
    let times = vec![
        value("CPU", cpu.cpu),
        value("mean", number::any(idle.mean_ns)),
        value("longest", number::any(idle.max_ns)),
    ];
    Some(times.into_iter().chain(STATES.into_iter().filter_map(state)).collect())
}

/// Where the target residencies are from.
pub(crate) fn idle_states() -> Text {
    let tables = PROCESSOR_STATES.iter().map(|state| state.table).dedup().join(" and ");
    text!(
        "The target residencies are those of Skylake (SKL) and Sapphire Rapids (SPR) in {}, {}.",
        IDLE_TABLES,
        tables
    )
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::Ending;
    use units::Nanos;

    use crate::cells::cells_document;
    use crate::example::cell::{NEW, OLD, cell, idle_cost, tick_cost, with_profile};
    use crate::example::cells::page;
    use crate::terminal::full_text;

    /// Check the table: shares, the cheapest frequent kind first, and differences from it.
    #[test]
    fn kinds_of_two() {
        let ending = || tick_cost(&[2584; 40], &[(2571, 2), (2999, 1)]);
        let cells = [OLD, NEW].map(|kernel| with_profile(cell("fifo", kernel, ending())));
        let text = full_text(&cells_document(&page("tick-cost", &cells)));
        let table = text.split_once("Kinds of tick").unwrap().1;
        assert_snapshot!(table.split("Instruction counts").next().unwrap());
    }
    /// Check the table of idle stretches, with the residencies of idle states.
    #[test]
    fn idle_stretches() {
        let mut ending = idle_cost(4, &[(1920, 2)]);
        if let Ending::Done(answer) = &mut ending {
            let stretch = |us, times| (Nanos::from_micros(us), times);
            let idle = vec![stretch(150, 20), stretch(900, 5), stretch(250_000, 3)];
            for phase in &mut answer.counts.as_mut().unwrap().phases {
                phase.cpus[0].idle_ns = Some(idle.clone());
            }
        }
        let text =
            full_text(&cells_document(&page("idle-cost", &[cell("idle", OLD, ending)])));
        let table = text.split_once("Idle stretches").unwrap().1;
        assert_snapshot!(table.split("Instruction counts").next().unwrap());
    }
}
