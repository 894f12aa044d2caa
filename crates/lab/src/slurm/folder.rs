//! The folder of an array, which the submitting process and the nodes share.
//!
//! `array.json` has the cells of each task, `cells/` the inputs of each cell, `outcomes/` the outcome of
//! each cell that has run, `log/` the output of each task. A file is written under another name and
//! renamed, so that it is complete or absent; only the task of a cell writes its outcome.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use kernels::{checksum, lock_or_stop};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use units::Nanos;

use crate::cache::machine_name;
use crate::error::{Error, failed};
use crate::slurm::cell_file::CellFile;
use crate::slurm::outcome::Outcome;

/// The folder of all arrays in the cache.
const ARRAYS: &str = "slurm";
/// The folders of one.
const CELLS: &str = "cells";
const OUTCOMES: &str = "outcomes";
const LOG: &str = "log";
const ARCHIVES: &str = "archives";
const KERNELS: &str = "kernels";
/// Its files.
const ARRAY: &str = "array.json";
const SCRIPT: &str = "job.sh";

/// The folder of an array.
#[derive(Debug, Clone)]
pub(crate) struct ArrayFolder(PathBuf);

/// The tasks of an array.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ArrayFile {
    /// The cells of each task, by the names of their files.
    pub(crate) tasks: Vec<Vec<String>>,
    /// Whether cached cells are run again.
    pub(crate) fresh: bool,
    /// The deadline of a guest.
    pub(crate) deadline_ns: Nanos,
}

impl ArrayFolder {
    /// The path of an array's folder in that cache.
    pub(crate) fn path(cache: &Path, name: &str) -> PathBuf {
        cache.join(ARRAYS).join(name)
    }

    /// An existing folder, on a node.
    pub(crate) fn at(folder: &Path) -> Self {
        Self(folder.to_owned())
    }

    /// The folder; created if it does not exist.
    pub(crate) fn create(cache: &Path, name: &str) -> Result<Self, Error> {
        let folder = Self(Self::path(cache, name));
        for part in [CELLS, OUTCOMES, LOG, ARCHIVES, KERNELS] {
            let part = folder.0.join(part);
            fs::create_dir_all(&part).map_err(failed(&part))?;
        }
        Ok(folder)
    }

    pub(crate) fn as_path(&self) -> &Path {
        &self.0
    }

    /// Takes the lock of an array, which is beside its folder; `waits` is called once if another process
    /// holds it. `None` if `stop` is set.
    pub(crate) fn lock(
        cache: &Path,
        name: &str,
        stop: &AtomicBool,
        waits: &mut dyn FnMut(),
    ) -> Result<Option<File>, Error> {
        let arrays = cache.join(ARRAYS);
        fs::create_dir_all(&arrays).map_err(failed(&arrays))?;
        let path = arrays.join(format!("{name}.lock"));
        lock_or_stop(&path, stop, waits).map_err(failed(&path))
    }

    pub(crate) fn write_array(
        &self,
        array: &ArrayFile,
        script: &str,
    ) -> Result<(), Error> {
        self.write(Path::new(SCRIPT), script.as_bytes())?;
        self.write_json(Path::new(ARRAY), array)
    }

    /// The tasks of the array.
    ///
    /// # Errors
    /// `Error::Array` if the file is missing, as on a node that does not share the cache.
    pub(crate) fn array(&self) -> Result<ArrayFile, Error> {
        self.read_json(Path::new(ARRAY))
    }

    pub(crate) fn write_cell(&self, file: &str, cell: &CellFile) -> Result<(), Error> {
        self.write_json(&Path::new(CELLS).join(json(file)), cell)
    }

    pub(crate) fn cell(&self, file: &str) -> Result<CellFile, Error> {
        self.read_json(&Path::new(CELLS).join(json(file)))
    }

    pub(crate) fn write_outcome(
        &self,
        file: &str,
        outcome: &Outcome,
    ) -> Result<(), Error> {
        self.write_json(&Path::new(OUTCOMES).join(json(file)), outcome)
    }

    /// The outcome of a cell; `None` if there is none that can be read.
    pub(crate) fn outcome(&self, file: &str) -> Option<Outcome> {
        self.read_json(&Path::new(OUTCOMES).join(json(file))).ok()
    }

