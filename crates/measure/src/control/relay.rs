//! Signals that arrive while this process runs a program: recorded by a handler, and read one by
//! one.
//!
//! Handlers are used rather than a mask: exec resets them, so that the program begins with the
//! dispositions that this process had, and any thread that receives a signal can record it. Ignored
//! signals stay ignored (`nohup`).
//!
//! `signal-hook` 0.4 cannot serve here: it drops a signal with the default action that arrives while
//! its handler is installed, and it also calls a handler that the process had before, which may end
//! it. It never uninstalls its handlers: an ignored SIGCHLD would not be restored, and a second
//! relay would receive nothing if the process has set a disposition after the first.
//!
//! `si_code` shows the sender of a signal (`sigaction(2)`): the kernel sends what is typed at a
//! terminal to the whole foreground group, and so to the program itself.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

/// The signals that another process may intend for the program.
const FORWARDED: [libc::c_int; 6] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

/// The pipe of the handler; there is one relay at a time.
static NOTES: AtomicI32 = AtomicI32::new(-1);

/// A received signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) signal: libc::c_int,
    /// Whether a process sent it, and not the kernel.
    pub(crate) was_sent: bool,
}

/// Receives signals until it is dropped, so that they do not end this process. Those that arrive
/// before a program is started are forwarded to it then.
#[derive(Debug)]
pub struct Relay {
    notes: OwnedFd,
    _written: OwnedFd,
    before: Vec<(libc::c_int, libc::sigaction)>,
}

impl Relay {
    /// Installs the handlers. A process has one relay at a time.
    ///
    /// # Errors
    /// There is one already, or no file descriptor is left.
    pub fn begin() -> io::Result<Self> {
        // A handler must not block.
        let (notes, written) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let order = Ordering::SeqCst;
        let free = NOTES.compare_exchange(-1, written.as_raw_fd(), order, order);
        free.map_err(|_| io::Error::from_raw_os_error(libc::EBUSY))?;
        let mut relay = Self { notes, _written: written, before: Vec::new() };
        for signal in FORWARDED.into_iter().chain([libc::SIGCHLD]) {
            let before = action(signal, None)?;
            // With SIGCHLD ignored a child could not be waited for.
            if before.sa_sigaction != libc::SIG_IGN || signal == libc::SIGCHLD {
                action(signal, Some(&noting()))?;
                relay.before.push((signal, before));
            }
        }
        Ok(relay)
    }

