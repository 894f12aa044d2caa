//! Recordings and explanations in the formats of other programs.

pub(crate) mod benchmark_action;
pub(crate) mod csv;
pub(crate) mod exporter;
pub(crate) mod exposition;
pub(crate) mod folded;
pub(crate) mod github;
pub(crate) mod hdr_log;
pub(crate) mod jitter;
pub(crate) mod prometheus;
