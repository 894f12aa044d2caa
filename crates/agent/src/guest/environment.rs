//! What programs expect of a system: file systems for temporary files, shared memory and
//! terminals, links in `/dev`, the loopback network, and random numbers.
//!
//! All of it is optional: a kernel may lack it, and a program that needs it says so.

use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;

use rustix::mount::{MountFlags, mount};
use rustix::net::{AddressFamily, SocketType, socket};

use crate::error::Error;

/// File systems: kind, directory.
const MOUNTS: [(&str, &str); 4] =
    [("tmpfs", "/tmp"), ("tmpfs", "/run"), ("tmpfs", "/dev/shm"), ("devpts", "/dev/pts")];
/// Links in `/dev`, which `udev` makes on other systems.
const LINKS: [(&str, &str); 4] = [
    ("/proc/self/fd", "/dev/fd"),
    ("/proc/self/fd/0", "/dev/stdin"),
    ("/proc/self/fd/1", "/dev/stdout"),
    ("/proc/self/fd/2", "/dev/stderr"),
];
/// `RNDADDENTROPY` (random(4)): `_IOW('R', 3, int[2])`.
const ADD_ENTROPY: libc::Ioctl = 0x4008_5203;
/// The name of every guest.
const HOST_NAME: &[u8] = b"guest";
/// `IFF_UP` and `IFF_RUNNING`, as in `ifreq` (linux/if.h).
const UP: libc::c_short = 0x1 | 0x40;

/// Prepares the guest, and changes to the working directory of its programs.
///
/// # Errors
/// That directory does not exist.
pub(crate) fn prepare(directory: &str) -> Result<(), Error> {
    for (kind, place) in MOUNTS {
        // What is missing is the program's to report.
        let _ = fs::create_dir_all(place);
        if fs::read_dir(place).is_ok_and(|mut files| files.next().is_none()) {
            let _ = mount(kind, place, kind, MountFlags::empty(), None);
        }
    }
    for (target, link) in LINKS {
        let _ = symlink(target, link);
    }
    let _ = rustix::system::sethostname(HOST_NAME);
    let _ = loopback();
    let _ = seed_random();
    std::env::set_current_dir(directory)
        .map_err(|why| Error::new(format!("failed to change to {directory}"), why))
}

/// `struct rand_pool_info` with its buffer (linux/random.h).
#[repr(C)]
struct Entropy {
    bits: libc::c_int,
    length: libc::c_int,
    bytes: [u8; 64],
}

/// Initialises the kernel's random numbers, always in the same way. Without, the first program
/// that reads them waits for a second, in which the kernel measures the jitter of its clock.
fn seed_random() -> io::Result<()> {
    let device = fs::OpenOptions::new().write(true).open("/dev/random")?;
    let entropy = Entropy { bits: 512, length: 64, bytes: [0x5a; 64] };
    // SAFETY: the kernel reads the structure, which outlives the call.
    match unsafe { libc::ioctl(device.as_raw_fd(), ADD_ENTROPY, &raw const entropy) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Activates the loopback interface; the kernel assigns its address.
pub(crate) fn loopback() -> io::Result<()> {
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
