//! The runs: noisefloor as a child process, and the recordings that it saves.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{self, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use recording::{Body, Recording};
use rustix::process::Signal;
use tempfile::TempDir;

use crate::forced_end::FORCED_END;
use crate::forwarding::{Forwarding, is_over, send, start_again};
use crate::outcome::{Failure, Outcome};
use crate::printing::say_lines;
use crate::remarks::Remarks;
use crate::repeating::Plan;
use crate::repeating::messages::Messages;
use crate::repeating::orders::Answers;

/// The beginning of the names of folders that recordings are first saved in.
const PREFIX: &str = ".noisefloor-run-";
/// The time from SIGTERM to SIGKILL.
const GRACE: Duration = Duration::from_secs(5);

/// The process of the runs, started with the first of them, and again for each further one unless it
/// waits for orders.
pub(crate) struct Runner<'a> {
    plan: &'a Plan,
    /// Holds the recording of the last run.
    folder: TempDir,
    /// Locked as long as this process lives.
    _lock: Option<File>,
    process: Option<Process>,
}

/// A running process.
pub(super) struct Process {
    pub(super) child: process::Child,
    pub(super) messages: Option<Messages>,
    pub(super) answers: Option<Answers>,
}

/// A run that has ended.
pub(crate) enum Finished {
    /// It has saved a recording, with this outcome.
    Saved { recording: Box<Recording>, outcome: Outcome },
    /// It has not.
    Failed(Failure),
}

/// What ended the wait for a run.
enum Waited {
    /// It is saved, and its process waits for the next order.
    Saved,
    /// Its process has ended.
    Ended(ExitStatus),
    TimedOut,
}

impl<'a> Runner<'a> {
    /// The process of runs whose recordings are first saved in a folder of its own, on the file system
    /// of the given one.
    pub(crate) fn new(plan: &'a Plan, beside: Option<&Path>) -> Result<Self, Failure> {
        let (folder, _lock) = temporary_folder(beside)?;
        Ok(Self { plan, folder, _lock, process: None })
    }

    /// Makes a run, and reads its recording. `has_other_settings`: the settings are not those of the last
    /// one.
    ///
    /// # Errors
    /// It could not be started or waited for.
    pub(crate) fn run(
        &mut self,
        has_other_settings: bool,
        forwarding: &mut Forwarding,
    ) -> Result<Finished, Failure> {
        let file = self.file();
        // That of the last run.
        let _ = fs::remove_file(&file);
        let ordered = self.process.take().and_then(|it| it.ordered(has_other_settings));
        let mut process = ordered.map_or_else(|| self.start(), Ok)?;
        let timeout = self.plan.schedule.timeout;
        let deadline = timeout.and_then(|time| Instant::now().checked_add(time));
        let waited = process.wait(forwarding, deadline).map_err(Failure::refused)?;
        let messages = process.messages();
        match waited {
            Waited::Saved => {
                self.process = Some(process);
                self.saved(None, &messages, forwarding)
            }
            Waited::Ended(status) => self.ended(status, &messages, forwarding),
            Waited::TimedOut => {
                end(&mut process.child, forwarding).map_err(Failure::refused)?;
                self.restore_left_behind();
                let text = "a run did not end in time (--timeout)".to_owned();
                Ok(Finished::Failed(Failure::exceeded(text)))
            }
        }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("run.json")
    }

    fn start(&self) -> Result<Process, Failure> {
        let measurement = &self.plan.measurement;
        let command = measurement.command(&self.file());
        Process::start(command, measurement.is_run, self.plan.schedule.shows_output)
    }

    /// A run whose process has ended.
    fn ended(
        &self,
        status: ExitStatus,
        messages: &str,
        forwarding: &mut Forwarding,
    ) -> Result<Finished, Failure> {
        // The exit code of `run` is the program's.
        let own = status.code().filter(|_| !self.plan.measurement.is_run);
        if status.signal().is_some() || own == Some(FORCED_END) {
            if forwarding.is_interrupted() {
                say_lines(messages);
            }
            // It could not restore its settings.
            self.restore_left_behind();
        }
        match self.file().exists() {
            true => self.saved(Some(status), messages, forwarding),
            false => Ok(Finished::Failed(failure(status, messages))),
        }
    }

