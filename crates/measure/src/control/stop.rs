//! The stop request: made by a signal handler, seen by the loops and by sleeping threads.
//!
//! A thread could test a flag just before it is set, and then sleep; a byte in a socket wakes it
//! up.

use std::io::{self, Write as _};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use units::Nanos;

use crate::time::counter;
use crate::time::timespec::parts;

/// The stop request, shared by all threads of a measurement.
#[derive(Debug, Clone)]
pub struct Stop {
    flag: Arc<AtomicBool>,
    woken: Arc<UnixStream>,
    waker: Arc<UnixStream>,
}

impl Stop {
    /// A request that has not been made.
    ///
    /// # Errors
    /// Without a socket.
    pub fn new() -> io::Result<Self> {
        let (woken, waker) = UnixStream::pair().map_err(named)?;
        Ok(Self { flag: Arc::default(), woken: Arc::new(woken), waker: Arc::new(waker) })
    }

    /// The flag, for a signal handler to set.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }

    /// The socket, for a signal handler to write a byte to.
    ///
    /// # Errors
    /// Without a free file descriptor.
    pub fn waker(&self) -> io::Result<UnixStream> {
        self.waker.try_clone()
    }

    /// Requests stopping, as a signal does.
    pub fn request(&self) {
        self.flag.store(true, Ordering::Relaxed);
        // It fails only if it is full, and then there is a byte to read.
        let _ = (&*self.waker).write(&[0]);
    }

    /// Whether stopping was requested.
    pub fn is_requested(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }

    /// A socket that can be read once stopping is requested, for a thread that also waits for others.
    pub fn requested(&self) -> BorrowedFd<'_> {
        self.woken.as_fd()
    }

    pub(crate) fn as_atomic(&self) -> &AtomicBool {
        &self.flag
    }

    /// Sleeps until `CLOCK_MONOTONIC_RAW` shows `until` or stopping is requested.
    pub(crate) fn sleep_until(&self, until: Nanos) {
        while !self.is_requested() && !left(until).is_zero() {
            sleep(until, &mut [PollFd::new(&*self.woken, PollFlags::IN)]);
        }
    }

    /// The same, but at most until the other end of `over` is closed.
    pub(crate) fn sleep_until_or(&self, until: Nanos, over: &UnixStream) {
        let mut is_over = false;
        while !is_over && !self.is_requested() && !left(until).is_zero() {
            let [woken, over] =
                [&*self.woken, over].map(|end| PollFd::new(end, PollFlags::IN));
            let mut ends = [woken, over];
            sleep(until, &mut ends);
            is_over = !ends[1].revents().is_empty();
        }
    }
}

/// The time until `CLOCK_MONOTONIC_RAW` shows `until`.
fn left(until: Nanos) -> Nanos {
    until.saturating_sub(counter::kernel(libc::CLOCK_MONOTONIC_RAW))
}

/// Sleeps until then, or until one of the ends is readable; may return earlier.
fn sleep(until: Nanos, ends: &mut [PollFd<'_>]) {
    let (tv_sec, tv_nsec) = parts(left(until));
    let timeout = Timespec { tv_sec, tv_nsec };
    // A signal is as good as a wake-up: the caller checks again.
    let _ = poll(ends, Some(&timeout));
}

/// Names the kernel option that is missing: without `CONFIG_NET` there is no socketpair(2), without
/// `CONFIG_UNIX` there are no local sockets.
fn named(error: io::Error) -> io::Error {
    match error.raw_os_error() {
        Some(libc::ENOSYS | libc::EAFNOSUPPORT) => {
            let why = "the kernel was built without CONFIG_UNIX (local sockets, by which a \
                       signal ends a measurement)";
            io::Error::new(io::ErrorKind::Unsupported, why)
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// Check that a sleeping thread is woken by the byte, long before its time.
    #[test]
    fn sleepers_are_woken() {
        let stop = Stop::new().unwrap();
        let (flag, mut waker) = (stop.flag(), stop.waker().unwrap());
        let signal = std::thread::spawn(move || {
            flag.store(true, Ordering::Relaxed);
            waker.write_all(&[0]).unwrap();
        });
        stop.sleep_until(Nanos::MAX);
        assert!(stop.is_requested());
        signal.join().unwrap();
    }

    /// Check that the end of the other socket wakes a thread too.
    #[test]
    fn ends_wake() {
        let (over, is_over) = UnixStream::pair().unwrap();
        let ends = std::thread::spawn(move || drop(over));
        let stop = Stop::new().unwrap();
        stop.sleep_until_or(Nanos::MAX, &is_over);
        assert!(!stop.is_requested());
        ends.join().unwrap();
    }

    /// Check that an undisturbed thread sleeps for its time.
    #[test]
    fn sleepers_sleep() {
        let now = || counter::kernel(libc::CLOCK_MONOTONIC_RAW);
        let until = now() + Nanos::from_millis(20);
        Stop::new().unwrap().sleep_until(until);
        assert!(now() >= until);
    }
}
