//! The formats of files, distinguished by their first lines.

use std::path::Path;

use jiff::Timestamp;
use recording::{Error, Recording};

use crate::benchmarks::{
    BenchmarkFile, criterion, divan, go_testing, google_benchmark, hyperfine, jmh,
    numbers, perf_stat, pytest_benchmark, table,
};
use crate::import::{Failure, Import, foreign};
use crate::{hdr_log, jitterdebugger, rt_tests, rtla, sysjitter};

/// A format that is not noisefloor's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// JSON of a program of rt-tests.
    RtTests,
    /// A histogram of `rtla timerlat` or `rtla osnoise`.
    RtlaHistogram,
    /// The table of `rtla osnoise top`.
    OsnoiseTop,
    /// The summary of sysjitter.
    Sysjitter,
    /// A log of HdrHistogram.
    HdrLog,
    /// The results of jitterdebugger.
    Jitterdebugger,
    /// JSON of hyperfine.
    Hyperfine,
    /// JSON of Google Benchmark.
    GoogleBenchmark,
    /// A sample of Criterion.
    Criterion,
    /// The table of divan.
    Divan,
    /// JSON of JMH.
    Jmh,
    /// The text of Go's benchmarks.
    Go,
    /// The same in JSON.
    GoJson,
    /// JSON of pytest-benchmark.
    Pytest,
    /// Comma-separated counts of perf stat.
    PerfCsv,
    /// JSON of the same.
    PerfJson,
    /// Comma-separated values with a head.
    Table,
    /// Numbers, one a line.
    Numbers,
    /// One that is known and cannot be read.
    Unreadable(&'static str),
}

/// What names a format that cannot be read, with what to use instead.
const UNREADABLE: [(&str, &str); 4] = [
    ("T: 0 (", "the terminal output of cyclictest: save its results with --json=FILE"),
    (
        "Timer Latency",
        "the table of rtla timerlat top: rtla timerlat hist has the quantiles that it lacks",
    ),
    ("# cpu_mhz:", "raw data of sysjitter: save the summary that it prints"),
    (
        "1/(1-Percentile)",
        "percentiles of HdrHistogram: save the log that they were made of",
    ),
];

/// The keys that distinguish formats of JSON. Those of the most particular formats are first.
const KEYS: [(&[&str], Format); 11] = [
    (&["counter-value", "event"], Format::PerfJson),
    (&["Action", "Package"], Format::GoJson),
    (&["jmhVersion", "benchmark"], Format::Jmh),
    (&["iters", "sampling_mode"], Format::Criterion),
    (&["machine_info"], Format::Pytest),
    (&["context", "library_build_type"], Format::GoogleBenchmark),
    (&["context", "benchmarks"], Format::GoogleBenchmark),
    (&["sysinfo", "resolution_in_ns", "cpu"], Format::Jitterdebugger),
    (&["results", "command"], Format::Hyperfine),
    (
        &["point_estimate", "confidence_interval"],
        Format::Unreadable(
            "estimates of Criterion: name its sample.json, or the folder target/criterion",
        ),
    ),
    (
        &["full_id", "directory_name"],
        Format::Unreadable(
            "the name of a benchmark of Criterion: name the sample.json beside it, or the folder \
             target/criterion",
        ),
    ),
];

/// The comment with which perf begins the files that it opens itself (`-o`).
const PERF: &str = "# started on ";

impl Format {
    /// The format of a file that begins with these bytes; `None` if it is none of these.
    pub(crate) fn of(head: &[u8]) -> Option<Self> {
        let head = String::from_utf8_lossy(head);
        let head = head.trim_start();
        if let Some((_, rest)) =
            head.strip_prefix(PERF).and_then(|rest| rest.split_once('\n'))
        {
            let is_json = rest.trim_start().starts_with('{');
            return Some(if is_json { Self::PerfJson } else { Self::PerfCsv });
        }
        let has_line = |start: &str| head.lines().any(|line| line.starts_with(start));
        if head.starts_with(['{', '[']) {
            return json(head);
        }
        if has_line("# RTLA timerlat histogram") || has_line("# RTLA osnoise histogram") {
            return Some(Self::RtlaHistogram);
        }
        if head.contains("Operating System Noise") {
            return Some(Self::OsnoiseTop);
        }
        if has_line("core_i:") {
            return Some(Self::Sysjitter);
        }
        if head.contains("[Histogram log format version")
            || has_line("\"StartTimestamp\"")
        {
            return Some(Self::HdrLog);
        }
        let known = UNREADABLE.iter().find(|(start, _)| {
            head.lines().any(|line| line.trim_start().contains(start))
        });
        known.map(|(_, what)| Self::Unreadable(what)).or_else(|| benchmarks(head))
    }

