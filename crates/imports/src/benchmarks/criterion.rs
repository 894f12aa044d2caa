//! The samples of Criterion.rs 0.3 to 0.7: `BENCHMARK/BASELINE/sample.json` below `target/criterion`, with the name in
//! `benchmark.json` beside it. `src/analysis/mod.rs` writes both.
//!
//! A sample is the time of several iterations; its value is the time of one. The baseline of the last run is `new`;
//! `--save-baseline NAME` writes others. The statistics that Criterion derives from them are not read.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use serde::Deserialize;

use crate::benchmarks::BenchmarkFile;
use crate::benchmarks::unit::Measured;
use crate::import::{Failure, corrupt, of_json};

/// The files of a benchmark.
pub(crate) const SAMPLE: &str = "sample.json";
const NAME: &str = "benchmark.json";
/// The largest file of a name, in bytes.
const NAME_MAX: u64 = 1 << 20;
/// The name of a sample without the file of its name.
const UNNAMED: &str = "criterion";

#[derive(Deserialize)]
struct Sample {
    iters: Vec<f64>,
    times: Vec<f64>,
}

#[derive(Deserialize)]
struct Named {
    full_id: String,
}

/// A sample, alone: of a stream, the name is unknown.
pub(crate) fn parse(sample: &str, file: &Path) -> Result<BenchmarkFile, Failure> {
    let mut found = BenchmarkFile::by("Criterion");
    let name = full_id(file).unwrap_or_else(|| UNNAMED.to_owned());
    add(&mut found, &name, sample)?;
    Ok(found)
}

/// The name in the file beside a sample.
fn full_id(sample: &Path) -> Option<String> {
    let name = sample.with_file_name(NAME);
    let is_sample = sample.file_name().is_some_and(|own| own == SAMPLE);
    // No FIFO, which could wait for ever.
    if !is_sample || !name.is_file() {
        return None;
    }
    let file = File::open(name).ok()?.take(NAME_MAX);
    serde_json::from_reader(file).ok().map(|named: Named| named.full_id)
}

fn add(found: &mut BenchmarkFile, name: &str, sample: &str) -> Result<(), Failure> {
    let Sample { iters, times } = serde_json::from_str(sample).map_err(of_json)?;
    if iters.len() != times.len() {
        let text = format!("{} times of {} samples", times.len(), iters.len());
        return Err(corrupt(text));
    }
    let each = iters.iter().zip(&times).map(|(iterations, time)| time / iterations);
    let measured = Measured::nanoseconds();
    let name = found.new_name(name, &measured);
    found.add(&name, &measured, &each.collect::<Vec<f64>>())
}
