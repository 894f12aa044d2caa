//! Recordings from the files of other tools: cyclictest and oslat (rt-tests), rtla, sysjitter, jHiccup
//! and other logs of HdrHistogram.
//!
//! [`load`] and [`read`] take recordings of noisefloor, too, and tell the formats apart by their first
//! lines. What a file does not contain is unknown in the recording.
#![forbid(unsafe_code)]

mod file;
mod format;
mod hdr_log;
mod import;
mod merge;
mod rt_tests;
mod rtla;
mod sysjitter;

pub use file::{SIZE_MAX, load, read};
