//! Options that several commands have, and how values are parsed. Nothing here depends on the machine.

pub(crate) mod output;

use std::path::PathBuf;

use stats::Limit;
use units::{Cause, Cpu, CpuListError, CpuSet, Nanos, NanosError, Ppm};

pub(crate) use crate::args::output::Output;
use crate::destination::Destination;

/// The CPUs to measure, and where the recording is saved.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Where {
    /// CPUs to measure, as 0-3,8 [default: all in this process's affinity mask].
    #[arg(short, long, value_name = "LIST", value_parser = cpu_list)]
    pub(crate) cpus: Option<CpuSet>,
    /// Save the recording with its raw series to FILE, for `noisefloor report`; `-`: to standard
    /// output, instead of the report.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

impl Where {
    /// Where the recording is saved.
    pub(crate) fn destination(&self) -> Option<Destination<'_>> {
        self.output.as_deref().map(|file| Destination::new("-o", file))
    }
}

/// Limits; if one is exceeded, the exit code is 1.
#[derive(Debug, Clone, Copy, clap::Args)]
#[command(next_help_heading = "Limits (exit code 1 if exceeded)")]
pub(crate) struct Limits {
    /// Largest share of its time that any CPU may lose, in parts per million.
    #[arg(long, value_name = "PPM", value_parser = ppm)]
    pub(crate) max_noise_ppm: Option<Ppm>,
    /// Longest gap on any CPU, with a unit (50us).
    #[arg(long, value_name = "TIME", value_parser = span)]
    pub(crate) max_gap: Option<Nanos>,
}

impl Limits {
    pub(crate) fn of_noise(self) -> Vec<Limit> {
        let noise = self.max_noise_ppm.map(Limit::noise);
        noise.into_iter().chain(self.max_gap.map(Limit::gap)).collect()
    }
}

pub(crate) fn cpu(text: &str) -> Result<Cpu, CpuListError> {
    text.parse()
}

pub(crate) fn cpu_list(text: &str) -> Result<CpuSet, Cause> {
    let cpus: CpuSet = text.parse()?;
    if cpus.is_empty() { Err("the CPU list is empty".into()) } else { Ok(cpus) }
}

pub(crate) fn span(text: &str) -> Result<Nanos, NanosError> {
    text.parse()
}

/// A bare number is seconds, as in other measuring programs.
pub(crate) fn seconds(text: &str) -> Result<Nanos, NanosError> {
    span(text).or_else(|refused| span(&format!("{text}s")).map_err(|_| refused))
}

/// The same, but greater than 0.
pub(crate) fn some_seconds(text: &str) -> Result<Nanos, Cause> {
    match seconds(text)? {
        time if time.is_zero() => Err("the time must be greater than 0".into()),
        time => Ok(time),
    }
}

fn ppm(text: &str) -> Result<Ppm, Cause> {
    match text.parse::<f64>() {
        Ok(ppm) if (0.0..=1e6).contains(&ppm) => Ok(Ppm::new(ppm)),
        _ => Err("expected a number from 0 to 1000000 (parts per million)".into()),
    }
}

/// Source of the events that gaps are attributed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Source {
    /// eBPF programs attached to tracepoints (root, or CAP_BPF and CAP_PERFMON).
    Bpf,
    /// Trace events, in a separate tracefs instance (root).
    Tracefs,
    /// Counters in /proc, without privileges: totals only, single gaps are not attributed.
    Proc,
}

impl Source {
    pub(crate) fn of_recording(self) -> recording::Source {
        match self {
            Self::Bpf => recording::Source::Bpf,
            Self::Tracefs => recording::Source::Tracefs,
            Self::Proc => recording::Source::Proc,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that bare numbers are seconds, and that units are parsed.
    #[test]
    fn durations() {
        assert_eq!(seconds("3"), Ok(Nanos::from_secs(3)));
        assert_eq!(seconds("0.5"), Ok(Nanos::from_millis(500)));
        assert_eq!(seconds("20ms"), Ok(Nanos::from_millis(20)));
        assert!(seconds("soon").unwrap_err().to_string().contains("'soon'"));
    }
}
