//! The run of a program in a guest.

use recording::{KeptOutput, ProgramSeries, ProgramSpec, Usage};
use serde::Serialize;
use units::Nanos;

use crate::run::EndedSummary;

/// The run of a program in a guest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProgramSummary {
    /// The command line.
    pub command: String,
    /// How it ended; null if it did not.
    pub ended: Option<EndedSummary>,
    /// The time from its start to its end.
    pub elapsed_ns: Nanos,
    /// Its resource usage.
    #[serde(flatten)]
    pub usage: Usage,
    /// Its output.
    pub output: KeptOutput,
    /// The services.
    pub services: Vec<ServiceSummary>,
    /// Why the run is not valid; null if it is.
    pub failure: Option<String>,
}

/// A service of a program.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServiceSummary {
    /// Its name.
    pub name: String,
    /// Its output.
    pub output: KeptOutput,
}

impl ProgramSummary {
    /// Summarizes a series.
    pub fn of(spec: &ProgramSpec, series: &ProgramSeries) -> Self {
        let services = spec.services.iter().zip(&series.services);
        let services = services.map(|(service, output)| ServiceSummary {
            name: service.name.clone(),
            output: output.clone(),
        });
        Self {
            command: spec.command.to_string(),
            ended: series.ended.map(EndedSummary::from),
            elapsed_ns: series.elapsed_ns,
            usage: series.usage,
            output: series.output.clone(),
            services: services.collect(),
            failure: series.failure.clone(),
        }
    }
}
