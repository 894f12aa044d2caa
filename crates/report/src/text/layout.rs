//! The layout of terminal text: paragraphs and tables of at most 80 columns, and of fewer if the
//! terminal is narrower.

pub(crate) mod doubts;
pub(crate) mod fit;
pub(crate) mod labels;
pub(crate) mod paragraph;
pub(crate) mod table;
pub(crate) mod width;
