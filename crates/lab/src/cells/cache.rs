//! The cached results of cells: a folder for each, complete or absent.
//!
//! A result is the guest's answer and the counter's output, byte for byte, and their inputs.
//! It is written in its boot's folder and renamed, so that a killed process leaves no partial
//! result; a lock prevents two processes from running one cell twice.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use agent::Answer as Sent;
use kernels::lock_or_stop;
use recording::{Answer, Counts, Profile, Recording};
use serde::Deserialize;

use crate::cache::Cache;
use crate::error::{Error, ResultError, failed};
use crate::guest::command_line::{ANSWER, CONSOLE, COUNTS};
use crate::guest::console::Console;

/// The file with the inputs of a result, for people and for other tools.
const INPUTS: &str = "inputs.json";
/// The extension of a result that differs from the cached one.
const DIFFERS: &str = "differs";
/// How much of each end of a long console is stored.
const CONSOLE_END: usize = 64 << 10;

/// The cached results of cells, and the consoles of lost ones.
#[derive(Debug, Clone)]
pub(crate) struct CellCache {
    results: PathBuf,
    lost: PathBuf,
}

/// The counter's output.
#[derive(Deserialize)]
struct Counted {
    counts: Counts,
    profile: Profile,
}

/// How a new result compares with the cached one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stored {
    /// There was none, or it was the same.
    Confirmed,
    /// It was another.
    Differs,
}

impl CellCache {
    /// The folders for cells in that cache.
    pub(crate) fn new(cache: &Cache) -> Result<Self, Error> {
        Ok(Self { results: cache.folder("cells")?, lost: cache.folder("lost")? })
    }

    /// Takes the lock of a cell, so that no other process runs it; `waits` is called once if
    /// another one does. `None` if it was stopped while waiting.
    pub(crate) fn lock(
        &self,
        key: &str,
        stop: &AtomicBool,
        waits: &dyn Fn(),
    ) -> Result<Option<File>, Error> {
        let path = self.results.join(format!("{key}.lock"));
        lock_or_stop(&path, stop, &mut || waits()).map_err(failed(&path))
    }

    /// The cached result of a cell; `None` if there is none that can be decoded.
    pub(crate) fn find(&self, key: &str) -> Option<Answer> {
        read(&self.results.join(key)).ok()
    }

    /// The result of a cell that differs from the cached one, if there is one.
    pub(crate) fn find_differing(&self, key: &str) -> Option<Answer> {
        read(&self.results.join(key).with_extension(DIFFERS)).ok()
    }

    /// Stores the result of the boot in `folder`, which is moved from there. If it differs from
    /// the cached one, both are stored.
    pub(crate) fn store(
        &self,
        key: &str,
        inputs: &str,
        counts: bool,
        folder: &Path,
    ) -> Result<Stored, Error> {
        let place = self.results.join(key);
        let put = || -> std::io::Result<Stored> {
            let new = folder.join("result");
            fs::create_dir(&new)?;
            fs::write(new.join(INPUTS), inputs)?;
            for name in results(counts) {
                fs::rename(folder.join(name), new.join(name))?;
            }
            let differs = self.find(key).is_some() && !same(&new, &place, counts);
            let place =
                if differs { place.with_extension(DIFFERS) } else { place.clone() };
            if place.exists() {
                fs::remove_dir_all(&place)?;
            }
            fs::rename(new, &place)?;
            Ok(if differs { Stored::Differs } else { Stored::Confirmed })
        };
        put().map_err(failed(&place))
    }

    /// Stores the console of a lost cell, and the output of its program; its path.
    pub(crate) fn store_console(
        &self,
        key: &str,
        folder: &Path,
        output: &str,
    ) -> Result<PathBuf, Error> {
        let place = self.lost.join(format!("{key}.console"));
        let console = fs::read(folder.join(CONSOLE)).unwrap_or_default();
        let stored = [ends(&console), output.as_bytes().to_vec()].concat();
        fs::write(&place, stored).map_err(failed(&place))?;
        Ok(place)
    }

    /// The cached cells whose identity has that prefix.
    pub(crate) fn with_prefix(&self, prefix: &str) -> Vec<String> {
        let entries = fs::read_dir(&self.results).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names
            .filter(|name| name.starts_with(prefix) && !name.contains(['.', '-']))
            .collect();
        names.sort();
        names
    }
}

/// The result of the boot in `folder`.
pub(crate) fn read(folder: &Path) -> Result<Answer, Error> {
    let wrong = |name: &str, cause| Error::Result(folder.join(name), cause);
    let mut recording = read_recording(folder).map_err(|cause| wrong(ANSWER, cause))?;
    recording.doubts.extend(Console::read(folder).doubt());
    let counted = read_counted(folder).map_err(|cause| wrong(COUNTS, cause))?;
    let (counts, profile) =
        counted.map(|Counted { counts, profile }| (counts, profile)).unzip();
    Ok(Answer { recording, counts, profile, host: None })
}

fn read_recording(folder: &Path) -> Result<Recording, ResultError> {
    match Sent::from_bytes(&fs::read(folder.join(ANSWER))?)? {
        Sent::Recording(recording) => Ok(*recording),
        Sent::Symbols(_) | Sent::Output(_) | Sent::Refused(_) | Sent::Failed(_) => {
            Err(ResultError::NoRecording)
        }
    }
}

/// The counter's output, if there is one.
fn read_counted(folder: &Path) -> Result<Option<Counted>, ResultError> {
    let file = folder.join(COUNTS);
    match file.exists() {
        true => Ok(serde_json::from_str(&fs::read_to_string(&file)?)?),
        false => Ok(None),
    }
}

/// The files that are a result.
fn results(counts: bool) -> impl Iterator<Item = &'static str> {
    [ANSWER, CONSOLE].into_iter().chain(counts.then_some(COUNTS))
}

/// Whether two results are the same, byte for byte.
fn same(one: &Path, other: &Path, counts: bool) -> bool {
    results(counts).all(|name| {
        let [one, other] = [one, other].map(|folder| fs::read(folder.join(name)).ok());
        one.is_some() && one == other
    })
}

/// The beginning and the end of a console that is too long to store.
fn ends(bytes: &[u8]) -> Vec<u8> {
    if bytes.len() <= 2 * CONSOLE_END {
        return bytes.to_vec();
    }
    let left_out =
        format!("\n[... {} bytes omitted ...]\n", bytes.len() - 2 * CONSOLE_END);
    let (head, tail) = (&bytes[..CONSOLE_END], &bytes[bytes.len() - CONSOLE_END..]);
    [head, left_out.as_bytes(), tail].concat()
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    /// Check that a second process reports once that it waits, and then gets the lock.
    #[test]
    fn waits_for_another_process() {
        let folder = tempfile::tempdir().unwrap();
        let cache = CellCache::new(&Cache::at(folder.path()).unwrap()).unwrap();
        let stop = AtomicBool::new(false);
        let first = cache.lock("key", &stop, &|| panic!("the lock is free"));
        let first = first.unwrap().unwrap();
        thread::scope(|scope| {
            let (sender, receiver) = std::sync::mpsc::channel();
            let waits = move || sender.send(()).unwrap();
            let (cache, stop) = (&cache, &stop);
            let second = scope.spawn(move || cache.lock("key", stop, &waits));
            receiver.recv().unwrap();
            thread::sleep(Duration::from_millis(300));
            drop(first);
            assert!(second.join().unwrap().unwrap().is_some());
            assert_eq!(receiver.iter().count(), 0);
        });
    }
}
