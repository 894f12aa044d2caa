//! The journal: a record of all changed settings, written to disk and synced before each change.
//!
//! It is a small file in the state directory ([`crate::settings::state`]), which is replaced as a
//! whole. A process that reads or writes it holds the directory's lock. The file exists only while
//! settings are changed.
//!
//! Settings do not persist across boots: entries of another boot
//! (`/proc/sys/kernel/random/boot_id`) need no restoring.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use units::{Cause, Helped};

use crate::error::{Error, Kind};
use crate::lock::{EndedBy, lock};
use crate::settings::setting::Setting;
use crate::settings::state::State;

const FORMAT: u32 = 1;
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const JOURNAL: &str = "journal.json";
const NEW_JOURNAL: &str = "journal.new";
const LOCK: &str = "lock";

/// A changed setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) setting: Setting,
    /// The original value, before any run changed it.
    pub(crate) old: String,
    /// Values that runs wrote, and the kernel's form of them. The last one is the current value,
    /// unless a run was killed before the write or another process changed the setting.
    pub(crate) new: Vec<String>,
    /// The runs that need the change.
    pub(crate) holders: Vec<String>,
    /// The PID of the process that first changed it.
    pub(crate) pid: u32,
    /// The time of that change, in seconds since 1970.
    pub(crate) time_s: u64,
    /// The boot ID at that time.
    pub(crate) boot_id: String,
}

impl Entry {
    /// A new entry for a setting that is about to be changed.
    pub(crate) fn of(setting: &Setting, old: &str) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            setting: setting.clone(),
            old: old.to_owned(),
            new: Vec::new(),
            holders: Vec::new(),
            pid: std::process::id(),
            time_s: since.map_or(0, |since| since.as_secs()),
            boot_id: boot_id(),
        }
    }
}

/// The contents of the file, in the order of the changes.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Page {
    format: u32,
    changes: Vec<Entry>,
}

/// The journal, locked against other processes.
#[derive(Debug)]
pub(crate) struct Journal<'a> {
    state: &'a State,
    _lock: File,
    pub(crate) entries: Vec<Entry>,
}

impl<'a> Journal<'a> {
    /// Waits for the lock of the journal, and reads it. A signal ends the wait.
    pub(crate) fn open(state: &'a State) -> Result<Self, Error> {
        Self::open_until(state, EndedBy::Any)
    }

    /// The same to restore the settings of this run: a single signal does not end the wait.
    pub(crate) fn open_to_restore(state: &'a State) -> Result<Self, Error> {
        Self::open_until(state, EndedBy::Third)
    }

    fn open_until(state: &'a State, ended_by: EndedBy) -> Result<Self, Error> {
        let what = format!("the journal in {}", state.path().display());
        let file = state.create_file(LOCK);
        let locked = file.and_then(|file| lock(file, &what, ended_by));
        let lock = locked.map_err(|error| refused(state.path(), error))?;
        Ok(Self { state, _lock: lock, entries: entries(state)? })
    }

    /// Whether any setting is changed; does not wait for the lock.
    pub(crate) fn exists(state: &State) -> Result<bool, Error> {
        match state.open_file(JOURNAL) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            opened => opened.map(|_| true).map_err(|error| refused(state.path(), error)),
        }
    }

    pub(crate) fn state(&self) -> &'a State {
        self.state
    }

    /// Writes the journal to disk.
    pub(crate) fn save(&self) -> Result<(), Error> {
        let failed = |error: io::Error| refused(self.state.path(), error);
        if self.entries.is_empty() {
            let removed = self.state.remove(JOURNAL).and_then(|()| self.state.sync());
            return removed.map_err(failed);
        }
        let page = Page { format: FORMAT, changes: self.entries.clone() };
        let text = serde_json::to_vec_pretty(&page).map_err(|e| failed(e.into()))?;
        self.state.replace(JOURNAL, NEW_JOURNAL, &text).map_err(failed)
    }
}

/// The entries now; does not wait for the lock.
pub(crate) fn entries(state: &State) -> Result<Vec<Entry>, Error> {
    let text = match state.read(JOURNAL) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(refused(state.path(), error)),
    };
    let invalid = |why: Cause| {
        let help = "hint: restore by hand the settings that it names, and remove it";
        let text = format!("{} is not a journal", state.path().join(JOURNAL).display());
        Error::new(Kind::Journal, text).caused_by(Helped::new(why, help))
    };
    let page: Page = serde_json::from_slice(&text).map_err(|why| invalid(why.into()))?;
    match page.format {
        FORMAT => Ok(page.changes),
        other => Err(invalid(format!("format {other} is of a later version").into())),
    }
}

/// The error for a journal that cannot be accessed.
pub(crate) fn refused(path: &Path, error: io::Error) -> Error {
    let text =
        format!("failed to open the journal of changed settings in {}", path.display());
    let refused = Error::new(Kind::Journal, text);
    let waited = matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::TimedOut);
    if waited || facts::has_no_locks(&error) {
        return refused.caused_by(error);
    }
    let help = "hint: NOISEFLOOR_STATE names another state directory";
    refused.caused_by(Helped::new(error, help))
}

/// The ID of this boot.
pub(crate) fn boot_id() -> String {
    fs::read_to_string(BOOT_ID).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> Entry {
        Entry {
            setting: Setting::File("/proc/sys/kernel/sched_rt_runtime_us".into()),
            old: "950000".to_owned(),
            new: vec!["-1".to_owned()],
            holders: vec!["77-0".to_owned()],
            pid: 77,
            time_s: 1_800_000_000,
            boot_id: boot_id(),
        }
    }

    /// Check that saved entries are read again, and that an empty journal has no file.
    #[test]
    fn saves_entries() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::create(dir.path()).unwrap();
        let mut journal = Journal::open(&state).unwrap();
        journal.entries.push(entry());
        journal.save().unwrap();
        drop(journal);
        assert!(Journal::exists(&state).unwrap());
        let mut journal = Journal::open(&state).unwrap();
        assert_eq!(journal.entries, [entry()]);
        journal.entries.clear();
        journal.save().unwrap();
        journal.save().unwrap();
        assert!(!Journal::exists(&state).unwrap());
    }

    /// Check that a damaged journal, and one of a later version, are rejected with a hint.
    #[test]
    fn damage_is_reported() {
        for text in ["{\"format\":1", "", "{\"format\":2,\"changes\":[]}"] {
            let dir = tempfile::tempdir().unwrap();
            let state = State::create(dir.path()).unwrap();
            state.replace(JOURNAL, NEW_JOURNAL, text.as_bytes()).unwrap();
            let refused = Journal::open(&state).unwrap_err();
            assert_eq!(refused.kind(), Kind::Journal);
            assert!(units::chain(&refused).contains("remove it"), "{refused:?}");
        }
    }
}
