//! The time slices of a cell beside those of its simulation.
//!
//! Both are summarized alike. Cannot see why they differ: the simulation says what it leaves out.

use recording::{Cell, Recording};
use serde::Serialize;
use units::{Nanos, Ppm};

use crate::slices::{SlicesSummary, StepSlices};
use crate::summary::Summary;

/// The simulation of a cell, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum BesideSimulation {
    /// It was simulated.
    Simulated(Box<SimulatedSlices>),
    /// It cannot be simulated.
    NotSimulated {
        /// The reason, without a full stop.
        not_simulated: String,
    },
}

/// The simulation of a cell that measured time slices.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SimulatedSlices {
    /// The name of the scheduler's rules: `6.12`.
    pub rules: String,
    /// How the guest differs from what was simulated.
    pub remarks: Vec<String>,
    /// The simulated mean slice minus the guest's, as a share of the guest's; null if one of them is
    /// unknown.
    pub slice_difference_ppm: Option<Ppm>,
    /// The summary of the simulation.
    pub summary: SlicesSummary,
}

impl SimulatedSlices {
    /// Compares a cell with its simulation; `None` if that has no time slices.
    pub fn of(
        cell: &Cell,
        simulated: &Recording,
        rules: &str,
        remarks: Vec<String>,
    ) -> Option<Self> {
        let Summary::Slices(summary) = Summary::of(simulated) else { return None };
        let guest = StepSlices::of_cell(cell);
        Some(Self {
            rules: rules.to_owned(),
            remarks,
            slice_difference_ppm: difference(
                guest.and_then(|guest| guest.slice_ns.mean),
                summary.results.slice_ns.mean,
            ),
            summary,
        })
    }
}

/// The simulated value minus that of the guest, as a share of the latter.
fn difference(guest: Option<Nanos>, simulated: Option<Nanos>) -> Option<Ppm> {
    let (guest, simulated) = (guest?.get() as f64, simulated?.get() as f64);
    (guest > 0.0).then(|| Ppm::new((simulated - guest) / guest * 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the difference by hand, and that there is none without one of the values.
    #[test]
    fn by_hand() {
        let nanos = |nanos| Some(Nanos::from_nanos(nanos));
        let found = |guest, simulated| Some(difference(guest, simulated)?.get().round());
        assert_eq!(found(nanos(1_000_000), nanos(995_000)), Some(-5_000.0));
        assert_eq!(found(nanos(4_000_000), nanos(4_100_000)), Some(25_000.0));
        assert_eq!(found(nanos(0), nanos(1)), None);
        assert_eq!(found(None, nanos(1)), None);
        assert_eq!(found(nanos(1), None), None);
    }
}
