//! SVG pictures, and HTML pages that contain one.

pub(crate) mod bars;
pub(crate) mod canvas;
pub(crate) mod chart;
pub(crate) mod flame;
pub(crate) mod page;
pub(crate) mod phase;
pub(crate) mod rows;
pub(crate) mod slices;
pub(crate) mod xml;
