//! Texts that are fitted to a width: folded, or cut such that names stay distinct.

pub(crate) mod columns;
pub(crate) mod labels;
pub(crate) mod lines;
