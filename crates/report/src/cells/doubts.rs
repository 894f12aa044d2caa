//! Reasons to distrust the numbers of a cell.

use recording::{Cell, Code, Doubt};
use summary::{CellSummary, answer};

use crate::grouped::grouped;

/// The doubts of a cell's recording, and one for each CPU on which the two counts of timer
/// interrupts contradict each other.
pub fn cell_doubts(cell: &Cell) -> Vec<Doubt> {
    let mut doubts = answer(cell).map_or(Vec::new(), |a| a.recording.doubts.clone());
    if let Some(CellSummary::IdleCost(cost)) = CellSummary::of(cell) {
        doubts.extend(cost.contradictions().map(|cpu| {
            let by_proc = cpu.timer_interrupts.unwrap_or_default();
            let text = format!(
                "CPU {}: {by_proc} timer interrupts in /proc/interrupts, but {} counted by the lab",
                cpu.cpu, cpu.timer_entries
            );
            Doubt::new(Code::CountsDiffer, text)
        }));
    }
    doubts
}

/// Each doubt once, after the names of its cells.
pub(crate) fn doubts_by_name(cells: &[(&Cell, String)]) -> Vec<String> {
    let doubts = cells.iter().flat_map(|(cell, name)| {
        cell_doubts(cell).into_iter().map(move |doubt| (doubt, name.as_str()))
    });
    let line = |(doubt, names): (Doubt, Vec<&str>)| {
        let is_all = names.len() == cells.len() && names.len() > 1;
        let names = if is_all { "all cells".to_owned() } else { names.join(", ") };
        format!("{names}: {doubt}")
    };
    grouped(doubts).into_iter().map(line).collect()
}
