//! The journal: what was changed on this machine and has to be put back, on disk and synced
//! before it is changed.
//!
//! One small file in the state directory ([`crate::settings::state`]), replaced as a whole. A process that
//! reads or changes it holds the directory's lock. There is no file where nothing is changed.
//!
//! Settings do not survive a boot: entries of another boot (`/proc/sys/kernel/random/boot_id`)
//! have nothing to put back.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use units::{Cause, Helped};

use crate::error::{Error, Kind};
use crate::lock::lock;
use crate::settings::setting::Setting;
use crate::settings::state::State;

const FORMAT: u32 = 1;
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const JOURNAL: &str = "journal.json";
const BESIDE: &str = "journal.new";
const LOCK: &str = "lock";

/// One setting that is changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub(crate) setting: Setting,
    /// What it was before any run changed it.
    pub(crate) old: String,
    /// What runs wrote, and how the kernel shows that; the last one is what it is now, unless
    /// a run was killed before it wrote, or somebody else wrote.
    pub(crate) new: Vec<String>,
    /// The runs that need it changed.
    pub(crate) holders: Vec<String>,
    /// The process that changed it first.
    pub(crate) pid: u32,
    /// When that was: seconds since 1970.
    pub(crate) time_s: u64,
    /// The boot in which that was.
    pub(crate) boot_id: String,
}

impl Entry {
    /// A setting that is about to be changed for the first time.
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

/// What stands in the file, in the order in which settings were changed.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Page {
    format: u32,
    changes: Vec<Entry>,
}

/// The journal, locked: no other process reads or changes it meanwhile.
#[derive(Debug)]
pub(crate) struct Journal<'a> {
    state: &'a State,
    _lock: File,
    pub(crate) entries: Vec<Entry>,
}

impl<'a> Journal<'a> {
    /// Waits for the journal in that state directory, and reads it.
    pub(crate) fn open(state: &'a State) -> Result<Self, Error> {
        let what = format!("the journal in {}", state.path().display());
        let locked = state.create_file(LOCK).and_then(|file| lock(file, &what));
        let lock = locked.map_err(|error| refused(state.path(), error))?;
        Ok(Self { state, _lock: lock, entries: entries(state)? })
    }

    /// Whether anything is changed; without waiting.
    pub(crate) fn exists(state: &State) -> Result<bool, Error> {
        match state.open_file(JOURNAL) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            opened => opened.map(|_| true).map_err(|error| refused(state.path(), error)),
        }
    }

    pub(crate) fn state(&self) -> &'a State {
        self.state
    }

    /// Writes it to disk.
    pub(crate) fn save(&self) -> Result<(), Error> {
        let failed = |error: io::Error| refused(self.state.path(), error);
        if self.entries.is_empty() {
            let removed = self.state.remove(JOURNAL).and_then(|()| self.state.sync());
            return removed.map_err(failed);
        }
        let page = Page { format: FORMAT, changes: self.entries.clone() };
        let text = serde_json::to_vec_pretty(&page).map_err(|e| failed(e.into()))?;
        self.state.replace(JOURNAL, BESIDE, &text).map_err(failed)
    }
}

fn entries(state: &State) -> Result<Vec<Entry>, Error> {
    let text = match state.read(JOURNAL) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(refused(state.path(), error)),
    };
    let garbage = |why: Cause| {
        let help = "hint: restore by hand the settings that it names, and remove it";
        let text = format!("{} is not a journal", state.path().join(JOURNAL).display());
        Error::new(Kind::Journal, text).caused_by(Helped::new(why, help))
    };
    let page: Page = serde_json::from_slice(&text).map_err(|why| garbage(why.into()))?;
    match page.format {
        FORMAT => Ok(page.changes),
        other => Err(garbage(format!("format {other} is of a later version").into())),
    }
}

/// Why the journal in that directory is not to be had.
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

/// This boot.
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

    /// Check that what is saved is read again, and that there is no file for nothing.
    #[test]
    fn keeps_entries() {
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

    /// Check that a damaged journal, and one of a later version, are refused with what to do.
    #[test]
    fn damage_is_told() {
        for text in ["{\"format\":1", "", "{\"format\":2,\"changes\":[]}"] {
            let dir = tempfile::tempdir().unwrap();
            let state = State::create(dir.path()).unwrap();
            state.replace(JOURNAL, BESIDE, text.as_bytes()).unwrap();
            let refused = Journal::open(&state).unwrap_err();
            assert_eq!(refused.kind(), Kind::Journal);
            assert!(units::chain(&refused).contains("remove it"), "{refused:?}");
        }
    }
}