    /// Waits for the next signal, or until `other` is readable, or for `at_most`; `None` without a
    /// signal.
    pub(crate) fn next_or(
        &self,
        other: BorrowedFd<'_>,
        at_most: Option<Duration>,
    ) -> io::Result<Option<Received>> {
        let timeout = at_most.map(Timespec::try_from).transpose();
        let timeout = timeout.map_err(|_| io::ErrorKind::InvalidInput)?;
        let notes = self.notes.as_fd();
        let mut wanted =
            [notes, other].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        match rustix::event::poll(&mut wanted, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut note = [0; 2];
        match rustix::io::read(notes, &mut note) {
            // Records are written, and so read, as a whole.
            Ok(_) => {
                Ok(Some(Received { signal: note[0].into(), was_sent: note[1] == 0 }))
            }
            Err(Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        for (signal, before) in &self.before {
            // Restoring a disposition that was valid does not fail.
            let _ = action(*signal, Some(before));
        }
        NOTES.store(-1, Ordering::SeqCst);
    }
}

/// The disposition of a signal; a new one is set, if given.
fn action(
    signal: libc::c_int,
    new: Option<&libc::sigaction>,
) -> io::Result<libc::sigaction> {
    let new = new.map_or(ptr::null(), ptr::from_ref);
    let mut old = MaybeUninit::uninit();
    // SAFETY: `new` is null or a valid action; the kernel fills `old`.
    if unsafe { libc::sigaction(signal, new, old.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call succeeded, and so filled it.
    Ok(unsafe { old.assume_init() })
}

fn noting() -> libc::sigaction {
    // SAFETY: all zero is a valid action: the default one, with an empty mask.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = note as *const () as usize;
    action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
    action
}

/// The handler: makes async-signal-safe calls only.
extern "C" fn note(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    _: *mut libc::c_void,
) {
    // SAFETY: with SA_SIGINFO the kernel passes a valid pointer.
    let code = unsafe { (*info).si_code };
    let note = [u8::try_from(signal).unwrap_or(0), u8::from(code > 0)];
    // SAFETY: `errno` is this thread's; the bytes outlive the call, which only reads them. A full
    // pipe holds thousands of records that were not read: one more would not help.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(NOTES.load(Ordering::SeqCst), note.as_ptr().cast(), note.len());
        *libc::__errno_location() = errno;
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::AtomicBool;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::*;

    /// Serializes the tests that begin a relay.
    pub(crate) fn turn() -> MutexGuard<'static, ()> {
        static TURN: Mutex<()> = Mutex::new(());
        TURN.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn raise(signal: libc::c_int) {
        // SAFETY: takes a number only; its handler, if any, makes async-signal-safe calls.
        assert_eq!(unsafe { libc::raise(signal) }, 0);
    }

    fn next(relay: &Relay) -> Option<(libc::c_int, bool)> {
        let (never, _open) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let next = relay.next_or(never.as_fd(), Some(Duration::ZERO)).unwrap();
        next.map(|received| (received.signal, received.was_sent))
    }

    /// The signal that ends a forked process that raises this one.
    fn ended_by(signal: libc::c_int) -> Option<libc::c_int> {
        // SAFETY: the child makes async-signal-safe calls only; `status` outlives the wait.
        let status = unsafe {
            let child = libc::fork();
            if child == 0 {
                libc::raise(signal);
                libc::_exit(0);
            }
            let mut status = 0;
            assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
            status
        };
        libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status))
    }

    static IS_HANDLED: AtomicBool = AtomicBool::new(false);

    extern "C" fn handle(_: libc::c_int) {
        IS_HANDLED.store(true, Ordering::SeqCst);
    }

    fn set(signal: libc::c_int, handler: libc::sighandler_t) {
        // SAFETY: the handler sets a flag, or is none.
        assert_ne!(unsafe { libc::signal(signal, handler) }, libc::SIG_ERR);
    }

    /// Check that signals are recorded in their order, with their origin, that there is one relay
    /// at a time, and that with a relay an earlier handler is not called, and without one signals
    /// have the effect that they had before: the default, none, or that of the handler.
    #[test]
    fn relays() {
        let _turn = turn();
        // A shell script's background process starts with SIGINT ignored.
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGUSR1] {
            set(signal, libc::SIG_DFL);
        }
        set(libc::SIGHUP, libc::SIG_IGN);
        set(libc::SIGUSR2, handle as *const () as libc::sighandler_t);
        for _ in 0..2 {
            let relay = Relay::begin().unwrap();
            assert_eq!(Relay::begin().unwrap_err().raw_os_error(), Some(libc::EBUSY));
            let raised = [libc::SIGTERM, libc::SIGINT, libc::SIGUSR2];
            let many = std::iter::repeat_n(libc::SIGUSR1, 100);
            let all: Vec<_> = raised.into_iter().chain(many).collect();
            raise(libc::SIGHUP);
            all.iter().for_each(|&signal| raise(signal));
            for signal in all {
                assert_eq!(next(&relay), Some((signal, true)));
            }
            assert_eq!(next(&relay), None);
            assert!(!IS_HANDLED.load(Ordering::SeqCst));
            assert_eq!(ended_by(libc::SIGTERM), None);
            while next(&relay).is_some() {}
            drop(relay);
            for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGUSR1] {
                assert_eq!(ended_by(signal), Some(signal));
            }
            assert_eq!([libc::SIGHUP, libc::SIGUSR2].map(ended_by), [None; 2]);
            // The next relay also receives a signal with a new disposition.
            set(libc::SIGTERM, libc::SIG_DFL);
        }
        raise(libc::SIGUSR2);
        assert!(IS_HANDLED.load(Ordering::SeqCst));
    }
}
