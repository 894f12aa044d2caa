//! One boot of a guest, from starting QEMU to its end, in explicit states.
//!
//! ```text
//! Booting ──greeting──▶ Working ──last frame──▶ Leaving ──▶ QEMU has ended
//! ```
//!
//! Each state has a deadline in QEMU's own time (`process_time`): its CPU time, and the time
//! in which all its threads slept, so that a busy host does not shorten it. A guest that hangs
//! is killed, and the message says in which state. It can write only to two files of bounded
//! length.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use agent::Answer;
use recording::HostUse;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use units::{Cpu, Nanos};

use crate::error::{Error, failed};
use crate::guest::command_line::{ANSWER, CONSOLE};
use crate::guest::process_time::ProcessTime;
use crate::guest::qemu::Qemu;

/// The file for QEMU's own messages, in the boot's folder.
pub(crate) const COMPLAINTS: &str = "qemu.log";
/// The longest file a guest can make QEMU write.
pub(crate) const FILE_BYTES_MAX: u64 = 64 << 20;
/// The interval at which the guest is checked. Its end is noticed at once.
const LOOK: Duration = Duration::from_millis(50);
/// The limit of a state's wall time, in deadlines: a QEMU that was stopped, or gets no CPU time,
/// has to end, too. With the usual deadline this is an hour.
const WALL: u32 = 30;

/// The state of a boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The kernel has not started the agent yet.
    Booting,
    /// The agent executes its order.
    Working,
    /// The agent has answered.
    Leaving,
}

/// What has not happened if a guest works for too long.
pub(crate) const NO_ANSWER: &str = "the agent did not answer";

/// How long each state may last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Deadlines {
    pub(crate) boot: Duration,
    pub(crate) work: Duration,
    pub(crate) leave: Duration,
    /// What has not happened if `work` is over.
    pub(crate) missing: &'static str,
}

/// The outcome of a boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The guest answered, and powered off.
    Off(HostUse),
    /// It did not, for that reason.
    Lost(String),
    /// It was stopped by the user.
    Stopped,
}

/// How QEMU ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// The guest powered off, or restarted.
    Off(HostUse),
    /// It exceeded a deadline, with a description.
    Overdue(String),
    /// QEMU failed, or the guest wrote too much.
    Failed(String),
    /// It was stopped by the user.
    Stopped,
}

/// A running guest.
pub(crate) struct Guest<'a> {
    child: Child,
    /// Becomes readable when QEMU ends (`pidfd_open(2)`); none before Linux 5.3.
    process: Option<OwnedFd>,
    folder: &'a Path,
    state: State,
    time: ProcessTime,
    /// What it used while the agent executed its order.
    worked: Option<HostUse>,
    /// The message on its console after which it is killed.
    final_message: Option<&'static str>,
}

impl<'a> Guest<'a> {
    /// Starts QEMU in `folder`, which has the guest's files; its threads are ordered on that
    /// CPU, if one is given, else the host schedules them.
    ///
    /// # Errors
    /// `Kind::Qemu` if QEMU cannot be started, `Kind::Cache`.
    pub(crate) fn start(
        qemu: &Qemu,
        arguments: &[String],
        folder: &'a Path,
        cpu: Option<Cpu>,
    ) -> Result<Self, Error> {
        let complaints = folder.join(COMPLAINTS);
        let complaints = File::create(&complaints).map_err(failed(&complaints))?;
        let mut command = Command::new(&qemu.program);
        command.args(arguments).current_dir(folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(complaints);
        isolate::tether(&mut command, Some(FILE_BYTES_MAX));
        if let Some(cpu) = cpu {
            isolate::order_threads(&mut command, cpu);
        }
        let child = command
            .spawn()
            .map_err(|cause| Error::StartQemu(qemu.program.clone(), cause))?;
        let process = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).ok();
        let time = ProcessTime::new(child.id());
        let state = State::Booting;
        let (worked, final_message) = (None, None);
        Ok(Self { child, process, folder, state, time, worked, final_message })
    }

    /// Kills it, too, when its kernel prints that message, after which it does nothing.
    pub(crate) fn until(self, message: &'static str) -> Self {
        Self { final_message: Some(message), ..self }
    }

    /// Waits until it has ended, or kills it at a deadline.
    pub(crate) fn run(mut self, deadlines: Deadlines, stop: &AtomicBool) -> End {
        let end = self.watch(deadlines, stop);
        self.end();
        end
    }

    fn watch(&mut self, deadlines: Deadlines, stop: &AtomicBool) -> End {
        loop {
            match self.child.try_wait() {
                Ok(None) => {}
                Ok(Some(status)) => return self.judge(status),
                Err(error) => {
                    return End::Failed(format!("failed to wait for QEMU: {error}"));
                }
            }
            if stop.load(Ordering::Relaxed) {
                return End::Stopped;
            }
            self.time.look();
            self.advance();
            if let Some(why) = self.overdue(deadlines) {
                return End::Overdue(why);
            }
            self.wait(LOOK);
        }
    }

