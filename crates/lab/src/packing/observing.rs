//! Runs a command once on this machine, as it will run in the guest, to find what it uses.
//!
//! It has the guest's environment: the variables of the experiment and no others, so that tokens in this
//! environment are not seen by it. Only `PATH` is this machine's, so that programs are those that the
//! user's shell finds, and the home directory is the current folder.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use experiments::{ProgramFiles, USUAL_HOME, USUAL_PATH};
use observe::{Ended, Observation, Request, observe};
use recording::{ProgramSpec, Words};

use crate::last_line::last_line;
use crate::pack_error::PackError;
use crate::packing::mapping::Mapping;
use crate::packing::remarks::{Remark, Remarks};
use crate::packing::{FILES_MAX, Host, PATH, host, libraries};

const HOME: &str = "HOME";
/// The least time of a command on this machine.
const LIMIT_MIN: Duration = Duration::from_secs(60);
/// What the guest has itself.
const IGNORED: [&str; 4] = ["/dev", "/proc", "/run", "/sys"];

/// A command that ran on this machine.
pub(super) struct Observed {
    pub(super) observation: Observation,
    pub(super) mapping: Mapping,
    /// The guest's `PATH`.
    pub(super) path: String,
    pub(super) remarks: Remarks,
    /// Whether it failed.
    pub(super) has_failed: bool,
}

/// The folders of programs on this machine, unless the experiment has others.
pub(super) fn path_here(spec: &ProgramSpec) -> String {
    let named = variable(spec, PATH).unwrap_or_default();
    match host::path() {
        own if named == USUAL_PATH && !own.is_empty() => own,
        _ => named.to_owned(),
    }
}

/// Runs the command of a specification; `None` if it is not on this machine.
pub(super) fn run(
    spec: &ProgramSpec,
    files: &ProgramFiles,
    host: &mut Host<'_>,
) -> Result<Option<Observed>, PackError> {
    let failed = |why| PackError::Read(files.folder.clone(), why);
    let mapping = Mapping::new(&files.folder, &spec.directory).map_err(failed)?;
    let path = path_here(spec);
    let Some(program) = find(&spec.command, &mapping, &path) else { return Ok(None) };
    let environment = environment(spec, &mapping, &path);
    let arguments: Vec<OsString> = spec
        .command
        .program()
        .into_iter()
        .map(OsString::from)
        .chain(spec.command.arguments().iter().cloned())
        .collect();
    let request = Request {
        program: &program,
        arguments: &arguments,
        environment: &environment,
        folder: mapping.folder(),
        ignored: &IGNORED,
        limit: Duration::from(spec.limit_ns).max(LIMIT_MIN),
        contents_max: FILES_MAX << 20,
        stop: host.stop,
    };
    let mut has_said = false;
    let observation = observe(&request, &mut |files, bytes| {
        if !std::mem::replace(&mut has_said, true) {
            let mb = bytes / 1_000_000;
            (host.say)(&format!(
                "observing the command on this machine: {files} files, {mb} MB so far"
            ));
        }
    })?;
    let mapping = mapping.with_above(observation.above.iter());
    let path = match variable(spec, PATH) {
        Some(named) if named != USUAL_PATH => named.to_owned(),
        Some(_) | None => guest_path(&path, &observation.executed, &mapping),
    };
    let failure = failure(spec, &observation);
    let has_failed = failure.is_some();
    let remarks = remarks(failure, &observation);
    Ok(Some(Observed { observation, mapping, path, remarks, has_failed }))
}

/// The program as a shell finds it.
fn find(command: &Words, mapping: &Mapping, path: &str) -> Option<PathBuf> {
    let name = command.program()?.to_str()?;
    let found = match name.contains('/') {
        true => Some(mapping.folder().join(name)),
        false => host::find(name, path),
    };
    found.filter(|program| host::is_program(program))
}

fn environment(
    spec: &ProgramSpec,
    mapping: &Mapping,
    path: &str,
) -> Vec<(String, String)> {
    let here = |(name, value): &(String, String)| {
        let value = match name.as_str() {
            PATH => path.to_owned(),
            HOME if value == USUAL_HOME => mapping.folder().display().to_string(),
            libraries::VARIABLE => {
                let folders = value.split(':').map(|folder| mapping.host(folder));
                let folders = folders.map(|folder| folder.display().to_string());
                folders.collect::<Vec<_>>().join(":")
            }
            _ => value.clone(),
        };
        (name.clone(), value)
    };
    spec.environment.iter().map(here).collect()
}

/// The guest's `PATH`: the folders of this machine's in which a program was found and that guests do not
/// have, and theirs.
fn guest_path(path: &str, executed: &[PathBuf], mapping: &Mapping) -> String {
    let usual = |folder: &str| USUAL_PATH.split(':').any(|usual| usual == folder);
    let is_used = |folder: &str| {
        executed.iter().any(|program| program.parent() == Some(Path::new(folder)))
    };
    let folders = path.split(':').filter(|folder| folder.starts_with('/'));
    let mut folders: Vec<String> = folders
        .filter(|folder| !usual(folder) && is_used(folder))
        .filter_map(|folder| mapping.guest(Path::new(folder)).ok())
        .collect();
    folders.push(USUAL_PATH.to_owned());
    folders.join(":")
}

fn remarks(failure: Option<String>, observation: &Observation) -> Remarks {
    let mut remarks = Remarks::default();
    failure.into_iter().for_each(|failure| remarks.say(failure));
    if observation.unread_calls > 0 {
        remarks.say(format!(
            "{} system calls could not be observed: they are of programs that may be executed, but \
             not read",
            observation.unread_calls
        ));
    }
    for name in &observation.outlived {
        remarks.add(Remark::Outlived, name);
    }
    remarks
}

/// How the command failed on this machine, if it did: it may work in the guest.
fn failure(spec: &ProgramSpec, observation: &Observation) -> Option<String> {
    let how = match observation.ended {
        Ended::Exited(code) if spec.exit_codes.contains(&code) => return None,
        Ended::Exited(code) => format!("failed here with code {code}"),
        Ended::Killed(signal) => format!("was killed here by signal {signal}"),
        Ended::TooLong => {
            let limit = Duration::from(spec.limit_ns).max(LIMIT_MIN);
            format!("did not end here in {} s", limit.as_secs())
        }
    };
    let line = last_line(&String::from_utf8_lossy(&observation.output));
    let line = line.map(|line| format!(": {line}")).unwrap_or_default();
    Some(format!(
        "the command {how}{line}; what it used until then is packed (of this environment it has PATH \
         only, as in the guest; hint: --env sets variables)"
    ))
}

fn variable<'a>(spec: &'a ProgramSpec, name: &str) -> Option<&'a str> {
    let mut values = spec.environment.iter().filter(|(own, _)| own == name);
    values.next().map(|(_, value)| value.as_str())
}
