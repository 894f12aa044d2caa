//! The commands, one a file: arguments to a measurement, a report and an exit code.

pub(crate) mod check;
pub(crate) mod facts;
pub(crate) mod generate;
pub(crate) mod jitter;
pub(crate) mod latency;
pub(crate) mod nohz;
pub(crate) mod noise;
pub(crate) mod report;
pub(crate) mod restore;
pub(crate) mod run;
pub(crate) mod slices;
pub(crate) mod ticks;
pub(crate) mod wakers;
