//! The JSON of pytest-benchmark (`--benchmark-json`, `--benchmark-save`): `output_json` in `session.py`.
//!
//! Times are seconds for one call. `--benchmark-save` writes the rounds only with `--benchmark-save-data`;
//! without them, the statistics are known.

use std::collections::BTreeMap;

use recording::ValueStatistics;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::benchmarks::BenchmarkFile;
use crate::benchmarks::unit::Measured;
use crate::import::{Failure, of_json};

/// What the file says about the machine.
const ENVIRONMENT: [&str; 4] =
    ["node", "python_implementation", "python_version", "python_compiler"];

#[derive(Deserialize)]
struct File {
    machine_info: BTreeMap<String, Value>,
    benchmarks: Vec<Entry>,
    #[serde(default)]
    datetime: Option<String>,
    version: String,
}

#[derive(Deserialize)]
struct Entry {
    fullname: String,
    stats: Stats,
}

#[derive(Deserialize)]
struct Stats {
    min: f64,
    max: f64,
    mean: f64,
    #[serde(default)]
    stddev: Option<f64>,
    #[serde(default)]
    rounds: Option<u64>,
    median: f64,
    #[serde(default)]
    data: Vec<f64>,
}

pub(crate) fn parse(text: &str) -> Result<BenchmarkFile, Failure> {
    let file: File = serde_json::from_str(text).map_err(of_json)?;
    let mut found = BenchmarkFile::by(format!("pytest-benchmark {}", file.version));
    // Older versions write no offset: such a time is that of UTC.
    let taken = |date: &str| date.parse().or_else(|_| format!("{date}Z").parse()).ok();
    found.taken = file.datetime.as_deref().and_then(taken);
    let text_of = |key: &str| file.machine_info.get(key).and_then(Value::as_str);
    for key in ENVIRONMENT {
        found.environment(key, text_of(key));
    }
    if text_of("system") == Some("Linux") {
        let of = |key, name| text_of(name).map(|value| (key, json!(value)));
        found.facts.extend(of("kernel.release", "release"));
        found.facts.extend(of("kernel.arch", "machine"));
    }
    let seconds = Measured::seconds();
    let mut without = 0;
    for one in &file.benchmarks {
        let Stats { min, max, mean, stddev, rounds, median, data } = &one.stats;
        let name = found.new_name(&one.fullname, &seconds);
        let statistics = ValueStatistics {
            count: *rounds,
            min: Some(*min),
            median: Some(*median),
            mean: Some(*mean),
            stddev: *stddev,
            max: Some(*max),
        };
        found.set_statistics(&name, &seconds, statistics)?;
        found.add(&name, &seconds, data)?;
        without += usize::from(data.is_empty());
    }
    if without > 0 {
        found.doubt(format!(
            "{without} benchmarks have statistics only; hint: --benchmark-json, or \
             --benchmark-save-data"
        ));
    }
    Ok(found)
}
