//! `history`: the parts of each metric between its change points, and what changed in the kernel and its
//! settings.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use stats::{Stretch, Unit};

use crate::comparisons::differing::{label, words};
use crate::document::Document;
use crate::document::table::{Column, Table};
use crate::document::text::{Text, text};
use crate::json::object;
use crate::{metric_names, number};

/// The number of listed changes, the newest, and of facts of each.
const CHANGES: usize = 12;
const FACTS: usize = 6;
/// The length of a date in a time.
const DATE: usize = "2026-11-26".len();
const LEGEND: &str = "Medians of the worst CPU's values. A series is divided where Pettitt's test finds a \
    change.";

/// The history of a kind of measurement on a machine.
#[derive(Debug, Clone, Serialize)]
pub struct HistoryReport {
    /// The name of the machine.
    pub machine: String,
    /// The kind of measurement.
    #[serde(rename = "measurement")]
    pub kind: String,
    /// The metrics.
    pub metrics: Vec<MetricHistory>,
    /// The changes of facts, in order of time.
    pub changes: Vec<FactsChange>,
}

/// A metric over time: the worst CPU's value of each entry.
#[derive(Debug, Clone, Serialize)]
pub struct MetricHistory {
    /// Its key.
    pub metric: String,
    /// Its unit.
    #[serde(skip)]
    pub unit: Unit,
    /// The entries.
    pub entries: Vec<HistoryEntry>,
    /// The parts between change points.
    pub stretches: Vec<Stretch>,
}

/// An entry of a history.
#[derive(Debug, Clone, Serialize)]
pub struct HistoryEntry {
    /// Its number.
    pub id: i64,
    /// When it was taken.
    pub taken: String,
    /// The value of the metric.
    pub value: f64,
}

/// Facts that changed from one entry to the next.
#[derive(Debug, Clone, Serialize)]
pub struct FactsChange {
    /// The number of the first entry with the new facts.
    pub id: i64,
    /// When it was taken.
    pub taken: String,
    /// The old and the new value of each fact; null: unknown.
    pub facts: BTreeMap<String, [Option<Value>; 2]>,
}

/// The history.
pub fn history_document(history: &HistoryReport) -> Document {
    let entries = history.metrics.iter().map(|metric| metric.entries.len()).max();
    let title = text!(
        "History of {} on {}: {}",
        Text::name(&history.kind),
        Text::name(&history.machine),
        number::counted(entries.unwrap_or(0) as u64, "entry")
    );
    let metrics = history.metrics.iter().enumerate().map(|(at, metric)| {
        let legend = if at == 0 { LEGEND } else { "" };
        Document::section(
            metric_names::name(&metric.metric),
            table(metric).legend(legend),
        )
    });
    let keys = history.metrics.iter().map(|one| one.metric.as_str());
    Document::default()
        .heading(title)
        .add_all(metrics)
        .add(changes(&history.changes))
        .add_full(
            "A series without a change is divided with a probability of 5 % at most.",
        )
        .add_full(metric_names::glossary(keys))
        .titled("noisefloor history")
}

/// The parts of a metric between its change points.
fn table(metric: &MetricHistory) -> Table {
    let taken =
        |at: usize| date(metric.entries.get(at).map_or("", |entry| entry.taken.as_str()));
    let before = std::iter::once(None).chain(metric.stretches.iter().map(Some));
    let all: Vec<_> = metric.stretches.iter().zip(before).collect();
    Table::of(&all)
        .column(Column::words("from"), |(part, _)| taken(part.begin))
        .column(Column::words("to"), |(part, _)| taken(part.end.saturating_sub(1)))
        .number("entries", |(part, _)| part.end - part.begin)
        .number("median", |(part, _)| number::in_unit(part.median, metric.unit))
        .number("change", |(part, before)| {
            before.and_then(|before| part.change_since(before)).map(number::change)
        })
        .table
}

fn date(taken: &str) -> Text {
    Text::name(taken.get(..DATE).unwrap_or(taken))
}

/// What changed in the kernel and its settings.
fn changes(changes: &[FactsChange]) -> Document {
    if changes.is_empty() {
        return "No fact has changed: the same kernel and settings, as far as known"
            .into();
    }
    let left_out = changes.len().saturating_sub(CHANGES);
    let fact = |(key, values): (&String, &[Option<Value>; 2])| {
        let [old, new] = values
            .each_ref()
            .map(|value| number::known(value.as_ref().map(|value| words(key, value))));
        text!("{}: {} -> {}", label(key), old, new)
    };
    let row = |change: &FactsChange| {
        let facts = Text::first(FACTS, change.facts.iter().map(fact).collect(), "; ");
        let facts = text!("entry {}: {}", change.id.to_string(), facts);
        [date(&change.taken), facts]
    };
    let earlier = if left_out == 1 { "earlier change" } else { "earlier changes" };
    let table = Table::terms(changes[left_out..].iter().map(row));
    let table = table.rest(number::more(left_out, earlier));
    Document::section("Changes of the kernel and its settings", table)
}

/// A history as one JSON object.
///
/// # Errors
/// None that is known: all fields can be written.
pub fn history_json(history: &HistoryReport) -> serde_json::Result<String> {
    object("history", history)
}

/// A history as lines of comma-separated values, with a head.
pub fn history_csv(history: &HistoryReport) -> String {
    let mut text = String::from("id,taken,metric,value\n");
    for metric in &history.metrics {
        for HistoryEntry { id, taken, value } in &metric.entries {
            text.push_str(&format!("{id},{taken},{},{value}\n", metric.metric));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use stats::stretches;

    use super::*;
    use crate::terminal::full_text;

    /// Check the report of a metric with a change, and of a kernel that has changed.
    #[test]
    fn a_change() {
        let values: Vec<f64> =
            (0..40_u8).map(|day| if day < 25 { 1100.0 } else { 3300.0 }).collect();
        let entry = |(day, value): (usize, &f64)| {
            let taken = format!("2026-{:02}-{:02}T06:00:00Z", 9 + day / 30, day % 30 + 1);
            HistoryEntry { id: i64::try_from(day).unwrap() + 1, taken, value: *value }
        };
        let metric = MetricHistory {
            metric: "noise_ppm".to_owned(),
            unit: Unit::Ppm,
            entries: values.iter().enumerate().map(entry).collect(),
            stretches: stretches(&values),
        };
        let facts = [(
            "kernel.release".to_owned(),
            ["6.12.48", "6.12.57"].map(|release| Some(release.into())),
        )];
        let change = FactsChange {
            id: 26,
            taken: "2026-09-26T06:00:00Z".to_owned(),
            facts: facts.into(),
        };
        let history = HistoryReport {
            machine: "node-7".to_owned(),
            kind: "check".to_owned(),
            metrics: vec![metric],
            changes: vec![change],
        };
        let text = full_text(&history_document(&history));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_snapshot!(text);
    }
}
