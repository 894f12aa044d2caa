//! A panel with its scales, and the places of its marks.

use crate::chart::scale::Ruler;
use crate::document::chart::{Axis, Mark, Panel, Scale};
use crate::fitting::columns::cut;

/// The longest words beside a mark.
const BESIDE: usize = 34;

/// A panel with its scales.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plot<'a> {
    pub(crate) panel: &'a Panel,
    pub(crate) x: Ruler,
    pub(crate) y: Ruler,
    /// The most marks of a series with a tool-tip each.
    pub(crate) titled: usize,
}

/// Whether an axis has names.
pub(crate) fn is_banded(axis: &Axis) -> bool {
    matches!(axis.scale, Scale::Bands(_))
}

impl Plot<'_> {
    /// Words beside a mark, cut.
    pub(crate) fn beside(&self, mark: &Mark) -> String {
        cut(&mark.beside.to_string(), BESIDE)
    }

    /// The place of a mark: its ends along x, and along y.
    pub(crate) fn place(&self, mark: &Mark) -> [[f64; 2]; 2] {
        [mark.x.map(|at| self.x.at(at)), mark.y.map(|at| self.y.at(at))]
    }
}
