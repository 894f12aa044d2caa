//! The database: its schema, and the entries in it.
//!
//! ```text
//! facts   id, hash, text                          the facts of entries, each once
//! entry   id, taken, machine, kind, facts, run    the numbers of a run as JSON
//! series  id, machine, kind, metric               a metric over time
//! worst   series, taken, entry, facts, value      its values, of the worst CPU, in order of time
//! ```

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior, params};
use serde_json::Value;
use sha2::{Digest, Sha256};
use summary::RunNumbers;

use crate::error::{Error, Kind};

/// The version of the schema that this program writes, and the newest that it reads.
pub const SCHEMA: i64 = 1;
/// `nfhi`, so that another program's database is recognised (`PRAGMA application_id`).
const APPLICATION: i64 = 0x6e66_6869;
/// How long a writer waits for the others.
const PATIENCE: Duration = Duration::from_secs(60);
/// The time between two attempts.
const PAUSE: Duration = Duration::from_millis(5);
/// The mode of folders that are created.
const FOLDER: u32 = 0o700;

const TABLES: &str = "
    CREATE TABLE facts (
        id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, text TEXT NOT NULL);
    CREATE TABLE entry (
        id INTEGER PRIMARY KEY AUTOINCREMENT, taken TEXT NOT NULL,
        machine TEXT NOT NULL, kind TEXT NOT NULL,
        facts INTEGER NOT NULL REFERENCES facts, run TEXT NOT NULL);
    CREATE INDEX entry_taken ON entry (machine, kind, taken);
    CREATE TABLE series (
        id INTEGER PRIMARY KEY, machine TEXT NOT NULL, kind TEXT NOT NULL,
        metric TEXT NOT NULL, UNIQUE (machine, kind, metric));
    CREATE TABLE worst (
        series INTEGER NOT NULL, taken TEXT NOT NULL, entry INTEGER NOT NULL,
        facts INTEGER NOT NULL, value REAL NOT NULL,
        PRIMARY KEY (series, taken, entry)) WITHOUT ROWID;
";

/// A stored run.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its number.
    pub id: i64,
    /// The name of the machine.
    pub machine: String,
    /// The kind of measurement.
    pub kind: String,
    /// Its numbers and facts.
    pub run: RunNumbers,
}

/// Which entries are read.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// The name of the machine.
    pub machine: String,
    /// The kind of measurement.
    pub kind: String,
    /// The earliest time: RFC 3339, or the beginning of it.
    pub since: Option<String>,
}

/// The values of a metric, in order of time: the worst CPU's of each entry.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    /// The numbers of the entries.
    pub ids: Vec<i64>,
    /// When they were taken.
    pub taken: Vec<String>,
    /// The values.
    pub values: Vec<f64>,
    /// The identity of each entry's facts.
    pub facts: Vec<i64>,
}

/// An open history.
#[derive(Debug)]
pub struct History {
    file: PathBuf,
    connection: Connection,
}

