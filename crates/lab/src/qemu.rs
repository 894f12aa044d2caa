//! The QEMU of this machine: where it is, which version, and what that version can do.
//!
//! Sources: two CPUs in instruction-counted time start on QEMU 10 and hang on 7.2; the
//! plugin interface that `counter` speaks is that of QEMU 10.0 (version 4).

use std::path::{Path, PathBuf};
use std::process::Command;

use recording::Mode;

use crate::error::{Error, Kind};

/// The program that emulates x86-64 machines.
const PROGRAM: &str = "qemu-system-x86_64";
/// The variable that names another one.
const VARIABLE: &str = "NOISEFLOOR_QEMU";
/// The first version that runs everything here.
const FULL: u32 = 10;
/// What to install.
const PACKAGE: &str = "install the package qemu-system-x86 (Debian, Ubuntu; on Debian 12 \
                       from backports), qemu-system-x86-core (Fedora) or qemu-x86 (SUSE)";

/// A QEMU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qemu {
    /// The program.
    pub program: PathBuf,
    /// What it says of its version: `10.0.2 (Debian 1:10.0.2+ds-2)`.
    pub version: String,
    major: u32,
}

impl Qemu {
    /// The QEMU named by `NOISEFLOOR_QEMU`, else the one on `PATH`.
    ///
    /// # Errors
    /// `Kind::Qemu` where there is none; names the package.
    pub fn find() -> Result<Self, Error> {
        let program = std::env::var_os(VARIABLE).map_or(PROGRAM.into(), PathBuf::from);
        let output =
            Command::new(&program).arg("--version").output().map_err(|error| {
                let text = format!("no QEMU: {}: {error}; {PACKAGE}", program.display());
                Error::new(Kind::Qemu, text)
            })?;
        Self::parse(&program, &String::from_utf8_lossy(&output.stdout))
    }

    /// Reads what `--version` prints: `QEMU emulator version 10.0.2 (Debian ...)`.
    fn parse(program: &Path, text: &str) -> Result<Self, Error> {
        let line = text.lines().next().unwrap_or_default();
        let version = line.strip_prefix("QEMU emulator version ").map(str::trim);
        let major = version.and_then(|v| v.split('.').next()?.parse().ok());
        let (Some(version), Some(major)) = (version, major) else {
            let text = format!("{} is no QEMU: it says '{line}'", program.display());
            return Err(Error::new(Kind::Qemu, text));
        };
        Ok(Self { program: program.to_owned(), version: version.to_owned(), major })
    }

    /// Whether it can load the counter.
    pub fn can_count(&self) -> bool {
        self.major >= FULL
    }

    /// Refuses what this version would hang on.
    ///
    /// # Errors
    /// `Kind::Qemu`, with the version that would do.
    pub fn refuse(&self, mode: Mode, cpus: u32) -> Result<(), Error> {
        if mode == Mode::Exact && cpus > 1 && self.major < FULL {
            let text = format!(
                "QEMU {} hangs in exact mode with {cpus} CPUs, QEMU {FULL} does not: \
                 {PACKAGE}, or use one CPU",
                self.version
            );
            return Err(Error::new(Kind::Qemu, text));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Qemu, Error> {
        Qemu::parse(Path::new("qemu"), text)
    }

    /// Check what versions say of themselves, and what each can do.
    #[test]
    fn versions() {
        let old =
            parse("QEMU emulator version 7.2.19 (Debian 1:7.2)\nCopyright").unwrap();
        assert_eq!(old.version, "7.2.19 (Debian 1:7.2)");
        assert!(!old.can_count());
        assert!(old.refuse(Mode::Exact, 1).is_ok());
        assert!(old.refuse(Mode::Timed, 2).is_ok());
        assert!(
            old.refuse(Mode::Exact, 2).unwrap_err().to_string().contains("backports")
        );
        let new = parse("QEMU emulator version 10.0.2\n").unwrap();
        assert!(new.can_count() && new.refuse(Mode::Exact, 8).is_ok());
    }

    /// Check that another program is not taken for QEMU.
    #[test]
    fn no_qemu() {
        assert_eq!(parse("busybox 1.36").unwrap_err().kind(), Kind::Qemu);
        assert_eq!(parse("").unwrap_err().kind(), Kind::Qemu);
    }
}
