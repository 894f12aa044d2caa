//! Why what a guest sent is no answer.

use std::fmt;

/// Why what a guest sent is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Broken {
    /// Nothing was sent.
    Nothing,
    /// It ends in the middle, after so many bytes.
    CutOff(usize),
    /// A frame, the one that begins at that byte, is not what was sent.
    Damaged(usize),
    /// It is something else: another program's, or of another version.
    Foreign,
    /// It arrived whole, and is not understood: what in it.
    Strange(String),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("the guest sent no answer at all"),
            Self::CutOff(bytes) => {
                write!(f, "the guest's answer is cut off after {bytes} bytes")
            }
            Self::Damaged(at) => {
                write!(f, "the guest's answer is damaged in the frame at byte {at}")
            }
            Self::Foreign => f.write_str("what the guest sent is not an agent's answer"),
            Self::Strange(what) => {
                write!(f, "the guest's answer is not understood: {what}")
            }
        }
    }
}

impl std::error::Error for Broken {}
