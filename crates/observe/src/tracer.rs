//! The thread that starts a program, and receives the reports of its system calls.

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

use libc::pid_t;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::calls::{self, Action, Follow, Row};
use crate::observation::{Ended, Observation};
use crate::process::Waiting;
use crate::ptrace::{self, Call, Report, Waited};
use crate::uses::{Touch, Uses};
use crate::{Counts, Error, Request, output, tracee};

/// What the program started may go on for so long after its end, so that one in the background has begun.
const GRACE: Duration = Duration::from_millis(250);

/// Runs the program to its end; `started` receives its descriptor, and is dropped at the end.
pub(crate) fn run(
    request: &Request<'_>,
    counts: &Counts,
    started: Sender<OwnedFd>,
) -> Result<Observation, Error> {
    let (reader, writer) =
        pipe_with(PipeFlags::CLOEXEC).map_err(|why| Error::Start(why.into()))?;
    let mut program = Waiting::start(request, writer)?;
    let end = |id, why| {
        ptrace::kill(id);
        let _ = ptrace::wait(None);
        Err(why)
    };
    if let Err(why) = ptrace::seize(program.id) {
        return end(program.id, Error::NotPermitted(why));
    }
    let descriptor = Pid::from_raw(program.id)
        .ok_or(io::ErrorKind::NotFound.into())
        .and_then(|id| Ok(pidfd_open(id, PidfdFlags::empty())?));
    match descriptor.and_then(|descriptor| {
        let _ = started.send(descriptor); // its receiver waits
        program.go()
    }) {
        Ok(()) => {}
        Err(why) => return end(program.id, Error::Trace(why)),
    }
    let mut tracer = Tracer::new(program.id, Uses::new(request, counts));
    let (ended, output) = thread::scope(|scope| {
        let output = scope.spawn(|| output::read_end(File::from(reader)));
        (tracer.follow(), output.join().unwrap_or_default())
    });
    let ended = ended.map_err(Error::Trace)?;
    match program.failure(request.program) {
        Some(why) => Err(why),
        None => Ok(Observation { ended, output, ..tracer.uses.observation }),
    }
}

/// The traced threads, and what they have used.
struct Tracer<'a> {
    program: pid_t,
    threads: BTreeSet<pid_t>,
    /// What each thread executes, until that has succeeded.
    executing: HashMap<pid_t, PathBuf>,
    uses: Uses<'a>,
    /// Whether the program has been executed.
    has_begun: bool,
}

impl<'a> Tracer<'a> {
    fn new(program: pid_t, uses: Uses<'a>) -> Self {
        Self {
            program,
            threads: BTreeSet::from([program]),
            executing: HashMap::new(),
            uses,
            has_begun: false,
        }
    }

    /// Follows all threads until the program has ended; others are killed soon after.
    fn follow(&mut self) -> io::Result<Ended> {
        let (mut ended, mut until) = (None, None);
        loop {
            let (id, report) = match ptrace::wait(until)? {
                Waited::Report(id, report) => (id, report),
                Waited::TimedOut => {
                    until = None;
                    self.kill();
                    continue;
                }
                Waited::NoThread => break,
            };
            match report {
                Report::Ended(how) => {
                    self.threads.remove(&id);
                    if id == self.program {
                        (ended, until) = (Some(how), Some(Instant::now() + GRACE));
                    }
                }
                _ if ended.is_some() && until.is_none() => {
                    ptrace::kill(id);
                    ptrace::resume(id, 0);
                }
                Report::Call => {
                    self.call(id);
                    ptrace::resume(id, 0);
                }
                Report::Executed(caller) => {
                    self.executed(id, caller);
                    ptrace::resume(id, 0);
                }
                Report::Started(other) => {
                    self.threads.insert(other);
                    ptrace::resume(id, 0);
                }
                Report::Signal(signal) => ptrace::resume(id, signal),
                Report::Stopped => ptrace::listen(id),
                Report::Other => {
                    self.threads.insert(id);
                    ptrace::resume(id, 0);
                }
            }
        }
        ended.ok_or(io::ErrorKind::NotFound.into())
    }

    /// Kills what has not ended with the program.
    fn kill(&mut self) {
        for &other in &self.threads {
            self.uses.observation.outlived.extend(tracee::process_name(other));
            ptrace::kill(other);
        }
    }

