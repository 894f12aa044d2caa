//! The supervisor, a process between this one and a program: it waits for the program, reports its
//! status, and kills all of its descendants on request, or when the process that started it ends.
//!
//! It is a subreaper (`prctl(2)` `PR_SET_CHILD_SUBREAPER`, Linux 3.4): it becomes the parent of
//! orphaned descendants. So killing its children until there are none kills the whole tree, without
//! a list of it. All signals are blocked, and are fetched one by one (`sigwaitinfo(2)`).
//!
//! The program's clock ends here: at its SIGCHLD, for which this process has a high priority if that is
//! permitted. It also notices when the program is stopped by a signal, and when it continues.
//!
//! It is forked from a process that may have threads, and does not call exec: it makes only
//! async-signal-safe calls, and allocates no memory. `signal-hook` allocates, and cannot reset
//! SIGCHLD to its default action.

use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::ptr;

use rustix::fs::{Mode, OFlags, RawDir};

use crate::program::launch::{BeforeExec, Launch, Launched, monotonic};
use crate::thread::{MASK_WORDS, affinity_into, set_fifo};

/// The signal to kill all descendants; the kernel also sends it when the process that started the
/// program has ended. This one and the next are not forwarded to programs, which have no use for them.
pub(crate) const END: libc::c_int = libc::SIGPWR;
/// The signal to exit without killing descendants.
pub(crate) const LEAVE: libc::c_int = libc::SIGSTKFLT;
/// How long the program without effects may take that is run first.
static WARM_UP: libc::timespec = libc::timespec { tv_sec: 1, tv_nsec: 0 };
/// The interval between two attempts to kill all children.
const RETRY_INTERVAL: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// Processes that may not be killed are not waited for: the number of consecutive attempts without
/// any process to kill. A single attempt can miss a process that has just become a child.
const ATTEMPTS: u32 = 20;
/// If the kernel cannot close ranges, only file descriptors below this are closed.
const OPEN_MAX: libc::c_int = 65_536;
/// The name in process lists; not `noisefloor`, so that `killall noisefloor` does not match it.
const NAME: &std::ffi::CStr = c"nf-supervisor";

/// The highest priority of `SCHED_FIFO`.
const HIGHEST: u8 = 99;
/// The nice value of the highest priority of ordinary tasks.
const NICEST: libc::c_int = -20;

/// The supervisor's message when the program has ended. Times are of `CLOCK_MONOTONIC`, in
/// nanoseconds.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Report {
    /// Just before the program's exec.
    pub(crate) before: BeforeExec,
    /// When this process learned of its end.
    pub(crate) ended: u64,
    /// How long its first process was stopped by signals,
    pub(crate) stopped: u64,
    /// and how often.
    pub(crate) stops: u64,
    pub(crate) status: libc::c_int,
    /// Whether descendants of the program are running.
    pub(crate) survivors: libc::c_int,
    /// Whether its first thread was allowed CPUs at the end that it did not have at the start.
    pub(crate) has_more_cpus: libc::c_int,
    /// Including that before its exec.
    pub(crate) usage: libc::rusage,
}

impl Report {
    pub(crate) fn from_bytes(bytes: &[u8; size_of::<Self>()]) -> Self {
        // SAFETY: all fields are numbers, for which any bytes are valid.
        unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() }
    }
}

/// Makes the calling process a supervisor, which gets `END` when its parent ends, starts the program,
/// which is killed when the supervisor ends, and supervises it until a signal ends the supervisor.
/// `first` is run before it. Async-signal-safe.
///
/// # Errors
/// Those of [`Launch::start`]. If the program was started, this does not return.
pub(crate) fn supervise(
    first: &Launch,
    launch: &Launch,
    parent: u32,
    report_to: libc::c_int,
) -> io::Result<()> {
    end_with(parent, END)?;
    // SAFETY: takes numbers only.
    checked(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) })?;
    // If SIGCHLD is ignored, children cannot be waited for.
    // SAFETY: takes numbers only, and no handler is given.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    let signals = block()?;
    warm_up(first, &signals);
    launch.stay_near()?;
    let launched = launch.start(&signals)?;
    outrank();
    // Inherited descriptors would keep locks and pipes open after the parent has ended.
    close_all_but(report_to);
    // SAFETY: the name is short, NUL-terminated, and outlives the call.
    unsafe { libc::prctl(libc::PR_SET_NAME, NAME.as_ptr()) };
    until_signalled(Watched::new(launched), pid_of(parent), report_to)
}

/// Runs a program without effects, which is killed if it does not end. Without it, the other one is the first.
fn warm_up(first: &Launch, signals: &libc::sigset_t) {
    let Ok(Launched { pid, .. }) = first.start(signals) else { return };
    let mut ended = MaybeUninit::uninit();
    // SAFETY: the sets and the time outlive the calls, of which the first initializes the set; the others
    // take numbers, and pointers to nothing. The PID is that of a child that was not waited for.
    unsafe {
        libc::sigemptyset(ended.as_mut_ptr());
        libc::sigaddset(ended.as_mut_ptr(), libc::SIGCHLD);
        if libc::sigtimedwait(ended.as_ptr(), ptr::null_mut(), &raw const WARM_UP) < 0 {
            libc::kill(pid, libc::SIGKILL);
        }
        libc::waitpid(pid, ptr::null_mut(), 0);
    }
}

