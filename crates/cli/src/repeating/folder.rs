//! The files of a set of runs: `001.json`, `002.json`, ... in a folder. More runs can be added later.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use recording::Recording;
use units::chain;

use crate::destination::{Destination, create_folder};
use crate::outcome::Failure;

/// The folder of a set.
#[derive(Debug)]
pub(crate) struct SetFolder {
    path: PathBuf,
    next: u32,
    /// The recordings that this process saved, in order.
    saved: Vec<PathBuf>,
}

impl SetFolder {
    /// A folder for each set: the given one if there is one set, else folders in it with the names of the sets.
    ///
    /// # Errors
    /// A folder cannot be created or written.
    pub(crate) fn all(folder: &Path, names: Vec<String>) -> Result<Vec<Self>, Failure> {
        match names.len() {
            1 => Ok(vec![Self::open(folder)?]),
            _ => file_names(names.into_iter())
                .iter()
                .map(|name| Self::open(&folder.join(name)))
                .collect(),
        }
    }

    fn open(path: &Path) -> Result<Self, Failure> {
        let failed = |error: io::Error| {
            Failure::usage(format!("-o: failed to read {}: {error}", path.display()))
        };
        create_folder(path)
            .map_err(|why| Failure::usage(format!("-o: {}", chain(&why))))?;
        let mut folder = Self { path: path.to_owned(), next: 1, saved: Vec::new() };
        for entry in fs::read_dir(path).map_err(failed)? {
            let number = number_in(&entry.map_err(failed)?.path()).unwrap_or(0);
            folder.next = folder.next.max(number.saturating_add(1));
        }
        Destination::new("-o", &folder.file()).check()?;
        Ok(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The number of recordings that were there before.
    pub(crate) fn known(&self) -> u32 {
        self.next - 1
    }

    /// The files that were saved, in order.
    pub(crate) fn saved(&self) -> Vec<String> {
        self.saved.iter().map(|file| file.display().to_string()).collect()
    }

    /// Saves the next recording. Another process may add recordings to the same folder.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn save(&mut self, recording: &Recording) -> Result<(), Failure> {
        let mut is_new = false;
        while !is_new {
            let file = self.file();
            is_new = Destination::new("-o", &file).save_new(recording)?;
            self.saved.extend(is_new.then_some(file));
            self.next = self.next.checked_add(1).ok_or_else(|| {
                let path = self.path.display();
                Failure::refused(format!("-o: {path} has no number left for a file"))
            })?;
        }
        Ok(())
    }

    fn file(&self) -> PathBuf {
        self.path.join(format!("{:03}.json", self.next))
    }
}

/// The number of a recording.
fn number_in(file: &Path) -> Option<u32> {
    let is_json = file.extension().is_some_and(|extension| extension == "json");
    file.file_stem().filter(|_| is_json)?.to_str()?.parse().ok()
}

/// The names of folders for variants, which differ: `X=1`, `X=1-2`.
fn file_names(variants: impl Iterator<Item = String>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for variant in variants {
        let name = file_name(&variant);
        let numbered = (2..).map(|number: u32| format!("{name}-{number}"));
        let mut possible = std::iter::once(name.clone()).chain(numbered);
        names.extend(possible.find(|name| !names.contains(name)));
    }
    names
}

/// A variant's name without characters that file names cannot have, or that shells interpret.
fn file_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "=,._+-".contains(c);
    let name: String = name.chars().map(|c| if plain(c) { c } else { '_' }).collect();
    name.trim_start_matches(['.', '-']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that names of variants are file names.
    #[test]
    fn names() {
        for (name, expected) in [
            ("current", "current"),
            ("preempt=full,base_slice_ns=3000000", "preempt=full,base_slice_ns=3000000"),
            ("/sys/kernel/x=1 2", "_sys_kernel_x=1_2"),
            ("../x", "_x"),
        ] {
            assert_eq!(file_name(name), expected);
        }
    }

    /// Check that variants with the same name, or with one that differs in other characters only, have
    /// folders of their own.
    #[test]
    fn equal_names() {
        let names = ["x=1", "x=1", "x=1 ", "x=1_", "x=1"].map(str::to_owned);
        let expected = ["x=1", "x=1-2", "x=1_", "x=1_-2", "x=1-3"];
        assert_eq!(file_names(names.into_iter()), expected);
    }

    /// Check that a recording that another process has added in the meantime stays.
    #[test]
    fn nothing_is_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let mut folder = SetFolder::open(dir.path()).unwrap();
        let golden = "../recording/tests/golden/noise-1.json";
        let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join(golden);
        let recording = Recording::load(&golden).unwrap();
        fs::write(dir.path().join("001.json"), "other").unwrap();
        folder.save(&recording).unwrap();
        folder.save(&recording).unwrap();
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
        assert_eq!(read("001.json"), "other");
        assert_eq!(read("002.json"), read("003.json"));
    }

    /// Check that numbers continue after those of a folder, and that other files do not count.
    #[test]
    fn numbers() {
        let dir = tempfile::tempdir().unwrap();
        let open = || SetFolder::open(dir.path()).unwrap();
        assert_eq!(open().file(), dir.path().join("001.json"));
        for name in ["002.json", "before.json", "7.txt", "11.json"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!((open().known(), open().file()), (11, dir.path().join("012.json")));
    }
}
