//! Signals that would end this process: recorded by a handler, and read one by one.
//!
//! Handlers are used rather than a mask: exec resets them, so that a program begins with the
//! dispositions that this process had, and any thread that receives a signal can record it. Ignored
//! signals stay ignored (`nohup`).
//!
//! `signal-hook` 0.4 cannot serve here: it drops a signal with the default action that arrives while
//! its handler is installed, and it also calls a handler that the process had before, which may end
//! it. It never uninstalls its handlers: an ignored SIGCHLD would not be restored, and a second
//! relay would receive nothing if the process has set a disposition after the first.
//!
//! `si_code` shows the sender of a signal (`sigaction(2)`): the kernel sends what is typed at a
//! terminal to the whole foreground group, and so to a program itself.
//!
//! Cannot see: SIGKILL; the signals that a process's own errors raise (SIGSEGV, SIGBUS, SIGFPE, SIGILL,
//! SIGSYS, SIGTRAP), after which it cannot continue.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::control::stop::Stop;

/// The signals whose default action ends a process (`signal(7)`), except those that its own errors
/// raise, the real-time signals, and SIGPIPE, which Rust ignores.
const ENDING: [libc::c_int; 15] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGXCPU,
    libc::SIGXFSZ,
    libc::SIGIO,
    libc::SIGPWR,
    libc::SIGSTKFLT,
    // `abort(3)` ends the process in spite of a handler.
    libc::SIGABRT,
];

/// The pipe of the handler; there is one relay at a time.
static NOTES: AtomicI32 = AtomicI32::new(-1);
/// The socket that wakes sleeping threads,
static WAKER: AtomicI32 = AtomicI32::new(-1);
/// and the flag that is set before.
static STOP: AtomicPtr<AtomicBool> = AtomicPtr::new(ptr::null_mut());
/// The number of signals since the first relay began.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// A received signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Its number.
    pub signal: libc::c_int,
    /// Whether a process sent it, and not the kernel.
    pub was_sent: bool,
}

impl Received {
    /// Whether a child process has ended or stopped.
    pub fn is_of_child(self) -> bool {
        self.signal == libc::SIGCHLD
    }
}

/// Receives signals until it is dropped, so that they do not end this process. Those that arrive
/// before a program is started are forwarded to it then.
#[derive(Debug)]
pub struct Relay {
    notes: OwnedFd,
    _written: OwnedFd,
    waker: Option<UnixStream>,
    before: Vec<(libc::c_int, libc::sigaction)>,
}

impl Relay {
    /// Installs the handlers for the time that a program runs: signals are for the program. A process
    /// has one relay at a time.
    ///
    /// # Errors
    /// There is one already, or no file descriptor is left.
    pub fn begin() -> io::Result<Self> {
        let mut relay = Self::new(None)?;
        relay.install(&[])?;
        Ok(relay)
    }

    /// Installs the handlers for a process that ends its own work on a signal: by the stop request, or
    /// without one by what its child does when the signal is forwarded. SIGINT and SIGTERM are received
    /// even if they were ignored, as the background jobs of a script ignore SIGINT.
    ///
    /// # Errors
    /// Those of [`Self::begin`].
    pub fn of_own_work(stop: Option<&Stop>) -> io::Result<Self> {
        let mut relay = Self::new(stop)?;
        relay.install(&[libc::SIGINT, libc::SIGTERM])?;
        Ok(relay)
    }

    /// The number of signals that this process has received from relays.
    pub fn count() -> u32 {
        COUNT.load(Ordering::SeqCst)
    }

    fn new(stop: Option<&Stop>) -> io::Result<Self> {
        // A handler must not block.
        let (notes, written) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        let waker = stop.map(Stop::waker).transpose()?;
        let order = Ordering::SeqCst;
        let free = NOTES.compare_exchange(-1, written.as_raw_fd(), order, order);
        free.map_err(|_| io::Error::from_raw_os_error(libc::EBUSY))?;
        if let Some((stop, waker)) = stop.zip(waker.as_ref()) {
            WAKER.store(waker.as_raw_fd(), order);
            // Never freed: a handler may be running when the relay ends.
            STOP.store(Arc::into_raw(stop.flag()).cast_mut(), order);
        }
        Ok(Self { notes, _written: written, waker, before: Vec::new() })
    }

    /// Installs the handlers; of ignored signals only these.
    fn install(&mut self, though_ignored: &[libc::c_int]) -> io::Result<()> {
        for signal in ENDING.into_iter().chain(libc::SIGRTMIN()..=libc::SIGRTMAX()) {
            let is_ignored = action(signal, None)?.sa_sigaction == libc::SIG_IGN;
            if !is_ignored || though_ignored.contains(&signal) {
                self.receive(signal)?;
            }
        }
        // A stop request has no child. With SIGCHLD ignored a child could not be waited for.
        if self.waker.is_none() { self.receive(libc::SIGCHLD) } else { Ok(()) }
    }

    fn receive(&mut self, signal: libc::c_int) -> io::Result<()> {
        let before = action(signal, Some(&noting()))?;
        self.before.push((signal, before));
        Ok(())
    }

    /// Waits for the next signal, at most that long; `None` without one.
    ///
    /// # Errors
    /// Those of `poll(2)` and `read(2)`.
    pub fn next(&self, at_most: Option<Duration>) -> io::Result<Option<Received>> {
        self.next_or(self.notes.as_fd(), at_most)
    }

    /// Waits for the next signal, or until `other` is readable, or for `at_most`; `None` without a
    /// signal.
    ///
    /// # Errors
    /// Those of [`Self::next`].
    pub fn next_or(
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
        STOP.store(ptr::null_mut(), Ordering::SeqCst);
        WAKER.store(-1, Ordering::SeqCst);
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
    let order = Ordering::SeqCst;
    // SAFETY: `errno` is this thread's, and the flag is never freed. The bytes outlive the calls,
    // which only read them. A full pipe holds thousands of records that were not read, and a full
    // socket wakes all threads: one more would not help.
    unsafe {
        let errno = *libc::__errno_location();
        if signal != libc::SIGCHLD {
            COUNT.fetch_add(1, order);
            if let Some(stop) = STOP.load(order).as_ref() {
                stop.store(true, order);
            }
            let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
            libc::send(WAKER.load(order), note.as_ptr().cast(), 1, flags);
        }
        libc::write(NOTES.load(order), note.as_ptr().cast(), note.len());
        *libc::__errno_location() = errno;
    }
}

#[cfg(test)]
pub(crate) mod tests {
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
