//! Why the bytes of a guest are no answer.

/// Why the bytes of a guest are no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// There are none.
    #[error("the guest sent no answer at all")]
    Empty,
    /// They end in the middle, after this number of bytes.
    #[error("the guest's answer is cut off after {0} bytes")]
    Truncated(usize),
    /// The frame at this offset is damaged.
    #[error("the guest's answer is damaged in the frame at byte {0}")]
    Damaged(usize),
    /// They are those of another program, or of another version.
    #[error("what the guest sent is not an agent's answer")]
    Foreign,
    /// They are complete, but this part is invalid.
    #[error("the guest's answer is not understood: {0}")]
    Invalid(String),
}
