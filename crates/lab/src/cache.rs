//! The cache of the lab: kernels, symbols and results of cells.
//!
//! It is `$XDG_CACHE_HOME/noisefloor/lab`, else `~/.cache/noisefloor/lab`. Everything in it can be
//! deleted, and is then generated again.

use std::fs;
use std::path::{Path, PathBuf};

use kernels::CACHE_VARIABLE;
use recording::Folder;
use tempfile::TempDir;

use crate::error::{Error, failed};
use crate::installation::variable;

/// The lab's cache.
#[derive(Debug, Clone)]
pub struct Cache {
    /// The folder.
    pub folder: PathBuf,
}

impl Cache {
    /// The cache of the current user; created if it does not exist.
    ///
    /// # Errors
    /// `Kind::Cache` if there is no home directory, or it cannot be written.
    pub fn find() -> Result<Self, Error> {
        Self::at(&Self::path()?)
    }

    /// Its path; it need not exist.
    ///
    /// # Errors
    /// `Error::NoCache` if there is no home directory.
    pub(crate) fn path() -> Result<PathBuf, Error> {
        let lab = |folder: PathBuf| folder.join("noisefloor/lab");
        let folder = variable(CACHE_VARIABLE)
            .map(PathBuf::from)
            .or_else(|| variable("XDG_CACHE_HOME").map(|folder| lab(folder.into())))
            .or_else(|| {
                variable("HOME").map(|home| lab(Path::new(&home).join(".cache")))
            });
        folder.ok_or(Error::NoCache)
    }

    /// The cache in that folder; created if it does not exist.
    ///
    /// # Errors
    /// `Kind::Cache` if it cannot be created.
    pub fn at(folder: &Path) -> Result<Self, Error> {
        Folder::create(folder).map_err(failed(folder))?;
        let folder = folder.canonicalize().map_err(failed(folder))?;
        Ok(Self { folder })
    }

    /// A folder in it; created if it does not exist.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf, Error> {
        let folder = self.folder.join(name);
        fs::create_dir_all(&folder).map_err(failed(&folder))?;
        Ok(folder)
    }

    /// A folder for one boot, removed when it is dropped.
    pub(crate) fn workplace(&self) -> Result<TempDir, Error> {
        let work = self.folder("work")?;
        tempfile::Builder::new()
            .prefix(&format!("{}-{}-", std::process::id(), machine_name()))
            .tempdir_in(&work)
            .map_err(failed(&work))
    }

    /// Removes the workplaces of processes of this machine that were killed. Those of other machines,
    /// which may share the cache, are left alone.
    pub(crate) fn sweep(&self) {
        let Ok(entries) = fs::read_dir(self.folder.join("work")) else { return };
        let here = machine_name();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let owner = name.to_str().and_then(|name| owner(name, &here));
            let lives = |process: &str| Path::new("/proc").join(process).exists();
            if owner.is_some_and(|process| !lives(process)) {
                // The next sweep retries what cannot be removed now.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// The name of this machine, as a part of file names.
pub(crate) fn machine_name() -> String {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    name.replace(|character: char| !character.is_ascii_alphanumeric(), "-")
}

/// The process that a workplace of this machine belongs to: `PID-HOST-RANDOM`.
fn owner<'a>(name: &'a str, here: &str) -> Option<&'a str> {
    let (process, rest) = name.split_once('-')?;
    let (of, _) = rest.rsplit_once('-')?;
    (of == here).then_some(process)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the folder of a killed process of this machine is removed, and that of a process of
    /// another machine is not, whatever its number.
    #[test]
    fn workplaces_of_other_machines() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::at(folder.path()).unwrap();
        let own = cache.workplace().unwrap();
        let work = cache.folder("work").unwrap();
        let no_process = u32::MAX;
        let killed = work.join(format!("{no_process}-{}-abcdef", machine_name()));
        let elsewhere = work.join(format!("{no_process}-{}-1-abcdef", machine_name()));
        for folder in [&killed, &elsewhere] {
            fs::create_dir(folder).unwrap();
        }
        cache.sweep();
        let exist = [own.path(), &killed, &elsewhere].map(Path::exists);
        assert_eq!(exist, [true, false, true]);
    }
}