    /// The cells that have an outcome.
    pub(crate) fn outcomes(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(self.0.join(OUTCOMES)).into_iter().flatten().flatten();
        let name = |entry: fs::DirEntry| {
            let name = entry.file_name().into_string().ok()?;
            name.strip_suffix(".json").map(str::to_owned)
        };
        entries.filter_map(name).collect()
    }

    pub(crate) fn remove_outcome(&self, file: &str) -> Result<(), Error> {
        let path = self.0.join(OUTCOMES).join(json(file));
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed(&path)(error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Where a task's output goes.
    pub(crate) fn log(&self, task: usize) -> PathBuf {
        self.0.join(LOG).join(format!("{task}.log"))
    }

    /// Adds the archive of a program's files.
    pub(crate) fn add_archive(&self, sha256: &str, archive: &[u8]) -> Result<(), Error> {
        self.add(&Path::new(ARCHIVES).join(sha256), archive).map(drop)
    }

    /// An archive of that checksum.
    pub(crate) fn archive(&self, sha256: &str) -> Result<Vec<u8>, Error> {
        let path = self.0.join(ARCHIVES).join(sha256);
        let archive = fs::read(&path).map_err(failed(&path))?;
        match checksum(&archive) == sha256 {
            true => Ok(archive),
            false => Err(failed(&path)(io::ErrorKind::InvalidData.into())),
        }
    }

    /// Adds a file of a kernel; its path.
    pub(crate) fn add_kernel(&self, name: &str, bytes: &[u8]) -> Result<PathBuf, Error> {
        self.add(&Path::new(KERNELS).join(name), bytes)
    }

    /// Adds a file whose name follows from its contents, unless it is there.
    fn add(&self, name: &Path, bytes: &[u8]) -> Result<PathBuf, Error> {
        let path = self.0.join(name);
        let has = fs::metadata(&path).is_ok_and(|file| file.len() == bytes.len() as u64);
        if !has {
            self.write(name, bytes)?;
        }
        Ok(path)
    }

    /// Removes the output of earlier tasks.
    pub(crate) fn clear_logs(&self) -> Result<(), Error> {
        let log = self.0.join(LOG);
        let cleared = fs::remove_dir_all(&log).and_then(|()| fs::create_dir(&log));
        cleared.map_err(failed(&log))
    }

    /// Removes everything but the output of these tasks, and with none the folder, at the end of an
    /// array that has been collected.
    pub(crate) fn clean(&self, failed_tasks: &BTreeSet<usize>) {
        // What cannot be removed is overwritten by the next run.
        if failed_tasks.is_empty() {
            let _ = fs::remove_dir_all(&self.0);
            return;
        }
        self.remove_inputs();
        let _ = fs::remove_dir_all(self.0.join(OUTCOMES));
        let logs = fs::read_dir(self.0.join(LOG)).into_iter().flatten().flatten();
        let kept: BTreeSet<PathBuf> =
            failed_tasks.iter().map(|task| self.log(*task)).collect();
        for log in logs.filter(|log| !kept.contains(&log.path())) {
            let _ = fs::remove_file(log.path());
        }
    }

    /// Removes the inputs of an array that is not submitted, or has ended.
    pub(crate) fn remove_inputs(&self) {
        for part in [CELLS, ARCHIVES, KERNELS] {
            let _ = fs::remove_dir_all(self.0.join(part)); // else the next run overwrites it
        }
    }

    fn write_json(&self, name: &Path, value: &impl Serialize) -> Result<(), Error> {
        let bytes = serde_json::to_vec(value).map_err(Error::Inputs)?;
        self.write(name, &bytes)
    }

    fn write(&self, name: &Path, bytes: &[u8]) -> Result<(), Error> {
        let path = self.0.join(name);
        let part =
            format!("{}.{}-{}", path.display(), std::process::id(), machine_name());
        let written = fs::write(&part, bytes).and_then(|()| fs::rename(&part, &path));
        written.map_err(failed(&path))
    }

    fn read_json<T: DeserializeOwned>(&self, name: &Path) -> Result<T, Error> {
        let path = self.0.join(name);
        let bytes = fs::read(&path).map_err(|cause| Error::Array(path.clone(), cause))?;
        let parsed = serde_json::from_slice(&bytes);
        parsed.map_err(|cause| Error::Array(path, io::Error::other(cause)))
    }
}

/// The file of a cell.
fn json(file: &str) -> String {
    format!("{file}.json")
}
