//! The syntax of kernel names: `running`, a path, `debian:[SUITE/]VERSION[-FLAVOUR]`, or
//! `build:SOURCE,BASE...` (`crate::build_name`).
//!
//! Debian names a kernel package `linux-image-ABI[-FLAVOUR]-ARCH[-unsigned]`, where ARCH is `amd64` or
//! `arm64`; names of kernels end with `-arm64` for the latter, and with neither for the former. The
//! ABI is `6.1.0-56` or `6.12.117+deb12`, and of a release candidate `7.3`; VERSION is the
//! beginning of an ABI. Packages of other shapes (`linux-image-amd64`, `-dbg`) hold no
//! kernel.

use std::fmt;
use std::path::PathBuf;

use crate::architecture::Architecture;
use crate::build_name::{BUILD, BuildNameError, BuildSpec};

const DEBIAN: &str = "debian:";

/// Why a text names no kernel.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    /// It is empty.
    #[error("no kernel is named: running, a path, debian:6.12 or build:debian:6.12,lean")]
    Empty,
    /// What follows `debian:`, and the part before its slash, which is no suite.
    #[error(
        "{DEBIAN}{0}: '{1}' is not a suite of Debian's: write \
         {DEBIAN}trixie-backports/6.18-cloud"
    )]
    Suite(String, String),
    /// What follows `debian:`, and the part of it that is no flavour.
    #[error(
        "{DEBIAN}{0}: '{1}' is no flavour of Debian's kernels: leave it out, or \
         write cloud or rt, and -arm64 behind it for that architecture"
    )]
    Flavour(String, String),
    /// There is no version.
    #[error(
        "'{DEBIAN}{0}' has no version: write {DEBIAN}6.1, {DEBIAN}6.12-cloud, or all of \
         one as {DEBIAN}6.1.0-56-rt"
    )]
    Version(String),
    /// What follows `build:` names no kernel to build.
    #[error(transparent)]
    Build(#[from] BuildNameError),
}

/// Checks the syntax of a kernel's name.
///
/// # Errors
/// It is empty, no version and flavour follow `debian:`, or no source follows `build:`.
pub fn check_name(text: &str) -> Result<(), NameError> {
    KernelSpec::parse(text).map(drop)
}

/// A parsed name of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KernelSpec {
    /// The kernel of this machine.
    Running,
    /// An image in a file.
    File(PathBuf),
    /// A stock kernel of Debian's.
    Debian(DebianSpec),
    /// A kernel that is built from its source.
    Build(Box<BuildSpec>),
}

/// A stock kernel of Debian's: `6.1`, `6.1.0-56-cloud`, `trixie-backports/6.18-rt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DebianSpec {
    /// The only suite that it may be from.
    suite: Option<String>,
    version: String,
    flavour: Flavour,
    architecture: Architecture,
}

/// The variant of a kernel of Debian's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flavour {
    Generic,
    Cloud,
    Rt,
}

impl KernelSpec {
    /// Parses a name. What is neither `running` nor Debian's is a path.
    pub(crate) fn parse(text: &str) -> Result<Self, NameError> {
        match text {
            "" => Err(NameError::Empty),
            "running" => Ok(Self::Running),
            _ if text.starts_with(BUILD) => {
                Ok(Self::Build(Box::new(BuildSpec::parse(text)?)))
            }
            _ => match text.strip_prefix(DEBIAN) {
                None => Ok(Self::File(PathBuf::from(text))),
                Some(rest) => DebianSpec::parse(rest).map(Self::Debian),
            },
        }
    }
}

impl DebianSpec {
    /// Parses what follows `debian:`; an `-amd64` at the end is implied.
    pub(crate) fn parse(text: &str) -> Result<Self, NameError> {
        let own = || text.to_owned();
        let (suite, kernel) = match text.split_once('/') {
            Some((suite, kernel)) => (Some(suite), kernel),
            None => (None, text),
        };
        if let Some(suite) = suite.filter(|suite| !is_suite(suite)) {
            return Err(NameError::Suite(own(), suite.to_owned()));
        }
        let (kernel, architecture) =
            without_architecture(kernel).unwrap_or((kernel, Architecture::X86_64));
        let spec = Self::split(kernel, architecture);
        if is_version(&spec.version) {
            return Ok(Self { suite: suite.map(str::to_owned), ..spec });
        }
        let (version, rest) = spec.version.split_once('-').unwrap_or((&spec.version, ""));
        if is_version(version) {
            return Err(NameError::Flavour(own(), rest.to_owned()));
        }
        Err(NameError::Version(own()))
    }

