//! The names of metrics in tables. Files, limits and conditions have the keys, which contain the unit.

use itertools::Itertools;
use summary::{Definition, definitions};

use crate::document::Document;
use crate::document::table::{Cell, Column, Table};
use crate::document::text::{Text, text};

/// Stands for the name of a call, in keys and in names.
const CALL: &str = "CALL";

/// The keys and names of all metrics, in the order of their definitions.
const NAMES: &[(&str, &str)] = &[
    ("tick_instructions", "instructions per tick"),
    ("tick_instructions_mean", "instructions per tick, mean"),
    ("tick_kernel_instructions", "kernel instructions per tick"),
    ("tick_kernel_instructions_mean", "kernel instructions per tick, mean"),
    ("tick_kind_instructions_min", "kind of tick, cheapest"),
    ("tick_kind_instructions_max", "kind of tick, most expensive"),
    ("idle_instructions_hz", "instructions while idle"),
    ("idle_timer_hz", "timer interrupts while idle"),
    ("idle_stretch_ns_mean", "idle stretch, mean"),
    ("idle_skylake_c10_ppm", "idle for 5 ms or more"),
    ("idle_sapphire_rapids_c6_ppm", "idle for 800 µs or more"),
    ("CALL_instructions", "instructions of CALL"),
    ("CALL_instructions_mean", "instructions of CALL, mean"),
    ("program_ns", "run time of the command"),
    ("program_instructions", "command's instructions"),
    ("program_kernel_instructions", "command's kernel instructions"),
    ("guest_instructions", "guest's instructions"),
    ("guest_kernel_instructions", "guest's kernel instructions"),
    ("unit_instructions", "instructions per unit of work"),
    ("unit_kernel_instructions", "kernel instructions per unit"),
    ("units_hz", "units of work"),
    ("nohz_entry_instructions", "instructions to stop the tick"),
    ("nohz_entry_ns", "time to stop the tick"),
    ("nohz_timer_hz", "timer interrupts, tick stopped"),
    ("slice_ns_mean", "slice, mean"),
    ("slice_switches_hz", "involuntary switches"),
    ("spinner_passes_hz", "iterations of the loops"),
    ("noise_ppm", "OS noise"),
    ("gap_ns_p50", "gap, median"),
    ("gap_ns_p99", "gap, p99"),
    ("gap_ns_max", "gap, longest"),
    ("gaps_hz", "gaps"),
    ("late_ns_p50", "wake-up latency, median"),
    ("late_ns_p99", "wake-up latency, p99"),
    ("late_ns_p99_9", "wake-up latency, p99.9"),
    ("late_ns_max", "wake-up latency, longest"),
    ("CALL_ns_p50", "time of CALL"),
    ("timer_hz", "timer interrupts"),
    ("interrupts_hz", "all interrupts"),
    ("busy_ppm", "time not idle"),
    ("nohz_failures", "tries without a stop"),
    ("nohz_entry_ns_p50", "time to stop the tick, median"),
    ("nohz_entry_ns_max", "time to stop the tick, longest"),
    ("jitter_ns_p50", "jitter, median"),
    ("jitter_ns_p99", "jitter, p99"),
    ("jitter_ns_max", "jitter, largest"),
    ("loop_ns_mean", "loop, mean"),
    ("run_ns", "run time"),
    ("run_net_ns", "net run time"),
    ("run_lost_ns", "time lost"),
    ("run_cpu_ns", "CPU time"),
    ("run_preempted", "preemptions"),
    ("run_noise_ppm", "runnable time lost"),
    ("run_gap_ns_max", "interruption, longest"),
    ("wakeups_hz", "wake-ups"),
    ("guests_cpu_ppm", "CPU time of all guests"),
    ("guests_wakeups_hz", "wake-ups of all guests"),
    ("idle_guest_cpu_ppm_max", "idle guest's CPU time, largest"),
    ("idle_guest_wakeups_hz_max", "idle vCPU's wake-ups, most"),
    ("guests_saving_ppm", "CPU time that could be saved"),
    ("interrupt_late_ns_p50", "timer interrupt latency, median"),
    ("interrupt_late_ns_p99", "timer interrupt latency, p99"),
    ("interrupt_late_ns_max", "timer interrupt latency, longest"),
    ("user_late_ns_p50", "user mode latency, median"),
    ("user_late_ns_p99", "user mode latency, p99"),
    ("user_late_ns_max", "user mode latency, longest"),
    ("value_ns_p50", "value, median"),
    ("value_ns_p99", "value, p99"),
    ("value_ns_p99_9", "value, p99.9"),
    ("value_ns_max", "value, largest"),
];

