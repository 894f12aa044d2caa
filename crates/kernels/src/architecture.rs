//! The architectures of kernels that guests can boot.

use serde::{Deserialize, Serialize};

/// The architecture of a kernel, and of the guest that boots it.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Architecture {
    /// 64-bit x86, Debian's amd64.
    #[default]
    #[serde(rename = "x86_64")]
    X86_64,
    /// 64-bit Arm.
    Arm64,
}

impl Architecture {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::X86_64, Self::Arm64];

    /// Its name in Debian: `amd64`, `arm64`.
    pub const fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Arm64 => "arm64",
        }
    }

    /// Its name in `uname -m` and in Rust: `x86_64`, `aarch64`.
    pub const fn machine(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Arm64 => "aarch64",
        }
    }

    /// Whether it is 64-bit x86, which names of kernels do not state.
    pub fn is_usual(&self) -> bool {
        *self == Self::X86_64
    }
}
