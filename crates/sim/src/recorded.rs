//! A simulation as a recording, for summaries and reports.

use recording::{Body, Moments, Recording};

use crate::slices::Simulated;

/// When a simulation is taken: virtual time begins then. The same inputs give the same bytes.
const TAKEN: &str = "1970-01-01T00:00:00Z";

impl From<Simulated> for Recording {
    fn from(simulated: Simulated) -> Self {
        Self {
            taken: TAKEN.to_owned(),
            tool: Self::TOOL.to_owned(),
            facts: simulated.facts,
            body: Body::Slices { spec: simulated.spec, series: simulated.series },
            doubts: simulated.doubts,
            moments: Moments::default(),
            hardware: None,
            repeat: None,
        }
    }
}