    /// A run that has saved its recording, with the status of its process if that has ended.
    fn saved(
        &self,
        status: Option<ExitStatus>,
        messages: &str,
        forwarding: &mut Forwarding,
    ) -> Result<Finished, Failure> {
        let recording = Box::new(Recording::load(&self.file())?);
        let (is_success, outcome) = match (&recording.body, status) {
            (Body::Run { series, .. }, _) => (series.ended.code() == 0, None),
            (_, status) => {
                let code = status.and_then(|status| status.code());
                (code == Some(0), code.and_then(Outcome::of_code))
            }
        };
        if !is_success && !forwarding.is_interrupted() {
            say_lines(messages);
        }
        let outcome = outcome.unwrap_or(Outcome::Done);
        Ok(Finished::Saved { recording, outcome })
    }

    fn restore_left_behind(&self) {
        session::restore_left_behind(&mut Remarks { quiet: self.plan.schedule.quiet });
    }
}

impl Process {
    /// Starts noisefloor with this command line, which gets orders if it runs a program.
    pub(super) fn start(
        mut command: process::Command,
        has_orders: bool,
        shows_output: bool,
    ) -> Result<Self, Failure> {
        let answers = has_orders.then(Answers::new).transpose();
        let (answers, input) = answers.map_err(Failure::refused)?.unzip();
        command.stdin(input.map_or_else(Stdio::null, |it| OwnedFd::from(it).into()));
        if !shows_output {
            command.stdout(Stdio::null()).stderr(Stdio::piped());
        }
        let mut child = start_again(&mut command)?;
        let messages = child.stderr.take().map(Messages::of).transpose();
        Ok(Self { child, messages: messages.map_err(Failure::refused)?, answers })
    }

    /// What it has printed since the last call.
    pub(super) fn messages(&self) -> String {
        self.messages.as_ref().map(Messages::take).unwrap_or_default()
    }

    /// Orders another run; `None` if the process has ended.
    fn ordered(mut self, has_other_settings: bool) -> Option<Self> {
        self.answers.as_mut()?.order(has_other_settings).ok()?;
        Some(self)
    }

    /// Waits for the end of a run, and forwards signals.
    fn wait(
        &mut self,
        forwarding: &mut Forwarding,
        deadline: Option<Instant>,
    ) -> io::Result<Waited> {
        loop {
            if let Some(answers) = &mut self.answers
                && answers.is_saved()?
            {
                return Ok(Waited::Saved);
            }
            if let Some(status) = self.child.try_wait()? {
                return Ok(Waited::Ended(status));
            }
            if is_over(deadline) {
                return Ok(Waited::TimedOut);
            }
            let answers = self.answers.as_ref().map(|answers| answers.stream().as_fd());
            forwarding.forward_next(&self.child, answers, deadline)?;
        }
    }
}

impl Drop for Process {
    /// A process that waits for orders ends when nothing can order any more.
    fn drop(&mut self) {
        self.answers = None;
        let _ = self.child.wait();
    }
}

/// The folder in which recordings are first saved.
fn place(beside: Option<&Path>) -> PathBuf {
    beside.map_or_else(std::env::temp_dir, Path::to_owned)
}

/// A new folder on the file system of the given one, and its lock.
///
/// # Errors
/// It cannot be created.
pub(super) fn temporary_folder(
    beside: Option<&Path>,
) -> Result<(TempDir, Option<File>), Failure> {
    locked_folder(&place(beside)).map_err(|error| {
        Failure::refused(format!("failed to create a temporary folder: {error}"))
    })
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

/// Ends a run that takes too long: its settings are restored unless it has to be killed.
pub(super) fn end(
    child: &mut process::Child,
    forwarding: &mut Forwarding,
) -> io::Result<()> {
    send(child, Signal::TERM);
    let deadline = Instant::now().checked_add(GRACE);
    if forwarding.until_ended(child, deadline)?.is_none() {
        child.kill()?;
        child.wait()?;
    }
    Ok(())
}

/// Why a run has saved no recording, in its own words if there are any.
pub(super) fn failure(status: ExitStatus, messages: &str) -> Failure {
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
