//! The journal: what was changed on this machine and has to be put back, on disk and synced
//! before it is changed.
//!
//! One small file in a folder of its own, replaced as a whole: written beside, synced,
//! renamed, the folder synced. Whoever reads or changes it holds the folder's lock
//! (`flock(2)`). There is no file where nothing is changed.
//!
//! Settings do not survive a boot: entries of another boot (`/proc/sys/kernel/random/boot_id`)
//! have nothing to put back.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Kind};
use crate::lock::lock;
use crate::setting::Setting;

const FORMAT: u32 = 1;
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

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

/// The journal, held: nobody else reads or changes it meanwhile.
#[derive(Debug)]
pub(crate) struct Journal {
    folder: PathBuf,
    _lock: File,
    pub(crate) entries: Vec<Entry>,
}

impl Journal {
    /// Waits for the journal in that folder, makes the folder if need be, and reads it.
    pub(crate) fn open(folder: &Path) -> Result<Self, Error> {
        let failed = |error: io::Error| refused(folder, &error);
        DirBuilder::new().recursive(true).mode(0o755).create(folder).map_err(failed)?;
        trusted(folder)?;
        let lock = lock(&folder.join("lock")).map_err(failed)?;
        let entries = read(folder)?;
        Ok(Self { folder: folder.to_owned(), _lock: lock, entries })
    }

    /// Whether there is anything to put back; without privileges, and without waiting.
    pub(crate) fn is_there(folder: &Path) -> bool {
        file(folder).exists()
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes it to disk.
    pub(crate) fn save(&self) -> Result<(), Error> {
        let failed = |error: io::Error| refused(&self.folder, &error);
        let place = file(&self.folder);
        if self.entries.is_empty() {
            return match fs::remove_file(place) {
                Err(error) if error.kind() != ErrorKind::NotFound => Err(failed(error)),
                _ => sync(&self.folder).map_err(failed),
            };
        }
        let page = Page { format: FORMAT, changes: self.entries.clone() };
        let text = serde_json::to_vec_pretty(&page).map_err(|e| failed(e.into()))?;
        let beside = self.folder.join("journal.new");
        let written = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&beside)
            .and_then(|mut file| file.write_all(&text).and_then(|()| file.sync_all()))
            .and_then(|()| fs::rename(&beside, place))
            .and_then(|()| sync(&self.folder));
        written.map_err(failed)
    }
}

fn file(folder: &Path) -> PathBuf {
    folder.join("journal.json")
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

fn read(folder: &Path) -> Result<Vec<Entry>, Error> {
    let place = file(folder);
    let text = match fs::read(&place) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(refused(folder, &error)),
    };
    let garbage = |why: String| {
        let help = "read it, put back by hand what it says, and remove it";
        let text = format!("{} is not a journal: {why}; {help}", place.display());
        Error::new(Kind::Journal, text)
    };
    let page: Page = serde_json::from_slice(&text).map_err(|e| garbage(e.to_string()))?;
    match page.format {
        FORMAT => Ok(page.changes),
        other => Err(garbage(format!("format {other} is of a later version"))),
    }
}

/// A journal is believed only where no other user could have written it.
fn trusted(folder: &Path) -> Result<(), Error> {
    let about = fs::metadata(folder).map_err(|error| refused(folder, &error))?;
    let own = rustix::process::geteuid().as_raw();
    if about.uid() == own && about.mode() & 0o022 == 0 {
        return Ok(());
    }
    let text = format!("{} may be written by others than user {own}", folder.display());
    Err(Error::new(Kind::Journal, text))
}

fn refused(folder: &Path, error: &io::Error) -> Error {
    let place = folder.display();
    let other = match facts::has_no_locks(error) {
        true => "",
        false => " (NOISEFLOOR_STATE names another folder)",
    };
    let text = format!(
        "nothing is changed that cannot be written down first, and {place}: {error}{other}"
    );
    Error::new(Kind::Journal, text)
}

/// This boot.
pub(crate) fn boot_id() -> String {
    fs::read_to_string(BOOT_ID).unwrap_or_default().trim().to_owned()
}

/// Where this user's journal is: `NOISEFLOOR_STATE`, for root `/var/lib/noisefloor`, for
/// others `noisefloor` in `XDG_STATE_HOME` or `~/.local/state`.
///
/// # Errors
/// `Kind::Journal` where none of them is known.
pub(crate) fn place() -> Result<PathBuf, Error> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(folder) = variable("NOISEFLOOR_STATE") {
        return Ok(PathBuf::from(folder));
    }
    if rustix::process::geteuid().is_root() {
        return Ok(PathBuf::from("/var/lib/noisefloor"));
    }
    let of_home = || Some(PathBuf::from(variable("HOME")?).join(".local/state"));
    let state = variable("XDG_STATE_HOME").map(PathBuf::from).or_else(of_home);
    let text = "no folder for what is changed: set HOME or NOISEFLOOR_STATE";
    state
        .map(|state| state.join("noisefloor"))
        .ok_or_else(|| Error::new(Kind::Journal, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

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
        let mut journal = Journal::open(dir.path()).unwrap();
        journal.entries.push(entry());
        journal.save().unwrap();
        drop(journal);
        let mut journal = Journal::open(dir.path()).unwrap();
        assert_eq!(journal.entries, [entry()]);
        journal.entries.clear();
        journal.save().unwrap();
        assert!(!Journal::is_there(dir.path()));
        journal.save().unwrap();
    }

    /// Check that a damaged journal, and one of a later version, are refused with what to do.
    #[test]
    fn damage_is_told() {
        for text in ["{\"format\":1", "", "{\"format\":2,\"changes\":[]}"] {
            let dir = tempfile::tempdir().unwrap();
            fs::write(file(dir.path()), text).unwrap();
            let refused = Journal::open(dir.path()).unwrap_err();
            assert_eq!(refused.kind(), Kind::Journal);
            assert!(refused.to_string().contains("remove it"), "{refused}");
        }
    }

    /// Check that a folder that others can write to is not believed.
    #[test]
    fn others_are_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).unwrap();
        let refused = Journal::open(dir.path()).unwrap_err();
        assert!(refused.to_string().contains("by others"), "{refused}");
    }
}
