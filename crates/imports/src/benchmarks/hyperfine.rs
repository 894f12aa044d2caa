//! The JSON of hyperfine 1.5 and newer (`--export-json`): `HyperfineSummary` in `src/export/json.rs`.
//!
//! The times of the runs are wall-clock times in seconds. CPU times are means only, and are not read.

use recording::{Code, Doubt, ValueStatistics};
use serde::Deserialize;

use crate::benchmarks::unit::Measured;
use crate::benchmarks::{BenchmarkFile, shown};
use crate::import::{Failure, of_json};

#[derive(Deserialize)]
struct File {
    results: Vec<Command>,
}

#[derive(Deserialize)]
struct Command {
    command: String,
    mean: f64,
    #[serde(default)]
    stddev: Option<f64>,
    #[serde(default)]
    median: Option<f64>,
    min: f64,
    max: f64,
    #[serde(default)]
    times: Vec<f64>,
    #[serde(default)]
    exit_codes: Vec<Option<i64>>,
}

pub(crate) fn parse(text: &str) -> Result<BenchmarkFile, Failure> {
    let file: File = serde_json::from_str(text).map_err(of_json)?;
    let mut found = BenchmarkFile::by("hyperfine");
    let seconds = Measured::seconds();
    for one in &file.results {
        let name = found.new_name(&one.command, &seconds);
        let statistics = ValueStatistics {
            count: (!one.times.is_empty()).then_some(one.times.len() as u64),
            min: Some(one.min),
            median: one.median,
            mean: Some(one.mean),
            stddev: one.stddev,
            max: Some(one.max),
        };
        found.set_statistics(&name, &seconds, statistics)?;
        found.add(&name, &seconds, &one.times)?;
        let failed = one.exit_codes.iter().filter(|code| **code != Some(0)).count();
        if failed > 0 {
            let text = format!(
                "{failed} of {} runs of '{}' failed",
                one.exit_codes.len(),
                shown(&name)
            );
            found.doubts.push(Doubt::new(Code::Interrupted, text));
        }
    }
    Ok(found)
}
