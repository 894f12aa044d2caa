//! The numbers of a machine's measurements over time, in one SQLite database.
//!
//! An entry has the numbers of a run ([`RunNumbers`]) and the facts at that time; equal facts are stored once.
//! The database has a write-ahead log: readers do not wait for a writer, writers wait for each other, and
//! a process that is killed leaves either all of its entry or nothing
//! (<https://www.sqlite.org/wal.html>, <https://www.sqlite.org/atomiccommit.html>).
//!
//! It takes no lock while nothing is read or written, and never deletes a file: what it cannot read is left as it
//! is.
#![forbid(unsafe_code)]

mod database;
mod error;

pub use database::{Entry, Filter, History, SCHEMA, Series};
pub use error::{Error, Kind};
pub use summary::RunNumbers;
