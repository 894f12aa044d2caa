//! Why the lab cannot do what was asked, and what would help.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::Path;

/// The variable that names another cache.
pub const CACHE_VARIABLE: &str = "NOISEFLOOR_CACHE";

/// The kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The experiment, or the name of something, makes no sense: a mistake in the question.
    Experiment,
    /// What was named is no kernel that a guest boots.
    Kernel,
    /// The kernel cannot be had here and now: from the archive, or from this machine.
    Archive,
    /// The cache cannot be read or written.
    Cache,
    /// Somebody ended it early.
    Interrupted,
}

/// A failure, in words that name what would help.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: Kind,
    text: String,
}

impl Error {
    pub(crate) fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    /// The kind of failure.
    pub fn kind(&self) -> Kind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

/// A failure to read or write below the cache: which it is, and the way out.
pub fn cache_failed(place: &Path, error: &io::Error) -> Error {
    let place = place.display();
    let refuse = |what: &str, way: &str| {
        let text = format!("the cache {place} cannot be {what}: {error}; {way}");
        Error::new(Kind::Cache, text)
    };
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            full(&format!("the cache {place} cannot be written: {error}"))
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            refuse("written", &format!("set {CACHE_VARIABLE} to a folder of yours"))
        }
        _ if facts::has_no_locks(error) => {
            Error::new(Kind::Cache, format!("the cache {place} cannot be used: {error}"))
        }
        _ => refuse("used", &format!("set {CACHE_VARIABLE} to another folder")),
    }
}

/// The cache's disk is full, in those words.
pub(crate) fn full(words: &str) -> Error {
    let way = format!("make room, or set {CACHE_VARIABLE} to another folder");
    Error::new(Kind::Cache, format!("{words}; {way}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that each failure of the cache names the variable, and what would help.
    #[test]
    fn failures() {
        let told = |errno: rustix::io::Errno| {
            let error = cache_failed(Path::new("/x"), &errno.into());
            assert_eq!(error.kind(), Kind::Cache);
            error.to_string()
        };
        let denied = "the cache /x cannot be written: Permission denied (os error 13); \
                      set NOISEFLOOR_CACHE to a folder of yours";
        assert_eq!(told(rustix::io::Errno::ACCESS), denied);
        let full = "the cache /x cannot be written: No space left on device (os error 28); \
                    make room, or set NOISEFLOOR_CACHE to another folder";
        assert_eq!(told(rustix::io::Errno::NOSPC), full);
        let other = "the cache /x cannot be used: File exists (os error 17); \
                     set NOISEFLOOR_CACHE to another folder";
        assert_eq!(told(rustix::io::Errno::EXIST), other);
    }
}
