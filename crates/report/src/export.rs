//! Recordings in the formats of other programs.

pub(crate) mod benchmark_action;
pub(crate) mod csv;
pub(crate) mod hdr_log;
pub(crate) mod prometheus;