/// Raises the priority of this process, which has no other children to inherit it: it reads the clock
/// when the program ends, and would read it late while others have its CPU.
fn outrank() {
    if set_fifo(HIGHEST).is_err() {
        // Without the privilege, the priority is unchanged.
        // SAFETY: takes numbers only.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, NICEST) };
    }
}

/// Makes the kernel send this signal to the calling process when its parent ends.
pub(crate) fn end_with(parent: u32, signal: libc::c_int) -> io::Result<()> {
    // SAFETY: takes numbers only.
    checked(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal) })?;
    // The parent may have ended before prctl.
    if std::os::unix::process::parent_id() != parent {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    Ok(())
}

/// Blocks all signals; returns the previous mask.
fn block() -> io::Result<libc::sigset_t> {
    let (all, mut before) = (all(), MaybeUninit::uninit());
    // SAFETY: both sets outlive the call, which initializes the second.
    unsafe {
        checked(libc::sigprocmask(libc::SIG_BLOCK, &raw const all, before.as_mut_ptr()))?;
        Ok(before.assume_init())
    }
}

fn all() -> libc::sigset_t {
    let mut all = MaybeUninit::uninit();
    // SAFETY: the call initializes the set.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        all.assume_init()
    }
}

/// The program, as its supervisor sees it.
struct Watched {
    pid: libc::pid_t,
    is_running: bool,
    /// Its CPUs at the start.
    cpus: [u64; MASK_WORDS],
    before: BeforeExec,
    stopped_since: Option<u64>,
    stopped: u64,
    stops: u64,
}

impl Watched {
    fn new(Launched { pid, before }: Launched) -> Self {
        let mut cpus = [0; MASK_WORDS];
        affinity_into(pid, &mut cpus);
        let (stopped_since, stopped, stops) = (None, 0, 0);
        Self { pid, is_running: true, cpus, before, stopped_since, stopped, stops }
    }

    /// Notes that its first process was stopped, or continues.
    fn note(&mut self, status: libc::c_int, now: u64) {
        if libc::WIFSTOPPED(status) {
            self.stops += u64::from(self.stopped_since.is_none());
            self.stopped_since.get_or_insert(now);
        } else if let Some(since) = self.stopped_since.take() {
            self.stopped += now.saturating_sub(since);
        }
    }

    /// Whether its first thread has CPUs now that it did not have at the start: while it is running or
    /// was not waited for.
    fn has_more_cpus(&self) -> bool {
        let mut now = [0; MASK_WORDS];
        affinity_into(self.pid, &mut now);
        now.iter().zip(&self.cpus).any(|(now, before)| now & !before != 0)
    }

    /// Reaps all children that have ended: returns the report of the program if it is one of them, and
    /// whether any children are left. `now` is the time of the signal that says so.
    fn reap(&mut self, now: u64) -> (Option<Report>, bool) {
        let has_more_cpus = self.is_running && self.has_more_cpus();
        let mut ended = None;
        loop {
            // SAFETY: all fields are numbers.
            let mut report: Report = unsafe { zeroed() };
            let (status, usage) = (&raw mut report.status, &raw mut report.usage);
            let flags = libc::WNOHANG | libc::WUNTRACED | libc::WCONTINUED;
            // SAFETY: both fields outlive the call, which writes them.
            match unsafe { libc::wait4(-1, status, flags, usage) } {
                0 => return (ended, true),
                child if child < 0 => return (ended, false),
                child if child != self.pid => {}
                _ => {
                    self.note(report.status, now);
                    if libc::WIFEXITED(report.status) || libc::WIFSIGNALED(report.status)
                    {
                        self.is_running = false;
                        ended = Some(Report {
                            before: self.before,
                            ended: now,
                            stopped: self.stopped,
                            stops: self.stops,
                            has_more_cpus: has_more_cpus.into(),
                            ..report
                        });
                    }
                }
            }
        }
    }
}

fn until_signalled(
    mut program: Watched,
    parent: libc::pid_t,
    report_to: libc::c_int,
) -> ! {
    loop {
        let (signal, sender) = next_signal();
        let now = monotonic();
        match signal {
            // Sent by the kernel, it has the number of the parent that ended; one of another process
            // that was still pending takes its place.
            END if sender == parent || has_ended(parent) => end_all(&mut program),
            LEAVE if sender == parent => leave(),
            libc::SIGCHLD => {
                let (report, are_left) = program.reap(now);
                if let Some(report) = report {
                    send(&Report { survivors: are_left.into(), ..report }, report_to);
                }
                if !are_left {
                    leave();
                }
            }
            signal if program.is_running && sender == parent => {
                // SAFETY: takes numbers only; the program was not waited for, so its PID cannot
                // have been reused.
                unsafe { libc::kill(program.pid, signal) };
            }
            _ => {}
        }
    }
}

