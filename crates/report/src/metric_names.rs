//! The names of metrics in tables. Files, limits and conditions have the keys, which contain the unit.

use itertools::Itertools;
use summary::{BenchmarkKey, Definition, definition};

use crate::document::Document;
use crate::document::table::{Cell, Column, Table};
use crate::document::text::{Text, text};

/// Begins of names, and what stands for them in narrow tables.
const SHORT: [(&str, &str); 3] = [
    ("wake-up latency", "latency"),
    ("timer interrupt latency", "IRQ latency"),
    ("user mode latency", "user latency"),
];

/// Units of benchmarks that say nothing more than the number.
const WITHOUT_UNIT: [&str; 2] = ["count", "number"];

/// The name of the metric with that key; the key itself if it is not known, as that of a newer
/// version may be.
pub(crate) fn name(key: &str) -> Text {
    if let Some(key) = BenchmarkKey::of(key) {
        return benchmark(key);
    }
    let Some(about) = definition(key) else { return Text::name(key) };
    match about.name.split_once(Definition::CALL).zip(about.call(key)) {
        Some(((before, after), call)) => text!("{}{}{}", before, Text::name(call), after),
        None => about.name.into(),
    }
}

/// The name of a benchmark, with the unit if values have none.
fn benchmark(key: BenchmarkKey<'_>) -> Text {
    match key.is_time() || WITHOUT_UNIT.contains(&key.unit) {
        true => Text::name(key.name),
        false => text!("{} {}", Text::name(key.name), Text::name(key.unit)),
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

    /// Check that no two names, or their shorter forms, are the same.
    #[test]
    fn each_has_its_own() {
        let (mut names, mut short) = (BTreeSet::new(), BTreeSet::new());
        for key in summary::definitions().map(|about| about.key) {
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
