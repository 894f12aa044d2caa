//! The JSON of JMH (`-rf json`): `JSONResultFormat` in `jmh-core`.
//!
//! Values are the scores of the measured iterations, fork by fork. Of the mode `sample` they are the means of
//! the samples of each iteration. Throughput is in operations per second, times are nanoseconds.

use std::collections::BTreeMap;

use recording::ValueStatistics;
use serde::Deserialize;
use serde_json::Value;

use crate::benchmarks::unit::Measured;
use crate::benchmarks::{BenchmarkFile, shown};
use crate::import::{Failure, corrupt, of_json};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    jmh_version: String,
    benchmark: String,
    mode: String,
    #[serde(default)]
    threads: Option<i64>,
    #[serde(default)]
    jvm: Option<String>,
    #[serde(default)]
    jvm_args: Vec<String>,
    #[serde(default)]
    jdk_version: Option<String>,
    #[serde(default)]
    vm_name: Option<String>,
    #[serde(default)]
    vm_version: Option<String>,
    #[serde(default)]
    params: BTreeMap<String, Value>,
    primary_metric: Metric,
    #[serde(default)]
    secondary_metrics: BTreeMap<String, Metric>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metric {
    score: Value,
    score_unit: String,
    #[serde(default)]
    score_percentiles: BTreeMap<String, Value>,
    #[serde(default)]
    raw_data: Vec<Vec<f64>>,
    /// Pairs of a value and its count, of each iteration of each fork.
    #[serde(default)]
    raw_data_histogram: Vec<Vec<Vec<(f64, u64)>>>,
}

pub(crate) fn parse(text: &str) -> Result<BenchmarkFile, Failure> {
    let entries: Vec<Entry> = serde_json::from_str(text).map_err(of_json)?;
    let version = entries.first().map_or("", |one| one.jmh_version.as_str());
    let mut found = BenchmarkFile::by(format!("JMH {version}").trim_end().to_owned());
    for one in &entries {
        found.environment("jdk", one.jdk_version.as_deref());
        found.environment("jvm", one.jvm.as_deref());
        found.environment("jvm arguments", Some(one.jvm_args.join(" ")));
        found.environment("vm", one.vm_name.as_deref());
        found.environment("vm version", one.vm_version.as_deref());
        let name = name(one);
        add(&mut found, &name, &one.primary_metric)?;
        for (own, metric) in &one.secondary_metrics {
            add(&mut found, &format!("{name} {own}"), metric)?;
        }
    }
    Ok(found)
}

/// The benchmark with its parameters. The modes `avgt` and `thrpt` differ by their units.
fn name(one: &Entry) -> String {
    let plain =
        |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let mut words: Vec<String> = Vec::new();
    words.extend(one.params.iter().map(|(key, value)| format!("{key}={}", plain(value))));
    let threads = one.threads.filter(|count| *count != 1);
    words.extend(threads.map(|count| format!("threads={count}")));
    let is_plain = ["avgt", "thrpt"].contains(&one.mode.as_str());
    words.extend((!is_plain).then(|| one.mode.clone()));
    match words.is_empty() {
        true => one.benchmark.clone(),
        false => format!("{} ({})", one.benchmark, words.join(", ")),
    }
}

fn add(found: &mut BenchmarkFile, name: &str, metric: &Metric) -> Result<(), Failure> {
    let unit = metric.score_unit.as_str();
    let measured = match unit.strip_prefix("ops/") {
        Some(time) => Measured::throughput(time).ok_or_else(|| {
            corrupt(format!("'{}' is not a unit of throughput", shown(unit)))
        })?,
        None => Measured::named(unit),
    };
    let name = found.new_name(name, &measured);
    let iterations = metric.raw_data_histogram.iter().flatten();
    let means = iterations.filter_map(|iteration| {
        let count: u64 = iteration.iter().map(|(_, count)| *count).sum();
        let sum: f64 = iteration.iter().map(|(value, count)| value * *count as f64).sum();
        (count > 0).then(|| sum / count as f64)
    });
    let values: Vec<f64> =
        metric.raw_data.iter().flatten().copied().chain(means).collect();
    let percentile =
        |key: &str| metric.score_percentiles.get(key).and_then(Value::as_f64);
    // A score of no samples is the text "NaN".
    let statistics = ValueStatistics {
        count: None,
        min: percentile("0.0"),
        median: percentile("50.0"),
        mean: metric.score.as_f64(),
        stddev: None,
        max: percentile("100.0"),
    };
    if values.is_empty() && statistics.mean.is_none() {
        found.doubt(format!("'{}' has no result", shown(&name)));
        return Ok(());
    }
    found.set_statistics(&name, &measured, statistics)?;
    found.add(&name, &measured, &values)
}
