//! One boot of a guest, from starting QEMU to its end, in explicit states.
//!
//! ```text
//! Booting ──greeting──▶ Working ──last frame──▶ Leaving ──▶ QEMU has ended
//! ```
//!
//! Each state has a deadline of the host's time; what hangs is ended, and where it hung is
//! told. All the guest can write to are two files of bounded length.

use std::fs::{self, File};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use agent::Answer;

use crate::command_line::{ANSWER, CONSOLE};
use crate::error::{Error, Kind};
use crate::qemu::Qemu;

/// What QEMU itself says goes here, in the boot's folder.
const COMPLAINTS: &str = "qemu.log";
/// The longest file a guest can make QEMU write.
pub(crate) const FILE_BYTES_MAX: u64 = 64 << 20;
/// How often the guest is looked at. A boot takes seconds.
const LOOK: Duration = Duration::from_millis(5);

/// Where a boot stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The kernel has not started the agent yet.
    Booting,
    /// The agent does what it was ordered to.
    Working,
    /// The agent has answered.
    Leaving,
}

/// How long each state may last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Deadlines {
    pub(crate) boot: Duration,
    pub(crate) work: Duration,
    pub(crate) leave: Duration,
}

/// How a boot ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The guest answered, and powered off.
    Off,
    /// It did not, and why.
    Lost(String),
    /// Somebody ended it.
    Stopped,
}

/// Boots a guest in `folder`, where its files are.
///
/// # Errors
/// `Kind::Qemu` where QEMU cannot be started at all.
pub(crate) fn boot(
    qemu: &Qemu,
    arguments: &[String],
    folder: &Path,
    deadlines: Deadlines,
    stop: &AtomicBool,
) -> Result<Ended, Error> {
    let mut guest = Guest::start(qemu, arguments, folder)?;
    let ended = guest.watch(deadlines, stop);
    guest.end();
    Ok(ended)
}

/// A guest that runs.
struct Guest<'a> {
    child: Child,
    folder: &'a Path,
    state: State,
    since: Instant,
}

impl<'a> Guest<'a> {
    fn start(qemu: &Qemu, arguments: &[String], folder: &'a Path) -> Result<Self, Error> {
        let failed = |error: std::io::Error| {
            let text = format!("{} does not start: {error}", qemu.program.display());
            Error::new(Kind::Qemu, text)
        };
        let complaints = File::create(folder.join(COMPLAINTS)).map_err(failed)?;
        let mut command = Command::new(&qemu.program);
        command.args(arguments).current_dir(folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(complaints);
        isolate::tether(&mut command, FILE_BYTES_MAX);
        let child = command.spawn().map_err(failed)?;
        Ok(Self { child, folder, state: State::Booting, since: Instant::now() })
    }

    fn watch(&mut self, deadlines: Deadlines, stop: &AtomicBool) -> Ended {
        loop {
            match self.child.try_wait() {
                Ok(None) => {}
                Ok(Some(status)) => return self.judge(status),
                Err(error) => {
                    return Ended::Lost(format!("QEMU cannot be watched: {error}"));
                }
            }
            if stop.load(Ordering::Relaxed) {
                return Ended::Stopped;
            }
            self.advance();
            if let Some(why) = self.overdue(deadlines) {
                return Ended::Lost(why);
            }
            thread::sleep(LOOK);
        }
    }

    /// Goes on to the next state where the answer's file shows that it has been reached.
    fn advance(&mut self) {
        let file = self.folder.join(ANSWER);
        let length = fs::metadata(file).map_or(0, |about| about.len());
        let greeting = Answer::GREETING.len() as u64;
        let now = match length {
            0 => State::Booting,
            length if length <= greeting => State::Working,
            _ => State::Leaving,
        };
        if now != self.state {
            (self.state, self.since) = (now, Instant::now());
        }
    }

    fn overdue(&self, deadlines: Deadlines) -> Option<String> {
        let (allowed, what) = match self.state {
            State::Booting => (deadlines.boot, "its kernel did not start the agent"),
            State::Working => (deadlines.work, "the agent did not answer"),
            State::Leaving => (deadlines.leave, "it answered but did not power off"),
        };
        let hung = self.since.elapsed() >= allowed;
        hung.then(|| format!("{what} within {} s", allowed.as_secs()))
    }

    /// What QEMU's end means.
    fn judge(&self, status: ExitStatus) -> Ended {
        if status.success() {
            return Ended::Off;
        }
        if status.signal() == Some(rustix::process::Signal::XFSZ.as_raw()) {
            let file = [CONSOLE, ANSWER].into_iter().find(|file| self.is_full(file));
            let text = format!(
                "it wrote more than {} MiB to its {}",
                FILE_BYTES_MAX >> 20,
                file.unwrap_or("files")
            );
            return Ended::Lost(text);
        }
        let complaints = fs::read_to_string(self.folder.join(COMPLAINTS));
        let complaints = complaints.unwrap_or_default();
        let last = complaints.lines().last().unwrap_or("without a word");
        Ended::Lost(format!("QEMU ended with {status}: {last}"))
    }

    fn is_full(&self, file: &str) -> bool {
        let about = fs::metadata(self.folder.join(file));
        about.is_ok_and(|about| about.len() >= FILE_BYTES_MAX)
    }

    /// Makes sure that QEMU is gone.
    fn end(&mut self) {
        // Killing and awaiting what has ended already fails, and that is well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