    /// Waits for that time, or until QEMU has ended.
    fn wait(&self, time: Duration) {
        let Some(process) = &self.process else { return thread::sleep(time) };
        let time = Timespec::try_from(time).ok();
        // If a signal interrupts this, the guest is checked once more.
        let _ = poll(&mut [PollFd::new(process, PollFlags::IN)], time.as_ref());
    }

    /// Advances the state by the length of the answer's file.
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
            if self.state == State::Working {
                self.worked = Some(self.used());
            }
            self.state = now;
            self.time.reset();
        }
    }

    /// What it has used in its state.
    fn used(&self) -> HostUse {
        let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let (ran, _) = self.time.ran_and_slept();
        HostUse {
            cpu_ns: Nanos::from_nanos(nanos(ran)),
            wall_ns: Nanos::from_nanos(nanos(self.time.wall())),
        }
    }

    /// Whether its kernel has printed the final message.
    fn has_halted(&self) -> bool {
        let Some(message) = self.final_message else { return false };
        let console = fs::read(self.folder.join(CONSOLE)).unwrap_or_default();
        String::from_utf8_lossy(&console).contains(message)
    }

    fn overdue(&self, deadlines: Deadlines) -> Option<String> {
        if self.has_halted() {
            return Some("it halted".to_owned());
        }
        let (allowed, what) = match self.state {
            State::Booting => (deadlines.boot, "its kernel did not start the agent"),
            State::Working => (deadlines.work, deadlines.missing),
            State::Leaving => (deadlines.leave, "it answered but did not power off"),
        };
        let (ran, slept) = self.time.ran_and_slept();
        let had = format!(
            "QEMU used {:.1} s of CPU time, and slept for {:.1} s",
            ran.as_secs_f64(),
            slept.as_secs_f64()
        );
        if ran + slept >= allowed {
            let allowed = length(allowed);
            let more = "--deadline TIME gives a guest more";
            return Some(format!("{what} within {allowed} ({had}); hint: {more}"));
        }
        let wall = allowed.saturating_mul(WALL);
        (self.time.wall() >= wall).then(|| {
            let wall = length(wall);
            format!("{what} in {wall}: it was stopped or got almost no CPU ({had})")
        })
    }

    /// The meaning of QEMU's exit status.
    fn judge(&self, status: ExitStatus) -> End {
        if status.success() {
            return End::Off(self.worked.unwrap_or_else(|| self.used()));
        }
        if status.signal() == Some(rustix::process::Signal::XFSZ.as_raw()) {
            let file = [CONSOLE, ANSWER].into_iter().find(|file| self.is_full(file));
            let text = format!(
                "it wrote more than {} MiB to its {}",
                FILE_BYTES_MAX >> 20,
                file.unwrap_or("files")
            );
            return End::Failed(text);
        }
        let complaints = fs::read(self.folder.join(COMPLAINTS)).unwrap_or_default();
        End::Failed(exit_text(status, &String::from_utf8_lossy(&complaints)))
    }

    fn is_full(&self, file: &str) -> bool {
        let about = fs::metadata(self.folder.join(file));
        about.is_ok_and(|about| about.len() >= FILE_BYTES_MAX)
    }

    /// Ends QEMU if it has not ended.
    fn end(&mut self) {
        // These fail if it has ended already, which is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A length of time with a unit: `2 s`, `500 ms`.
fn length(time: Duration) -> String {
    match time.subsec_millis() {
        0 => format!("{} s", time.as_secs()),
        _ => format!("{} ms", time.as_millis()),
    }
}

/// How QEMU failed, with its last message, without the program's name.
fn exit_text(status: ExitStatus, complaints: &str) -> String {
    let ended = match status.code() {
        Some(code) => format!("QEMU ended with exit code {code}"),
        None => format!("QEMU was ended by signal {}", status.signal().unwrap_or(0)),
    };
    let last = complaints.lines().map(str::trim).rfind(|line| !line.is_empty());
    let bare = |line| match str::split_once(line, ": ") {
        Some((name, rest)) if name == "qemu" || name.starts_with("qemu-system-") => rest,
        _ => line,
    };
    match last.map(bare) {
        Some(why) => format!("{ended}: {why}"),
        None => format!("{ended}, without a message"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that lengths of time are whole numbers of a unit.
    #[test]
    fn lengths() {
        for (millis, text) in [(2000, "2 s"), (500, "500 ms"), (1500, "1500 ms")] {
            assert_eq!(length(Duration::from_millis(millis)), text);
        }
    }

    /// Check that a failure has QEMU's last message, if there is one.
    #[test]
    fn failures() {
        let failed = |status| ExitStatus::from_raw(status);
        let said = "warning: x\nqemu-system-x86_64: unable to find CPU model 'x'\n\n";
        let why = "QEMU ended with exit code 1: unable to find CPU model 'x'";
        assert_eq!(exit_text(failed(1 << 8), said), why);
        let why = "QEMU was ended by signal 9, without a message";
        assert_eq!(exit_text(failed(9), ""), why);
        assert_eq!(
            exit_text(failed(2 << 8), "qemu: a"),
            "QEMU ended with exit code 2: a"
        );
        assert_eq!(
            exit_text(failed(2 << 8), "a: b"),
            "QEMU ended with exit code 2: a: b"
        );
    }
}
