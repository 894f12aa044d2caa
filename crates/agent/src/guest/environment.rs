//! What programs expect of a system: file systems for temporary files, shared memory and
//! terminals, links in `/dev`, the loopback network, and random numbers.
//!
//! All of it is optional: a kernel may lack it, and a program that needs it says so.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;

use recording::ProgramSpec;
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
/// The name of every guest.
const HOST_NAME: &[u8] = b"guest";
/// `RNDADDENTROPY` (linux/random.h).
const ADD_ENTROPY: libc::Ioctl = 0x4008_5203;
/// The length of the seed, in bytes: more than the kernel needs at least (256 bits).
const SEED: libc::c_int = 64;
const SEED_BYTES: usize = 64;
/// `IFF_UP` and `IFF_RUNNING`, as in `ifreq` (linux/if.h).
const UP: libc::c_short = 0x1 | 0x40;

/// Prepares the guest, and changes to the program's working directory.
///
/// # Errors
/// That directory does not exist.
pub(crate) fn prepare(spec: &ProgramSpec) -> Result<(), Error> {
    for (kind, directory) in MOUNTS {
        // What is missing is the program's to report.
        let _ = fs::create_dir_all(directory);
        if fs::read_dir(directory).is_ok_and(|mut files| files.next().is_none()) {
            let _ = mount(kind, directory, kind, MountFlags::empty(), None);
        }
    }
    for (target, link) in LINKS {
        let _ = symlink(target, link);
    }
    let _ = rustix::system::sethostname(HOST_NAME);
    let _ = loopback();
    let _ = seed_random();
    let directory = &spec.directory;
    std::env::set_current_dir(directory)
        .map_err(|why| Error::new(format!("failed to change to {directory}"), why))
}

/// Seeds the kernel's random numbers, the same in every guest. Otherwise the first program that calls
/// `getrandom(2)` waits while the kernel collects entropy (`try_to_generate_entropy` in
/// drivers/char/random.c): a thousand million instructions that no ordinary system executes.
fn seed_random() -> io::Result<()> {
    #[repr(C)]
    struct Entropy {
        bits: libc::c_int,
        bytes: libc::c_int,
        seed: [u8; SEED_BYTES],
    }
    let device = File::open("/dev/urandom")?;
    let entropy = Entropy { bits: 8 * SEED, bytes: SEED, seed: [1; SEED_BYTES] };
    // SAFETY: the kernel reads the structure, `rand_pool_info` in linux/random.h, and as many bytes
    // behind its head as this says.
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
