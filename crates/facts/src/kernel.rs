//! Which kernel runs: release, flavour, distribution, architecture, configuration.

use serde::{Deserialize, Serialize};

use crate::fact::group;

/// What the release's name says about how the kernel was built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Flavour {
    /// Built for everybody, or the name does not say.
    Generic,
    /// `PREEMPT_RT`.
    Rt,
    /// For virtual machines of a cloud.
    Cloud,
    /// For low latency (Ubuntu).
    Lowlatency,
}

group! {
    /// Which kernel runs.
    "kernel" Kernel {
        /// `uname -r`: `6.1.0-56-cloud-amd64`.
        release: String,
        /// `uname -v`: `#1 SMP PREEMPT_DYNAMIC Debian 6.1.192-2`.
        version: String,
        /// What the release's name says about how it was built.
        flavour: Flavour,
        /// The distribution's own name for itself.
        distribution: String,
        /// `x86_64`, `aarch64`, ...
        arch: String,
        /// The file the kernel's configuration was found in.
        config: String,
    }
}
