//! The syntax of kernels that are built:
//! `build:SOURCE[,BASE][,FRAGMENT|OPTION=VALUE]...[,name=LABEL]`.
//!
//! Later options override earlier ones, and options override fragments. Paths must not contain a
//! comma, which separates the parts.

use std::fmt;
use std::path::PathBuf;

use crate::build_option::{OptionError, OptionValue};

/// The prefix of these names.
pub(crate) const BUILD: &str = "build:";
const DEBIAN: &str = "debian:";
/// The prefix of the part that labels the kernel in reports.
const LABEL: &str = "name=";

/// Why a text names no kernel to build.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildNameError {
    /// There is no source.
    #[error(
        "'{BUILD}{0}' has no source: write {BUILD}debian:6.1,lean, or the path of a tree or \
         of its archive"
    )]
    Source(String),
    /// A source of Debian's is named by two numbers.
    #[error(
        "{BUILD}{0}: '{1}' is no source of Debian's: write two numbers, as in debian:6.1"
    )]
    Debian(String, String),
    /// A part that is empty.
    #[error("{BUILD}{0}: nothing is between two commas, or after the last")]
    EmptyPart(String),
    /// A label that is no word.
    #[error("{BUILD}{0}: '{1}' is not a label: write one word")]
    Label(String, String),
    /// An option without a name, or with an impossible one.
    #[error("{BUILD}{0}: '{1}' is not an option: write NAME=VALUE, as in HZ=40")]
    Option(String, String),
    /// An option's value is wrong.
    #[error(transparent)]
    Value(#[from] OptionError),
}

/// A kernel to build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuildSpec {
    /// Its source.
    pub source: SourceSpec,
    /// The configuration that the options change.
    pub base: Base,
    /// Files with options, in the order of their application.
    pub fragments: Vec<PathBuf>,
    /// Single options, which override those of the files.
    pub options: Vec<OptionValue>,
    /// Its label in reports.
    pub label: Option<String>,
}

/// The source of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceSpec {
    /// The newest package `linux-source-VERSION` of Debian's archive.
    Debian(String),
    /// A tree, or an archive with one.
    Path(PathBuf),
}

/// The configuration that options change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Base {
    /// What guests and ordinary programs need, and no more.
    Lean,
    /// Nothing: every option is off, or has the default of its choice.
    None,
    /// Debian's for this version, without modules; of its cloud kernel if set.
    Debian {
        /// Whether it is that of the cloud kernel.
        cloud: bool,
    },
    /// A file.
    File(PathBuf),
}

impl BuildSpec {
    /// The beginning of the names of kernels that are built.
    pub const PREFIX: &str = BUILD;

    /// Parses a name, with or without the prefix.
    ///
    /// # Errors
    /// There is no source, or a part is neither an option nor a path.
    pub fn parse(text: &str) -> Result<Self, BuildNameError> {
        let text = text.strip_prefix(BUILD).unwrap_or(text);
        let own = || text.to_owned();
        let mut parts = text.split(',');
        let source = match parts.next() {
            None | Some("") => return Err(BuildNameError::Source(own())),
            Some(source) => SourceSpec::parse(source, text)?,
        };
        let mut spec = Self::new(source);
        for (index, part) in parts.enumerate() {
            if part.is_empty() {
                return Err(BuildNameError::EmptyPart(own()));
            }
            if let Some(label) = part.strip_prefix(LABEL) {
                spec.label = Some(checked_label(label, text)?);
            } else if let Some((name, value)) = part.split_once('=') {
                let option = OptionValue::parse(name, value)?;
                let option = option
                    .ok_or_else(|| BuildNameError::Option(own(), part.to_owned()))?;
                spec.options.push(option);
            } else if index == 0 {
                spec.base = Base::parse(part);
            } else {
                spec.fragments.push(PathBuf::from(part));
            }
        }
        Ok(spec)
    }

    /// A lean kernel from that source.
    pub fn new(source: SourceSpec) -> Self {
        let (fragments, options) = (Vec::new(), Vec::new());
        Self { source, base: Base::Lean, fragments, options, label: None }
    }

    /// The same from another source.
    pub fn with_source(self, source: SourceSpec) -> Self {
        Self { source, ..self }
    }

    /// The label in the name of a kernel, if it is built and has one.
    pub fn label_of(name: &str) -> Option<String> {
        name.strip_prefix(BUILD).and_then(|text| Self::parse(text).ok()?.label)
    }

    /// What is built, without its label.
    pub(crate) fn unlabelled(&self) -> Self {
        Self { label: None, ..self.clone() }
    }
}

impl SourceSpec {
    /// Debian's source of the version in the head of a configuration (`# Linux/x86 6.1.192 Kernel
    /// Configuration`); `None` without one.
    pub fn of_config(text: &str) -> Option<Self> {
        let head = text.lines().find_map(|line| {
            line.strip_prefix("# Linux/")?.strip_suffix(" Kernel Configuration")
        })?;
        let (_, version) = head.split_once(' ')?;
        let mut numbers = version.split('.');
        let (major, minor) = (numbers.next()?, numbers.next()?);
        let is_version = is_number(major) && is_number(minor);
        is_version.then(|| Self::Debian(format!("{major}.{minor}")))
    }

