//! Recordings from the files of other tools: cyclictest and oslat (rt-tests), jitterdebugger, rtla, sysjitter,
//! jHiccup and other logs of HdrHistogram; and the results of benchmarks: hyperfine, Google Benchmark, Criterion,
//! divan, JMH, Go, pytest-benchmark, perf stat, tables and plain numbers.
//!
//! [`load`] and [`read`] take recordings of noisefloor, too, and tell the formats apart by their first
//! lines. What a file does not contain is unknown in the recording.
#![forbid(unsafe_code)]

mod benchmarks;
mod file;
mod folder;
mod format;
mod hdr_log;
mod import;
mod jitterdebugger;
mod merge;
mod rt_tests;
mod rtla;
mod sysjitter;

pub use file::{SIZE_MAX, load, read};
pub use folder::{is_folder, load_folder};
