//! The architectures that programs are built for, by the names that each tool has for them.

use std::env;

/// An architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Architecture {
    X86_64,
    Aarch64,
}

impl Architecture {
    const ALL: [Self; 2] = [Self::X86_64, Self::Aarch64];

    /// This machine's.
    pub(crate) fn of_this_machine() -> Result<Self, String> {
        Self::named(env::consts::ARCH)
    }

    /// By its name in Rust, in RPM or in Debian.
    pub(crate) fn named(name: &str) -> Result<Self, String> {
        let is_named = |one: &Self| [one.name(), one.debian()].contains(&name);
        let known = || Self::ALL.map(Self::debian).join(" and ");
        let found = Self::ALL.into_iter().find(is_named);
        found.ok_or_else(|| format!("packages are made for {}, not for {name}", known()))
    }

    /// Its name in Rust, in RPM and in the kernel (`uname -m`).
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64",
            Self::Aarch64 => "aarch64",
        }
    }

    /// Its name in Debian.
    pub(crate) const fn debian(self) -> &'static str {
        match self {
            Self::X86_64 => "amd64",
            Self::Aarch64 => "arm64",
        }
    }

    /// Its target in Rust.
    pub(crate) const fn triple(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-unknown-linux-gnu",
            Self::Aarch64 => "aarch64-unknown-linux-gnu",
        }
    }

    /// Its name in the GNU tools and in Debian's folders of libraries.
    pub(crate) const fn gnu(self) -> &'static str {
        match self {
            Self::X86_64 => "x86_64-linux-gnu",
            Self::Aarch64 => "aarch64-linux-gnu",
        }
    }

    /// Whether programs for it are built on a machine of another architecture.
    pub(crate) fn is_foreign(self) -> bool {
        self.name() != env::consts::ARCH
    }

    /// A program of the GNU tools (`gcc`, `strip`) for it.
    pub(crate) fn tool(self, name: &str) -> String {
        if self.is_foreign() { format!("{}-{name}", self.gnu()) } else { name.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that an architecture is found by each of its names, and that others are refused.
    #[test]
    fn names() {
        for name in ["arm64", "aarch64"] {
            assert_eq!(Architecture::named(name), Ok(Architecture::Aarch64));
        }
        let error = Architecture::named("mips").unwrap_err();
        assert_eq!(error, "packages are made for amd64 and arm64, not for mips");
    }
}
