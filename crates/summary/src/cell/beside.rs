//! The time slices of a cell beside those of its simulation.
//!
//! Both are summarized alike, and of as many variations: where one late task changes the order of all
//! later ones, the numbers of a single run say little. Cannot see why they differ: the simulation says what
//! it leaves out.

use recording::{Cell, Recording};
use serde::Serialize;
use stats::VariedMean;
use units::Ppm;

use crate::cell::answers;
use crate::slices::SlicesSummary;
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
    /// The simulated mean slice minus the guest's, each the mean of its variations, as a share of the
    /// guest's; null if one of them is unknown.
    pub slice_difference_ppm: Option<Ppm>,
    /// The difference of as many other variations is at most so far from it in 19 of 20 cases; null for
    /// a single one.
    pub slice_difference_within_ppm: Option<Ppm>,
    /// The mean slice of the simulated variations; null for a single one.
    pub slice_ns_mean: Option<VariedMean>,
    /// The summary of the first variation.
    pub summary: SlicesSummary,
}

impl SimulatedSlices {
    /// Compares a cell with its simulated variations; `None` if the first of them has no time slices.
    pub fn of(
        cell: &Cell,
        simulated: &[Recording],
        rules: &str,
        remarks: Vec<String>,
    ) -> Option<Self> {
        let summaries: Vec<SlicesSummary> = simulated.iter().filter_map(slices).collect();
        let guest = answers(cell).filter_map(|answer| slices(&answer.recording));
        let guest: Vec<f64> = guest.filter_map(|one| mean_slice(&one)).collect();
        let own: Vec<f64> = summaries.iter().filter_map(mean_slice).collect();
        let (slice_difference_ppm, slice_difference_within_ppm) =
            difference(&guest, &own).unzip();
        Some(Self {
            rules: rules.to_owned(),
            remarks,
            slice_difference_ppm,
            slice_difference_within_ppm: slice_difference_within_ppm.flatten(),
            slice_ns_mean: VariedMean::of(&own),
            summary: summaries.into_iter().next()?,
        })
    }
}

fn slices(recording: &Recording) -> Option<SlicesSummary> {
    let Summary::Slices(summary) = Summary::of(recording) else { return None };
    Some(summary)
}

fn mean_slice(summary: &SlicesSummary) -> Option<f64> {
    summary.results.slice_ns.mean.map(|mean| mean.get() as f64)
}

/// The mean of the simulated values minus that of the guest's, as a share of the latter, and how far that of
/// as many others is from it; `None` if one of them has none.
fn difference(guest: &[f64], own: &[f64]) -> Option<(Ppm, Option<Ppm>)> {
    let mean = |values: &[f64]| {
        let sum = values.iter().sum::<f64>() / values.len() as f64;
        (sum > 0.0).then_some(sum)
    };
    let (at, own_at) = (mean(guest)?, mean(own)?);
    let share = |part: f64| Ppm::new(part / at * 1e6);
    let both = VariedMean::of(guest).zip(VariedMean::of(own));
    let within = both.map(|(guest, own)| share(guest.within.hypot(own.within)));
    Some((share(own_at - at), within))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the difference by hand, that it has no interval for one variation, and that there is none without
    /// values.
    #[test]
    fn by_hand() {
        let found = |guest: &[f64], own: &[f64]| {
            let (by, within) = difference(guest, own)?;
            Some((by.get().round(), within.map(|within| within.get().round())))
        };
        assert_eq!(found(&[1e6], &[995e3]), Some((-5_000.0, None)));
        assert_eq!(found(&[4e6], &[4.1e6]), Some((25_000.0, None)));
        let (guest, own) = ([1e6, 1.02e6, 0.98e6], [1.01e6, 1.03e6, 0.99e6]);
        let each = VariedMean::of(&guest).unwrap().within;
        let both = (each * 2f64.sqrt()).round();
        assert_eq!(found(&guest, &own), Some((10_000.0, Some(both))));
        assert_eq!(found(&guest, &own[..1]), Some((10_000.0, None)));
        assert_eq!(found(&[0.0], &[1.0]), None);
        assert_eq!(found(&[], &[1.0]), None);
        assert_eq!(found(&[1.0], &[]), None);
    }
}