    /// The kernel that a package is named after, if it is.
    pub(crate) fn of_package(name: &str) -> Option<Self> {
        let name = name.strip_prefix("linux-image-")?;
        let name = name.strip_suffix("-unsigned").unwrap_or(name);
        let (name, architecture) = without_architecture(name)?;
        let spec = Self::split(name, architecture);
        is_version(&spec.version).then_some(spec)
    }

    /// Version and flavour; neither is checked.
    fn split(text: &str, architecture: Architecture) -> Self {
        let (version, flavour) = match text.rsplit_once('-') {
            Some((version, "cloud")) => (version, Flavour::Cloud),
            Some((version, "rt")) => (version, Flavour::Rt),
            _ => (text, Flavour::Generic),
        };
        Self { suite: None, version: version.to_owned(), flavour, architecture }
    }

    /// Whether the name matches that kernel: flavour and architecture are the same, and the version is all of the
    /// other's or its beginning, up to where a number ends.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let rest = other.version.strip_prefix(&self.version);
        let ends = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_alphanumeric());
        self.has_flavour_of(other) && rest.is_some_and(ends)
    }

    /// The shortest spec that covers this one: major and minor version, and the flavour.
    pub(crate) fn short(&self) -> Self {
        let version = major_minor(&self.version).to_owned();
        Self { suite: None, version, ..self.clone() }
    }

    /// Whether it has no more than a major and a minor version.
    pub(crate) fn is_short(&self) -> bool {
        self.version == major_minor(&self.version)
    }

    /// The only suite that it may be from.
    pub(crate) fn suite(&self) -> Option<&str> {
        self.suite.as_deref()
    }

    /// What is written after `debian:` and a suite.
    pub(crate) fn name(&self) -> String {
        let architecture = match self.architecture {
            Architecture::X86_64 => "",
            Architecture::Arm64 => "-arm64",
        };
        format!("{}{}{architecture}", self.version, self.flavour.suffix())
    }

    /// Whether the flavours are the same, and the architectures.
    pub(crate) fn has_flavour_of(&self, other: &Self) -> bool {
        (self.flavour, self.architecture) == (other.flavour, other.architecture)
    }

    /// The architecture.
    pub(crate) fn architecture(&self) -> Architecture {
        self.architecture
    }

    pub(crate) fn version(&self) -> &str {
        &self.version
    }
}

/// A name without the architecture at its end, and that one.
fn without_architecture(name: &str) -> Option<(&str, Architecture)> {
    Architecture::ALL.into_iter().find_map(|architecture| {
        let rest = name.strip_suffix(architecture.debian())?.strip_suffix('-')?;
        Some((rest, architecture))
    })
}

impl Flavour {
    /// How a kernel's name ends.
    fn suffix(self) -> &'static str {
        match self {
            Self::Generic => "",
            Self::Cloud => "-cloud",
            Self::Rt => "-rt",
        }
    }
}

impl fmt::Display for DebianSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suite = self.suite.as_ref().map(|suite| format!("{suite}/"));
        write!(f, "{DEBIAN}{}{}", suite.unwrap_or_default(), self.name())
    }
}

/// Whether it has the form of a suite's name or codename: `sid`, `trixie-backports`.
fn is_suite(text: &str) -> bool {
    let known =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "+-.".contains(c);
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(known)
}

/// Whether it has the form of the beginning of an ABI: parts with a hyphen between them, each
/// with a number first or, as in `7.3-rc7`, after `rc`.
fn is_version(text: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || ".+~".contains(c);
    text.split('-').enumerate().all(|(index, part)| {
        let number = if index == 0 { part } else { part.trim_start_matches("rc") };
        number.starts_with(|c: char| c.is_ascii_digit()) && part.chars().all(known)
    })
}

