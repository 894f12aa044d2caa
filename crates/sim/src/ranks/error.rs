//! Why noise at scale cannot be simulated.

/// A failure.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A recording cannot be used.
    #[error("{name} {why}")]
    Input {
        /// Its name.
        name: String,
        /// Why, as the end of the sentence.
        why: String,
    },
    /// A parameter is impossible.
    #[error("{0}")]
    Spec(String),
}
