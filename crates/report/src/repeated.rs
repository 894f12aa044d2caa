//! What `noisefloor repeat` reports; its serialized form is the JSON contract. Runs of programs are
//! listed as in the export of hyperfine (`--export-json`, version 1.20), too, so that scripts for that
//! can read it.

use std::collections::BTreeMap;

use recording::{Doubt, FORMAT};
use serde::Serialize;
use summary::{ProgramRun, RunSet, RunSpread, RunsDoubt};
use units::Nanos;

/// Repeated runs of a measurement, in one set for each variant of the settings.
#[derive(Debug, Clone, Copy)]
pub struct RepeatedRuns<'a> {
    /// The command line of the measurement.
    pub measurement: &'a str,
    /// The names of the variants.
    pub variants: &'a [String],
    /// The runs of each variant.
    pub sets: &'a [RunSet],
    /// Their folders; empty if the recordings are not saved.
    pub folders: &'a [String],
    /// The number of recordings that each folder had before.
    pub known: &'a [u32],
    /// The seed of the order of variants.
    pub seed: u32,
    /// Reasons not to trust all of them.
    pub doubts: &'a [Doubt],
}

#[derive(Serialize)]
struct RepeatedJson<'a> {
    format: u32,
    kind: &'static str,
    measurement: &'a str,
    seed: u32,
    sets: Vec<SetJson<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    results: Vec<Result<'a>>,
    doubts: &'a [Doubt],
}

#[derive(Serialize)]
struct SetJson<'a> {
    variant: &'a str,
    folder: Option<&'a String>,
    runs: usize,
    taken: &'a Option<[String; 2]>,
    metrics: Vec<RunSpread>,
    culprits: Vec<RunSpread>,
    doubts: &'a [RunsDoubt],
}

impl<'a> SetJson<'a> {
    fn of(runs: &RepeatedRuns<'a>, at: usize) -> Self {
        let set = &runs.sets[at];
        Self {
            variant: &runs.variants[at],
            folder: runs.folders.get(at),
            runs: set.runs(),
            taken: &set.taken,
            metrics: set.spreads(),
            culprits: set.culprit_spreads(),
            doubts: &set.doubts,
        }
    }
}

/// The runs of a program as hyperfine exports them, in seconds.
#[derive(Serialize)]
struct Result<'a> {
    command: &'a str,
    mean: f64,
    stddev: Option<f64>,
    median: f64,
    user: f64,
    system: f64,
    min: f64,
    max: f64,
    times: Vec<f64>,
    exit_codes: Vec<u8>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parameters: BTreeMap<&'a str, &'a str>,
    /// Not in hyperfine's: the times without interruptions.
    net_times: Vec<Option<f64>>,
}

impl<'a> Result<'a> {
    /// `None` without runs of a program.
    fn of(variant: Option<&'a str>, set: &'a RunSet) -> Option<Self> {
        let programs = &set.programs;
        let times = set
            .spreads()
            .into_iter()
            .find(|one| one.quantity.metric() == Some("run_ns"))?;
        Some(Self {
            command: &programs.first()?.command,
            mean: seconds(times.mean),
            stddev: times.stddev.map(seconds),
            median: seconds(times.median),
            user: ProgramRun::mean_secs(programs, |run| run.user_ns),
            system: ProgramRun::mean_secs(programs, |run| run.system_ns),
            min: seconds(times.min),
            max: seconds(times.max),
            times: programs.iter().map(|run| run.elapsed_ns.as_secs_f64()).collect(),
            exit_codes: programs.iter().map(|run| run.exit_code).collect(),
            parameters: variant.map(|name| ("settings", name)).into_iter().collect(),
            net_times: programs
                .iter()
                .map(|run| run.net_ns.map(Nanos::as_secs_f64))
                .collect(),
        })
    }
}

fn seconds(nanos: f64) -> f64 {
    nanos / 1e9
}

/// Repeated runs as one JSON object.
///
/// # Errors
/// None that is known: all fields can be written.
pub fn repeated_json(runs: &RepeatedRuns<'_>) -> serde_json::Result<String> {
    let named = runs.variants.iter().zip(runs.sets);
    let is_named = runs.variants.len() > 1;
    let result = |(name, set)| Result::of(is_named.then_some(String::as_str(name)), set);
    serde_json::to_string_pretty(&RepeatedJson {
        format: FORMAT,
        kind: "repeat",
        measurement: runs.measurement,
        seed: runs.seed,
        sets: (0..runs.sets.len()).map(|at| SetJson::of(runs, at)).collect(),
        results: named.filter_map(result).collect(),
        doubts: runs.doubts,
    })
}
