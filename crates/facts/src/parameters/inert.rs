//! A boot parameter that does nothing, and why.

use serde::{Deserialize, Serialize};

/// Why a boot parameter does nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhyInert {
    /// The kernel does not know it.
    Unrecognised,
    /// The kernel was built without what it sets.
    Unsupported,
    /// Another parameter takes it back, or the two do not agree.
    Contradictory,
    /// It belongs to kernels of another age.
    OtherAge,
    /// The kernel knows it but refuses the value.
    Refused,
}

/// A boot parameter that does nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inert {
    /// The parameter as it was given, without its value where that may be a secret.
    pub parameter: String,
    /// Why it does nothing.
    pub why: WhyInert,
    /// The same in words, with what to do instead.
    pub text: String,
}
