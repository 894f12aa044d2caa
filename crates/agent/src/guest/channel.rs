//! The channel for the guest's greeting and its answer. On x86-64 it is the first of these that the kernel
//! permits:
//!
//! 1. `ioperm(2)` and I/O port 0xe9, QEMU's debug console (`port`).
//! 2. `/dev/port`, for a kernel without `CONFIG_X86_IOPL_IOPERM`: the same port, a byte per call.
//! 3. The second serial port, for a kernel that is locked down, which denies programs both of these
//!    (`kernel_lockdown(7)`, `LOCKDOWN_IOPORT`). QEMU has one only if the lab knows that it is
//!    needed (`exit` in `lab`); a write to a missing one fails.
//!
//! On arm64 there are no I/O ports: it is the second serial port, always.
//!
//! Nothing is mounted yet when the greeting is sent, so devices are created when needed.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
#[cfg(not(target_arch = "aarch64"))]
use std::os::unix::fs::FileExt;
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use rustix::termios::{ControlModes, OptionalActions, tcdrain, tcgetattr, tcsetattr};
#[cfg(not(target_arch = "aarch64"))]
use units::chain;

use crate::error::Error;
#[cfg(not(target_arch = "aarch64"))]
use crate::guest::port;

/// `/dev/port` and `/dev/ttyS1` (Documentation/admin-guide/devices.txt).
#[cfg(not(target_arch = "aarch64"))]
const PORT: (&str, u32, u32) = ("/port", 1, 4);
#[cfg(not(target_arch = "aarch64"))]
const SERIAL: (&str, u32, u32) = ("/ttyS1", 4, 65);
/// `/dev/ttyAMA1` (the same list): a PL011 of Arm's.
#[cfg(target_arch = "aarch64")]
const SERIAL: (&str, u32, u32) = ("/ttyAMA1", 204, 65);

/// Sends bytes.
///
/// # Errors
/// Why each of the channels failed.
#[cfg(not(target_arch = "aarch64"))]
pub(crate) fn send(bytes: &[u8]) -> Result<(), Error> {
    let Err(port) = port::send(bytes) else { return Ok(()) };
    let Err(device) = through_device(bytes) else { return Ok(()) };
    let Err(serial) = through_serial(bytes) else { return Ok(()) };
    let why = format!("{}; /dev/port: {device}; /dev/ttyS1: {serial}", chain(&port));
    Err(Error::new("no channel is available", why))
}

/// Sends bytes.
///
/// # Errors
/// Why the serial port failed.
#[cfg(target_arch = "aarch64")]
pub(crate) fn send(bytes: &[u8]) -> Result<(), Error> {
    through_serial(bytes).map_err(|why| {
        Error::new("no channel is available", format!("/dev/ttyAMA1: {why}"))
    })
}

/// The device adds the number of bytes already written to the port's number: hence one byte at a
/// time.
#[cfg(not(target_arch = "aarch64"))]
fn through_device(bytes: &[u8]) -> io::Result<()> {
    let device = open(PORT)?;
    bytes.chunks(1).try_for_each(|byte| device.write_all_at(byte, port::PORT.into()))
}

/// Waits until all bytes are sent: nothing remains in a buffer when the guest powers off.
fn through_serial(bytes: &[u8]) -> io::Result<()> {
    let mut serial = open(SERIAL)?;
    make_raw(&serial)?;
    serial.write_all(bytes)?;
    Ok(tcdrain(&serial)?)
}

/// Opens a device, which is created if necessary.
fn open((path, major, minor): (&str, u32, u32)) -> io::Result<File> {
    let (kind, mode) = (FileType::CharacterDevice, Mode::RUSR | Mode::WUSR);
    match mknodat(CWD, path, kind, mode, makedev(major, minor)) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    OpenOptions::new().write(true).custom_flags(libc::O_NOCTTY).open(path)
}

/// Passes every byte unchanged, and ignores modem lines.
fn make_raw(serial: &File) -> io::Result<()> {
    let mut line = tcgetattr(serial)?;
    line.make_raw();
    line.control_modes |= ControlModes::CLOCAL;
    Ok(tcsetattr(serial, OptionalActions::Now, &line)?)
}
