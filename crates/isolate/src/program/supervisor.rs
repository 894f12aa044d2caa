//! The supervisor, a process between this one and a program: it waits for the program, reports its
//! status, and kills all of its descendants on request, or when the process that started it ends.
//!
//! It is a subreaper (`prctl(2)` `PR_SET_CHILD_SUBREAPER`, Linux 3.4): it becomes the parent of
//! orphaned descendants. So killing its children until there are none kills the whole tree, without
//! a list of it. All signals are blocked, and are fetched one by one (`sigwaitinfo(2)`).
//!
//! It is forked from a process that may have threads, and does not call exec: it makes only
//! async-signal-safe calls, and allocates no memory. `signal-hook` allocates, and cannot reset
//! SIGCHLD to its default action.

use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::ptr;

use rustix::fs::{Mode, OFlags, RawDir};

/// The signal to kill all descendants; the kernel also sends it when the process that started the
/// program has ended. This one and the next are not forwarded to programs, which have no use for them.
pub(crate) const END: libc::c_int = libc::SIGPWR;
/// The signal to exit without killing descendants.
pub(crate) const LEAVE: libc::c_int = libc::SIGSTKFLT;
/// The interval between two attempts to kill all children.
const RETRY_INTERVAL: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// Processes that may not be killed are not waited for: the number of consecutive attempts without
/// any process to kill. A single attempt can miss a process that has just become a child.
const ATTEMPTS: u32 = 20;
/// If the kernel cannot close ranges, only file descriptors below this are closed.
const OPEN_MAX: libc::c_int = 65_536;
/// The name in process lists; not `noisefloor`, so that `killall noisefloor` does not match it.
const NAME: &std::ffi::CStr = c"nf-supervisor";

/// The supervisor's message when the program has ended.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Report {
    pub(crate) status: libc::c_int,
    /// Whether descendants of the program are running.
    pub(crate) survivors: libc::c_int,
    pub(crate) usage: libc::rusage,
}

impl Report {
    pub(crate) fn from_bytes(bytes: &[u8; size_of::<Self>()]) -> Self {
        // SAFETY: all fields are numbers, for which any bytes are valid.
        unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() }
    }
}

/// The two processes after the fork.
pub(crate) enum Fork {
    /// The supervisor, with the PID of its child.
    Supervisor(libc::pid_t),
    /// The child, which becomes the program.
    Program,
}

/// Makes the calling process a supervisor, which gets `END` when its parent ends, and forks its
/// child, which is killed when the supervisor ends. Async-signal-safe.
pub(crate) fn fork(parent: u32) -> io::Result<Fork> {
    end_with(parent, END)?;
    // SAFETY: takes numbers only.
    checked(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) })?;
    // If SIGCHLD is ignored, children cannot be waited for.
    // SAFETY: takes numbers only, and no handler is given.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    let own = std::process::id();
    let before = block()?;
    // SAFETY: the child makes async-signal-safe calls only until it execs.
    match checked(unsafe { libc::fork() })? {
        0 => {
            end_with(own, libc::SIGKILL)?;
            // SAFETY: `before` is a valid mask, and outlives the call.
            unsafe {
                libc::sigprocmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut())
            };
            Ok(Fork::Program)
        }
        child => Ok(Fork::Supervisor(child)),
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

/// Supervises the child until a signal ends the supervisor. Async-signal-safe.
pub(crate) fn supervise(program: libc::pid_t, report_to: libc::c_int) -> ! {
    let parent = pid_of(std::os::unix::process::parent_id());
    // Inherited descriptors would keep locks and pipes open after the parent has ended.
    close_all_but(report_to);
    // SAFETY: the name is short, NUL-terminated, and outlives the call.
    unsafe { libc::prctl(libc::PR_SET_NAME, NAME.as_ptr()) };
    let mut is_running = true;
    loop {
        let (signal, sender) = next_signal();
        match signal {
            // Sent by the kernel, it has the number of the parent that ended; one of another process
            // that was still pending takes its place.
            END if sender == parent || has_ended(parent) => end_all(program, is_running),
            LEAVE if sender == parent => leave(),
            libc::SIGCHLD => {
                let (report, are_left) = reap(program);
                if let Some(report) = report {
                    send(&Report { survivors: are_left.into(), ..report }, report_to);
                    is_running = false;
                }
                // There may be no report if the program ended before its exec.
                if !are_left {
                    leave();
                }
            }
            signal if is_running && sender == parent => {
                // SAFETY: takes numbers only; the program was not waited for, so its PID cannot
                // have been reused.
                unsafe { libc::kill(program, signal) };
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

/// Reaps all children that have ended: returns the report of the program if it is one of them, and
/// whether any children are left.
fn reap(program: libc::pid_t) -> (Option<Report>, bool) {
    let mut ended = None;
    loop {
        // SAFETY: all fields are numbers.
        let mut report: Report = unsafe { zeroed() };
        let (status, usage) = (&raw mut report.status, &raw mut report.usage);
        // SAFETY: both fields outlive the call, which writes them.
        match unsafe { libc::wait4(-1, status, libc::WNOHANG, usage) } {
            0 => return (ended, true),
            child if child < 0 => return (ended, false),
            child if child == program => ended = Some(report),
            _ => {}
        }
    }
}

/// Writes a report with one call; it is shorter than `PIPE_BUF`, so the write is atomic.
fn send(report: &Report, to: libc::c_int) {
    let bytes = ptr::from_ref(report).cast();
    // SAFETY: the report outlives the call, which only reads it.
    unsafe { libc::write(to, bytes, size_of::<Report>()) };
}

/// Kills the program and all descendants, waits until they have ended, and exits.
fn end_all(program: libc::pid_t, is_running: bool) -> ! {
    if is_running {
        // SAFETY: takes numbers only; the program was not waited for.
        unsafe { libc::kill(program, libc::SIGKILL) };
    }
    let (all, interval, mut attempts) = (all(), RETRY_INTERVAL, 0);
    while attempts < ATTEMPTS {
        attempts = if kill_children() == 0 { attempts + 1 } else { 0 };
        let (_, are_left) = reap(program);
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

fn checked(returned: libc::c_int) -> io::Result<libc::c_int> {
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
