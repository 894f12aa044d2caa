//! The idle stretches of CPUs, and the share of idle time that is long enough for idle states.

use itertools::Itertools;
use summary::{CpuIdleCost, IDLE_TABLES, PROCESSOR_STATES, ProcessorState};

use crate::number;
use crate::text::cells::lines::Lines;
use units::Nanos;

/// The processor and the state of a column, and its heading; JSON has all states.
const COLUMNS: [(&str, &str, &str); 4] = [
    ("Skylake", "C6", "SKL C6"),
    ("Skylake", "C8", "SKL C8"),
    ("Skylake", "C10", "SKL C10"),
    ("Sapphire Rapids", "C6", "SPR C6"),
];

/// The line of a CPU; `None` if its idle stretches are unknown.
pub(crate) fn line(cpu: &CpuIdleCost) -> Option<[String; 7]> {
    let idle = cpu.idle.as_ref()?;
    let share =
        |(processor, state, _)| number::any(idle.share(processor, state), number::share);
    let [a, b, c, d] = COLUMNS.map(share);
    let cpu = cpu.cpu.to_string();
    let mean = number::any(idle.mean_ns, number::duration);
    Some([cpu, mean, number::any(idle.max_ns, number::duration), a, b, c, d])
}

/// The table; `None` without a line.
pub(crate) fn table(lines: &Lines<'_, 7>) -> Option<String> {
    let [a, b, c, d] = COLUMNS.map(|(_, _, head)| head);
    let head = ["CPU", "mean", "longest", a, b, c, d];
    let words = format!(
        "An idle stretch is the guest time from a halt to the CPU's next instruction. Other \
         columns: share of idle time in stretches that are at least as long as the target \
         residency of an idle state ({}; {IDLE_TABLES}, {}): a shorter stay there costs more \
         energy than it saves.",
        COLUMNS.map(residency).join(", "),
        PROCESSOR_STATES.iter().map(|state| state.table).dedup().join(" and "),
    );
    lines.section("Idle stretches, and the idle states that they allow", head, &words)
}

fn residency((processor, name, head): (&str, &str, &str)) -> String {
    let is = |state: &&ProcessorState| (state.processor, state.name) == (processor, name);
    let residency = PROCESSOR_STATES
        .iter()
        .find(is)
        .map(|state| number::duration(Nanos::from_micros(state.target_residency_us)));
    format!("{head}: {}", number::any(residency, |residency| residency))
}
