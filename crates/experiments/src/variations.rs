//! How many variations of a cell are run.
//!
//! In a variation, inputs differ that should not matter: the guest's memory, the seed of its random
//! numbers, the time at which it starts. What is forced, such as the cost of a tick, is the same in each,
//! or within the tolerance that its phases have. The order of events of programs, of threads and of a
//! network is not: there, one run is one order out of many, and only several show how much that is.

use recording::{Call, Cell, Spec};
use summary::CellVariation;
use units::Ppm;

/// The first variations, from which the number of the others is computed.
const FIRST: u32 = 3;
/// The usual number of variations if the first ones differ by more than that.
const USUAL: u32 = 6;
/// The most variations that are computed.
const MOST: u32 = 64;
/// The first variations are usually enough if the ± of their mean is at most this share of it.
const ENOUGH: Ppm = Ppm::new(10_000.0);

/// How many variations of a cell are run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Variations {
    /// So many.
    Exactly(u32),
    /// Three if the ± of their mean is at most 1 %, six otherwise.
    Usual,
    /// As many as it takes for a ± of at most that share of the mean, from 3 to 64.
    Within(Ppm),
}

impl Variations {
    /// The usual ones of a measurement in exact mode: one if the order of what happens is forced, so that the
    /// variations of its numbers are within the tolerance of its phases.
    pub(crate) fn usual(spec: &Spec) -> Self {
        let is_free = matches!(spec, Spec::Program(_))
            || matches!(spec, Spec::Calls(calls) if calls.calls.contains(&Call::Fork))
            || matches!(spec, Spec::Slices(slices) if slices.sleepers > 0);
        if is_free { Self::Usual } else { Self::Exactly(1) }
    }

    /// The number of those that are run first.
    pub fn first(self) -> u32 {
        match self {
            Self::Exactly(count) => count,
            Self::Usual | Self::Within(_) => FIRST,
        }
    }

    /// The number of all of them, from the cell with the first ones.
    pub fn all(self, cell: &Cell) -> u32 {
        let needed = |share| {
            let needed = CellVariation::of(cell).map(|varied| varied.needed(share));
            needed.map_or(FIRST, |needed| needed.map_or(MOST, |n| n.clamp(FIRST, MOST)))
        };
        match self {
            Self::Exactly(count) => count,
            Self::Usual if needed(ENOUGH) > FIRST => USUAL,
            Self::Usual => FIRST,
            Self::Within(share) => needed(share),
        }
    }
}
