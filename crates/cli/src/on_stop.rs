//! The command of `--on-stop`: run by a shell after the measurement, once for each moment, with the
//! moment's JSON object on standard input.
//!
//! The command line is the user's: nothing that the machine names is part of it or of its environment.
//! Standard input is a file in memory, so that a command need not read it. Standard output is standard
//! error, as the report has standard output. A signal ends the command and the processes that it
//! started, and those of later moments are not run; if noisefloor is killed, the command is killed.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::AsFd;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use measure::Relay;
use recording::Moment;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::printing::say;

/// How often the end of the command and signals are looked for.
const PERIOD: Duration = Duration::from_millis(20);
/// How long a command may take to end after a signal.
const PATIENCE: Duration = Duration::from_secs(2);

/// How a command ended.
enum Ended {
    ByItself(ExitStatus),
    /// By a signal to this process.
    Interrupted,
}

/// Runs the command for each moment, one after the other. A command that fails is reported.
pub(crate) fn run_for_each(command: &str, moments: &[Moment]) {
    for moment in moments {
        match run(command, moment) {
            Ok(Ended::ByItself(status)) if status.success() => {}
            Ok(Ended::ByItself(status)) => {
                say(format_args!("--on-stop: the command failed: {status}"));
            }
            Ok(Ended::Interrupted) => {
                say("--on-stop: the command was ended by a signal");
                return;
            }
            Err(error) => {
                say(format_args!("--on-stop: failed to run the command: {error}"));
            }
        }
    }
}

fn run(command: &str, moment: &Moment) -> io::Result<Ended> {
    let signals = Relay::count();
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).stdin(object(moment)?);
    shell.stdout(io::stderr().as_fd().try_clone_to_owned()?);
    isolate::tether(&mut shell, None);
    let mut child = shell.spawn()?;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Ended::ByItself(status));
        }
        if Relay::count() != signals {
            end(&mut child)?;
            return Ok(Ended::Interrupted);
        }
        sleep(PERIOD);
    }
}

/// A moment's JSON object, to be read.
fn object(moment: &Moment) -> io::Result<Stdio> {
    let mut file = File::from(memfd_create("moment", MemfdFlags::CLOEXEC)?);
    serde_json::to_writer(&mut file, moment)?;
    file.write_all(b"\n")?;
    file.rewind()?;
    Ok(file.into())
}

/// Ends the command, which is the leader of its process group.
fn end(child: &mut Child) -> io::Result<()> {
    let group = Pid::from_child(child);
    let _ = kill_process_group(group, Signal::TERM);
    let until = Instant::now() + PATIENCE;
    while child.try_wait()?.is_none() && Instant::now() < until {
        sleep(PERIOD);
    }
    let _ = kill_process_group(group, Signal::KILL);
    child.wait().map(drop)
}
