//! A program that the lab put beside the agent: runs it, and returns its output.
//!
//! Only the lab's tests use one. It has a loopback network, unlike measurements.

use std::io;
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};

use agent::{Output, order};
use rustix::net::{AddressFamily, SocketType, socket};

use crate::error::Error;
use crate::guest::quiescence;

/// Runs it in a quiescent guest.
///
/// # Errors
/// Why it could not be run.
pub(crate) fn run(arguments: &[String]) -> Result<Output, Error> {
    loopback().map_err(|why| Error::new("failed to start the loopback network", why))?;
    quiescence::wait();
    let mut command = Command::new(order::PROGRAM);
    let output = command.args(arguments).stdin(Stdio::null()).output();
    let failed = |why| Error::new(format!("failed to run {}", order::PROGRAM), why);
    let output = output.map_err(failed)?;
    let [text, errors] = [output.stdout, output.stderr];
    let text = String::from_utf8_lossy(&text) + String::from_utf8_lossy(&errors);
    Ok(Output { code: output.status.code(), text: text.into_owned() })
}

/// Activates the loopback interface; the kernel assigns its address.
fn loopback() -> io::Result<()> {
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    // SAFETY: an `ifreq` is numbers and arrays of them, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (slot, letter) in request.ifr_name.iter_mut().zip(b"lo") {
        *slot = libc::c_char::from_ne_bytes([*letter]);
    }
    request.ifr_ifru.ifru_flags = UP;
    // SAFETY: the kernel reads the request, which outlives the call.
    match unsafe {
        libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request)
    } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// `IFF_UP` and `IFF_RUNNING`, as in `ifreq` (linux/if.h).
const UP: libc::c_short = 0x1 | 0x40;
