//! What is compared.

use recording::CulpritKind;
use serde::Serialize;
use units::Cpu;

/// What is compared: a metric, or the time lost to a culprit.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(untagged)]
pub enum Quantity {
    /// A metric.
    Metric {
        /// Its key.
        metric: String,
        /// The CPU; null for a metric that is not of a CPU, or if each set has one CPU.
        cpu: Option<Cpu>,
    },
    /// The share of their time that all measured CPUs lost to a culprit, in ppm.
    Culprit {
        /// The kind of event.
        kind: CulpritKind,
        /// The name of the interrupt, the thread, ...; of a kworker without its number.
        name: String,
    },
}

impl Quantity {
    /// The kind and the name of a culprit; `None` for a metric.
    pub fn culprit(&self) -> Option<(CulpritKind, &str)> {
        match self {
            Self::Culprit { kind, name } => Some((*kind, name)),
            Self::Metric { .. } => None,
        }
    }

    /// The key of a metric; `None` for a culprit.
    pub fn metric(&self) -> Option<&str> {
        match self {
            Self::Metric { metric, .. } => Some(metric),
            Self::Culprit { .. } => None,
        }
    }

    /// The CPU of a metric.
    pub fn cpu(&self) -> Option<Cpu> {
        match self {
            Self::Metric { cpu, .. } => *cpu,
            Self::Culprit { .. } => None,
        }
    }
}
