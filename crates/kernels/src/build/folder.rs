//! The folders in which make builds: one for each source, compiler and kind of base, retained for the
//! next build, which then makes again only what a changed option has an effect on.
//!
//! make decides that from the times of files, Kbuild from the commands and options that it has noted
//! beside each object (`scripts/Kbuild.include`, `scripts/basic/fixdep.c` of the kernel). Both are
//! right only if no file was cut off, and if the tree has been the same since the folder was created.
//! So a folder is emptied if a run that changed finished objects was killed instead of stopped, and
//! if a file of the tree, other than one that this cache has unpacked, changed since then.
//!
//! The state of a folder is the file `noisefloor-state`: how the last run ended, and the key of the
//! kernel.

use std::cell::Cell;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::build::make::{CPU_TIME, LOG};
use crate::debian::Fetch;
use crate::error::{CacheError, Error};
use crate::lock::lock_or_stop;

/// The file with the state of a folder.
const STATE: &str = "noisefloor-state";
/// A file that is created with the folder, and never changed.
const CREATED: &str = "noisefloor-created";
/// How many folders are retained, with the one in use: a lean kernel's has 0.5 GB.
const KEPT: usize = 3;

/// How the last run in a folder ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastRun {
    /// The first run has not ended. If it was killed, Kbuild has noted which objects are complete.
    First,
    /// A run that replaces objects has not ended. If it was killed, an object may be cut off whose
    /// notes are those of a complete one.
    Later,
    /// No process is writing, and each file is complete or gone.
    Ended,
}

impl LastRun {
    const ALL: [(Self, &str); 3] =
        [(Self::First, "first"), (Self::Later, "later"), (Self::Ended, "ended")];

    fn word(self) -> &'static str {
        match self {
            Self::First => Self::ALL[0].1,
            Self::Later => Self::ALL[1].1,
            Self::Ended => Self::ALL[2].1,
        }
    }
}

/// A folder of builds, which no other process uses.
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    _lock: File,
    /// Whether processes of a run were killed.
    is_cut: Cell<bool>,
}

impl Folder {
    /// Waits for the folder of that name below `builds`; removes those used least recently.
    ///
    /// # Errors
    /// `Kind::Cache`, `Kind::Interrupted`.
    pub(crate) fn acquire(
        builds: &Path,
        name: &str,
        fetch: &mut Fetch<'_>,
    ) -> Result<Self, Error> {
        let unusable = |error| CacheError::new(builds, error);
        fs::create_dir_all(builds).map_err(unusable)?;
        let mut waits = || {
            (fetch.say)("waiting for another process to build a kernel of this source")
        };
        let lock = builds.join(format!("{name}.lock"));
        let lock = lock_or_stop(&lock, fetch.stop, &mut waits).map_err(unusable)?;
        let lock = lock.ok_or(Error::Interrupted)?;
        remove_old(builds, name);
        Ok(Self { path: builds.join(name), _lock: lock, is_cut: Cell::new(false) })
    }

    /// Prepares the folder for a build of the kernel with that key: empties it if what it has cannot
    /// be used. `tree` is a tree that may have changed.
    ///
    /// # Errors
    /// The folder cannot be read or written.
    pub(crate) fn prepare(&self, key: &str, tree: Option<&Path>) -> io::Result<()> {
        let (last, last_key) = self.state().unwrap_or((LastRun::Later, String::new()));
        let is_changed = || {
            let created = fs::metadata(self.path.join(CREATED))?;
            tree.map_or(Ok(false), |tree| is_newer(tree, change_time(&created)))
        };
        let is_usable = last != LastRun::Later && !is_changed().unwrap_or(true);
        if !is_usable {
            self.empty()?;
        }
        if !is_usable || last_key != key {
            for file in [LOG, CPU_TIME] {
                ignore_missing(fs::remove_file(self.path.join(file)))?;
            }
        }
        // The first run of another kernel would replace objects.
        let first = !is_usable || (last == LastRun::First && last_key == key);
        self.write_state(if first { LastRun::First } else { LastRun::Later }, key)
    }

    /// Declares that processes of a run are killed, maybe in the middle of a file.
    pub(crate) fn cut(&self) {
        self.is_cut.set(true);
    }

    /// Notes that each file is complete or gone, unless processes were killed.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn end(&self, key: &str) -> io::Result<()> {
        if self.is_cut.get() { Ok(()) } else { self.write_state(LastRun::Ended, key) }
    }

    /// Removes everything, and starts a new folder.
    fn empty(&self) -> io::Result<()> {
        ignore_missing(fs::remove_dir_all(&self.path))?;
        fs::create_dir_all(&self.path)?;
        fs::write(self.path.join(CREATED), "")
    }

    fn state(&self) -> Option<(LastRun, String)> {
        let text = fs::read_to_string(self.path.join(STATE)).ok()?;
        let (word, key) = text.trim_end().split_once(' ')?;
        let known = LastRun::ALL.into_iter().find(|(_, known)| *known == word);
        known.map(|(last, _)| (last, key.to_owned()))
    }

    /// Replaces the state in one step: a part of it could be read as none, which empties the folder.
    fn write_state(&self, last: LastRun, key: &str) -> io::Result<()> {
        let new = self.path.join(format!("{STATE}.new"));
        fs::write(&new, format!("{} {key}\n", last.word()))?;
        fs::rename(new, self.path.join(STATE))
    }
}

