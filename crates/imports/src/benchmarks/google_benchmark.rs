//! The JSON of Google Benchmark (`--benchmark_out_format=json`): `JSONReporter` in `src/json_reporter.cc`.
//!
//! Each repetition is a value of the wall-clock time and one of the CPU time. Aggregates are read only of
//! benchmarks without repetitions (`--benchmark_report_aggregates_only`). Counters are values, too.

use std::collections::{BTreeMap, BTreeSet};

use recording::{Code, Doubt, ValueStatistics};
use serde::Deserialize;
use serde_json::Value;

use crate::benchmarks::unit::{Measured, time_factor};
use crate::benchmarks::{BenchmarkFile, shown};
use crate::import::{Failure, corrupt, of_json};

/// Numbers of a result that are no counters.
const NOT_COUNTERS: [&str; 9] = [
    "family_index",
    "per_family_instance_index",
    "repetitions",
    "repetition_index",
    "threads",
    "iterations",
    "real_time",
    "cpu_time",
    "time_unit",
];
/// What the context says about the machine and the build.
const ENVIRONMENT: [&str; 6] = [
    "host_name",
    "num_cpus",
    "mhz_per_cpu",
    "library_build_type",
    "library_version",
    "json_schema_version",
];

#[derive(Deserialize)]
struct File {
    context: BTreeMap<String, Value>,
    benchmarks: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    #[serde(default)]
    run_name: Option<String>,
    #[serde(default)]
    run_type: Option<String>,
    #[serde(default)]
    aggregate_name: Option<String>,
    #[serde(default)]
    aggregate_unit: Option<String>,
    #[serde(default)]
    time_unit: Option<String>,
    #[serde(default)]
    error_occurred: bool,
    #[serde(default)]
    error_message: Option<String>,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

impl Entry {
    /// The name of the benchmark, without that of an aggregate.
    fn run_name(&self) -> &str {
        self.run_name.as_deref().unwrap_or(&self.name)
    }

    fn is_aggregate(&self) -> bool {
        self.run_type.as_deref() == Some("aggregate")
    }

    fn number(&self, key: &str) -> Result<Option<f64>, Failure> {
        let Some(value) = self.rest.get(key) else { return Ok(None) };
        let number = value.as_f64().ok_or_else(|| {
            corrupt(format!("{key} of '{}' is not a number", shown(&self.name)))
        });
        number.map(Some)
    }

    /// Its quantities: name, unit and value.
    fn quantities(&self) -> Result<Vec<(String, Measured, f64)>, Failure> {
        let name = self.run_name();
        let unit = self.time_unit.as_deref().unwrap_or("ns");
        if time_factor(unit).is_none() {
            return Err(corrupt(format!("'{}' is not a unit of time", shown(unit))));
        }
        let mut all = Vec::new();
        for (key, end) in [("real_time", ""), ("cpu_time", " cpu_time")] {
            let value = self.number(key)?;
            all.extend(
                value.map(|value| (format!("{name}{end}"), Measured::named(unit), value)),
            );
        }
        for (key, value) in &self.rest {
            let value = value.as_f64().filter(|_| !NOT_COUNTERS.contains(&key.as_str()));
            let measured = match key.as_str() {
                "bytes_per_second" => Measured::named("B/s"),
                "items_per_second" => Measured::named("items/s"),
                counter => Measured::named(counter),
            };
            all.extend(value.map(|value| (name.to_owned(), measured, value)));
        }
        Ok(all)
    }
}

pub(crate) fn parse(text: &str) -> Result<BenchmarkFile, Failure> {
    let file: File = serde_json::from_str(text).map_err(of_json)?;
    let text_of = |key: &str| file.context.get(key).map(plain);
    let version = text_of("library_version").unwrap_or_default();
    let mut found =
        BenchmarkFile::by(format!("Google Benchmark {version}").trim_end().to_owned());
    found.command = text_of("executable");
    found.taken = text_of("date").and_then(|date| date.parse().ok());
    for key in ENVIRONMENT {
        found.environment(key, text_of(key));
    }
    if text_of("library_build_type").as_deref() == Some("debug") {
        found.doubt("Google Benchmark itself was built without optimization (debug)");
    }
    if text_of("cpu_scaling_enabled").as_deref() == Some("true") {
        found.doubt("the frequency of the CPUs could change (cpu_scaling_enabled)");
    }
    for one in file.benchmarks.iter().filter(|one| one.error_occurred) {
        let why = one.error_message.as_deref().unwrap_or("an error");
        let text = format!("'{}' failed: {}", shown(&one.name), shown(why));
        found.doubts.push(Doubt::new(Code::Interrupted, text));
    }
    let valid = || file.benchmarks.iter().filter(|one| !one.error_occurred);
    for one in valid().filter(|one| !one.is_aggregate()) {
        for (name, measured, value) in one.quantities()? {
            found.add(&name, &measured, &[value])?;
        }
    }
    let repeated = valid().filter(|one| !one.is_aggregate()).map(Entry::run_name);
    let repeated: BTreeSet<&str> = repeated.collect();
    aggregates(&mut found, valid().filter(|one| !repeated.contains(one.run_name())))?;
    Ok(found)
}

/// A text without quotes, or a number.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The statistics of benchmarks without repetitions in the file.
fn aggregates<'a>(
    found: &mut BenchmarkFile,
    entries: impl Iterator<Item = &'a Entry>,
) -> Result<(), Failure> {
    let mut all: Vec<(String, Measured, ValueStatistics)> = Vec::new();
    let is_value = |one: &&Entry| one.aggregate_unit.as_deref() != Some("percentage");
    for one in entries.filter(|one| one.is_aggregate()).filter(is_value) {
        let count = one.rest.get("repetitions").and_then(Value::as_u64);
        for (name, measured, value) in one.quantities()? {
            let known =
                all.iter().position(|(own, of, _)| *own == name && *of == measured);
            let at = known.unwrap_or(all.len());
            if known.is_none() {
                let statistics = ValueStatistics { count, ..Default::default() };
                all.push((name, measured, statistics));
            }
            let Some((_, _, statistics)) = all.get_mut(at) else { continue };
            match one.aggregate_name.as_deref() {
                Some("mean") => statistics.mean = Some(value),
                Some("median") => statistics.median = Some(value),
                Some("stddev") => statistics.stddev = Some(value),
                Some("min") => statistics.min = Some(value),
                Some("max") => statistics.max = Some(value),
                Some(_) | None => {}
            }
        }
    }
    for (name, measured, statistics) in all {
        found.set_statistics(&name, &measured, statistics)?;
    }
    Ok(())
}
