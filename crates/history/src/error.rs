//! Errors: why the history cannot be read or written, with the file.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// The kind of error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The file, or a folder of it, cannot be created, opened, read or written.
    Access,
    /// Another process has used it for too long.
    Busy,
    /// The disk is full.
    Full,
    /// It is not a history, or damaged.
    Damaged,
    /// A later version of noisefloor has written it.
    Newer,
    /// There is no such entry.
    NoEntry,
}

/// An error with the file of the history.
#[derive(Debug, thiserror::Error)]
#[error("history {}: {text}", file.display())]
pub struct Error {
    kind: Kind,
    file: PathBuf,
    text: String,
}

impl Error {
    pub(crate) fn new(kind: Kind, file: &Path, text: impl Into<String>) -> Self {
        Self { kind, file: file.to_owned(), text: text.into() }
    }

    /// The error of a database call.
    pub(crate) fn of(file: &Path, error: &rusqlite::Error) -> Self {
        let (kind, help) = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                (Kind::Busy, "; hint: another process writes to it")
            }
            Some(ErrorCode::DiskFull) => (Kind::Full, "; the entry was not stored"),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                (Kind::Damaged, DAMAGED)
            }
            _ => (Kind::Access, ""),
        };
        Self::new(kind, file, format!("{error}{help}"))
    }

    /// The error for an entry that is not what noisefloor writes.
    pub(crate) fn damaged(file: &Path, why: &serde_json::Error) -> Self {
        Self::new(Kind::Damaged, file, format!("an entry is damaged: {why}{DAMAGED}"))
    }

    /// The kind of error.
    pub fn kind(&self) -> Kind {
        self.kind
    }
}

/// What helps with a damaged file.
const DAMAGED: &str = "; hint: move it away, or recover it with sqlite3 (.recover)";
