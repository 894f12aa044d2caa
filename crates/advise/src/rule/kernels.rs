//! Ranges of kernel versions: `5.13..6.5`, from the first to the last release line with something.

use std::fmt;

use serde::Deserialize;

/// A kernel's version: major, minor and patch level.
pub type Version = (u32, u32, u32);

/// A range of kernel versions, both ends included. A last version without a patch level includes all of
/// its release line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Kernels {
    first: Option<Version>,
    last: Option<Last>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Last {
    major: u32,
    minor: u32,
    patch: Option<u32>,
}

impl Kernels {
    /// Whether the range has that version.
    pub fn contains(&self, version: Version) -> bool {
        let (major, minor, _) = version;
        let is_not_after = |last: Last| match last.patch {
            Some(last_patch) => version <= (last.major, last.minor, last_patch),
            None => (major, minor) <= (last.major, last.minor),
        };
        self.first.is_none_or(|first| first <= version)
            && self.last.is_none_or(is_not_after)
    }

    /// Whether it has this version; if that is not known, whether it has all.
    pub(crate) fn hold_for(&self, version: Option<Version>) -> bool {
        version.map_or_else(|| self.is_all(), |version| self.contains(version))
    }

    /// Whether it has all versions.
    fn is_all(&self) -> bool {
        self.first.is_none() && self.last.is_none()
    }

    /// The newest version of the range, or if it has no end, the oldest one.
    pub fn some_version(&self) -> Version {
        let last =
            self.last.map(|last| (last.major, last.minor, last.patch.unwrap_or(0)));
        last.or(self.first).unwrap_or((6, 12, 0))
    }
}

/// `MAJOR.MINOR` or `MAJOR.MINOR.PATCH`, with anything after it.
pub(crate) fn version(text: &str) -> Option<Version> {
    let numbers =
        text.split(|other: char| !other.is_ascii_digit() && other != '.').next()?;
    let mut numbers = numbers.split('.').map(str::parse);
    let (major, minor) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    Some((major, minor, numbers.next().and_then(Result::ok).unwrap_or(0)))
}

impl TryFrom<String> for Kernels {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let expected = || format!("kernels: '{text}' is not FIRST..LAST");
        let (first, last) = text.split_once("..").ok_or_else(expected)?;
        let first = match first {
            "" => None,
            first => Some(version(first).ok_or_else(expected)?),
        };
        let last = match last {
            "" => None,
            last => {
                let (major, minor, patch) = version(last).ok_or_else(expected)?;
                let has_patch = last.split('.').count() > 2;
                Some(Last { major, minor, patch: has_patch.then_some(patch) })
            }
        };
        Ok(Self { first, last })
    }
}

impl fmt::Display for Kernels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |(major, minor, patch): Version| match patch {
            0 => format!("{major}.{minor}"),
            patch => format!("{major}.{minor}.{patch}"),
        };
        let last =
            self.last.map(|last| name((last.major, last.minor, last.patch.unwrap_or(0))));
        match (self.first.map(name), last) {
            (None, None) => f.write_str("all kernels"),
            (Some(first), None) => write!(f, "kernels since {first}"),
            (None, Some(last)) => write!(f, "kernels until {last}"),
            (Some(first), Some(last)) => write!(f, "kernels {first} to {last}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check both ends of ranges, with and without a patch level.
    #[test]
    fn ends() {
        let of = |text: &str| Kernels::try_from(text.to_owned()).unwrap();
        for (range, version, expected) in [
            ("5.13..6.5", (5, 13, 0), true),
            ("5.13..6.5", (5, 12, 9), false),
            ("5.13..6.5", (6, 5, 13), true),
            ("5.13..6.5", (6, 6, 0), false),
            ("..6.5.3", (6, 5, 4), false),
            ("2.6.32..", (2, 6, 31), false),
            ("2.6.32..", (7, 3, 0), true),
            ("..", (2, 6, 18), true),
        ] {
            assert_eq!(of(range).contains(version), expected, "{range} {version:?}");
        }
        assert_eq!(of("5.13..6.5").to_string(), "kernels 5.13 to 6.5");
        assert_eq!(of("2.6.32..").to_string(), "kernels since 2.6.32");
        assert!(Kernels::try_from("6.1".to_owned()).is_err());
        assert_eq!(version("6.1.0-56-cloud-amd64"), Some((6, 1, 0)));
        assert_eq!(version("2.6.18-8.el5"), Some((2, 6, 18)));
    }
}