/// Begins of names, and what stands for them in narrow tables.
const SHORT: [(&str, &str); 3] = [
    ("wake-up latency", "latency"),
    ("timer interrupt latency", "IRQ latency"),
    ("user mode latency", "user latency"),
];

/// The row of the table with the key, and the name of the call in it.
fn row(key: &str) -> Option<(&'static str, &'static str, &str)> {
    if let Some((known, name)) = NAMES.iter().find(|(known, _)| *known == key) {
        return Some((known, name, ""));
    }
    NAMES.iter().find_map(|(known, name)| {
        let (before, after) = known.split_once(CALL)?;
        Some((*known, *name, key.strip_prefix(before)?.strip_suffix(after)?))
    })
}

/// The name of the metric with that key; the key itself if it is not known, as that of a newer
/// version may be.
pub(crate) fn name(key: &str) -> Text {
    match row(key) {
        None => Text::name(key),
        Some((_, name, call)) => match name.split_once(CALL) {
            Some((before, after)) => text!("{}{}{}", before, Text::name(call), after),
            None => name.into(),
        },
    }
}

/// The name, with a shorter form if there is one.
pub(crate) fn cell(key: &str) -> Cell {
    let name = name(key);
    let long = name.to_string();
    let short = SHORT.iter().find_map(|(long_one, short)| {
        Some(format!("{short}{}", long.strip_prefix(long_one)?))
    });
    Cell::or(name.clone(), short.map_or(name, Text::from))
}

/// The definition of the metric with that key.
pub(crate) fn definition(key: &str) -> Option<&'static Definition> {
    let (known, _, _) = row(key)?;
    definitions().find(|about| about.key == known)
}

/// The keys with their names and meanings, each once.
pub(crate) fn glossary<'a>(keys: impl IntoIterator<Item = &'a str>) -> Document {
    let keys: Vec<&str> = keys.into_iter().unique().collect();
    let table = Table::of(&keys)
        .column(Column::group("key", 40..=40), |key| Text::command(*key))
        .column(Column::prose("metric"), |key| {
            let about = definition(key).filter(|about| name(key) != about.help);
            text!("{}{}", name(key), about.map(|about| text!(": {}", about.help)))
        })
        .table;
    Document::section("Keys of the metrics, in JSON and for options", table)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Check that each metric has a name, in the order of the definitions, and that no two names, or their
    /// shorter forms, are the same.
    #[test]
    fn each_has_its_own() {
        let keys: Vec<&str> = NAMES.iter().map(|(key, _)| *key).collect();
        let defined: Vec<&str> = definitions().map(|about| about.key).collect();
        assert_eq!(keys, defined);
        let (mut names, mut short) = (BTreeSet::new(), BTreeSet::new());
        for key in keys {
            let cell = cell(key);
            let form = cell.short.unwrap_or_else(|| cell.text.clone());
            assert!(names.insert(cell.text.to_string()), "{key}: {}", cell.text);
            assert!(short.insert(form.to_string()), "{key}: {form}");
        }
    }

    /// Check the names of calls, and of a key that is not known.
    #[test]
    fn calls() {
        assert_eq!(name("getpid_instructions_mean"), "instructions of getpid, mean");
        assert_eq!(name("getpid_ns_p50"), "time of getpid");
        assert_eq!(name("tick_instructions"), "instructions per tick");
        assert_eq!(name("other"), "other");
        assert_eq!(definition("getpid_ns_p50").map(|about| about.of), Some("calls"));
        assert_eq!(definition("other"), None);
    }
}
