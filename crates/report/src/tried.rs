//! What `noisefloor try` reports; its serialized form is the JSON contract.

use advise::Lasting;
use recording::{Doubt, StepSetting};
use serde::Serialize;
use stats::BetterSet;

use crate::compared::{ComparedSets, SetsJson};

/// Settings that were tried, compared with others.
#[derive(Debug, Clone, Copy)]
pub struct TriedSettings<'a> {
    /// The command line of the measurement.
    pub measurement: &'a str,
    /// The runs with the other settings, or the current ones, as base, and those with the tried ones.
    pub compared: ComparedSets<'a>,
    /// Which ones are better.
    pub better: BetterSet,
    /// The better settings; empty: the current ones, or neither.
    pub better_settings: &'a [StepSetting],
    /// Whether these were left in place.
    pub is_in_place: bool,
    /// The seed of the order of runs.
    pub seed: u32,
    /// Reasons not to trust all of them.
    pub doubts: &'a [Doubt],
}

#[derive(Serialize)]
struct TriedJson<'a> {
    #[serde(flatten)]
    sets: SetsJson<'a>,
    measurement: &'a str,
    seed: u32,
    better: BetterSet,
    in_place: bool,
    lasting: Vec<LastingJson>,
    doubts: &'a [Doubt],
}

#[derive(Serialize)]
struct LastingJson {
    /// `sysctl`, `tmpfiles`, `kernel_parameter`, `tuned_cpu`.
    how: &'static str,
    text: String,
}

impl From<Lasting> for LastingJson {
    fn from(lasting: Lasting) -> Self {
        let (how, text) = match lasting {
            Lasting::Sysctl(line) => ("sysctl", line),
            Lasting::Tmpfile(line) => ("tmpfiles", line),
            Lasting::KernelParameter(parameter) => ("kernel_parameter", parameter),
            Lasting::TunedCpu(line) => ("tuned_cpu", line),
        };
        Self { how, text }
    }
}

/// What makes settings last.
pub(crate) fn lasting(settings: &[StepSetting]) -> impl Iterator<Item = Lasting> {
    settings.iter().flat_map(|one| advise::lasting(&one.name, &one.value))
}

/// Settings that were tried as one JSON object.
///
/// # Errors
/// None that is known: all fields can be written.
pub fn tried_json(tried: &TriedSettings<'_>) -> serde_json::Result<String> {
    serde_json::to_string_pretty(&TriedJson {
        sets: SetsJson::of("try", &tried.compared),
        measurement: tried.measurement,
        seed: tried.seed,
        better: tried.better,
        in_place: tried.is_in_place,
        lasting: lasting(tried.better_settings).map(LastingJson::from).collect(),
        doubts: tried.doubts,
    })
}
