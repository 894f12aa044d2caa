//! The gate of a program that runs beside another one: its process is ready on its CPU and waits until the
//! gate is opened, so that both programs begin at the same moment; and what follows the end of the first one
//! waits for the end of the other, so that it does not disturb that.
//!
//! Both ends of a socket are its sides: the process that measures the program is on this one, and the process
//! that has started it, and opens the gate, on the other one. If the other side is closed, nothing waits.
//!
//! Cannot see: the time from the gate's opening to the program's exec, some microseconds, which differs from
//! program to program. The start of each program is known from its own clock.

use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::ptr;

/// This side of a gate.
#[derive(Debug)]
pub struct Gate(UnixStream);

impl Gate {
    /// This side says: the program is ready.
    pub const READY: u8 = b'r';
    /// The other side opens the gate, before the program's start and after its end.
    pub const OPEN: u8 = b'o';
    /// This side says: the program has succeeded,
    pub const SUCCEEDED: u8 = b's';
    /// or failed.
    pub const FAILED: u8 = b'f';

    /// This side of a gate, by its end of a socket.
    pub fn new(stream: UnixStream) -> Self {
        Self(stream)
    }

    /// Reports the end of the program, and waits until the gate is opened, or its other side is closed.
    pub fn pass_after(&self, has_succeeded: bool) {
        let end = if has_succeeded { Self::SUCCEEDED } else { Self::FAILED };
        // If the other side is closed, there is nothing to wait for.
        let _ = (&self.0).write_all(&[end]);
        let _ = (&self.0).read(&mut [0]);
    }

    /// The descriptor of its socket, which exec closes.
    pub(crate) fn descriptor(&self) -> libc::c_int {
        self.0.as_raw_fd()
    }
}

/// Reports that a program is ready, and waits until its gate is opened. All signals are blocked. Async-signal-safe.
///
/// # Errors
/// `ECANCELED` if the other side is closed instead.
pub(crate) fn pass(gate: libc::c_int) -> io::Result<()> {
    let mut byte = Gate::READY;
    let flags = libc::MSG_NOSIGNAL;
    // SAFETY: the byte outlives both calls, of which the first reads and the second writes it.
    let received = unsafe {
        libc::send(gate, ptr::from_ref(&byte).cast(), 1, flags);
        libc::recv(gate, ptr::from_mut(&mut byte).cast(), 1, 0)
    };
    match received == 1 && byte == Gate::OPEN {
        true => Ok(()),
        false => Err(io::Error::from_raw_os_error(libc::ECANCELED)),
    }
}
