//! Options that several commands have, and how values are parsed. Nothing here depends on the machine.

pub(crate) mod moments;
pub(crate) mod output;

use std::path::PathBuf;

use recording::{AtScaleSpec, Step, StepSetting};
use session::{Threads, Trace};
use summary::Limit;
use units::{Cause, Cpu, CpuListError, CpuSet, Nanos, NanosError, Ppm};

pub(crate) use crate::args::moments::MomentOptions;
pub(crate) use crate::args::output::Output;
use crate::destination::Destination;
use crate::file_pattern::file_name;
use crate::outcome::Failure;

/// Whether a measurement is appended to the history.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Saving {
    /// Append the numbers of the measurement to the history of this machine, for `noisefloor
    /// history`.
    #[arg(long)]
    pub(crate) save: bool,
}

/// Where the recording and its report are written.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct RecordingFiles {
    /// Save the recording with its raw series to FILE, for `noisefloor report`; or write its report: a
    /// page (FILE.html), Markdown (FILE.md), or its first picture (FILE.svg). `-`: the recording to
    /// standard output, instead of the report. Can be repeated.
    #[arg(short, long, value_name = "FILE", value_parser = file_name())]
    pub(crate) output: Vec<PathBuf>,
}

impl RecordingFiles {
    pub(crate) fn files(&self) -> Vec<Destination<'_>> {
        outputs(&self.output)
    }
}

/// The same, and whether the numbers are saved.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SaveOptions {
    #[command(flatten)]
    pub(crate) recording: RecordingFiles,
    #[command(flatten)]
    pub(crate) saving: Saving,
}

impl SaveOptions {
    pub(crate) fn files(&self) -> Vec<Destination<'_>> {
        self.recording.files()
    }
}

/// The files that `-o` names.
pub(crate) fn outputs(files: &[PathBuf]) -> Vec<Destination<'_>> {
    files.iter().map(|file| Destination::new("-o", file)).collect()
}

/// The same, each of a form that a report can have.
pub(crate) fn report_outputs(files: &[PathBuf]) -> Result<Vec<Destination<'_>>, Failure> {
    let files = outputs(files);
    match files.iter().find(|to| to.form().is_none()) {
        Some(other) => Err(other.refuse("expected FILE.html, FILE.md or FILE.svg")),
        None => Ok(files),
    }
}

/// Where a report is written that has no recording.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ReportFiles {
    /// Write the report to FILE: a page (FILE.html), Markdown (FILE.md), or its first picture
    /// (FILE.svg). Can be repeated.
    #[arg(short, long, value_name = "FILE", value_parser = file_name())]
    pub(crate) output: Vec<PathBuf>,
}

impl ReportFiles {
    /// The files, each of a form that a report can have.
    pub(crate) fn files(&self) -> Result<Vec<Destination<'_>>, Failure> {
        report_outputs(&self.output)
    }
}

/// The CPUs to measure, and where the recording is saved.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Where {
    /// CPUs to measure, as 0-3,8 [default: all in this process's affinity mask].
    #[arg(short, long, value_name = "LIST", value_parser = cpu_list)]
    pub(crate) cpus: Option<CpuSet>,
    #[command(flatten)]
    pub(crate) saved: SaveOptions,
}

/// The event source.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct SourceOption {
    /// Event source [default: the best available].
    #[arg(long = "source", value_name = "SOURCE")]
    source: Option<Source>,
}

impl SourceOption {
    /// The source as it is recorded; `None`: the best available.
    pub(crate) fn of_recording(self) -> Option<recording::Source> {
        self.source.map(Source::of_recording)
    }

    /// The trace of what other threads and interrupts do; events are stored if that is requested.
    pub(crate) fn trace(self, stores: bool) -> Trace {
        let (source, threads) = (self.of_recording(), Threads::Others);
        Trace::Events { source, threads, stores }
    }
}