    /// The recording of such a file; `written` is when the file was written, if that is known.
    ///
    /// # Errors
    /// `Kind::Foreign`, `Newer`, `Truncated` or `Corrupt`, with the place.
    pub(crate) fn parse(
        self,
        text: &str,
        written: Option<Timestamp>,
        file: &Path,
    ) -> Result<Recording, Error> {
        let lengths =
            |import: Result<Import, Failure>| import.map(|it| it.recording(written));
        let benchmarks =
            |found: Result<BenchmarkFile, Failure>| found?.recording(written);
        let recording = match self {
            Self::RtTests => lengths(rt_tests::parse(text)),
            Self::RtlaHistogram => lengths(rtla::histogram::parse(text)),
            Self::OsnoiseTop => lengths(rtla::osnoise_top::parse(text)),
            Self::Sysjitter => lengths(sysjitter::parse(text)),
            Self::HdrLog => lengths(hdr_log::parse(text)),
            Self::Jitterdebugger => lengths(jitterdebugger::parse(text)),
            Self::Hyperfine => benchmarks(hyperfine::parse(text)),
            Self::GoogleBenchmark => benchmarks(google_benchmark::parse(text)),
            Self::Criterion => benchmarks(criterion::parse(text, file)),
            Self::Divan => benchmarks(divan::parse(text)),
            Self::Jmh => benchmarks(jmh::parse(text)),
            Self::Go => benchmarks(go_testing::parse(text)),
            Self::GoJson => benchmarks(go_testing::parse_json(text)),
            Self::Pytest => benchmarks(pytest_benchmark::parse(text)),
            Self::PerfCsv => benchmarks(perf_stat::parse_csv(text)),
            Self::PerfJson => benchmarks(perf_stat::parse_json(text)),
            Self::Table => benchmarks(table::parse(text)),
            Self::Numbers => benchmarks(numbers::parse(text)),
            Self::Unreadable(what) => Err(foreign(what)),
        };
        recording.map_err(|(kind, text)| Error::new(kind, file, text))
    }
}

/// The format of JSON by its keys: a key cannot be in a text, where its quotes are escaped.
fn json(head: &str) -> Option<Format> {
    let has = |keys: &[&str]| keys.iter().all(|key| head.contains(&format!("\"{key}\"")));
    // Almost all files are recordings, of which this is the first key.
    if head.starts_with("{\"format\"") {
        return None;
    }
    let is_rt_tests = head.contains("\"rt_test_version") || has(&["file_version"]);
    if is_rt_tests && !has(&["format"]) {
        return Some(Format::RtTests);
    }
    KEYS.iter().find(|(keys, _)| has(keys)).map(|(_, format)| *format)
}

/// The format of the text of a benchmark.
fn benchmarks(head: &str) -> Option<Format> {
    if head.lines().any(go_testing::is_result) {
        return Some(Format::Go);
    }
    if head.lines().any(divan::is_head) {
        return Some(Format::Divan);
    }
    let first = head.lines().find(|line| !numbers::is_comment(line))?;
    if perf_stat::separator(first).is_some() {
        return Some(Format::PerfCsv);
    }
    if let Some(what) = table::other(first) {
        return Some(Format::Unreadable(what));
    }
    if numbers::is_number(first) {
        return Some(Format::Numbers);
    }
    table::is_table(head).then_some(Format::Table)
}

#[cfg(test)]
mod tests {
    use recording::Kind;

    use super::*;

    /// Check that formats are distinguished, and that recordings and other texts are none of them.
    #[test]
    fn first_lines() {
        for (text, format) in [
            ("{\n \"file_version\": 1,", Some(Format::RtTests)),
            ("# RTLA timerlat histogram\n", Some(Format::RtlaHistogram)),
            ("\x1b[2J   Operating System Noise  \n", Some(Format::OsnoiseTop)),
            ("core_i: 0 1\n", Some(Format::Sysjitter)),
            ("#[Histogram log format version 1.3]\n", Some(Format::HdrLog)),
            ("\"StartTimestamp\",\"Interval_Length\"\n", Some(Format::HdrLog)),
            ("{\"format\":1,\"kind\":\"noise\"}", None),
            ("{\"format\":1,\"command\":\"\\\"file_version\\\"\"}", None),
            ("hello\n", None),
            ("", None),
        ] {
            assert_eq!(Format::of(text.as_bytes()), format, "{text}");
        }
        let unreadable = Format::of(b"T: 0 ( 1234) P:80 I:1000").unwrap();
        let error = unreadable.parse("", None, "f".as_ref()).unwrap_err();
        assert_eq!(error.kind(), Kind::Foreign);
    }
}