impl History {
    /// Opens a history to append to it; it is created if it does not exist.
    ///
    /// # Errors
    /// The file or its folder cannot be created or opened, or is no history.
    pub fn create(file: &Path) -> Result<Self, Error> {
        if let Some(folder) = file.parent().filter(|it| !it.as_os_str().is_empty()) {
            let made = DirBuilder::new().recursive(true).mode(FOLDER).create(folder);
            made.map_err(|error| Error::new(Kind::Access, file, error.to_string()))?;
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        Self::open_with(file, flags)
    }

    /// Opens a history to read it; `None` if there is none.
    ///
    /// # Errors
    /// The file cannot be opened, or is no history.
    pub fn open(file: &Path) -> Result<Option<Self>, Error> {
        match fs::metadata(file) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::new(Kind::Access, file, error.to_string())),
            Ok(found) if !found.is_file() => {
                Err(Error::new(Kind::Access, file, "not a regular file"))
            }
            Ok(_) => Self::open_with(file, OpenFlags::SQLITE_OPEN_READ_WRITE).map(Some),
        }
    }

    /// Opens a history only to read it, which creates no file beside it: also one that was copied from another
    /// machine, or is in a folder that is not writable. Entries that are still in the log are read if there is one.
    ///
    /// # Errors
    /// The file cannot be opened, or is no history.
    pub fn open_read_only(file: &Path) -> Result<Self, Error> {
        let failed = |error: rusqlite::Error| Error::of(file, &error);
        let about = fs::metadata(file);
        let about =
            about.map_err(|why| Error::new(Kind::Access, file, why.to_string()))?;
        if !about.is_file() {
            return Err(Error::new(Kind::Access, file, "not a regular file"));
        }
        let mut log = file.as_os_str().to_owned();
        log.push("-wal");
        let has_log = fs::metadata(log).is_ok_and(|log| log.len() > 0);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_NO_MUTEX
            | OpenFlags::SQLITE_OPEN_URI;
        let name = uri(file, !has_log);
        let connection = Connection::open_with_flags(name, flags).map_err(failed)?;
        connection.busy_timeout(PATIENCE).map_err(failed)?;
        let history = Self { file: file.to_owned(), connection };
        match history.schema()? {
            0 => Err(Error::new(Kind::Damaged, file, "has no entry")),
            _ => Ok(history),
        }
    }

    fn open_with(file: &Path, flags: OpenFlags) -> Result<Self, Error> {
        let failed = |error: rusqlite::Error| Error::of(file, &error);
        // A link may have been put there since the caller resolved the path.
        let flags =
            flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let connection = Connection::open_with_flags(file, flags).map_err(failed)?;
        connection.busy_timeout(PATIENCE).map_err(failed)?;
        let mut history = Self { file: file.to_owned(), connection };
        history.prepare()?;
        Ok(history)
    }

    /// Checks the schema, and creates it in a new file.
    fn prepare(&mut self) -> Result<(), Error> {
        let file = self.file.clone();
        let failed = |error: rusqlite::Error| Error::of(&file, &error);
        if self.schema()? == 0 {
            // Of several processes, one creates the tables.
            self.use_log()?;
            let writing = self.begin()?;
            let version: i64 = pragma(&writing, "user_version").map_err(failed)?;
            if version == 0 {
                writing.execute_batch(TABLES).map_err(failed)?;
                writing
                    .pragma_update(None, "application_id", APPLICATION)
                    .map_err(failed)?;
                writing.pragma_update(None, "user_version", SCHEMA).map_err(failed)?;
            }
            writing.commit().map_err(failed)?;
        }
        // An entry survives a power failure, too.
        self.connection.pragma_update(None, "synchronous", "full").map_err(failed)
    }

    /// Switches to the write-ahead log, which is a property of the file. If several processes do so at once,
    /// SQLite does not wait, as each could wait for the other.
    fn use_log(&self) -> Result<(), Error> {
        let begin = Instant::now();
        loop {
            match self.connection.pragma_update(None, "journal_mode", "wal") {
                Err(error) => match Error::of(&self.file, &error) {
                    busy if busy.kind() == Kind::Busy && begin.elapsed() < PATIENCE => {
                        thread::sleep(PAUSE);
                    }
                    refused => return Err(refused),
                },
                Ok(()) => return Ok(()),
            }
        }
    }

    /// The version of the schema; 0 for an empty file.
    fn schema(&self) -> Result<i64, Error> {
        let failed = |error: rusqlite::Error| Error::of(&self.file, &error);
        // All of one moment: another process may create the tables now.
        let reading = self.connection.unchecked_transaction().map_err(failed)?;
        let version: i64 = pragma(&reading, "user_version").map_err(failed)?;
        let application: i64 = pragma(&reading, "application_id").map_err(failed)?;
        let tables = "SELECT count(*) FROM sqlite_master";
        let tables: i64 =
            reading.query_row(tables, [], |row| row.get(0)).map_err(failed)?;
        drop(reading);
        match (version, application) {
            (0, 0) if tables == 0 => Ok(0),
            (1..=SCHEMA, APPLICATION) => Ok(version),
            (newer, APPLICATION) if newer > SCHEMA => {
                let text = format!(
                    "has schema {newer}, and this noisefloor reads up to {SCHEMA}: use a newer \
                     noisefloor"
                );
                Err(Error::new(Kind::Newer, &self.file, text))
            }
            _ => {
                let text = "is the database of another program";
                Err(Error::new(Kind::Damaged, &self.file, text))
            }
        }
    }

    fn begin(&mut self) -> Result<Transaction<'_>, Error> {
        let begun = TransactionBehavior::Immediate;
        let begun = self.connection.transaction_with_behavior(begun);
        begun.map_err(|error| Error::of(&self.file, &error))
    }

    /// Appends a run; returns its number.
    ///
    /// # Errors
    /// It cannot be written; the history is then unchanged.
    pub fn append(
        &mut self,
        machine: &str,
        kind: &str,
        run: &RunNumbers,
    ) -> Result<i64, Error> {
        let file = self.file.clone();
        let failed = |error: rusqlite::Error| Error::of(&file, &error);
        let written = |error: serde_json::Error| Error::damaged(&file, &error);
        let facts = serde_json::to_string(&run.facts).map_err(written)?;
        let numbers = RunNumbers { facts: Vec::new(), ..run.clone() };
        let numbers = serde_json::to_string(&numbers).map_err(written)?;
        let hash = Sha256::digest(facts.as_bytes()).to_vec();
        let writing = self.begin()?;
        let known = "INSERT OR IGNORE INTO facts (hash, text) VALUES (?1, ?2)";
        writing.execute(known, params![hash, facts]).map_err(failed)?;
        let entry = "INSERT INTO entry (taken, machine, kind, facts, run) VALUES
            (?1, ?2, ?3, (SELECT id FROM facts WHERE hash = ?4), ?5)";
        writing
            .execute(entry, params![run.taken, machine, kind, hash, numbers])
            .map_err(failed)?;
        let id = writing.last_insert_rowid();
        let mut metrics: Vec<&str> =
            run.metrics.iter().map(|one| one.metric.as_str()).collect();
        metrics.sort_unstable();
        metrics.dedup();
        for metric in metrics {
            let series = "INSERT OR IGNORE INTO series (machine, kind, metric) VALUES (?1, ?2, ?3)";
            writing.execute(series, params![machine, kind, metric]).map_err(failed)?;
            let worst = "INSERT INTO worst (series, taken, entry, facts, value) VALUES (
                (SELECT id FROM series WHERE machine = ?1 AND kind = ?2 AND metric = ?3),
                ?4, ?5, (SELECT facts FROM entry WHERE id = ?5), ?6)";
            let value = run.worst(metric);
            writing
                .execute(worst, params![machine, kind, metric, run.taken, id, value])
                .map_err(failed)?;
        }
        writing.commit().map_err(failed)?;
        Ok(id)
    }

    /// The number of an entry that is the same run of that machine; `None` if there is none.
    ///
    /// # Errors
    /// The entries cannot be read.
    pub fn number_of(
        &self,
        machine: &str,
        kind: &str,
        run: &RunNumbers,
    ) -> Result<Option<i64>, Error> {
        let failed = |error: rusqlite::Error| Error::of(&self.file, &error);
        let numbers = RunNumbers { facts: Vec::new(), ..run.clone() };
        let numbers = serde_json::to_string(&numbers)
            .map_err(|error| Error::damaged(&self.file, &error))?;
        let query = "SELECT id FROM entry WHERE machine = ?1 AND kind = ?2 AND taken = ?3
            AND run = ?4 LIMIT 1";
        let mut query = self.connection.prepare(query).map_err(failed)?;
        let mut rows =
            query.query(params![machine, kind, run.taken, numbers]).map_err(failed)?;
        let row = rows.next().map_err(failed)?;
        row.map(|row| row.get(0)).transpose().map_err(failed)
    }

    /// The values of a metric in the entries of a filter.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn series(&self, filter: &Filter, metric: &str) -> Result<Series, Error> {
        let failed = |error: rusqlite::Error| Error::of(&self.file, &error);
        let query = "SELECT entry, taken, value, facts FROM worst WHERE series =
            (SELECT id FROM series WHERE metric = ?1 AND machine = ?2 AND kind = ?3)
            AND taken >= ?4 ORDER BY taken, entry";
        let mut query = self.connection.prepare(query).map_err(failed)?;
        let since = filter.since.as_deref().unwrap_or_default();
        let values = params![metric, filter.machine, filter.kind, since];
        let mut rows = query.query(values).map_err(failed)?;
        let mut series = Series::default();
        while let Some(row) = rows.next().map_err(failed)? {
            series.ids.push(row.get(0).map_err(failed)?);
            series.taken.push(row.get(1).map_err(failed)?);
            series.values.push(row.get(2).map_err(failed)?);
            series.facts.push(row.get(3).map_err(failed)?);
        }
        Ok(series)
    }

    /// The facts of that identity: those that were known.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn facts(&self, id: i64) -> Result<Vec<(String, Value)>, Error> {
        let failed = |error: rusqlite::Error| Error::of(&self.file, &error);
        let query = "SELECT text FROM facts WHERE id = ?1";
        let text: String =
            self.connection.query_row(query, [id], |row| row.get(0)).map_err(failed)?;
        serde_json::from_str(&text).map_err(|error| Error::damaged(&self.file, &error))
    }

    /// The entries with these numbers, in order.
    ///
    /// # Errors
    /// `Kind::NoEntry` if one of the bounds is missing, or they cannot be read.
    pub fn entries(&self, first: i64, last: i64) -> Result<Vec<Entry>, Error> {
        let failed = |error: rusqlite::Error| Error::of(&self.file, &error);
        let query = "SELECT entry.id, machine, kind, run, text
            FROM entry JOIN facts ON facts.id = entry.facts
            WHERE entry.id BETWEEN ?1 AND ?2 ORDER BY entry.id";
        let mut query = self.connection.prepare(query).map_err(failed)?;
        let mut rows = query.query([first, last]).map_err(failed)?;
        let mut entries = Vec::new();
        while let Some(row) = rows.next().map_err(failed)? {
            let (run, facts): (String, String) =
                (row.get(3).map_err(failed)?, row.get(4).map_err(failed)?);
            let damaged = |error: serde_json::Error| Error::damaged(&self.file, &error);
            let facts = serde_json::from_str(&facts).map_err(damaged)?;
            let run: RunNumbers = serde_json::from_str(&run).map_err(damaged)?;
            entries.push(Entry {
                id: row.get(0).map_err(failed)?,
                machine: row.get(1).map_err(failed)?,
                kind: row.get(2).map_err(failed)?,
                run: RunNumbers { facts, ..run },
            });
        }
        let has = |id| entries.iter().any(|entry| entry.id == id);
        match [first, last].into_iter().find(|id| !has(*id)) {
            Some(id) => {
                let text = format!("has no entry {id}");
                Err(Error::new(Kind::NoEntry, &self.file, text))
            }
            None => Ok(entries),
        }
    }

    /// The newest entries of each machine and kind, at most so many of each, the newest first. Only the newest one
    /// has its facts.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn newest(&self, most: usize) -> Result<Vec<Entry>, Error> {
        let failed = |error: rusqlite::Error| Error::of(&self.file, &error);
        let damaged = |error: serde_json::Error| Error::damaged(&self.file, &error);
        let query = "SELECT DISTINCT machine, kind FROM entry ORDER BY machine, kind";
        let mut query = self.connection.prepare(query).map_err(failed)?;
        let of = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let all = query.query_map([], of).map_err(failed)?;
        let all: Vec<(String, String)> = all.collect::<Result<_, _>>().map_err(failed)?;
        let query = "SELECT id, run, facts FROM entry WHERE machine = ?1 AND kind = ?2
            AND length(run) <= 16777216 ORDER BY taken DESC, id DESC LIMIT ?3";
        let mut query = self.connection.prepare(query).map_err(failed)?;
        let mut entries = Vec::new();
        for (machine, kind) in all {
            let limit = i64::try_from(most).unwrap_or(i64::MAX);
            let mut rows = query.query(params![machine, kind, limit]).map_err(failed)?;
            let mut is_first = true;
            while let Some(row) = rows.next().map_err(failed)? {
                let text: String = row.get(1).map_err(failed)?;
                let run: RunNumbers = serde_json::from_str(&text).map_err(damaged)?;
                let facts = match std::mem::take(&mut is_first) {
                    true => self.facts(row.get(2).map_err(failed)?)?,
                    false => Vec::new(),
                };
                let (machine, kind) = (machine.clone(), kind.clone());
                let run = RunNumbers { facts, ..run };
                entries.push(Entry {
                    id: row.get(0).map_err(failed)?,
                    machine,
                    kind,
                    run,
                });
            }
        }
        Ok(entries)
    }

    /// The metrics of a filter's entries, in alphabetical order.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn metrics(&self, filter: &Filter) -> Result<Vec<String>, Error> {
        let failed = |error: rusqlite::Error| Error::of(&self.file, &error);
        let query = "SELECT metric FROM series WHERE machine = ?1 AND kind = ?2
            AND EXISTS (SELECT 1 FROM worst WHERE worst.series = series.id) ORDER BY metric";
        let mut query = self.connection.prepare(query).map_err(failed)?;
        let values = params![filter.machine, filter.kind];
        let rows = query.query_map(values, |row| row.get(0)).map_err(failed)?;
        rows.collect::<Result<_, _>>().map_err(failed)
    }

    /// The kinds of measurements of a machine, each with the number of its entries.
    ///
    /// # Errors
    /// They cannot be read.
    pub fn kinds(&self, machine: &str) -> Result<Vec<(String, u64)>, Error> {
        let failed = |error: rusqlite::Error| Error::of(&self.file, &error);
        let query = "SELECT kind, count(*) FROM entry WHERE machine = ?1 GROUP BY kind";
        let mut query = self.connection.prepare(query).map_err(failed)?;
        let of = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let rows = query.query_map([machine], of).map_err(failed)?;
        rows.collect::<Result<_, _>>().map_err(failed)
    }

    /// Checks every page of the file (`PRAGMA integrity_check`).
    ///
    /// # Errors
    /// It is damaged.
    pub fn check(&self) -> Result<(), Error> {
        let failed = |error: rusqlite::Error| Error::of(&self.file, &error);
        let found: String = self
            .connection
            .query_row("PRAGMA integrity_check", [], |row| row.get(0))
            .map_err(failed)?;
        match found.as_str() {
            "ok" => Ok(()),
            why => Err(Error::new(Kind::Damaged, &self.file, why)),
        }
    }

    /// Deletes the entries that were taken before that time; returns their number.
    ///
    /// # Errors
    /// They cannot be deleted; the history is then unchanged.
    pub fn prune(&mut self, before: &str) -> Result<usize, Error> {
        let file = self.file.clone();
        let failed = |error: rusqlite::Error| Error::of(&file, &error);
        let writing = self.begin()?;
        let old = "DELETE FROM entry WHERE taken < ?1";
        let count = writing.execute(old, [before]).map_err(failed)?;
        writing
            .execute("DELETE FROM worst WHERE taken < ?1", [before])
            .map_err(failed)?;
        let unused =
            "DELETE FROM facts WHERE id NOT IN (SELECT DISTINCT facts FROM entry)";
        writing.execute(unused, []).map_err(failed)?;
        writing.commit().map_err(failed)?;
        Ok(count)
    }
}

/// The name of a file for SQLite. One that is `immutable` is read without locks and without a log.
fn uri(file: &Path, immutable: bool) -> OsString {
    let mut name = b"file:".to_vec();
    let path = file.as_os_str().as_bytes();
    // What is between two slashes and the next one would be the name of a host.
    let slashes = path.iter().take_while(|byte| **byte == b'/').count();
    for byte in &path[slashes.saturating_sub(1)..] {
        match byte {
            b'?' | b'#' | b'%' => name.extend(format!("%{byte:02x}").bytes()),
            _ => name.push(*byte),
        }
    }
    if immutable {
        name.extend(b"?immutable=1");
    }
    OsString::from_vec(name)
}

fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}
