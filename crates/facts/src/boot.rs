//! Boot parameters: what was asked of the kernel, and which of it does nothing.

use serde::{Deserialize, Serialize};

use crate::fact::group;

/// Why a boot parameter does nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Idle {
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
    pub why: Idle,
    /// The same in words, with what to do instead.
    pub text: String,
}

group! {
    /// Boot parameters.
    "boot" Boot {
        /// The parameters as given, without values that may be secrets.
        parameters: Vec<String>,
        /// The ones that do nothing.
        inert: Vec<Inert>,
    }
}
