//! Who needs settings changed: a run has a file of its own in `holders/`, and its lock. A
//! run whose lock can be had has ended, however that was, and whoever has its number now.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::lock::try_lock;

/// Runs of one process are told apart by this.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A run of this process.
#[derive(Debug)]
pub(crate) struct Holder {
    pub(crate) name: String,
    /// The process whose run it is.
    pub(crate) process: u32,
    file: PathBuf,
    _lock: File,
}

impl Holder {
    /// A new one. The journal has to be held.
    pub(crate) fn new(folder: &Path) -> io::Result<Self> {
        let holders = holders(folder);
        fs::create_dir_all(&holders)?;
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let process = std::process::id();
            let name = format!("{process}-{number}");
            let file = holders.join(&name);
            // A container's process may have the same number.
            if let Some(lock) = try_lock(&file)? {
                return Ok(Self { name, process, file, _lock: lock });
            }
        }
    }

    /// Whether this is the process whose run it is, and not one that it forked: to that one
    /// nothing belongs, though it has a copy of everything.
    pub(crate) fn is_own(&self) -> bool {
        self.process == std::process::id()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        if self.is_own() {
            // What stays is removed by the next one.
            let _ = fs::remove_file(&self.file);
        }
    }
}

/// Whether a run still goes on. Of one that has ended nothing stays.
pub(crate) fn lives(folder: &Path, name: &str) -> bool {
    let file = holders(folder).join(name);
    // A name comes from a file; it must not lead anywhere else.
    if name.contains('/') || !file.exists() {
        return false;
    }
    match try_lock(&file) {
        Ok(Some(_)) => {
            let _ = fs::remove_file(&file);
            false
        }
        Ok(None) => true,
        Err(_) => false,
    }
}

fn holders(folder: &Path) -> PathBuf {
    folder.join("holders")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that runs live until they end, and that two of one process are two.
    #[test]
    fn live_until_they_end() {
        let dir = tempfile::tempdir().unwrap();
        let [one, two] = [(); 2].map(|()| Holder::new(dir.path()).unwrap());
        let lives = |name: &str| lives(dir.path(), name);
        assert!(lives(&one.name) && lives(&two.name));
        let gone = one.name.clone();
        drop(one);
        assert!(!lives(&gone) && lives(&two.name));
        assert!(!lives("77-0") && !lives("../lock"));
    }

    /// Check that a run whose process was killed does not live, though its file is there.
    #[test]
    fn killed_ones_do_not_live() {
        let dir = tempfile::tempdir().unwrap();
        let Holder { name, file, _lock, .. } = &Holder::new(dir.path()).unwrap();
        rustix::fs::flock(_lock, rustix::fs::FlockOperation::Unlock).unwrap();
        assert!(file.exists() && !lives(dir.path(), name) && !file.exists());
    }
}
