//! What the report of `lab ablate` is made of.

use serde::Serialize;
use stats::Ablation;

/// The difference of a metric between two kernels, and its parts.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Ablated<'a> {
    /// The key of the metric.
    pub metric: &'a str,
    /// The experiment's name.
    pub experiment: &'a str,
    /// The cell's name.
    pub cell: &'a str,
    /// The first configuration, as requested.
    #[serde(rename = "from_config")]
    pub from: &'a str,
    /// The second configuration.
    #[serde(rename = "to_config")]
    pub to: &'a str,
    /// The source of the kernels.
    pub source: &'a str,
    /// The number of different kernels that were measured.
    pub kernels: usize,
    /// How many of them were built now.
    pub builds: usize,
    /// The parts.
    #[serde(flatten)]
    pub ablation: &'a Ablation,
}
