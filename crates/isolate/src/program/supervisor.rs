//! The process between this one and a program that it runs: it waits for the program, says how
//! that ended, and kills all that the program has started on an order, or when the process
//! that runs it has ended.
//!
//! It is a subreaper (`prctl(2)` `PR_SET_CHILD_SUBREAPER`, Linux 3.4): a process whose parent has
//! ended becomes its child. So killing children until there are none left ends a whole tree,
//! without a list of it. All signals are blocked and fetched one by one (`sigwaitinfo(2)`).
//!
//! It is forked from a process that may have threads, and does not exec: only async-signal-safe
//! calls are made, and nothing is allocated.

use std::io;
use std::mem::{MaybeUninit, zeroed};
use std::ptr;

use rustix::fs::{Mode, OFlags, RawDir};

/// The order to kill everything; also sent by the kernel when the process that runs the program
/// has ended.
pub(crate) const END: libc::c_int = libc::SIGALRM;
/// The order to end, and leave what there is.
pub(crate) const LEAVE: libc::c_int = libc::SIGVTALRM;
/// How long to wait for a killed process before looking again.
const PATIENCE: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 50_000_000 };
/// What may not be killed is not waited for: after so many looks in a row that found nothing to
/// kill. One may miss a process that has just become a child.
const ATTEMPTS: u32 = 20;
/// Files beyond that are not looked for where the kernel cannot close ranges.
const OPEN_MAX: libc::c_int = 65_536;
/// As a process list shows it; not the tool's own name, so that `killall` spares it.
const NAME: &std::ffi::CStr = c"nf-supervisor";

/// What the supervisor says when the program has ended.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Report {
    pub(crate) status: libc::c_int,
    /// Not zero where processes of the program's are left.
    pub(crate) survivors: libc::c_int,
    pub(crate) usage: libc::rusage,
}

impl Report {
    pub(crate) fn from_bytes(bytes: &[u8; size_of::<Self>()]) -> Self {
        // SAFETY: all of it are numbers, for which any bytes are valid.
        unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() }
    }
}

/// Which of the two processes this is.
pub(crate) enum Fork {
    /// The supervisor, and its child's number.
    Supervisor(libc::pid_t),
    /// The child, which becomes the program.
    Program,
}

/// Makes the calling process a supervisor that ends with its parent, of that number, and forks
/// its child, which ends with it. Async-signal-safe.
pub(crate) fn fork(parent: u32) -> io::Result<Fork> {
    end_with(parent, END)?;
    // SAFETY: takes numbers only.
    checked(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) })?;
    // A child of one that ignores SIGCHLD could not be waited for.
    // SAFETY: takes numbers only, and no handler is given.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    let own = std::process::id();
    let before = block()?;
    // SAFETY: the child makes async-signal-safe calls only until it execs.
    match checked(unsafe { libc::fork() })? {
        0 => {
            end_with(own, libc::SIGKILL)?;
            // SAFETY: the mask is the one that was there before.
            unsafe {
                libc::sigprocmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut())
            };
            Ok(Fork::Program)
        }
        child => Ok(Fork::Supervisor(child)),
    }
}

/// Has the kernel send the calling process that signal when its parent, of that number, ends.
fn end_with(parent: u32, signal: libc::c_int) -> io::Result<()> {
    // SAFETY: takes numbers only.
    checked(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal) })?;
    // The parent may have ended before it could be tied to.
    if std::os::unix::process::parent_id() != parent {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    Ok(())
}

/// Blocks all signals; the mask before.
fn block() -> io::Result<libc::sigset_t> {
    let (all, mut before) = (all(), MaybeUninit::uninit());
    // SAFETY: both sets outlive the call, which fills the second.
    unsafe {
        checked(libc::sigprocmask(libc::SIG_BLOCK, &raw const all, before.as_mut_ptr()))?;
        Ok(before.assume_init())
    }
}

fn all() -> libc::sigset_t {
    let mut all = MaybeUninit::uninit();
    // SAFETY: the call fills the set.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        all.assume_init()
    }
}

