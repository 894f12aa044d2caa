//! Sets of runs to compare.

use summary::{Comparison, RunSet};
use units::Ppm;

/// Sets of runs, and how each but the first differs from the first.
#[derive(Debug, Clone, Copy)]
pub struct ComparedSets<'a> {
    /// The name of each set, as the user wrote it.
    pub names: &'a [String],
    /// The sets, the base first.
    pub sets: &'a [RunSet],
    /// The comparisons of the other sets with the base.
    pub comparisons: &'a [Comparison],
    /// The smallest relative difference of interest.
    pub smallest: Ppm,
}
