//! The configurations that options change.
//!
//! Guests load no modules, so options that are modules in a base are left out, and so is what only
//! modules need: with it, a build creates a random key to sign them. Debugging information and
//! slow compression change nothing that a guest executes, and cost minutes.

use std::fs;
use std::path::Path;

use crate::build_error::BuildError;
use crate::build_name::Base;
use crate::build_option;

/// The configuration of a lean kernel; every option that is not in it is off.
pub(crate) const LEAN: &str = include_str!("lean.config");

/// What replaces options of other bases.
const WITHOUT_MODULES: [(&str, &str); 9] = [
    ("MODULES", "n"),
    ("MODULE_SIG", "n"),
    ("SYSTEM_TRUSTED_KEYS", "\"\""),
    ("SYSTEM_REVOCATION_KEYS", "\"\""),
    ("DEBUG_INFO_NONE", "y"),
    ("DEBUG_INFO_BTF", "n"),
    ("GDB_SCRIPTS", "n"),
    ("KERNEL_GZIP", "y"),
    ("BUILD_SALT", "\"\""),
];
/// The largest file with options, in bytes: Debian's configuration has 0.3 MB.
const TEXT_MAX: u64 = 16 << 20;
/// Options of a choice of which another is set above.
const REPLACED: [&str; 2] = ["DEBUG_INFO_", "KERNEL_"];

/// A base as text for Kconfig.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BaseConfig {
    /// Its lines.
    pub(crate) text: String,
    /// Whether options that are not in it are off, instead of at their default.
    pub(crate) is_complete: bool,
}

impl BaseConfig {
    /// The lean configuration.
    pub(crate) fn lean() -> Self {
        Self { text: LEAN.to_owned(), is_complete: true }
    }

    /// One in which every option is off.
    pub(crate) fn none() -> Self {
        Self { text: String::new(), is_complete: true }
    }

    /// That of a file.
    ///
    /// # Errors
    /// The file cannot be read, or is no configuration.
    pub(crate) fn from_file(path: &Path) -> Result<Self, BuildError> {
        let text = read_text(path)?;
        Self::without_modules(&text, path)
    }

    /// The configuration without modules, and what they need.
    ///
    /// # Errors
    /// `BuildError::Line` if it is no configuration.
    pub(crate) fn without_modules(text: &str, file: &Path) -> Result<Self, BuildError> {
        build_option::read(text, file).map_err(|(number, text)| BuildError::Line {
            file: file.to_owned(),
            number,
            text,
        })?;
        let is_replaced = |name: &str| {
            WITHOUT_MODULES.iter().any(|(other, _)| *other == name)
                || REPLACED.iter().any(|prefix| name.starts_with(prefix))
        };
        // Unchanged: a string that is y or n has quotes, which parsing removes.
        let lines = text.lines().filter(|line| {
            option_name(line).is_some_and(|name| !is_replaced(name))
                && !line.trim_end().ends_with("=m")
        });
        let mut lines: String = lines.map(|line| format!("{}\n", line.trim())).collect();
        for line in text.lines().filter(|line| line.trim_end().ends_with("=m")) {
            let name = option_name(line).unwrap_or_default();
            lines += &format!("# CONFIG_{name} is not set\n");
        }
        for (name, value) in WITHOUT_MODULES {
            lines += &match value {
                "n" => format!("# CONFIG_{name} is not set\n"),
                _ => format!("CONFIG_{name}={value}\n"),
            };
        }
        Ok(Self { text: lines, is_complete: false })
    }
}

/// The option that a line of a configuration sets.
pub(crate) fn option_name(line: &str) -> Option<&str> {
    let line = line.trim();
    match line.strip_prefix("# CONFIG_") {
        Some(rest) => rest.strip_suffix(" is not set"),
        None => line.strip_prefix("CONFIG_")?.split_once('=').map(|(name, _)| name),
    }
}

/// The text of a file with options, or of a tree.
///
/// # Errors
/// It cannot be read, is no file (a pipe would wait for a writer), or is too large.
pub(crate) fn read_text(path: &Path) -> Result<String, BuildError> {
    let failed = |error| BuildError::Read(path.to_owned(), error);
    let about = fs::metadata(path).map_err(failed)?;
    if !about.is_file() || about.len() > TEXT_MAX {
        return Err(BuildError::NotText(path.to_owned()));
    }
    let bytes = fs::read(path).map_err(failed)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

impl Base {
    /// The file that it is in, if it is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Lean | Self::None | Self::Debian { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that modules and their keys are left out, and that other lines are not changed.
    #[test]
    fn leaves_out_modules() {
        let text = "CONFIG_A=y\nCONFIG_B=m\n# CONFIG_C is not set\nCONFIG_S=\"m\"\n\
                    CONFIG_MODULE_SIG=y\nCONFIG_DEBUG_INFO_DWARF5=y\n\
                    CONFIG_SYSTEM_TRUSTED_KEYS=\"debian/certs\"\nCONFIG_KERNEL_XZ=y\n";
        let base = BaseConfig::without_modules(text, Path::new("c")).unwrap();
        let unchanged = "CONFIG_A=y\n# CONFIG_C is not set\nCONFIG_S=\"m\"\n\
                    # CONFIG_B is not set\n# CONFIG_MODULES is not set\n";
        assert!(base.text.starts_with(unchanged), "{}", base.text);
        assert!(!base.text.contains("certs") && !base.text.contains("_XZ"));
        assert!(!base.text.contains("DWARF5"));
    }

    /// Check that the lean configuration is one, and sets nothing twice.
    #[test]
    fn lean_is_a_configuration() {
        let options = build_option::read(LEAN, Path::new("lean")).unwrap();
        let mut names: Vec<&str> = options.iter().map(|one| one.name.as_str()).collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
