//! The QEMU of this machine: where it is, which version, and what that version supports.
//!
//! Source: two CPUs in instruction-counted time start on QEMU 10.0 and 11.1 and hang on 7.2; the
//! versions between have not been tried. arm64 guests need a second serial port, which QEMU's
//! `virt` has since 9.1. Whether it loads the counter is tried (`counting`).

use std::path::{self, Path, PathBuf};
use std::process::Command;

use experiments::CellPlan;
use kernels::Architecture;
use recording::Mode;

use crate::error::{Error, WithPackage};
use crate::installation::{QEMU_ARM64_PACKAGE, QEMU_PACKAGE, variable};

/// The program that emulates machines, the variable that names another one, and how to install it.
const fn names(architecture: Architecture) -> (&'static str, &'static str, &'static str) {
    match architecture {
        Architecture::X86_64 => ("qemu-system-x86_64", "NOISEFLOOR_QEMU", QEMU_PACKAGE),
        Architecture::Arm64 => {
            ("qemu-system-aarch64", "NOISEFLOOR_QEMU_ARM64", QEMU_ARM64_PACKAGE)
        }
    }
}

/// The first version that is known to start several CPUs in exact mode.
const SEVERAL_CPUS: u32 = 10;
/// The first major version that has run arm64 guests.
const ARM64: u32 = 10;

/// A QEMU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Qemu {
    /// The program.
    pub program: PathBuf,
    /// Its version as it prints it: `10.0.2 (Debian 1:10.0.2+ds-2)`.
    pub version: String,
    major: u32,
}

impl Qemu {
    /// The QEMU for guests of that architecture: named by `NOISEFLOOR_QEMU` or `NOISEFLOOR_QEMU_ARM64`, else
    /// the one on `PATH`.
    ///
    /// # Errors
    /// `Kind::Qemu` if there is none, with the package to install.
    pub fn find(architecture: Architecture) -> Result<Self, Error> {
        let (usual, name, package) = names(architecture);
        let program = variable(name);
        let program = program.map_or(usual.into(), |name| from_anywhere(name.into()));
        let output = Command::new(&program).arg("--version").output();
        let output = output.map_err(|cause| {
            Error::NoQemu(program.clone(), WithPackage(cause, package))
        })?;
        Self::parse(&program, &String::from_utf8_lossy(&output.stdout))
    }

    /// Parses what `--version` prints: `QEMU emulator version 10.0.2 (Debian ...)`.
    fn parse(program: &Path, text: &str) -> Result<Self, Error> {
        let line = text.lines().next().unwrap_or_default();
        let version = line.strip_prefix("QEMU emulator version ").map(str::trim);
        let major = version.and_then(|v| v.split('.').next()?.parse().ok());
        let (Some(version), Some(major)) = (version, major) else {
            let output = match line {
                "" => "--version prints nothing".to_owned(),
                line => format!("--version prints '{line}'"),
            };
            return Err(Error::NotQemu(program.to_owned(), output));
        };
        Ok(Self { program: program.to_owned(), version: version.to_owned(), major })
    }

    /// Refuses a cell with which this version would hang.
    ///
    /// # Errors
    /// `Kind::Qemu`, with the version that works.
    pub fn refuse(
        &self,
        plan: &CellPlan,
        architecture: Architecture,
    ) -> Result<(), Error> {
        let cpus = plan.machine.cpus;
        if architecture == Architecture::Arm64 && self.major < ARM64 {
            let (cell, version) = (plan.name.clone(), self.version.clone());
            return Err(Error::OldForArm64(cell, version, ARM64));
        }
        if plan.mode == Mode::Exact && cpus > 1 && self.major < SEVERAL_CPUS {
            let (cell, version) = (plan.name.clone(), self.version.clone());
            return Err(Error::SeveralCpus(cell, cpus, version, SEVERAL_CPUS));
        }
        Ok(())
    }
}

/// A program's absolute path; a name alone is searched for in `PATH`.
fn from_anywhere(program: PathBuf) -> PathBuf {
    match program.components().count() {
        1 => program,
        _ => path::absolute(&program).unwrap_or(program),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Kind;
    use crate::guest::request::plan;

    fn parse(text: &str) -> Result<Qemu, Error> {
        Qemu::parse(Path::new("qemu"), text)
    }

    /// Check that versions are parsed.
    #[test]
    fn versions() {
        let old =
            parse("QEMU emulator version 7.2.19 (Debian 1:7.2)\nCopyright").unwrap();
        assert_eq!(old.version, "7.2.19 (Debian 1:7.2)");
        assert_eq!(old.major, 7);
        assert_eq!(parse("QEMU emulator version 10.0.2\n").unwrap().major, 10);
    }

    /// Check that an old version is refused for arm64, and for more than one CPU in exact mode only,
    /// with the cell that needs them and both solutions.
    #[test]
    fn refusals() {
        let qemu =
            |version| parse(&format!("QEMU emulator version {version}\n")).unwrap();
        let (old, new) = (qemu("7.2.19"), qemu("10.0.2"));
        let refuse = |qemu: &Qemu, mode, cpus, architecture| {
            let refused = qemu.refuse(&plan(mode, cpus), architecture);
            refused.map_err(|why| why.to_string())
        };
        let [x86, arm] = Architecture::ALL;
        assert!(refuse(&old, Mode::Exact, 1, x86).is_ok());
        assert!(refuse(&old, Mode::Timed, 2, x86).is_ok());
        assert!(refuse(&new, Mode::Exact, 8, x86).is_ok());
        assert!(refuse(&new, Mode::Exact, 1, arm).is_ok());
        let text = refuse(&old, Mode::Timed, 1, arm).unwrap_err();
        assert!(
            text.contains("no second serial port") && text.contains("qemu-system-arm")
        );
        let text = refuse(&old, Mode::Exact, 2, x86).unwrap_err();
        assert!(text.starts_with("p idle needs 2 CPUs, and QEMU 7.2.19 hangs"), "{text}");
        assert!(text.contains("backports") && text.ends_with("--set cpus=1"), "{text}");
    }

    /// Check that a path becomes absolute, since guests run in folders of their own, and that
    /// a name stays one.
    #[test]
    fn paths() {
        let here = std::env::current_dir().unwrap();
        assert_eq!(from_anywhere("./qemu".into()), here.join("qemu"));
        assert_eq!(from_anywhere("/bin/qemu".into()), Path::new("/bin/qemu"));
        assert_eq!(from_anywhere("qemu".into()), Path::new("qemu"));
    }

    /// Check that another program is not taken for QEMU.
    #[test]
    fn no_qemu() {
        assert_eq!(parse("busybox 1.36").unwrap_err().kind(), Kind::Qemu);
        let text = parse("").unwrap_err().to_string();
        assert_eq!(text, "failed to use qemu as QEMU: --version prints nothing");
    }
}
