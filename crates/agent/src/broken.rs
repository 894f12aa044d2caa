//! Why what a guest sent is no answer.

/// Why what a guest sent is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// Nothing was sent.
    #[error("the guest sent no answer at all")]
    Nothing,
    /// It ends in the middle, after so many bytes.
    #[error("the guest's answer is cut off after {0} bytes")]
    CutOff(usize),
    /// A frame, the one that begins at that byte, is not what was sent.
    #[error("the guest's answer is damaged in the frame at byte {0}")]
    Damaged(usize),
    /// It is something else: another program's, or of another version.
    #[error("what the guest sent is not an agent's answer")]
    Foreign,
    /// It arrived whole, and is not understood: what in it.
    #[error("the guest's answer is not understood: {0}")]
    Strange(String),
}
