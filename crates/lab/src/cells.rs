//! Cells, from plans to results.

pub(crate) mod cache;
pub(crate) mod cell;
mod counting;
pub(crate) mod failed_program;
pub(crate) mod lab;
mod packs;
pub(crate) mod prepare;
pub(crate) mod program;
pub(crate) mod progress;
pub(crate) mod results;
pub(crate) mod run;
pub(crate) mod scheduler;
mod symbols;
mod variations;
