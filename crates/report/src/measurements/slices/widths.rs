//! The widths of names in the tables of `slices`.

use std::ops::RangeInclusive;

/// The name of a variant.
pub(super) const VARIANT: RangeInclusive<usize> = 8..=40;
/// The name of a process.
pub(super) const PROCESS: RangeInclusive<usize> = 6..=15;
