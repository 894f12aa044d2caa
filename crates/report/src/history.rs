//! What `noisefloor history` reports; its serialized form is the JSON contract.

use std::collections::BTreeMap;

use recording::FORMAT;
use serde::Serialize;
use serde_json::Value;
use stats::{Stretch, Unit};

/// The history of a kind of measurement on a machine.
#[derive(Debug, Clone)]
pub struct HistoryReport {
    /// The name of the machine.
    pub machine: String,
    /// The kind of measurement.
    pub kind: String,
    /// The metrics.
    pub metrics: Vec<MetricHistory>,
    /// The changes of facts, in order of time.
    pub changes: Vec<FactsChange>,
}

/// A metric over time: the worst CPU's value of each entry.
#[derive(Debug, Clone)]
pub struct MetricHistory {
    /// Its key.
    pub metric: String,
    /// Its unit.
    pub unit: Unit,
    /// The number, the time and the value of each entry.
    pub entries: Vec<(i64, String, f64)>,
    /// The parts between change points.
    pub stretches: Vec<Stretch>,
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

#[derive(Serialize)]
struct HistoryJson<'a> {
    format: u32,
    kind: &'static str,
    machine: &'a str,
    measurement: &'a str,
    metrics: Vec<MetricJson<'a>>,
    changes: &'a [FactsChange],
}

#[derive(Serialize)]
struct MetricJson<'a> {
    metric: &'a str,
    entries: Vec<EntryJson<'a>>,
    stretches: &'a [Stretch],
}

#[derive(Serialize)]
struct EntryJson<'a> {
    id: i64,
    taken: &'a str,
    value: f64,
}

impl<'a> MetricJson<'a> {
    fn of(metric: &'a MetricHistory) -> Self {
        let entry = |(id, taken, value): &'a (i64, String, f64)| EntryJson {
            id: *id,
            taken,
            value: *value,
        };
        Self {
            metric: &metric.metric,
            entries: metric.entries.iter().map(entry).collect(),
            stretches: &metric.stretches,
        }
    }
}

/// A history as one JSON object.
///
/// # Errors
/// None that is known: all fields can be written.
pub fn history_json(history: &HistoryReport) -> serde_json::Result<String> {
    serde_json::to_string_pretty(&HistoryJson {
        format: FORMAT,
        kind: "history",
        machine: &history.machine,
        measurement: &history.kind,
        metrics: history.metrics.iter().map(MetricJson::of).collect(),
        changes: &history.changes,
    })
}

/// A history as lines of comma-separated values, with a head.
pub fn history_csv(history: &HistoryReport) -> String {
    let mut text = String::from("id,taken,metric,value\n");
    for metric in &history.metrics {
        for (id, taken, value) in &metric.entries {
            text.push_str(&format!("{id},{taken},{},{value}\n", metric.metric));
        }
    }
    text
}
