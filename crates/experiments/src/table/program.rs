//! The rows of a program: its command line, services, and files.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Visitor};
use toml::Spanned;

use crate::error::EntryError;
use crate::from_text::read_from_text;
use crate::table::entry::{Length, Line, Name};
use crate::table::number::Number;
use crate::table::sequence::{List, Pairs};

/// More files cannot be unpacked into the memory of a guest.
const SIZE_MAX: u64 = 2 << 30;
/// The units of sizes, and their lengths in bytes.
const UNITS: [(&str, u64); 7] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];
/// The permission bits of a file, with set-user-ID, set-group-ID and the sticky bit.
const MODE_MAX: u32 = 0o7777;
/// What the lab itself puts into a guest, and the file systems that its agent mounts.
const OWNED_FILES: [&str; 3] = ["/init", "/order.json", "/program"];
const OWNED_FOLDERS: [&str; 3] = ["/dev", "/proc", "/sys"];

/// A program, and what it needs in its guest.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct ProgramRow {
    pub(crate) run: List<Word>,
    #[serde(default)]
    pub(crate) directory: GuestPath,
    #[serde(default)]
    pub(crate) env: Pairs<Variable, Word>,
    pub(crate) exit: Option<List<Number<0, 255>>>,
    pub(crate) limit: Option<Length>,
    pub(crate) unit: Option<UnitRow>,
    pub(crate) programs: Option<List<Word>>,
    #[serde(default)]
    pub(crate) files: Vec<FileRow>,
    pub(crate) observe: Option<Spanned<bool>>,
    #[serde(default)]
    pub(crate) service: Vec<ServiceRow>,
}

/// The work that a program does.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "a table, as { name = \"request\", count = 1000 }"
)]
pub(crate) struct UnitRow {
    pub(crate) name: Name,
    pub(crate) count: Number<1, 4_294_967_295>,
}

/// A background service of a program.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct ServiceRow {
    pub(crate) name: Spanned<Name>,
    pub(crate) run: List<Word>,
    pub(crate) ready: Option<Spanned<ReadyRow>>,
    pub(crate) hint: Option<Line>,
}

/// What shows that a service is ready.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table, as { port = 80 }")]
pub(crate) struct ReadyRow {
    pub(crate) port: Option<Number<1, 65_535>>,
    pub(crate) socket: Option<GuestPath>,
    pub(crate) file: Option<GuestPath>,
    pub(crate) text: Option<Line>,
}

/// A file in the guest.
#[derive(Debug, Clone, serde::Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct FileRow {
    pub(crate) path: Spanned<GuestPath>,
    pub(crate) text: Option<String>,
    pub(crate) size: Option<Size>,
    pub(crate) from: Option<Word>,
    #[serde(default)]
    pub(crate) directory: bool,
    pub(crate) mode: Option<FileMode>,
}

/// A word of a command line, or another text for a program: any but NUL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word(String);

/// The name of an environment variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Variable(String);

/// An absolute path in the guest.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct GuestPath(String);

/// The permissions of a file, written in octal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileMode(pub(crate) u32);

/// The length of a file, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size(pub(crate) u64);

