//! The history of this machine: the file of this user, and runs that are appended to it.

use std::env;
use std::fs;
use std::path::PathBuf;

use history::{History, RunNumbers};

use crate::args::Output;
use crate::measuring::Measured;
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
pub(crate) fn file() -> Result<PathBuf, Failure> {
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

/// The name of this machine.
pub(crate) fn machine() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// Appends a run to the history.
///
/// # Errors
/// It cannot be written; the run is not lost, as it is reported and saved before that.
pub(crate) fn append(measured: &Measured, output: Output) -> Result<(), Failure> {
    let mut history = History::create(&file()?)?;
    let recording = measured.recording();
    let numbers = RunNumbers::of(recording, measured.summary());
    let id = history.append(&machine(), recording.body.kind(), &numbers)?;
    if !output.quiet {
        say(format_args!("saved as entry {id} of the history"));
    }
    Ok(())
}
