//! The options of `noisefloor jitter`: those of Intel's `tif_jitter`, each with a long name. `-h`
//! is one of them, so that help is `--help` only.

use std::path::{Path, PathBuf};

use clap::ArgAction;
use recording::Workload;
use units::{Cause, Cpu, Nanos, NanosError};

use crate::args::span;
use crate::claiming::Claiming;
use crate::destination::Destination;
use crate::isolating::Free;

/// Where `-h` writes.
const HISTOGRAM: &str = "tif.hist";

#[derive(Debug, clap::Args)]
pub(crate) struct JitterArgs {
    /// CPU to measure [default: the first nohz_full CPU, else the first isolated one, else the one
    /// with the fewest interrupts since boot, but not CPU 0].
    #[arg(short = 'a', long, value_name = "CPU", value_parser = one_cpu)]
    pub(crate) cpu: Option<Cpu>,
    /// Number of tests [default: as many as the duration allows].
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) tests: Option<u32>,
    /// Number of times each test runs the workload [default: 1000; without -t, -d and -D as many
    /// as allow more than 100 tests in 20 seconds].
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) loops: Option<u32>,
    /// Duration, in minutes or with a unit (90s); takes precedence over -t [default: 20s].
    #[arg(short = 'd', long, value_name = "TIME", overrides_with = "hours",
        value_parser = minutes)]
    pub(crate) minutes: Option<Nanos>,
    /// Duration, in hours or with a unit.
    #[arg(short = 'D', long, value_name = "TIME", overrides_with = "minutes",
        value_parser = hours)]
    pub(crate) hours: Option<Nanos>,
    /// Print times in cycles of the time stamp counter (TSC) instead of nanoseconds.
    #[arg(short = 'c', long)]
    pub(crate) ticks: bool,
    /// Write the jitter of each test to the file tif.hist.
    #[arg(short = 'h', long)]
    pub(crate) histogram: bool,
    /// Write the jitter of each test to FILE; if the name ends in .hgrm, percentiles for the
    /// plotters of HdrHistogram.
    #[arg(short = 'H', long, value_name = "FILE")]
    pub(crate) histogram_file: Option<PathBuf>,
    /// Workload: tif, memory, memory:SIZE (64K, 8M, 1G), compute, syscall, or exec:LIBRARY.so, a
    /// shared library that exports void nf_workload(void).
    #[arg(short, long, value_name = "NAME", default_value = "tif")]
    pub(crate) workload: Workload,
    /// SCHED_FIFO priority of the workload, 1 to 99 (root or CAP_SYS_NICE); 0: SCHED_OTHER.
    #[arg(long, value_name = "PRIO", default_value = "99",
        value_parser = clap::value_parser!(u8).range(0..=99))]
    pub(crate) fifo: u8,
    /// Save the recording with all tests to FILE, for `noisefloor report`; `-`: to standard output,
    /// instead of the report.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Print help.
    #[arg(long, action = ArgAction::HelpLong)]
    help: Option<bool>,
    #[command(flatten)]
    pub(crate) free: Free,
    #[command(flatten)]
    pub(crate) claiming: Claiming,
}

impl JitterArgs {
    /// The duration, if given.
    pub(crate) fn duration(&self) -> Option<Nanos> {
        self.minutes.or(self.hours)
    }

    /// Where the recording is saved.
    pub(crate) fn destination(&self) -> Option<Destination<'_>> {
        self.output.as_deref().map(|file| Destination::new("-o", file))
    }

    /// The histogram's file.
    pub(crate) fn histogram(&self) -> Option<Destination<'_>> {
        let own = self.histogram_file.as_deref();
        own.map(|file| Destination::new("-H", file)).or_else(|| {
            self.histogram.then_some(Destination::new("-h", Path::new(HISTOGRAM)))
        })
    }
}

fn one_cpu(text: &str) -> Result<Cpu, Cause> {
    let number = text.parse::<u32>().map(Cpu::new);
    number.map_err(|_| format!("'{text}' is not a CPU number").into())
}

fn minutes(text: &str) -> Result<Nanos, NanosError> {
    span(text).or_else(|refused| span(&format!("{text}m")).map_err(|_| refused))
}

fn hours(text: &str) -> Result<Nanos, NanosError> {
    span(text).or_else(|refused| span(&format!("{text}h")).map_err(|_| refused))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    #[command(disable_help_flag = true)]
    struct Line {
        #[command(flatten)]
        jitter: JitterArgs,
    }

    fn parsed(line: &str) -> JitterArgs {
        Line::parse_from(line.split(' ')).jitter
    }

    /// Check that the short options mean the same as in `tif_jitter`.
    #[test]
    fn letters() {
        let args = parsed("jitter -a 3 -t 20 -l 7 -c -h");
        assert_eq!((args.cpu, args.tests), (Some(Cpu::new(3)), Some(20)));
        assert_eq!((args.loops, args.ticks), (Some(7), true));
        let file = |option, file| Some(Destination::new(option, Path::new(file)));
        assert_eq!(args.histogram(), file("-h", "tif.hist"));
        assert_eq!((args.duration(), args.fifo), (None, 99));
        let args = parsed("jitter -h -H my.hist -d1");
        assert_eq!(args.histogram(), file("-H", "my.hist"));
        assert_eq!(args.duration(), Some(Nanos::from_secs(60)));
    }

    /// Check minutes and hours, that the last of both is used, and that units are parsed.
    #[test]
    fn durations() {
        let duration = |line| parsed(line).duration();
        assert_eq!(duration("jitter -d 2 -D 1"), Some(Nanos::from_secs(3600)));
        assert_eq!(duration("jitter -D 1 -d 2"), Some(Nanos::from_secs(120)));
        assert_eq!(duration("jitter -d 0.5"), Some(Nanos::from_secs(30)));
        assert_eq!(duration("jitter -d 90s"), Some(Nanos::from_secs(90)));
    }
}
