//! Pictures, and the page with one.

pub(crate) mod bars;
pub(crate) mod flame;
pub(crate) mod page;
pub(crate) mod phase;
pub(crate) mod rows;
pub(crate) mod sheet;
pub(crate) mod slices;
pub(crate) mod xml;
