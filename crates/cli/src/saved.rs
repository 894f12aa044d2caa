//! The history of this machine: the file of this user, and runs that are appended to it.

use std::env;
use std::path::PathBuf;

use history::{History, RunNumbers};
use units::chain;

use crate::args::Output;
use crate::host;
use crate::measured::Measured;
use crate::outcome::Failure;
use crate::printing::say;

/// Names another file; ignored in programs with file capabilities, as all such variables.
const VARIABLE: &str = "NOISEFLOOR_HISTORY";
/// The file of root, and the folders of other users (XDG Base Directory Specification).
const ROOT: &str = "/var/lib/noisefloor/history.db";
const XDG: &str = "XDG_STATE_HOME";
const HOME: &str = ".local/state";
const NAME: &str = "noisefloor/history.db";

/// The file of this user's history.
///
/// # Errors
/// There is no home directory.
fn file() -> Result<PathBuf, Failure> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    if let Some(file) = set(VARIABLE).filter(|_| !isolate::is_privileged()) {
        return Ok(file.into());
    }
    if rustix::process::geteuid().is_root() {
        return Ok(ROOT.into());
    }
    let state = set(XDG).map(PathBuf::from);
    let state = state.or_else(|| Some(PathBuf::from(set("HOME")?).join(HOME)));
    state.map(|state| state.join(NAME)).ok_or_else(|| {
        let hint = format!("hint: {VARIABLE} names the file");
        Failure::refused(format!("failed to find the history: HOME is not set; {hint}"))
    })
}

/// Opens the history to read it.
///
/// # Errors
/// There is none, or it cannot be opened.
pub(crate) fn open() -> Result<History, Failure> {
    let file = file()?;
    let found = recording::database_path(&file, false);
    let found = found.map_err(|why| Failure::refused(chain(&why)))?;
    History::open(&found)?.ok_or_else(|| {
        let hint = "hint: noisefloor check --save";
        let file = file.display();
        Failure::usage(format!("there is no history yet ({file}); {hint}"))
    })
}

/// Opens the history to append to it; it is created if there is none.
///
/// # Errors
/// It cannot be created or opened.
pub(crate) fn create() -> Result<History, Failure> {
    let file = recording::database_path(&file()?, true);
    let file = file.map_err(|why| Failure::refused(chain(&why)))?;
    Ok(History::create(&file)?)
}

/// Checks before the measurement that the history is not another user's, and can be written if it exists.
///
/// # Errors
/// As [`append`].
pub(crate) fn check() -> Result<(), Failure> {
    let path = recording::database_path(&file()?, false);
    let checked = path.and_then(|path| match path.exists() {
        true => recording::check_writable(&path),
        false => Ok(()),
    });
    checked.map_err(|why| Failure::refused(format!("--save: {}", chain(&why))))
}

/// The name of this machine.
pub(crate) fn machine() -> String {
    host::name()
}

/// Appends a run to the history.
///
/// # Errors
/// It cannot be written; the run is not lost, as it is reported and saved before that.
pub(crate) fn append(measured: &Measured, output: Output) -> Result<(), Failure> {
    let mut history = create()?;
    let recording = measured.recording();
    let numbers = RunNumbers::of(recording, Some(measured.summary()));
    let id = history.append(&machine(), recording.body.kind(), &numbers)?;
    if !output.quiet {
        say(format_args!("saved as entry {id} of the history"));
    }
    Ok(())
}
