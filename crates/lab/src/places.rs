//! Where the lab keeps things, and finds what it was built with.
//!
//! Kept: `$XDG_CACHE_HOME/noisefloor/lab`, else `~/.cache/noisefloor/lab`. Everything in
//! it can be deleted, and is then made again.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::cell::hash;
use crate::error::{Error, Kind};

/// The variable that names another cache.
const CACHE_VARIABLE: &str = "NOISEFLOOR_CACHE";
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
        let given = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
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

/// A failure to write below the cache; a full disk is called that.
pub(crate) fn failed(place: &Path, error: &std::io::Error) -> Error {
    let text = format!("{}: {error}", place.display());
    let hint = match error.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::PermissionDenied => {
            format!("; make room, or set {CACHE_VARIABLE} to another folder")
        }
        _ => String::new(),
    };
    Error::new(Kind::Cache, text + &hint)
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
    /// Finds them beside this program: where `make install` or `cargo` puts them.
    pub(crate) fn find() -> Result<Self, Error> {
        let program = env::current_exe().ok();
        let ways = ["../lib/noisefloor", "../lab", "../../lab"];
        let beside = program.iter().filter_map(|program| program.parent());
        let beside = beside.flat_map(|folder| ways.map(|way| folder.join(way)));
        let given = env::var_os(PARTS_VARIABLE).map(PathBuf::from);
        let places: Vec<PathBuf> = given.into_iter().chain(beside).collect();
        let complete = |place: &&PathBuf| {
            place.join(AGENT).is_file() && place.join(COUNTER).is_file()
        };
        let Some(place) = places.iter().find(complete) else {
            let text = format!(
                "{AGENT} and {COUNTER} are not beside this program: build them with \
                 `cargo xtask guest` (make build does), or set {PARTS_VARIABLE} to their folder"
            );
            return Err(Error::new(Kind::Parts, text));
        };
        let place = place.canonicalize().map_err(|error| failed(place, &error))?;
        let agent =
            fs::read(place.join(AGENT)).map_err(|error| failed(&place, &error))?;
        let counter = place.join(COUNTER);
        let bytes = fs::read(&counter).map_err(|error| failed(&counter, &error))?;
        Ok(Self { agent, counter, counter_sha256: hash(&bytes) })
    }
}