/// Supervises that child until it is ordered to end. Async-signal-safe.
pub(crate) fn supervise(program: libc::pid_t, report_to: libc::c_int) -> ! {
    let parent = pid_of(std::os::unix::process::parent_id());
    // What is held open here would stay open when the parent has ended: locks, pipes.
    close_all_but(report_to);
    // SAFETY: the name is short, ends with a zero, and outlives the call.
    unsafe { libc::prctl(libc::PR_SET_NAME, NAME.as_ptr()) };
    let mut is_running = true;
    loop {
        let (signal, sender) = next_signal();
        match signal {
            END => end_all(program, is_running),
            LEAVE => leave(),
            libc::SIGCHLD => {
                let (report, are_left) = reap(program);
                if let Some(report) = report {
                    send(&Report { survivors: are_left.into(), ..report }, report_to);
                    is_running = false;
                }
                // The program may have ended before its exec.
                if !are_left {
                    leave();
                }
            }
            signal if is_running && sender == parent => {
                // SAFETY: takes numbers only; the program was not waited for, so that the
                // number is still its own.
                unsafe { libc::kill(program, signal) };
            }
            _ => {}
        }
    }
}

/// The next signal, and the process that sent it; 0 where the kernel did.
fn next_signal() -> (libc::c_int, libc::pid_t) {
    let all = all();
    // SAFETY: all zero is a valid one.
    let mut info: libc::siginfo_t = unsafe { zeroed() };
    // SAFETY: the set is a valid one, and the kernel fills `info`.
    let signal = unsafe { libc::sigwaitinfo(&raw const all, &raw mut info) };
    // SAFETY: a signal that a process sent has a sender.
    let sender = if info.si_code <= 0 { unsafe { info.si_pid() } } else { 0 };
    (signal, sender)
}

/// Waits for all children that have ended: the report of the program, if it is one of them, and
/// whether any are left.
fn reap(program: libc::pid_t) -> (Option<Report>, bool) {
    let mut ended = None;
    loop {
        // SAFETY: all of it are numbers.
        let mut report: Report = unsafe { zeroed() };
        let (status, usage) = (&raw mut report.status, &raw mut report.usage);
        // SAFETY: both places outlive the call, which fills them.
        match unsafe { libc::wait4(-1, status, libc::WNOHANG, usage) } {
            0 => return (ended, true),
            child if child < 0 => return (ended, false),
            child if child == program => ended = Some(report),
            _ => {}
        }
    }
}

/// Writes a report as a whole; it is shorter than what a pipe takes at once.
fn send(report: &Report, to: libc::c_int) {
    let bytes = ptr::from_ref(report).cast();
    // SAFETY: the report outlives the call, which only reads it.
    unsafe { libc::write(to, bytes, size_of::<Report>()) };
}

/// Kills the program and all that it started, waits until it is gone, and ends.
fn end_all(program: libc::pid_t, is_running: bool) -> ! {
    if is_running {
        // SAFETY: takes numbers only; the program was not waited for.
        unsafe { libc::kill(program, libc::SIGKILL) };
    }
    let (all, patience, mut fruitless) = (all(), PATIENCE, 0);
    while fruitless < ATTEMPTS {
        fruitless = if kill_children() == 0 { fruitless + 1 } else { 0 };
        let (_, are_left) = reap(program);
        if !are_left {
            break;
        }
        // SAFETY: the set and the time outlive the call; nothing is filled.
        unsafe {
            libc::sigtimedwait(&raw const all, ptr::null_mut(), &raw const patience)
        };
    }
    leave()
}

fn leave() -> ! {
    // SAFETY: takes a number, and does not return.
    unsafe { libc::_exit(0) }
}

/// Kills all children; how many may be killed. Their children become this process's.
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
        // SAFETY: takes numbers only; a child that was not waited for has its number still.
        killed += usize::from(unsafe { libc::kill(pid, libc::SIGKILL) } == 0);
    }
    killed
}

/// The parent of the process whose folder that is in `/proc`.
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
    // A name may hold blanks and brackets; after it come the state and the parent.
    let name_ends = text.iter().rposition(|&byte| byte == b')')?;
    number(text.get(name_ends + 1..)?.split(|&byte| byte == b' ').nth(2)?)
}

fn number(digits: &[u8]) -> Option<libc::pid_t> {
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Closes all of the process's files but that one. Linux 5.9; before, those that there can be.
fn close_all_but(kept: libc::c_int) {
    let last = libc::c_int::MAX;
    let closed = [(0, kept - 1), (kept + 1, last)].map(|(first, last)| {
        // SAFETY: nothing in this process uses these files any more.
        first > last
            || unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } == 0
    });
    if closed != [true; 2] {
        for file in (0..OPEN_MAX).filter(|&file| file != kept) {
            // SAFETY: as above.
            unsafe { libc::close(file) };
        }
    }
}

/// A process's number as system calls want it.
fn pid_of(number: u32) -> libc::pid_t {
    libc::pid_t::try_from(number).unwrap_or(libc::pid_t::MAX)
}

fn checked(returned: libc::c_int) -> io::Result<libc::c_int> {
    if returned < 0 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that this process's parent is found, whatever the process is called.
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
