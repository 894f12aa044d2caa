//! Where the lab keeps things, and finds what it was built with.
//!
//! Kept: `$XDG_CACHE_HOME/noisefloor/lab`, else `~/.cache/noisefloor/lab`. Everything in
//! it can be deleted, and is then made again.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use kernels::{CACHE_VARIABLE, checksum};
use tempfile::TempDir;

use crate::error::{Error, Kind, failed};

/// The variable that names another folder of the agent and the counter.
const PARTS_VARIABLE: &str = "NOISEFLOOR_PARTS";
/// What `cargo xtask guest` and `make install` call them.
const AGENT: &str = "noisefloor-agent";
const COUNTER: &str = "noisefloor-counter.so";

/// The lab's cache.
#[derive(Debug, Clone)]
pub struct Cache {
    /// The folder.
    pub folder: PathBuf,
}

impl Cache {
    /// The cache of the user who runs this; made if it is not there.
    ///
    /// # Errors
    /// `Kind::Cache` where there is no home, or it cannot be written.
    pub fn find() -> Result<Self, Error> {
        let lab = |folder: PathBuf| folder.join("noisefloor/lab");
        let folder = given(CACHE_VARIABLE)
            .map(PathBuf::from)
            .or_else(|| given("XDG_CACHE_HOME").map(|folder| lab(folder.into())))
            .or_else(|| given("HOME").map(|home| lab(Path::new(&home).join(".cache"))));
        let Some(folder) = folder else {
            let text =
                format!("no place to keep things: HOME and {CACHE_VARIABLE} are not set");
            return Err(Error::new(Kind::Cache, text));
        };
        Self::at(&folder)
    }

    /// The cache in that folder; made if it is not there.
    ///
    /// # Errors
    /// `Kind::Cache` where it cannot be made.
    pub fn at(folder: &Path) -> Result<Self, Error> {
        fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
        let folder = folder.canonicalize().map_err(|error| failed(folder, &error))?;
        Ok(Self { folder })
    }

    /// A folder in it; made if it is not there.
    pub(crate) fn folder(&self, name: &str) -> Result<PathBuf, Error> {
        let folder = self.folder.join(name);
        fs::create_dir_all(&folder).map_err(|error| failed(&folder, &error))?;
        Ok(folder)
    }

    /// A folder for one boot, gone when it is dropped.
    pub(crate) fn workplace(&self) -> Result<TempDir, Error> {
        let work = self.folder("work")?;
        tempfile::Builder::new()
            .prefix(&format!("{}-", std::process::id()))
            .tempdir_in(&work)
            .map_err(|error| failed(&work, &error))
    }

    /// Removes the workplaces of processes that were killed.
    pub(crate) fn sweep(&self) {
        let Ok(entries) = fs::read_dir(self.folder.join("work")) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let owner = name.to_str().and_then(|name| name.split('-').next());
            let lives = |process: &str| Path::new("/proc").join(process).exists();
            if owner.is_some_and(|process| !lives(process)) {
                // What cannot be removed now is left to the next sweep.
                let _ = fs::remove_dir_all(entry.path());
            }
        }
    }
}

/// What a guest is made of besides its kernel.
#[derive(Debug, Clone)]
pub(crate) struct Parts {
    /// The agent's program.
    pub(crate) agent: Vec<u8>,
    /// The counter's file.
    pub(crate) counter: PathBuf,
    /// Its SHA-256, in hexadecimal.
    pub(crate) counter_sha256: String,
}

impl Parts {
    /// Finds them in the folder that is named for them, else beside this program.
    pub(crate) fn find() -> Result<Self, Error> {
        let place = match given(PARTS_VARIABLE).map(PathBuf::from) {
            Some(place) => named(place)?,
            None => beside(env::current_exe().ok().as_deref())?,
        };
        Self::read(&place).map_err(|error| {
            Error::new(Kind::Parts, format!("{}: {error}", place.display()))
        })
    }

    fn read(place: &Path) -> io::Result<Self> {
        let place = place.canonicalize()?;
        let agent = fs::read(place.join(AGENT))?;
        let counter = place.join(COUNTER);
        let counter_sha256 = checksum(&fs::read(&counter)?);
        Ok(Self { agent, counter, counter_sha256 })
    }
}

/// The folder that somebody named, if the parts are in it.
fn named(place: PathBuf) -> Result<PathBuf, Error> {
    match [AGENT, COUNTER].iter().find(|part| !place.join(part).is_file()) {
        Some(part) => {
            let place = place.display();
            let text = format!(
                "{PARTS_VARIABLE} is {place}, and there is no {part}: set it to the folder \
                 that `cargo xtask guest` fills, or unset it"
            );
            Err(Error::new(Kind::Parts, text))
        }
        None => Ok(place),
    }
}

/// Where `make install` or `cargo` puts them beside this program.
fn beside(program: Option<&Path>) -> Result<PathBuf, Error> {
    let ways = ["../lib/noisefloor", "../lab", "../../lab"];
    let folder = program.and_then(Path::parent).into_iter();
    let mut places = folder.flat_map(|folder| ways.map(|way| folder.join(way)));
    let complete =
        |place: &PathBuf| [AGENT, COUNTER].iter().all(|part| place.join(part).is_file());
    places.find(complete).ok_or_else(|| {
        let text = format!(
            "{AGENT} and {COUNTER} are not beside this program: build them with \
             `cargo xtask guest` (make build does), or set {PARTS_VARIABLE} to their folder"
        );
        Error::new(Kind::Parts, text)
    })
}

/// What a variable is set to, where that is something.
fn given(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a folder that is named for the parts and lacks one is refused, with the
    /// variable and the part.
    #[test]
    fn named_parts() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().to_owned();
        fs::write(place.join(AGENT), "agent").unwrap();
        let error = named(place.clone()).unwrap_err();
        assert_eq!(error.kind(), Kind::Parts);
        let text = error.to_string();
        assert!(text.starts_with("NOISEFLOOR_PARTS is ") && text.contains(COUNTER));
        fs::write(place.join(COUNTER), "counter").unwrap();
        assert_eq!(named(place.clone()), Ok(place.clone()));
        assert_eq!(Parts::read(&place).unwrap().agent, b"agent");
    }

    /// Check that the parts are found where they are installed, and asked for elsewhere.
    #[test]
    fn parts_beside_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("bin/noisefloor");
        let parts = folder.path().join("lib/noisefloor");
        let error = beside(Some(&program)).unwrap_err();
        assert!(error.to_string().contains("NOISEFLOOR_PARTS"), "{error}");
        fs::create_dir_all(&parts).unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        for part in [AGENT, COUNTER] {
            fs::write(parts.join(part), "").unwrap();
        }
        let place = beside(Some(&program)).unwrap().canonicalize().unwrap();
        assert_eq!(place, parts.canonicalize().unwrap());
    }
}
