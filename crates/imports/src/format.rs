//! The formats of files, distinguished by their first lines.

use std::path::Path;

use jiff::Timestamp;
use recording::{Error, Kind, Recording};

use crate::import::Import;
use crate::{hdr_log, rt_tests, rtla, sysjitter};

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

impl Format {
    /// The format of a file that begins with these bytes; `None` if it is none of these.
    pub(crate) fn of(head: &[u8]) -> Option<Self> {
        let head = String::from_utf8_lossy(head);
        let head = head.trim_start();
        let has_line = |start: &str| head.lines().any(|line| line.starts_with(start));
        if head.starts_with('{') {
            // Almost all files are recordings, of which this is the first key.
            if head.contains("\"format\"") {
                return None;
            }
            let is_one =
                head.contains("\"rt_test_version") || head.contains("\"file_version\"");
            return is_one.then_some(Self::RtTests);
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
        known.map(|(_, what)| Self::Unreadable(what))
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
        let import: Result<Import, (Kind, String)> = match self {
            Self::RtTests => rt_tests::parse(text),
            Self::RtlaHistogram => rtla::histogram::parse(text),
            Self::OsnoiseTop => rtla::osnoise_top::parse(text),
            Self::Sysjitter => sysjitter::parse(text),
            Self::HdrLog => hdr_log::parse(text),
            Self::Unreadable(what) => Err((Kind::Foreign, what.to_owned())),
        };
        let import = import.map_err(|(kind, text)| Error::new(kind, file, text))?;
        Ok(import.recording(written))
    }
}

#[cfg(test)]
mod tests {
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
