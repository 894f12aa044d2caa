//! What a file of another tool contains, as a recording.

use std::{fmt, mem};

use facts::Facts;
use jiff::Timestamp;
use recording::{
    Body, Code, Doubt, ImportedLengths, ImportedSeries, ImportedSpec, Kind, Moments,
    Recording,
};
use serde_json::Value;
use serde_json::error::Category;
use units::{CpuSet, Nanos};

use crate::merge::merged;

/// Why a file cannot be read.
pub(crate) type Failure = (Kind, String);

/// A file with an invalid value.
pub(crate) fn corrupt(text: impl fmt::Display) -> Failure {
    (Kind::Corrupt, text.to_string())
}

/// A file that ends in the middle.
pub(crate) fn truncated(text: impl fmt::Display) -> Failure {
    (Kind::Truncated, text.to_string())
}

/// A file that is none of those that can be read.
pub(crate) fn foreign(text: impl fmt::Display) -> Failure {
    (Kind::Foreign, text.to_string())
}

/// A mistake in JSON, with its place.
pub(crate) fn of_json(error: serde_json::Error) -> Failure {
    let place = format!("line {} column {}", error.line(), error.column());
    match error.classify() {
        Category::Eof => truncated(format!("ends in the middle, at {place}: truncated")),
        Category::Syntax | Category::Data | Category::Io => corrupt(error),
    }
}

/// The contents of a file.
#[derive(Debug)]
pub(crate) struct Import {
    /// The tool and its version.
    pub(crate) tool: String,
    /// When it was measured, if the file says so.
    pub(crate) taken: Option<Timestamp>,
    pub(crate) command: Option<String>,
    pub(crate) threshold_ns: Option<Nanos>,
    pub(crate) resolution_ns: Option<Nanos>,
    pub(crate) lengths: Vec<ImportedLengths>,
    /// Known facts: the key, as `kernel.release`, and the value.
    pub(crate) facts: Vec<(&'static str, Value)>,
    pub(crate) doubts: Vec<Doubt>,
}

impl Import {
    /// A file of a tool, of which nothing else is known.
    pub(crate) fn by(tool: impl Into<String>, lengths: Vec<ImportedLengths>) -> Self {
        Self {
            tool: tool.into(),
            taken: None,
            command: None,
            threshold_ns: None,
            resolution_ns: None,
            lengths,
            facts: Vec::new(),
            doubts: Vec::new(),
        }
    }

    /// Adds a reason not to trust a number: it is known within bounds, or not at all.
    pub(crate) fn doubt(&mut self, text: impl Into<String>) {
        self.doubts.push(Doubt::new(Code::Imprecise, text));
    }

    /// Makes one series of the lengths of several threads on one CPU, or on none that is named.
    fn merge(&mut self) {
        let (lengths, several) = merged(mem::take(&mut self.lengths));
        self.lengths = lengths;
        for cpu in several {
            self.doubt(match cpu {
                Some(cpu) => format!(
                    "several threads ran on CPU {cpu}: their lengths are one series"
                ),
                None => "several threads were not pinned: their lengths are one series"
                    .to_owned(),
            });
        }
    }

    /// The recording. A file without the time of the measurement was written at its end.
    pub(crate) fn recording(mut self, written: Option<Timestamp>) -> Recording {
        self.merge();
        let cpus: CpuSet = self.lengths.iter().filter_map(|one| one.cpu).collect();
        let taken = self.taken.or(written);
        let moment = |at: Timestamp| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let spec = ImportedSpec {
            measured_by: self.tool.clone(),
            cpus,
            threshold_ns: self.threshold_ns,
            resolution_ns: self.resolution_ns,
        };
        let series = ImportedSeries { command: self.command, lengths: self.lengths };
        Recording {
            hardware: None,
            taken: taken.map_or_else(Recording::moment, moment),
            tool: self.tool,
            facts: Facts::of_known(self.facts),
            body: Body::Imported { spec, series },
            doubts: self.doubts,
            moments: Moments::default(),
            repeat: None,
        }
    }
}
