//! One run: noisefloor as a child process, and the recording that it saved.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{self, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use recording::Recording;
use rustix::process::Signal;
use tempfile::TempDir;

use crate::forced_end::FORCED_END;
use crate::forwarding::{Forwarding, send, start_again};
use crate::outcome::{Failure, Outcome};
use crate::printing::say_lines;
use crate::remarks::Remarks;
use crate::repeating::Plan;

/// The end of the messages of a run that are shown if it fails.
const MESSAGES_MAX: usize = 16 << 10;
/// How long to wait for messages after the run has ended: a process that it left behind may hold the
/// pipe.
const MESSAGES_WAIT: Duration = Duration::from_millis(200);
/// The beginning of the names of folders that recordings are first saved in.
const PREFIX: &str = ".noisefloor-run-";
/// The time from SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_secs(5);

/// A run that is not started yet.
pub(crate) struct Child<'a> {
    plan: &'a Plan,
    /// Holds its recording.
    folder: TempDir,
    /// Locked as long as this process lives.
    _lock: Option<File>,
}

/// A run that has ended.
pub(crate) enum Finished {
    /// It has saved a recording, with this outcome.
    Saved { recording: Box<Recording>, outcome: Outcome },
    /// It has not.
    Failed(Failure),
}

impl<'a> Child<'a> {
    /// A run whose recording is first saved in a folder of its own, on the file system of the given
    /// one.
    pub(crate) fn new(plan: &'a Plan, beside: Option<&Path>) -> Result<Self, Failure> {
        let (folder, _lock) = locked_folder(&place(beside)).map_err(|error| {
            Failure::refused(format!("failed to create a temporary folder: {error}"))
        })?;
        Ok(Self { plan, folder, _lock })
    }

    /// Runs it, and reads its recording.
    ///
    /// # Errors
    /// It could not be started or waited for.
    pub(crate) fn run(self, forwarding: &mut Forwarding) -> Result<Finished, Failure> {
        let file = self.folder.path().join("run.json");
        let mut command = self.plan.measurement.command(&file);
        command.stdin(Stdio::null());
        if !self.plan.shows_output {
            command.stdout(Stdio::null()).stderr(Stdio::piped());
        }
        let mut child = start_again(&mut command)?;
        let messages = child.stderr.take().map(read_end);
        let timeout = self.plan.timeout;
        let deadline = timeout.and_then(|time| Instant::now().checked_add(time));
        let status = forwarding.until_ended(&mut child, deadline);
        let status = status.map_err(Failure::refused)?;
        let Some(status) = status else {
            end(&mut child, forwarding).map_err(Failure::refused)?;
            self.restore_left_behind();
            let text = "a run did not end in time (--timeout)".to_owned();
            return Ok(Finished::Failed(Failure::exceeded(text)));
        };
        let messages = messages.and_then(|it| it.recv_timeout(MESSAGES_WAIT).ok());
        let messages =
            String::from_utf8_lossy(&messages.unwrap_or_default()).into_owned();
        // The exit code of `run` is the program's.
        let own = status.code().filter(|_| !self.plan.measurement.is_run);
        if status.signal().is_some() || own == Some(FORCED_END) {
            if forwarding.is_interrupted() {
                say_lines(&messages);
            }
            // It could not restore its settings.
            self.restore_left_behind();
        }
        if !file.exists() {
            return Ok(Finished::Failed(failure(status, &messages)));
        }
        if !status.success() && !forwarding.is_interrupted() {
            say_lines(&messages);
        }
        let recording = Box::new(Recording::load(&file)?);
        let outcome = own.and_then(Outcome::of_code).unwrap_or(Outcome::Done);
        Ok(Finished::Saved { recording, outcome })
    }

    fn restore_left_behind(&self) {
        session::restore_left_behind(&mut Remarks { quiet: self.plan.quiet });
    }
}

/// The folder in which recordings are first saved.
fn place(beside: Option<&Path>) -> PathBuf {
    beside.map_or_else(std::env::temp_dir, Path::to_owned)
}

/// A new folder, and its lock, without which it is taken for that of a killed process. A kernel
/// without file locks has none: there, such folders stay.
fn locked_folder(place: &Path) -> io::Result<(TempDir, Option<File>)> {
    loop {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(place)?;
        match isolate::try_lock_folder(folder.path()) {
            // Another process found it before it was locked, and removes it.
            Ok(None) => {}
            Ok(Some(_)) if !folder.path().exists() => {}
            Err(why) if why.kind() == ErrorKind::NotFound => {}
            lock => return Ok((folder, lock.unwrap_or(None))),
        }
    }
}

/// Removes the folders of killed processes of this user.
pub(crate) fn remove_left_behind(beside: Option<&Path>) {
    for entry in fs::read_dir(place(beside)).into_iter().flatten().flatten() {
        let is_named =
            entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
        // A link is not a directory here.
        let is_own = |found: fs::Metadata| {
            found.is_dir() && found.uid() == rustix::process::geteuid().as_raw()
        };
        if !is_named || !entry.metadata().is_ok_and(is_own) {
            continue;
        }
        if let Ok(Some(_lock)) = isolate::try_lock_folder(&entry.path()) {
            // What cannot be removed does no harm.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The end of what a run prints to standard error.
fn read_end(mut from: process::ChildStderr) -> Receiver<Vec<u8>> {
    let (send, receive) = channel();
    thread::spawn(move || {
        let mut end = VecDeque::new();
        let mut buffer = [0; 4096];
        while let Ok(length @ 1..) = from.read(&mut buffer) {
            end.extend(&buffer[..length]);
            end.drain(..end.len().saturating_sub(MESSAGES_MAX));
        }
        let _ = send.send(Vec::from(end));
    });
    receive
}

/// Ends a run that takes too long: its settings are restored unless it has to be killed.
fn end(child: &mut process::Child, forwarding: &mut Forwarding) -> io::Result<()> {
    send(child, Signal::TERM);
    let deadline = Instant::now().checked_add(GRACE);
    if forwarding.until_ended(child, deadline)?.is_none() {
        child.kill()?;
        child.wait()?;
    }
    Ok(())
}

/// Why a run has saved no recording, in its own words if there are any.
fn failure(status: ExitStatus, messages: &str) -> Failure {
    let own = messages.trim();
    let text = match own.strip_prefix("noisefloor: ").unwrap_or(own) {
        "" => format!("a run failed ({status})"),
        own => own.to_owned(),
    };
    Failure::with_code(status.code(), text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that folders of this name without the lock are removed (a process can be killed before it
    /// has locked its folder), and nothing else.
    #[test]
    fn folders_without_a_lock_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        let (folder, _lock) = locked_folder(place.path()).unwrap();
        let left_behind = at(".noisefloor-run-left");
        fs::create_dir_all(left_behind.join("folder")).unwrap();
        fs::write(left_behind.join("run.json"), "").unwrap();
        fs::create_dir(at("other")).unwrap();
        fs::write(at(".noisefloor-run-file"), "").unwrap();
        std::os::unix::fs::symlink(at("other"), at(".noisefloor-run-link")).unwrap();
        remove_left_behind(Some(place.path()));
        assert!(!left_behind.exists());
        assert!(folder.path().exists());
        for name in ["other", ".noisefloor-run-file", ".noisefloor-run-link"] {
            assert!(at(name).exists(), "{name}");
        }
    }
}
