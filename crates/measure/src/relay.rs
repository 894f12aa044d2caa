//! Signals that come while a program runs for which this process stands: noted by a handler,
//! and read one by one.
//!
//! Handlers are used, and no mask: they end with an exec, so that the program begins with the
//! signals as this process had found them, and whichever thread gets one can note it. Those
//! that were ignored stay so (`nohup`).
//!
//! Who sent a signal is told by `si_code` (`sigaction(2)`): the kernel sends what is typed at
//! a terminal to the whole foreground group, and so to the program itself.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::pipe::{PipeFlags, pipe_with};

/// Those that somebody may mean the program to have.
const PASSED_ON: [libc::c_int; 6] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGUSR1,
    libc::SIGUSR2,
];

/// Where the handler writes to; there is one relay at a time.
static NOTES: AtomicI32 = AtomicI32::new(-1);

/// A signal that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Came {
    pub(crate) signal: libc::c_int,
    /// Whether a process sent it, and not the kernel.
    pub(crate) was_sent: bool,
}

/// Listens to signals for as long as it is kept, so that they end nothing here. What came
/// before a program is started is passed on to it then.
#[derive(Debug)]
pub struct Relay {
    notes: OwnedFd,
    _written: OwnedFd,
    before: Vec<(libc::c_int, libc::sigaction)>,
}

impl Relay {
    /// Begins to listen. There is one in a process at a time.
    ///
    /// # Errors
    /// There is one already, or no file descriptor is left.
    pub fn begin() -> io::Result<Self> {
        let (notes, written) = pipe_with(PipeFlags::CLOEXEC)?;
        // A handler must not wait for room.
        rustix::io::ioctl_fionbio(&written, true)?;
        let order = Ordering::SeqCst;
        let free = NOTES.compare_exchange(-1, written.as_raw_fd(), order, order);
        free.map_err(|_| io::Error::from_raw_os_error(libc::EBUSY))?;
        let mut relay = Self { notes, _written: written, before: Vec::new() };
        for signal in PASSED_ON.into_iter().chain([libc::SIGCHLD]) {
            let before = action(signal, None)?;
            // A child of one who ignores SIGCHLD could not be waited for.
            if before.sa_sigaction != libc::SIG_IGN || signal == libc::SIGCHLD {
                action(signal, Some(&noting()))?;
                relay.before.push((signal, before));
            }
        }
        Ok(relay)
    }

    /// Waits for the next signal, or until something else can be read, or for so long; `None`
    /// without a signal.
    pub(crate) fn next_or(
        &self,
        other: BorrowedFd<'_>,
        at_most: Option<Duration>,
    ) -> io::Result<Option<Came>> {
        let timeout = at_most.map(Timespec::try_from).transpose();
        let timeout = timeout.map_err(|_| io::ErrorKind::InvalidInput)?;
        let notes = self.notes.as_fd();
        let mut wanted =
            [notes, other].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        match rustix::event::poll(&mut wanted, timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let came = wanted[0].revents().contains(PollFlags::IN);
        came.then(|| self.next()).transpose()
    }

    /// Waits for the next signal.
    fn next(&self) -> io::Result<Came> {
        let mut note = [0; 2];
        loop {
            match rustix::io::read(&self.notes, &mut note) {
                // Notes are written, and so read, as a whole.
                Ok(2) => break,
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Came { signal: note[0].into(), was_sent: note[1] == 0 })
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        for (signal, before) in &self.before {
            // What could be set before can be set again.
            let _ = action(*signal, Some(before));
        }
        NOTES.store(-1, Ordering::SeqCst);
    }
}

/// What is done about a signal; something else from now on, if given.
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
    // SAFETY: with SA_SIGINFO the kernel passes a valid one.
    let code = unsafe { (*info).si_code };
    let note = [u8::try_from(signal).unwrap_or(0), u8::from(code > 0)];
    // SAFETY: `errno` is this thread's; the bytes outlive the call, which only reads them. A
    // full pipe holds thousands of notes that nobody has read: one more would not help.
    unsafe {
        let errno = *libc::__errno_location();
        libc::write(NOTES.load(Ordering::SeqCst), note.as_ptr().cast(), note.len());
        *libc::__errno_location() = errno;
    }
}