fn ignore_missing(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Removes the folders used least recently, unless another process uses them.
fn remove_old(builds: &Path, used: &str) {
    let entries = fs::read_dir(builds).into_iter().flatten().flatten();
    let others = entries.map(|entry| entry.path()).filter(|path| {
        path.is_dir() && path.file_name().is_some_and(|name| name != used)
    });
    let mut others: Vec<(SystemTime, PathBuf)> =
        others.map(|path| (last_use(&path), path)).collect();
    others.sort_unstable();
    let surplus = others.len().saturating_sub(KEPT - 1);
    for (_, path) in &others[..surplus] {
        if let Ok(Some(_lock)) = isolate::try_lock(&path.with_extension("lock")) {
            let _ = fs::remove_dir_all(path); // it only takes space
        }
    }
}

/// When a folder was used last; long ago if it has no state.
fn last_use(folder: &Path) -> SystemTime {
    let state = fs::metadata(folder.join(STATE));
    state.and_then(|state| state.modified()).unwrap_or(SystemTime::UNIX_EPOCH)
}

/// The time of a file's last change, of its contents or its attributes; no program can set it.
fn change_time(metadata: &fs::Metadata) -> (i64, i64) {
    (metadata.ctime(), metadata.ctime_nsec())
}

/// Whether a file or folder of a tree changed at that time or later. The folder of git's own files
/// does not count.
fn is_newer(tree: &Path, time: (i64, i64)) -> io::Result<bool> {
    if change_time(&fs::symlink_metadata(tree)?) >= time {
        return Ok(true);
    }
    for entry in fs::read_dir(tree)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        let is_newer = match metadata.is_dir() {
            true if entry.file_name() == ".git" => false,
            true => is_newer(&entry.path(), time)?,
            false => change_time(&metadata) >= time,
        };
        if is_newer {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    const OBJECT: &str = "a.o";

    fn acquire(builds: &Path, name: &str) -> Folder {
        let stop = AtomicBool::new(false);
        let mut fetch = Fetch { fresh: false, stop: &stop, say: &mut |_| {} };
        Folder::acquire(builds, name, &mut fetch).unwrap()
    }

    /// Check that objects stay after a run that ended, and after a first run that was killed if the
    /// same kernel follows, and not after a killed run that replaced objects.
    #[test]
    fn killed_runs() {
        let builds = tempfile::tempdir().unwrap();
        let folder = acquire(builds.path(), "f");
        let object = folder.path.join(OBJECT);
        let log = folder.path.join(LOG);
        let keeps = |key: &str| {
            fs::write(&object, "").unwrap();
            fs::write(&log, "").unwrap();
            folder.prepare(key, None).unwrap();
            (object.exists(), log.exists())
        };
        folder.prepare("A", None).unwrap();
        assert_eq!(keeps("A"), (true, true));
        assert_eq!(keeps("B"), (true, false));
        assert_eq!(keeps("B"), (false, false));
        folder.end("B").unwrap();
        assert_eq!(keeps("B"), (true, true));
        folder.end("B").unwrap();
        assert_eq!(keeps("C"), (true, false));
        folder.cut();
        folder.end("C").unwrap();
        assert_eq!(keeps("C"), (false, false));
    }

    /// Check that objects are removed if a file of the tree has changed since, with whatever time.
    #[test]
    fn changed_trees() {
        let [builds, tree] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let tree = tree.path();
        fs::create_dir_all(tree.join("kernel")).unwrap();
        fs::create_dir_all(tree.join(".git")).unwrap();
        let source = tree.join("kernel/fork.c");
        fs::write(&source, "1").unwrap();
        // The clock of files advances with the tick.
        let later = || std::thread::sleep(std::time::Duration::from_millis(50));
        let folder = acquire(builds.path(), "f");
        let keeps = || {
            fs::write(folder.path.join(OBJECT), "").unwrap();
            folder.end("A").unwrap();
            folder.prepare("A", Some(tree)).unwrap();
            folder.path.join(OBJECT).exists()
        };
        later();
        folder.prepare("A", Some(tree)).unwrap();
        assert!(keeps());
        fs::write(tree.join(".git/index"), "").unwrap();
        assert!(keeps());
        let before = fs::metadata(&source).unwrap().modified().unwrap();
        fs::write(&source, "2").unwrap();
        File::options().append(true).open(&source).unwrap().set_modified(before).unwrap();
        assert!(!keeps());
        later();
        folder.prepare("A", Some(tree)).unwrap();
        folder.empty().unwrap();
        folder.prepare("A", Some(tree)).unwrap();
        assert!(keeps());
        fs::remove_file(source).unwrap();
        assert!(!keeps());
    }

    /// Check that the folders used least recently are removed, and none that is in use.
    #[test]
    fn few_folders() {
        let builds = tempfile::tempdir().unwrap();
        let used = acquire(builds.path(), "used");
        used.prepare("A", None).unwrap();
        let named = |name: &str| builds.path().join(name);
        for (age, name) in ["old", "older", "oldest"].into_iter().enumerate() {
            let folder = acquire(builds.path(), name);
            folder.prepare("A", None).unwrap();
            let time = SystemTime::UNIX_EPOCH
                + std::time::Duration::from_secs(1000 - age as u64);
            let state = File::options().append(true).open(folder.path.join(STATE));
            state.unwrap().set_modified(time).unwrap();
        }
        fs::create_dir(named("without-state")).unwrap();
        let used_old = acquire(builds.path(), "older");
        assert!(!named("without-state").exists() && !named("oldest").exists());
        drop(used_old);
        let _new = acquire(builds.path(), "new");
        assert!(used.path.exists() && named("old").exists());
        assert!(!named("older").exists());
    }
}
