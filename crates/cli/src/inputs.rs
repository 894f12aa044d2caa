//! Files that commands read: recordings and files of other tools, alone or in a folder.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use recording::Recording;
use summary::RunSet;

use crate::outcome::Failure;

/// The endings of files in folders that are read.
const ENDINGS: [&str; 3] = ["json", "hlog", "txt"];
/// Those of tables, which are read if there is no other file: they may be exports of the others.
const TABLE: &str = "csv";

/// Reads a file, or a folder of Criterion; `-`: standard input.
pub(crate) fn load(file: &Path) -> Result<Recording, Failure> {
    if file == Path::new("-") {
        return Ok(imports::read(io::stdin().lock(), Path::new("standard input"))?);
    }
    match load_folder(file)? {
        Some(folder) => Ok(folder),
        None => Ok(imports::load(file)?),
    }
}

/// The benchmarks of a folder of Criterion; `None` for other folders, and for files.
pub(crate) fn load_folder(name: &Path) -> Result<Option<Recording>, Failure> {
    match name.is_file() {
        true => Ok(None),
        false => Ok(imports::load_folder(name)?),
    }
}

/// Whether this is a file, a folder, or a baseline of Criterion.
pub(crate) fn exists(name: &Path) -> bool {
    name.exists() || imports::is_folder(name)
}

/// Reads files as a set of runs.
pub(crate) fn load_set(files: &[PathBuf]) -> Result<RunSet, Failure> {
    let mut set = RunSet::default();
    for file in files {
        set.add(&load(file)?);
    }
    Ok(set)
}

/// Whether a file of that name would be read in a folder.
pub(crate) fn is_named(file: &Path) -> bool {
    file.extension().is_some_and(|own| ENDINGS.iter().any(|ending| own == *ending))
}

/// The regular files of a folder with one of the endings, by name.
pub(crate) fn files_in(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let shown = units::printable(&folder.to_string_lossy()).into_owned();
    let failed =
        |why: io::Error| Failure::usage(format!("failed to read {shown}: {why}"));
    let (mut files, mut tables) = (Vec::new(), Vec::new());
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        // A FIFO could wait for ever.
        if is_named(&path) && path.is_file() {
            files.push(path);
        } else if path.extension().is_some_and(|own| own == TABLE) && path.is_file() {
            tables.push(path);
        }
    }
    if files.is_empty() {
        files = tables;
    }
    files.sort();
    if files.is_empty() {
        let text = format!("{shown} has no recordings (*.json, *.hlog, *.txt, or *.csv)");
        return Err(Failure::usage(text));
    }
    Ok(files)
}
