//! The files of a set of runs: `001.json`, `002.json`, ... in a folder. More runs can be added later.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use recording::Recording;

use crate::destination::Destination;
use crate::outcome::Failure;
use crate::repeating::Variant;

/// The folder of a set.
#[derive(Debug)]
pub(crate) struct SetFolder {
    path: PathBuf,
    next: u32,
}

impl SetFolder {
    /// A folder for each variant: the given one if there is one variant, else folders in it with the
    /// names of the variants.
    ///
    /// # Errors
    /// A folder cannot be created or written.
    pub(crate) fn all(folder: &Path, variants: &[Variant]) -> Result<Vec<Self>, Failure> {
        match variants {
            [_] => Ok(vec![Self::open(folder)?]),
            several => several
                .iter()
                .map(|variant| Self::open(&folder.join(file_name(&variant.name()))))
                .collect(),
        }
    }

    fn open(path: &Path) -> Result<Self, Failure> {
        let failed = |error: io::Error| {
            Failure::usage(format!("-o: failed to create {}: {error}", path.display()))
        };
        fs::create_dir_all(path).map_err(failed)?;
        let mut folder = Self { path: path.to_owned(), next: 1 };
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

    /// Saves the next recording.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn save(&mut self, recording: &Recording) -> Result<(), Failure> {
        Destination::new("-o", &self.file()).save(recording)?;
        self.next = self.next.saturating_add(1);
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
