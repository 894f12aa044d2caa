//! The place of a panel, and sizes.

use crate::chart::scale::Ruler;
use crate::document::chart::{Axis, Panel, Scale};

/// The space at the edges.
pub(crate) const EDGE: f64 = 16.0;
/// The height of small text, and of a line of it.
pub(crate) const SMALL: f64 = 14.0;
pub(crate) const LINE: f64 = 18.0;

/// A panel and its place.
pub(crate) struct Plot<'a> {
    pub(crate) panel: &'a Panel,
    pub(crate) x: Ruler,
    pub(crate) y: Ruler,
    /// The beginning of IDs.
    pub(crate) id: &'a str,
    /// The most marks of a series with a tool-tip each.
    pub(crate) titled: usize,
}

/// Whether an axis has names.
pub(crate) fn is_banded(axis: &Axis) -> bool {
    matches!(axis.scale, Scale::Bands(_))
}