fn has_ended(parent: libc::pid_t) -> bool {
    pid_of(std::os::unix::process::parent_id()) != parent
}

/// Waits for a signal; returns it with the sender's PID, or 0 if the kernel sent it.
fn next_signal() -> (libc::c_int, libc::pid_t) {
    let all = all();
    // SAFETY: all-zero bytes are a valid value.
    let mut info: libc::siginfo_t = unsafe { zeroed() };
    // SAFETY: the set is valid, and the kernel initializes `info`.
    let signal = unsafe { libc::sigwaitinfo(&raw const all, &raw mut info) };
    // SAFETY: signals with these codes were sent by a process, so that `si_pid` is valid.
    let sender = if info.si_code <= 0 { unsafe { info.si_pid() } } else { 0 };
    (signal, sender)
}

/// Writes a report with one call; it is shorter than `PIPE_BUF`, so the write is atomic.
fn send(report: &Report, to: libc::c_int) {
    let bytes = ptr::from_ref(report).cast();
    // SAFETY: the report outlives the call, which only reads it.
    unsafe { libc::write(to, bytes, size_of::<Report>()) };
}

/// Kills the program and all descendants, waits until they have ended, and exits.
fn end_all(program: &mut Watched) -> ! {
    if program.is_running {
        // SAFETY: takes numbers only; the program was not waited for.
        unsafe { libc::kill(program.pid, libc::SIGKILL) };
    }
    let (all, interval, mut attempts) = (all(), RETRY_INTERVAL, 0);
    while attempts < ATTEMPTS {
        attempts = if kill_children() == 0 { attempts + 1 } else { 0 };
        let (_, are_left) = program.reap(monotonic());
        if !are_left {
            break;
        }
        // SAFETY: the set and the time outlive the call, which writes nothing.
        unsafe {
            libc::sigtimedwait(&raw const all, ptr::null_mut(), &raw const interval)
        };
    }
    leave()
}

fn leave() -> ! {
    // SAFETY: takes a number only, and does not return.
    unsafe { libc::_exit(0) }
}

/// Kills all children; returns how many. Their own children become this process's.
fn kill_children() -> usize {
    let own = pid_of(std::process::id());
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(proc) = rustix::fs::open(c"/proc", flags, Mode::empty()) else { return 0 };
    let mut room = [MaybeUninit::<u8>::uninit(); 4096];
    let mut killed = 0;
    let mut entries = RawDir::new(&proc, &mut room);
    while let Some(Ok(entry)) = entries.next() {
        let Some(pid) = number(entry.file_name().to_bytes()) else { continue };
        if parent_of(&proc, entry.file_name()) != Some(own) {
            continue;
        }
        // SAFETY: takes numbers only; the PID of a child that was not waited for is not reused.
        killed += usize::from(unsafe { libc::kill(pid, libc::SIGKILL) } == 0);
    }
    killed
}

/// The parent of the process of this directory in `/proc`.
fn parent_of(
    proc: &impl std::os::fd::AsFd,
    folder: &std::ffi::CStr,
) -> Option<libc::pid_t> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let folder =
        rustix::fs::openat(proc, folder, flags | OFlags::DIRECTORY, Mode::empty())
            .ok()?;
    let stat = rustix::fs::openat(&folder, c"stat", flags, Mode::empty()).ok()?;
    let mut text = [0_u8; 512];
    let length = rustix::io::read(&stat, &mut text).ok()?;
    let text = text.get(..length)?;
    // The name may contain spaces and parentheses; it is followed by the state and the parent.
    let name_ends = text.iter().rposition(|&byte| byte == b')')?;
    number(text.get(name_ends + 1..)?.split(|&byte| byte == b' ').nth(2)?)
}

fn number(digits: &[u8]) -> Option<libc::pid_t> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Closes all file descriptors except one. Before Linux 5.9, up to `OPEN_MAX`.
fn close_all_but(except: libc::c_int) {
    let last = libc::c_int::MAX;
    let closed = [(0, except - 1), (except + 1, last)].map(|(first, last)| {
        // SAFETY: this process does not use these descriptors any more.
        first > last
            || unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } == 0
    });
    if closed != [true; 2] {
        for file in (0..OPEN_MAX).filter(|&file| file != except) {
            // SAFETY: as above.
            unsafe { libc::close(file) };
        }
    }
}

/// A PID as system calls take it.
fn pid_of(number: u32) -> libc::pid_t {
    libc::pid_t::try_from(number).unwrap_or(libc::pid_t::MAX)
}

pub(crate) fn checked(returned: libc::c_int) -> io::Result<libc::c_int> {
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that this process's parent is found, and that names are parsed as PIDs.
    #[test]
    fn parents() {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let proc = rustix::fs::open(c"/proc", flags, Mode::empty()).unwrap();
        let parent = libc::pid_t::try_from(std::os::unix::process::parent_id()).unwrap();
        assert_eq!(parent_of(&proc, c"self"), Some(parent));
        assert_eq!(parent_of(&proc, c"no-such-process"), None);
        assert_eq!(
            ["12", "1x", "", "self"].map(|name| number(name.as_bytes())),
            [Some(12), None, None, None]
        );
    }
}
