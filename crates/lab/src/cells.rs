//! Cells, from plans to results.

pub(crate) mod cache;
mod cell;
mod counting;
pub(crate) mod failed_program;
pub(crate) mod lab;
mod packs;
mod prepare;
pub(crate) mod program;
pub(crate) mod progress;
mod results;
pub(crate) mod run;
mod scheduler;
mod symbols;
mod variations;
