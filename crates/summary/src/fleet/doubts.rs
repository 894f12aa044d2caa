//! Reasons not to trust a fleet's numbers: files that are left out, and recordings that do not fit, by kind.

use serde::Serialize;

/// The most names of a doubt.
const NAMES: usize = 20;

/// A reason, with the files or nodes that have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FleetDoubt {
    /// Its kind.
    pub code: FleetDoubtCode,
    /// What is wrong, for kinds that have several reasons.
    pub text: String,
    /// The number of files or nodes.
    pub count: usize,
    /// The first of them.
    pub names: Vec<String>,
}

/// The kinds of doubts about a fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FleetDoubtCode {
    /// Files that end in the middle.
    Truncated,
    /// Files that are no recordings.
    Foreign,
    /// Files of a later format.
    Newer,
    /// Recordings with an invalid value.
    Corrupt,
    /// Files that were printed without their series.
    NoSeries,
    /// Files that could not be opened or read.
    Unreadable,
    /// Folders, FIFOs and devices in place of a file.
    NoFile,
    /// Folders without a recording.
    Empty,
    /// Copies of a recording.
    Duplicate,
    /// Nodes of one name whose machines differ.
    SameName,
    /// Recordings of another kind of measurement.
    OtherKind,
    /// Recordings without the metric.
    NoMetric,
    /// Recordings with doubts about their numbers.
    Unreliable,
    /// Labels of nodes without a recording.
    UnknownNode,
}

impl FleetDoubtCode {
    /// Whether a file could not be read: the fleet is not complete.
    pub fn is_left_out(self) -> bool {
        match self {
            Self::Truncated
            | Self::Foreign
            | Self::Newer
            | Self::Corrupt
            | Self::NoSeries
            | Self::Unreadable
            | Self::NoFile
            | Self::Empty => true,
            Self::Duplicate
            | Self::SameName
            | Self::OtherKind
            | Self::NoMetric
            | Self::Unreliable
            | Self::UnknownNode => false,
        }
    }
}

impl FleetDoubt {
    /// Adds a name to the doubt of that kind and reason.
    pub fn add(all: &mut Vec<Self>, code: FleetDoubtCode, text: &str, name: &str) {
        let own = all.iter_mut().find(|one| one.code == code && one.text == text);
        let (text, names) = (text.to_owned(), vec![name.to_owned()]);
        match own {
            None => all.push(Self { code, text, count: 1, names }),
            Some(own) => {
                own.count += 1;
                if own.names.len() < NAMES {
                    own.names.extend(names);
                }
            }
        }
    }
}