/// The first two numbers of a version, or all of it.
fn major_minor(version: &str) -> &str {
    let mut dots = 0;
    let end = version.find(|c: char| {
        dots += usize::from(c == '.');
        dots == 2 || !(c == '.' || c.is_ascii_digit())
    });
    &version[..end.unwrap_or(version.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn debian(text: &str) -> DebianSpec {
        match KernelSpec::parse(text) {
            Ok(KernelSpec::Debian(spec)) => spec,
            other => panic!("{text}: {other:?}"),
        }
    }

    /// Check that the three kinds of names are distinguished.
    #[test]
    fn reads_specs() {
        assert_eq!(KernelSpec::parse("running").unwrap(), KernelSpec::Running);
        for path in ["bzImage", "/boot/vmlinuz-6.1", "a/debian:6.1", "Running"] {
            let file = KernelSpec::File(PathBuf::from(path));
            assert_eq!(KernelSpec::parse(path).unwrap(), file);
        }
        for text in [
            "debian:6.1",
            "debian:6.1.0-56-cloud",
            "debian:6.12.117+deb12-rt",
            "debian:trixie-backports/6.18-cloud",
            "debian:6.12-cloud-arm64",
            "debian:sid/7.2-arm64",
        ] {
            assert_eq!(debian(text).to_string(), text);
        }
        assert_eq!(debian("debian:sid/7.2-rt").suite(), Some("sid"));
        assert_eq!(debian("debian:7.2-rt").suite(), None);
        assert_eq!(
            debian("debian:6.1.0-56-cloud-amd64").to_string(),
            "debian:6.1.0-56-cloud"
        );
    }

    /// Check that an invalid name is refused, and that the message has the invalid part.
    #[test]
    fn refuses_what_is_no_spec() {
        for (text, part) in [
            ("", "no kernel is named"),
            ("debian:", "has no version"),
            ("debian:bookworm", "has no version"),
            ("debian:../6", "'..' is not a suite"),
            ("debian:6.1/../../x", "'6.1' is not a suite"),
            ("debian:/6.1", "'' is not a suite"),
            ("debian:Sid/6.1", "'Sid' is not a suite"),
            ("debian:sid/../6.1", "has no version"),
            ("debian:sid/", "has no version"),
            ("debian:sid/6.1-fast", "'fast' is no flavour"),
            ("debian:6.1-", "'' is no flavour"),
            ("debian:6.1-fast", "'fast' is no flavour"),
            ("debian:6.1.0-56-cloud-rt", "'56-cloud' is no flavour"),
        ] {
            let error = KernelSpec::parse(text).unwrap_err();
            assert!(error.to_string().contains(part), "{text}: {error}");
        }
    }

    /// Check which packages a spec means: numbers are taken whole, and flavours are exact.
    #[test]
    fn covers_packages() {
        let image =
            |rest| DebianSpec::of_package(&format!("linux-image-{rest}")).unwrap();
        let fits = |text, rest| debian(text).covers(&image(rest));
        assert!(fits("debian:6.1", "6.1.0-56-amd64"));
        assert!(fits("debian:6.1", "6.1.0-56-amd64-unsigned"));
        assert!(fits("debian:6.1.0-56", "6.1.0-56-amd64"));
        assert!(fits("debian:6.12.117", "6.12.117+deb12-amd64"));
        assert!(fits("debian:6.1-rt", "6.1.0-0.deb11.52-rt-amd64"));
        assert!(fits("debian:7.3", "7.3-rc7-amd64"));
        assert!(fits("debian:7.3", "7.3-amd64"));
        assert!(fits("debian:experimental/7.3", "7.3-amd64"));
        assert!(fits("debian:6.12-cloud-arm64", "6.12.88+deb12-cloud-arm64"));
        assert!(!fits("debian:6.12-cloud", "6.12.88+deb12-cloud-arm64"));
        assert!(!fits("debian:6.12-cloud-arm64", "6.12.117+deb12-cloud-amd64"));
        assert!(!fits("debian:6.1", "6.12.117+deb12-amd64"));
        assert!(!fits("debian:6.1.0-5", "6.1.0-56-amd64"));
        assert!(!fits("debian:6.1", "6.1.0-56-cloud-amd64"));
        assert!(!fits("debian:6.1-cloud", "6.1.0-56-amd64"));
        assert!(!fits("debian:6.12.117+deb1", "6.12.117+deb12-amd64"));
    }

    /// Check that packages without a kernel of their own are not taken for one.
    #[test]
    fn knows_packages_without_a_kernel() {
        for name in [
            "linux-image-amd64",
            "linux-image-amd64-signed-template",
            "linux-image-6.1.0-56-amd64-dbg",
            "linux-image-6.1.0-56-686-pae",
            "linux-image-6.1.0-56-fast-amd64",
            "linux-image-6.12.88+deb12-arm64-16k",
            "linux-headers-6.1.0-56-amd64",
        ] {
            assert_eq!(DebianSpec::of_package(name), None, "{name}");
        }
    }

    /// Check the short names of packages.
    #[test]
    fn shortens_packages() {
        for (name, short) in [
            ("linux-image-6.1.0-56-amd64-unsigned", "debian:6.1"),
            ("linux-image-6.12.117+deb12-cloud-amd64", "debian:6.12-cloud"),
            ("linux-image-7.3-rc7-rt-amd64", "debian:7.3-rt"),
        ] {
            let spec = DebianSpec::of_package(name).unwrap();
            assert_eq!(spec.short().to_string(), short);
            assert!(spec.short().covers(&spec));
        }
    }
}
