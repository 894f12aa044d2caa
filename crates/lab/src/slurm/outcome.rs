//! The outcome of a cell on a node, as a file.
//!
//! The answer of an exact cell is in the lab's cache, as always; that of a cell in real time is nowhere
//! else.

use std::path::{Path, PathBuf};

use recording::{Answer, Code, Doubt, Ending, HostUse, Mode, Recording};
use serde::{Deserialize, Serialize};

use crate::cells::cell::Ready;
use crate::cells::lab::Lab;
use crate::error::Error;

/// The outcome of a cell.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Outcome {
    /// The node that ran it.
    pub(crate) node: String,
    /// The cell's identity there: in real time, it depends on whether the node has KVM.
    pub(crate) identity: String,
    pub(crate) ended: Ended,
}

/// What messages about a recording would call its file.
const FILE: &str = "the outcome of a cell";

/// How a cell ended on a node.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ended {
    /// With an answer.
    Done {
        /// The guest's recording in real time, as the text of a file.
        recording: Option<String>,
        /// All doubts about the answer.
        doubts: Vec<Doubt>,
        host: Option<HostUse>,
    },
    /// Without an answer of the guest.
    Lost { why: String, console: PathBuf },
    /// The node could not run it.
    Failed(String),
}

impl Ended {
    /// That of a cell with this ending.
    ///
    /// # Errors
    /// The recording cannot be written as JSON.
    pub(crate) fn of(ending: Ending, mode: Mode) -> Result<Self, Error> {
        Ok(match ending {
            Ending::Lost { why, console } => Self::Lost { why, console },
            Ending::Done(answer) => {
                let Answer { recording, host, .. } = *answer;
                let json = (mode == Mode::Timed).then(|| recording.to_json());
                let json = json.transpose().map_err(Error::Inputs)?;
                Self::Done { recording: json, doubts: recording.doubts, host }
            }
        })
    }

    /// Whether it has an answer.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self, Self::Done { .. })
    }
}

impl Outcome {
    /// The ending of the cell; `None` if its answer is no longer in the cache, or cannot be read. `log`
    /// has the output of its task.
    pub(crate) fn ending(self, ready: &Ready, lab: &Lab, log: PathBuf) -> Option<Ending> {
        match self.ended {
            Ended::Lost { why, console } => Some(Ending::Lost { why, console }),
            Ended::Failed(why) => {
                let why = format!("on node {}: {why}", self.node);
                Some(Ending::Lost { why, console: log })
            }
            Ended::Done { recording: Some(recording), host, .. } => {
                let recording = Recording::from_json(&recording, Path::new(FILE)).ok()?;
                let answer = Answer { recording, counts: None, profile: None, host };
                Some(Ending::Done(Box::new(answer)))
            }
            Ended::Done { recording: None, doubts, host } => {
                let differs = doubts.iter().any(|doubt| doubt.code == Code::NotRepeated);
                let mut answer = lab.stored_answer(ready, differs)?;
                answer.recording.doubts = doubts;
                answer.host = host;
                Some(Ending::Done(Box::new(answer)))
            }
        }
    }

    /// The outcome of a cell that a node could not run.
    pub(crate) fn failed(node: String, error: &Error) -> Self {
        let ended = Ended::Failed(units::chain(error));
        Self { node, identity: String::new(), ended }
    }
}
