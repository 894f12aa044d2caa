//! One process, with the beginning and the end of its output.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use recording::{Ended, KeptOutput, ProgramSpec, Usage, Words};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_setfl};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use units::Nanos;

use crate::latency::timers::now;
use crate::run::{ended, used};
use crate::time::mark;

/// The length of output that ends a run, in bytes.
pub(super) const OUTPUT_MAX: u64 = 64 << 20;
/// The lengths of the beginning and of the end that are stored, in bytes.
const KEPT: usize = 32 << 10;
/// The interval at which ends are looked for on kernels without `pidfd_open` (before 5.3).
const LOOK: Nanos = Nanos::from_millis(10);

/// A process that was started, in a group of its own; the group is killed when this is dropped.
pub(super) struct Process {
    child: Child,
    /// Becomes readable when the process ends.
    end: Option<OwnedFd>,
    pipe: Option<File>,
    head: Vec<u8>,
    tail: VecDeque<u8>,
    bytes: u64,
    pub(super) ended: Option<(Ended, Usage)>,
}

impl Process {
    /// Starts a command in a group of threads of its own.
    pub(super) fn start(spec: &ProgramSpec, words: &Words) -> io::Result<Self> {
        let (pipe, writer) = pipe_with(PipeFlags::CLOEXEC)?;
        fcntl_setfl(&pipe, OFlags::NONBLOCK)?;
        let mut command = Command::new(words.program().unwrap_or_default());
        command.args(words.arguments()).env_clear();
        command.envs(spec.environment.iter().map(|(name, value)| (name, value)));
        // Without another directory the standard library uses `posix_spawn`, which does not copy
        // this process.
        if std::env::current_dir()
            .ok()
            .is_none_or(|at| *at.as_os_str() != *spec.directory)
        {
            command.current_dir(&spec.directory);
        }
        command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        // Its children end with it, however many there are.
        command.process_group(0);
        mark::join();
        let child = command.spawn();
        mark::leave();
        let child = child?;
        let end = pidfd_open(Pid::from_child(&child), PidfdFlags::empty()).ok();
        Ok(Self {
            child,
            end,
            pipe: Some(File::from(pipe)),
            head: Vec::new(),
            tail: VecDeque::new(),
            bytes: 0,
            ended: None,
        })
    }

    /// Whether it wrote more than is allowed.
    pub(super) fn has_overflow(&self) -> bool {
        self.bytes > OUTPUT_MAX
    }

    /// What it wrote.
    pub(super) fn output(&self) -> KeptOutput {
        let kept = self.head.len() + self.tail.len();
        let omitted = self.bytes.saturating_sub(kept as u64);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        let text = match omitted {
            0 => text(&[self.head.as_slice(), &tail].concat()),
            omitted => format!(
                "{}\n[... {omitted} bytes omitted ...]\n{}",
                text(&self.head),
                text(&tail)
            ),
        };
        KeptOutput { text, bytes: self.bytes }
    }

    /// Reads what can be read without waiting.
    fn read(&mut self) {
        let mut buffer = [0; 4096];
        while let Some(pipe) = &mut self.pipe {
            match pipe.read(&mut buffer) {
                Ok(0) => self.pipe = None,
                Ok(length) => self.keep(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
            if self.has_overflow() {
                return;
            }
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let (head, rest) = bytes.split_at(bytes.len().min(KEPT - self.head.len()));
        self.head.extend(head);
        self.tail.extend(rest);
        let excess = self.tail.len().saturating_sub(KEPT);
        self.tail.drain(..excess);
    }

    /// Notes its end, and reads the rest of its output then.
    fn look(&mut self) -> io::Result<()> {
        self.read();
        if self.ended.is_some() {
            return Ok(());
        }
        let pid = i32::try_from(self.child.id()).unwrap_or(-1);
        let mut status = 0;
        // SAFETY: an `rusage` is numbers, for which zeros are valid.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: both variables outlive the call.
        match unsafe { libc::wait4(pid, &raw mut status, libc::WNOHANG, &raw mut usage) }
        {
            0 => return Ok(()),
            -1 => return Err(io::Error::last_os_error()),
            _ => self.ended = Some((ended(status), used(&usage))),
        }
        self.read();
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // These fail if all have ended already, which is fine.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        if self.ended.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Waits until a process writes or ends, or until `CLOCK_MONOTONIC` shows `until`.
pub(super) fn wait<'a>(
    processes: impl Iterator<Item = &'a mut Process>,
    until: Nanos,
) -> io::Result<()> {
    let mut processes: Vec<&mut Process> = processes.collect();
    let mut left = until.saturating_sub(now());
    let mut watched = Vec::new();
    for process in &processes {
        let pipe = process.pipe.as_ref().map(|pipe| PollFd::new(pipe, PollFlags::IN));
        let is_running = process.ended.is_none();
        let end = process.end.as_ref().filter(|_| is_running);
        if is_running && end.is_none() {
            left = left.min(LOOK);
        }
        watched.extend(
            pipe.into_iter().chain(end.map(|end| PollFd::new(end, PollFlags::IN))),
        );
    }
    let time = Timespec {
        tv_sec: i64::try_from(left.get() / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(left.get() % 1_000_000_000).unwrap_or(0),
    };
    match poll(&mut watched, Some(&time)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    processes.iter_mut().try_for_each(|process| process.look())
}
