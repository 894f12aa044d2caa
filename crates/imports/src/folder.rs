//! Folders of Criterion, with a file for each benchmark and baseline.

use std::fs;
use std::path::{Path, PathBuf};

use recording::{Error, Input, Kind, Recording};

use crate::benchmarks::BenchmarkFile;
use crate::benchmarks::criterion::{SAMPLE, parse};
use crate::file::{load, text};
use crate::import::Failure;

/// The baseline of the last run.
const LAST: &str = "new";
/// Folders below a benchmark: its group, function and parameter, and the baseline.
const DEPTH_MAX: usize = 8;
/// The most folders that are searched.
const FOLDERS_MAX: usize = 100_000;

/// Whether this names a folder of Criterion: one that exists, or a baseline below one (`target/criterion/main`).
pub fn is_folder(name: &Path) -> bool {
    name.is_dir() || (!name.exists() && matches!(load_folder(name), Ok(Some(_)) | Err(_)))
}

/// Reads a folder of Criterion: all its benchmarks, of the last run, or of the baseline that is named below it
/// (`target/criterion/main`, which is no folder itself). `None` for another folder, and for none.
///
/// # Errors
/// A file in it cannot be read.
pub fn load_folder(name: &Path) -> Result<Option<Recording>, Error> {
    let sample = name.join(SAMPLE);
    if sample.is_file() {
        return load(&sample).map(Some);
    }
    if name.is_dir() {
        return all_of(name, LAST);
    }
    let below = name.parent().zip(name.file_name().and_then(|name| name.to_str()));
    match below {
        Some((folder, baseline)) if folder.is_dir() => all_of(folder, baseline),
        _ => Ok(None),
    }
}

/// The samples of a baseline below a folder, by path.
fn samples(folder: &Path, baseline: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![(folder.to_owned(), 0)];
    let mut searched = 0;
    while let Some((folder, depth)) = folders.pop() {
        searched += 1;
        let is_own = folder.file_name().is_some_and(|name| name == baseline);
        let sample = folder.join(SAMPLE);
        if is_own && sample.is_file() {
            found.push(sample);
        } else if depth < DEPTH_MAX && searched < FOLDERS_MAX {
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            // No links: they may lead back.
            let below = entries.filter(|one| one.file_type().is_ok_and(|it| it.is_dir()));
            folders.extend(below.map(|one| (one.path(), depth + 1)));
        }
    }
    found.sort();
    found
}

/// The recording of a folder of Criterion; `None` if there is no sample of that baseline in it.
fn all_of(folder: &Path, baseline: &str) -> Result<Option<Recording>, Error> {
    let mut found = BenchmarkFile::by("Criterion");
    let mut written = None;
    for sample in samples(folder, baseline) {
        let failed = |error| Error::new(Kind::Read, &sample, error);
        let open = Input::open(&sample).map_err(failed)?;
        let at = open.modified().and_then(|at| jiff::Timestamp::try_from(at).ok());
        written = written.max(at);
        let of_file = |(kind, why): Failure| Error::new(kind, &sample, why);
        let own = parse(&text(open, &sample)?, &sample).map_err(of_file)?;
        found.merge(own).map_err(of_file)?;
    }
    if found.is_empty() {
        return Ok(None);
    }
    let of_folder = |(kind, why): Failure| Error::new(kind, folder, why);
    found.recording(written).map(Some).map_err(of_folder)
}
