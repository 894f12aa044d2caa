//! A kernel release, as in `/proc/sys/kernel/osrelease` and `uname -r`:
//! `6.12.107+deb12-cloud-amd64`, `2.6.18-308.el5`.
//!
//! The numbers indicate the expected features; since distributions backport changes, a file that
//! exists takes precedence.

/// A kernel release.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Release {
    text: String,
    major: u32,
    minor: u32,
    patch: u32,
    rest: usize,
}

impl Release {
    /// Parses a release. `None` if it does not begin with at least two numbers.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (major, after) = number(text)?;
        let (minor, after) = number(after.strip_prefix('.')?)?;
        let third = after.strip_prefix('.').and_then(number);
        let (patch, after) = third.unwrap_or((0, after));
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return None;
        }
        let rest = text.len() - after.len();
        Some(Self { text: text.to_owned(), major, minor, patch, rest })
    }

    /// Whether the release is this version or a later one.
    pub(crate) fn at_least(&self, major: u32, minor: u32) -> bool {
        (self.major, self.minor) >= (major, minor)
    }

    /// The whole text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The text after the numbers: `-308.el5`, `+deb12-cloud-amd64`.
    pub(crate) fn rest(&self) -> &str {
        &self.text[self.rest..]
    }

    /// The numbers: major, minor, patch (0 if missing).
    pub(crate) fn numbers(&self) -> (u32, u32, u32) {
        (self.major, self.minor, self.patch)
    }
}

/// The number at the beginning of a text, and the remaining text.
fn number(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Check releases of several distributions.
    #[test]
    fn reads_releases() {
        for (text, numbers, rest) in [
            ("6.12.107+deb12-cloud-amd64", (6, 12, 107), "+deb12-cloud-amd64"),
            ("2.6.18-308.el5", (2, 6, 18), "-308.el5"),
            ("7.3-rc7-amd64", (7, 3, 0), "-rc7-amd64"),
            ("6.8.0-51-generic\n", (6, 8, 0), "-51-generic"),
            ("6.1.", (6, 1, 0), "."),
        ] {
            let release = Release::parse(text).unwrap();
            assert_eq!((release.numbers(), release.rest()), (numbers, rest), "{text}");
            assert_eq!(release.text(), text.trim());
        }
    }

    /// Check that versions are compared as numbers.
    #[test]
    fn compares_numbers() {
        let release = Release::parse("6.12.1").unwrap();
        assert!(
            release.at_least(6, 9) && release.at_least(6, 12) && release.at_least(5, 15)
        );
        assert!(!release.at_least(6, 13) && !release.at_least(7, 0));
    }

    /// Check that invalid releases are rejected.
    #[test]
    fn rejects_invalid_releases() {
        for text in ["", "6", "six.one", ".6.1", "99999999999.1", "6.1 x", "6.1\u{0}"] {
            assert_eq!(Release::parse(text), None, "{text}");
        }
    }

    proptest! {
        /// Check that parsing never panics.
        #[test]
        fn never_panics(text in ".{0,30}") {
            let _ = Release::parse(&text).map(|release| release.rest().len());
        }
    }
}