impl Word {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl Variable {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

impl GuestPath {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// A path in the guest, relative to a directory there, in its shortest form.
    pub(crate) fn resolve(directory: &str, path: &str) -> Self {
        let mut parts: Vec<&str> = Vec::new();
        let full = match path.starts_with('/') {
            true => path.to_owned(),
            false => format!("{directory}/{path}"),
        };
        for part in full.split('/') {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        Self(format!("/{}", parts.join("/")))
    }

    /// Why the experiment cannot have a file there, if it cannot.
    pub(crate) fn refuse_owned(&self) -> Result<(), EntryError> {
        let is_mounted =
            self.0 == "/" || OWNED_FOLDERS.iter().any(|path| self.is_in(path));
        match is_mounted || self.is_owned_file() {
            true => Err(EntryError::OwnedPath(self.0.clone())),
            false => Ok(()),
        }
    }

    /// Whether it is a file of the lab, or would make a directory of one.
    fn is_owned_file(&self) -> bool {
        OWNED_FILES.iter().any(|file| self.is_in(file))
    }

    /// Whether it is that path, or below it.
    fn is_in(&self, path: &str) -> bool {
        let rest = self.0.strip_prefix(path);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl Default for GuestPath {
    fn default() -> Self {
        Self("/".to_owned())
    }
}

impl FromStr for Word {
    type Err = EntryError;

    fn from_str(text: &str) -> Result<Self, EntryError> {
        match text.contains('\0') {
            true => Err(EntryError::Nul),
            false => Ok(Self(text.to_owned())),
        }
    }
}

impl FromStr for Variable {
    type Err = EntryError;

    fn from_str(text: &str) -> Result<Self, EntryError> {
        match text.is_empty() || text.contains(['=', '\0']) {
            true => Err(EntryError::Variable(text.to_owned())),
            false => Ok(Self(text.to_owned())),
        }
    }
}

impl FromStr for GuestPath {
    type Err = EntryError;

    fn from_str(text: &str) -> Result<Self, EntryError> {
        let plain = |part: &str| !matches!(part, "" | "." | "..");
        let is_plain = match text.strip_prefix('/') {
            Some("") => true,
            Some(rest) => rest.split('/').all(plain) && !text.contains(char::is_control),
            None => false,
        };
        let path = Self(text.to_owned());
        match (is_plain, path.is_owned_file()) {
            (true, false) => Ok(path),
            (true, true) => Err(EntryError::OwnedPath(path.0)),
            (false, _) => Err(EntryError::GuestPath(path.0)),
        }
    }
}

impl FromStr for FileMode {
    type Err = EntryError;

    fn from_str(text: &str) -> Result<Self, EntryError> {
        let is_octal = text.bytes().all(|digit| (b'0'..=b'7').contains(&digit));
        let mode = is_octal.then(|| u32::from_str_radix(text, 8).ok()).flatten();
        let mode = mode.filter(|mode| *mode <= MODE_MAX);
        mode.map(Self).ok_or_else(|| EntryError::FileMode(text.to_owned()))
    }
}

impl FromStr for Size {
    type Err = EntryError;

    /// Reads `2KB` (1000 bytes each), `64KiB` (1024 bytes each), `10MB`, `512B`.
    fn from_str(text: &str) -> Result<Self, EntryError> {
        let read = || {
            let (digits, unit) = UNITS.iter().find_map(|(name, unit)| {
                text.strip_suffix(name).map(|digits| (digits.trim_end(), *unit))
            })?;
            let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
            let number: u64 = is_number.then(|| digits.parse().ok()).flatten()?;
            number.checked_mul(unit).filter(|bytes| *bytes <= SIZE_MAX).map(Self)
        };
        read().ok_or_else(|| EntryError::Size(text.to_owned()))
    }
}

read_from_text!(Word);
read_from_text!(Variable);
read_from_text!(GuestPath);
read_from_text!(FileMode);

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(SizeReader)
    }
}

/// Reads a text or a number of bytes as a [`Size`].
struct SizeReader;

impl Visitor<'_> for SizeReader {
    type Value = Size;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size, as \"2KB\", or a number of bytes")
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Size, E> {
        format!("{number}B").parse().map_err(E::custom)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Size, E> {
        text.parse().map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that sizes have decimal and binary units, and a limit.
    #[test]
    fn sizes() {
        let size = |text: &str| text.parse::<Size>().map(|size| size.0).ok();
        assert_eq!(size("2KB"), Some(2_000));
        assert_eq!(size("64 KiB"), Some(65_536));
        assert_eq!(size("10MB"), Some(10_000_000));
        assert_eq!(size("0B"), Some(0));
        for wrong in ["2", "KB", "-1KB", "2K", "3GB", "1.5MB", "99999999999GiB"] {
            assert_eq!(size(wrong), None, "{wrong}");
        }
    }

    /// Check that paths are absolute and plain, and that those of the lab are refused for files.
    #[test]
    fn paths() {
        for path in
            ["", "a", "/a/", "/a//b", "/a/../b", "/./a", "/a\n", "/init", "/program/x"]
        {
            assert!(path.parse::<GuestPath>().is_err(), "{path}");
        }
        for owned in ["/", "/proc", "/dev/null", "/sys/x/y"] {
            let path: GuestPath = owned.parse().unwrap();
            assert!(path.refuse_owned().is_err(), "{owned}");
        }
        for resolved in ["/init", "/order.json", "/../init/x", "/usr/../program"] {
            assert!(
                GuestPath::resolve("/", resolved).refuse_owned().is_err(),
                "{resolved}"
            );
        }
        for free in ["/initial", "/devices", "/srv/init", "/tmp/a"] {
            let path: GuestPath = free.parse().unwrap();
            assert!(path.refuse_owned().is_ok(), "{free}");
        }
    }

    /// Check that permissions are octal.
    #[test]
    fn modes() {
        let mode = |text: &str| text.parse::<FileMode>().map(|mode| mode.0).ok();
        assert_eq!(mode("0755"), Some(0o755));
        assert_eq!(mode("4755"), Some(0o4755));
        for wrong in ["", "0o755", "800", "+755", "17777"] {
            assert_eq!(mode(wrong), None, "{wrong}");
        }
    }
}
