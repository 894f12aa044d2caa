//! Slurm's commands.

use std::env;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use kernels::{Written, run_or_stop};

use crate::error::Error;
use crate::slurm::queue::{self, ArrayTask};
use crate::slurm::script::Script;

/// Variables that would override what a script depends on. All others of sbatch are the user's to set.
const OVERRIDES: [&str; 8] = [
    "SBATCH_ARRAY_INX",
    "SBATCH_JOB_NAME",
    "SBATCH_OUTPUT",
    "SBATCH_ERROR",
    "SBATCH_INPUT",
    "SBATCH_OPEN_MODE",
    "SBATCH_NO_REQUEUE",
    "SBATCH_WAIT",
];
/// The beginning of the names of squeue's variables, which change what it prints.
const QUEUE_VARIABLES: &str = "SQUEUE_";

/// Which tasks squeue prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Which {
    /// Those that wait or run.
    Live,
    /// Also those that ended a short time ago.
    All,
}

/// Slurm's commands, which end early if `stop` is set.
#[derive(Clone, Copy)]
pub(crate) struct Client<'a> {
    pub(crate) stop: &'a AtomicBool,
}

impl Client<'_> {
    /// The most tasks of an array.
    ///
    /// # Errors
    /// `Kind::Slurm` if Slurm is not installed or does not answer, or has no job arrays.
    pub(crate) fn tasks_max(self) -> Result<usize, Error> {
        let mut show = Command::new("scontrol");
        let config = self.output(show.args(["show", "config"]))?;
        match queue::tasks_max(&config) {
            Some(0) => Err(Error::Slurm("scontrol", NO_ARRAYS.to_owned())),
            Some(tasks) => Ok(tasks),
            None => Err(Error::Slurm("scontrol", "it prints no MaxArraySize".to_owned())),
        }
    }

    /// Submits a script; the number of the job. The current directory of its tasks is `folder`.
    ///
    /// # Errors
    /// `Kind::Slurm` with sbatch's message.
    pub(crate) fn submit(
        self,
        script: &Script<'_>,
        text: &str,
        folder: &Path,
    ) -> Result<u64, Error> {
        let mut submit = Command::new("sbatch");
        submit.arg("--parsable").arg(script.array()).current_dir(folder);
        if let Some(partition) = &script.slurm.partition {
            submit.arg(format!("--partition={partition}")); // not that of a variable
        }
        for name in OVERRIDES {
            submit.env_remove(name);
        }
        let input = input(text).map_err(|cause| Error::NoSlurm("sbatch", cause))?;
        let output = self.output(submit.stdin(input))?;
        let job = output.trim().split(';').next().and_then(|job| job.parse().ok());
        job.ok_or_else(|| {
            Error::Slurm("sbatch", format!("it prints '{}'", output.trim()))
        })
    }

    /// The tasks of the user's arrays with that name.
    ///
    /// # Errors
    /// `Kind::Slurm` with squeue's message.
    pub(crate) fn tasks(self, name: &str, which: Which) -> Result<Vec<ArrayTask>, Error> {
        let mut list = Command::new("squeue");
        list.args(["--noheader", "--array", queue::FORMAT]).args(whose(name));
        if which == Which::All {
            list.arg("--states=all");
        }
        for (variable, _) in env::vars_os() {
            if variable.to_string_lossy().starts_with(QUEUE_VARIABLES) {
                list.env_remove(variable);
            }
        }
        Ok(queue::parse(&self.output(&mut list)?))
    }

    /// Cancels the user's arrays with that name.
    ///
    /// # Errors
    /// `Kind::Slurm` with scancel's message.
    pub(crate) fn cancel(self, name: &str) -> Result<(), Error> {
        self.output(Command::new("scancel").args(whose(name))).map(drop)
    }

    /// Cancels those of their tasks that wait.
    ///
    /// # Errors
    /// `Kind::Slurm` with scancel's message.
    pub(crate) fn cancel_waiting(self, name: &str) -> Result<(), Error> {
        let mut cancel = Command::new("scancel");
        self.output(cancel.arg("--state=PENDING").args(whose(name))).map(drop)
    }

    /// What a command prints, if it succeeds.
    fn output(self, command: &mut Command) -> Result<String, Error> {
        let name = match command.get_program().to_str() {
            Some("sbatch") => "sbatch",
            Some("squeue") => "squeue",
            Some("scancel") => "scancel",
            _ => "scontrol",
        };
        let written = run_or_stop(command, self.stop);
        let written = written.map_err(|cause| Error::NoSlurm(name, cause))?;
        let Written { status, output, errors } = written.ok_or(Error::Interrupted)?;
        match status.success() {
            true => Ok(output),
            false => Err(Error::Slurm(name, complaint(&errors, name))),
        }
    }
}

const NO_ARRAYS: &str = "this Slurm has no job arrays (MaxArraySize=0)";

/// The options that select the arrays of this user with that name.
fn whose(name: &str) -> [String; 2] {
    let user = rustix::process::geteuid().as_raw();
    [format!("--user={user}"), format!("--name={name}")]
}

/// A text as standard input.
fn input(text: &str) -> io::Result<Stdio> {
    let mut file: File = tempfile::tempfile()?;
    file.write_all(text.as_bytes())?;
    file.rewind()?;
    Ok(file.into())
}

/// What a command complains about, in one line.
fn complaint(errors: &str, name: &str) -> String {
    let lines = errors.lines().map(str::trim).filter(|line| !line.is_empty());
    let plain = lines.map(|line| {
        let line = line.strip_prefix(name).and_then(|line| line.strip_prefix(": "));
        let own = line.unwrap_or_default();
        own.strip_prefix("error: ").unwrap_or(own).to_owned()
    });
    let plain: Vec<String> = plain.filter(|line| !line.is_empty()).collect();
    match (plain.is_empty(), errors.trim()) {
        (false, _) => plain.join("; "),
        (true, "") => "it prints no reason".to_owned(),
        (true, text) => text.replace('\n', "; "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the reasons of Slurm's commands are quoted in one line, without their own names.
    #[test]
    fn complaints() {
        let two = "sbatch: error: invalid partition specified: x\nsbatch: error: Batch job \
                   submission failed: Invalid partition name specified\n";
        let expected = "invalid partition specified: x; Batch job submission failed: Invalid \
                        partition name specified";
        assert_eq!(complaint(two, "sbatch"), expected);
        let other = "slurm_load_ctl_conf error: Unable to contact slurm controller (connect failure)";
        assert_eq!(complaint(&format!("{other}\n"), "scontrol"), other);
        assert_eq!(complaint("", "squeue"), "it prints no reason");
    }
}
