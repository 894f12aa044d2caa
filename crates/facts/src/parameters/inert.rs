//! Boot parameters without effect.

use serde::{Deserialize, Serialize};

/// Why a boot parameter has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhyInert {
    /// The kernel does not know it.
    Unrecognised,
    /// The kernel is built without the feature.
    Unsupported,
    /// Another parameter overrides it, or the two contradict each other.
    Contradictory,
    /// It is a parameter of older or newer kernels.
    OtherAge,
    /// The kernel knows the parameter, but rejects the value.
    Refused,
}

/// A boot parameter without effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inert {
    /// The parameter, without its value if that may be secret.
    pub parameter: String,
    /// The kind of reason.
    pub why: WhyInert,
    /// The reason, with a replacement.
    pub text: String,
}