    /// A thread is about to make a system call with a path.
    fn call(&mut self, id: pid_t) {
        let Ok(call) = ptrace::call(id) else { return };
        for row in calls::rows(call.number) {
            if let Err(why) = self.path(id, &call, row) {
                let is_denied = why.kind() == io::ErrorKind::PermissionDenied;
                self.uses.observation.unread_calls += u64::from(is_denied);
            }
        }
    }

    fn path(&mut self, id: pid_t, call: &Call, row: &Row) -> io::Result<()> {
        let argument =
            |place: usize| call.arguments.get(place).copied().unwrap_or_default();
        if row.action == Action::List {
            self.uses.list(&tracee::opened(id, descriptor(argument(0)))?);
            return Ok(());
        }
        if argument(row.path) == 0 {
            return Ok(()); // the call is for an open file
        }
        let path = tracee::path(id, argument(row.path))?;
        if path.as_os_str().is_empty() {
            return Ok(());
        }
        let flags = match row.action {
            Action::Open(place) => descriptor(argument(place)),
            Action::OpenHow(place) => tracee::open_flags(id, argument(place))?,
            Action::Look
            | Action::Link
            | Action::Execute
            | Action::Replace
            | Action::Create
            | Action::Change
            | Action::Remove
            | Action::Move
            | Action::Receive
            | Action::List => 0,
        };
        let follows = match row.follow {
            Follow::Always => flags & libc::O_NOFOLLOW == 0 && !is_exclusive(flags),
            Follow::Never => false,
            Follow::Unless(place, flag) => descriptor(argument(place)) & flag == 0,
            Follow::If(place, flag) => descriptor(argument(place)) & flag != 0,
        };
        let base = match row.directory.map(|place| descriptor(argument(place))) {
            _ if path.is_absolute() => None,
            None | Some(libc::AT_FDCWD) => Some(tracee::folder(id)?),
            Some(directory) => Some(tracee::opened(id, directory)?),
        };
        self.add(id, base.as_deref(), &path, follows, touch(row.action, flags));
        Ok(())
    }

    fn add(
        &mut self,
        id: pid_t,
        base: Option<&Path>,
        path: &Path,
        follows: bool,
        touch: Touch,
    ) {
        if self.has_begun {
            self.uses.note_name(base, path);
        }
        let full = base.map_or_else(|| path.to_owned(), |base| base.join(path));
        if !full.is_absolute() {
            return; // relative to something without a path
        }
        if touch == Touch::Execute {
            self.executing.insert(id, full.clone());
            self.uses.add(&full, follows, Touch::Look);
            return;
        }
        self.uses.add(&full, follows, touch);
    }

    /// A thread has become another program.
    fn executed(&mut self, id: pid_t, caller: pid_t) {
        self.has_begun = true;
        if let Some(path) = self.executing.remove(&caller) {
            self.uses.add(&path, true, Touch::Execute);
            self.uses.observation.executed.push(path);
        }
        // Of a script, this is the interpreter.
        if let Ok(path) = fs::read_link(format!("/proc/{id}/exe")) {
            self.uses.add(&path, true, Touch::Execute);
        }
    }
}

/// An argument of 32 bits.
fn descriptor(argument: u64) -> i32 {
    let [a, b, c, d, ..] = argument.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

fn is_exclusive(flags: i32) -> bool {
    flags & libc::O_CREAT != 0 && flags & libc::O_EXCL != 0
}

/// What an action does to what was there before.
fn touch(action: Action, flags: i32) -> Touch {
    match action {
        Action::Look | Action::List => Touch::Look,
        Action::Link => Touch::Read,
        Action::Create => Touch::Create,
        Action::Execute => Touch::Execute,
        Action::Open(_) | Action::OpenHow(_) => open(flags),
        Action::Replace | Action::Receive => Touch::Replace,
        Action::Change => Touch::Change,
        Action::Remove => Touch::Remove,
        Action::Move => Touch::Move,
    }
}

fn open(flags: i32) -> Touch {
    let is_written = flags & libc::O_ACCMODE != libc::O_RDONLY;
    let [is_new, is_emptied] =
        [libc::O_CREAT, libc::O_TRUNC].map(|flag| flags & flag != 0);
    if flags & (libc::O_PATH | libc::O_DIRECTORY) != 0 {
        return Touch::Look;
    }
    if is_exclusive(flags) {
        return Touch::Create;
    }
    match (is_emptied, is_new) {
        (true, true) => Touch::Replace,
        (true, false) => Touch::Remove,
        (false, _) if is_written => Touch::Change,
        (false, _) => Touch::Read,
    }
}