    /// Parses a source: of Debian's, or a path. `text` is the whole name.
    fn parse(source: &str, text: &str) -> Result<Self, BuildNameError> {
        let Some(version) = source.strip_prefix(DEBIAN) else {
            return Ok(Self::Path(PathBuf::from(source)));
        };
        match version.split_once('.').is_some_and(|(a, b)| is_number(a) && is_number(b)) {
            true => Ok(Self::Debian(version.to_owned())),
            false => Err(BuildNameError::Debian(text.to_owned(), version.to_owned())),
        }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_digit())
}

impl std::str::FromStr for SourceSpec {
    type Err = BuildNameError;

    fn from_str(text: &str) -> Result<Self, BuildNameError> {
        match text {
            "" => Err(BuildNameError::Source(String::new())),
            _ => Self::parse(text, text),
        }
    }
}

impl Base {
    /// Parses the word for a base, or a path.
    pub fn parse(text: &str) -> Self {
        match text {
            "lean" => Self::Lean,
            "none" => Self::None,
            "debian" => Self::Debian { cloud: false },
            "debian-cloud" => Self::Debian { cloud: true },
            path => Self::File(PathBuf::from(path)),
        }
    }
}

fn checked_label(label: &str, text: &str) -> Result<String, BuildNameError> {
    let bad = |c: char| c.is_whitespace() || c.is_control();
    match label.is_empty() || label.contains(bad) {
        true => Err(BuildNameError::Label(text.to_owned(), label.to_owned())),
        false => Ok(label.to_owned()),
    }
}

impl fmt::Display for SourceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Debian(version) => write!(f, "{DEBIAN}{version}"),
            Self::Path(path) => write!(f, "{}", path.display()),
        }
    }
}

impl fmt::Display for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lean => f.write_str("lean"),
            Self::None => f.write_str("none"),
            Self::Debian { cloud: false } => f.write_str("debian"),
            Self::Debian { cloud: true } => f.write_str("debian-cloud"),
            Self::File(path) => write!(f, "{}", path.display()),
        }
    }
}

impl fmt::Display for BuildSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{BUILD}{},{}", self.source, self.base)?;
        for fragment in &self.fragments {
            write!(f, ",{}", fragment.display())?;
        }
        for option in &self.options {
            write!(f, ",{option}")?;
        }
        self.label.iter().try_for_each(|label| write!(f, ",{LABEL}{label}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the head of a configuration names Debian's source, and that others name none.
    #[test]
    fn heads_of_configurations() {
        let head = "#\n# Automatically generated file; DO NOT EDIT.\n\
             # Linux/x86 6.1.192 Kernel Configuration\n#\nCONFIG_X=y\n";
        let source = SourceSpec::of_config(head);
        assert_eq!(source, Some(SourceSpec::Debian("6.1".to_owned())));
        assert_eq!(SourceSpec::of_config("CONFIG_X=y\n"), None);
    }

    /// Check that names are parsed, and printed in their canonical form.
    #[test]
    fn canonical() {
        for (text, canonical) in [
            ("build:debian:6.1", "build:debian:6.1,lean"),
            (
                "build:debian:6.1,lean,HZ=40,NO_HZ=off",
                "build:debian:6.1,lean,HZ=40,NO_HZ=off",
            ),
            (
                "build:./linux,CONFIG_HZ=1000,x.config,name=fast",
                "build:./linux,lean,x.config,HZ=1000,name=fast",
            ),
            ("build:linux-6.1.tar.xz,my.config", "build:linux-6.1.tar.xz,my.config"),
            ("build:debian:6.12,debian-cloud", "build:debian:6.12,debian-cloud"),
        ] {
            let spec = BuildSpec::parse(text).unwrap();
            assert_eq!(spec.to_string(), canonical);
            assert_eq!(BuildSpec::parse(canonical).unwrap(), spec);
        }
        assert_eq!(BuildSpec::label_of("build:x,name=y").as_deref(), Some("y"));
        assert_eq!(BuildSpec::label_of("debian:6.1"), None);
    }

    /// Check that a wrong name is refused, and that the message has the wrong part.
    #[test]
    fn refused() {
        for (text, part) in [
            ("build:", "has no source"),
            ("build:,lean", "has no source"),
            ("build:debian:6.1.192", "'6.1.192' is no source"),
            ("build:debian:6.1-cloud", "'6.1-cloud' is no source"),
            ("build:debian:bookworm", "'bookworm' is no source"),
            ("build:debian:6.1,,HZ=40", "between two commas"),
            ("build:debian:6.1,lean,", "after the last"),
            ("build:debian:6.1,lean,=y", "'=y' is not an option"),
            ("build:debian:6.1,lean,a b=y", "'a b=y' is not an option"),
            ("build:debian:6.1,lean,name=a b", "'a b' is not a label"),
            ("build:debian:6.1,lean,NO_HZ=never", "NO_HZ must be off, idle or full"),
            ("build:debian:6.1,lean,HZ=fast", "HZ must be a number"),
            ("build:debian:6.1,lean,HZ=0", "HZ must be a number"),
            ("build:debian:6.1,lean,EXT4_FS=m", "guests load no modules"),
        ] {
            let error = BuildSpec::parse(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
