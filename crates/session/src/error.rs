//! The error of a session: that of the step which failed.

use units::CpuSet;

/// A failure, by the step.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A CPU is not available, or another noisefloor measures there.
    #[error(transparent)]
    Isolate(#[from] isolate::Error),
    /// Isolation is required, and was not reached; all settings are restored.
    #[error("failed to isolate CPU {cpus}: {why}")]
    NotIsolated {
        /// The CPUs.
        cpus: CpuSet,
        /// What failed.
        why: String,
        /// Whether a privilege is missing.
        needs_root: bool,
    },
    /// The specification, or the measurement.
    #[error(transparent)]
    Measure(#[from] measure::Error),
    /// The event source that was requested is not available.
    #[error(transparent)]
    Trace(blame::Error),
    /// Events were to be stored, and no source is available, for this reason.
    #[error("events cannot be traced: {0}")]
    NoEvents(String),
    /// Switches or wake-ups could not be counted.
    #[error(transparent)]
    Count(#[from] blame::Error),
}