/// The priority of measuring threads that are ordinary ones by default.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Priority {
    /// SCHED_FIFO priority of the measuring threads, 1 to 99 (root or CAP_SYS_NICE) [default:
    /// SCHED_OTHER].
    #[arg(long, value_name = "PRIO", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub(crate) fifo: Option<u8>,
}

/// Ranks for which the effect of the noise is reported.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct AtScaleOptions {
    /// Report what the noise would do to so many ranks that wait for each other after each step: numbers
    /// with commas between them [default: 1000,1000000].
    #[arg(long, value_name = "N", value_delimiter = ',',
        value_parser = clap::value_parser!(u64).range(1..))]
    ranks: Vec<u64>,
    /// CPU time of a step of these ranks, with a unit [default: 1ms].
    #[arg(long, value_name = "TIME", value_parser = some_span)]
    step: Option<Nanos>,
}

impl AtScaleOptions {
    /// As it is recorded; `None`: the default.
    pub(crate) fn of_recording(&self) -> Option<AtScaleSpec> {
        let default = AtScaleSpec::default();
        let ranks = Some(&self.ranks).filter(|ranks| !ranks.is_empty());
        (ranks.is_some() || self.step.is_some()).then(|| AtScaleSpec {
            ranks: ranks.cloned().unwrap_or(default.ranks),
            step_ns: self.step.unwrap_or(default.step_ns),
        })
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

/// A length of time that is greater than 0.
pub(crate) fn some_span(text: &str) -> Result<Nanos, Cause> {
    match span(text)? {
        time if time.is_zero() => Err("the time must be greater than 0".into()),
        time => Ok(time),
    }
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

/// Parses `NAME=VALUE`, or several separated by commas. A part without `=` belongs to the value before
/// it: `irqs=0,2-3,thp=never`.
pub(crate) fn step(text: &str) -> Result<Step, Cause> {
    let mut parts: Vec<String> = Vec::new();
    for part in text.split(',') {
        match parts.last_mut().filter(|_| !part.contains('=')) {
            Some(last) => last.extend([",", part]),
            None => parts.push(part.to_owned()),
        }
    }
    let settings = parts.iter().map(|part| setting(part)).collect::<Result<_, _>>()?;
    Ok(Step { settings })
}

/// Parses `NAME=VALUE`.
pub(crate) fn setting(text: &str) -> Result<StepSetting, Cause> {
    let (name, value) = text.split_once('=').ok_or_else(|| {
        format!("'{text}' is not of the form SETTING=VALUE (WAKEUP_PREEMPTION=off)")
    })?;
    let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
    isolate::Tuning::parse(&name, &value)?;
    Ok(StepSetting { name, value })
}

/// A share in percent, greater than 0.
pub(crate) fn percent(text: &str) -> Result<Ppm, Cause> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    match number.parse::<f64>() {
        Ok(percent) if percent > 0.0 && percent <= 1000.0 => Ok(Ppm::new(percent * 1e4)),
        _ => Err("expected a number of percent greater than 0".into()),
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
    fn of_recording(self) -> recording::Source {
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

    /// Check that lists of CPUs are not divided, and several settings are.
    #[test]
    fn steps() {
        let of = |text| {
            let step = step(text).unwrap();
            let pair = |one: StepSetting| format!("{} {}", one.name, one.value);
            step.settings.into_iter().map(pair).collect::<Vec<_>>()
        };
        assert_eq!(of("irqs=0,2-3,thp=never"), ["irqs 0,2-3", "thp never"]);
        assert_eq!(of("HRTICK=on, base_slice_ns=7"), ["HRTICK on", "base_slice_ns 7"]);
        assert!(step("irqs").is_err() && step("irqs=0,=1").is_err());
    }

    /// Check that bare numbers are seconds, and that units are parsed.
    #[test]
    fn durations() {
        assert_eq!(seconds("3"), Ok(Nanos::from_secs(3)));
        assert_eq!(seconds("0.5"), Ok(Nanos::from_millis(500)));
        assert_eq!(seconds("20ms"), Ok(Nanos::from_millis(20)));
        assert!(seconds("soon").unwrap_err().to_string().contains("'soon'"));
    }
}
