//! The file systems of a guest: the kernel's information and settings.
//!
//! Only `proc` and `sysfs` are required. Any of the others may be missing in a kernel; what cannot
//! be read there becomes an unknown fact, with the reason.

use rustix::io::Errno;
use rustix::mount::{MountFlags, mount as mount_on};
use units::{Cause, Helped};

use crate::error::Error;

struct Mount {
    kind: &'static str,
    directory: &'static str,
    required: bool,
}

const fn required(kind: &'static str, directory: &'static str) -> Mount {
    Mount { kind, directory, required: true }
}

const fn optional(kind: &'static str, directory: &'static str) -> Mount {
    Mount { kind, directory, required: false }
}

const MOUNTS: &[Mount] = &[
    required("proc", "/proc"),
    required("sysfs", "/sys"),
    optional("devtmpfs", "/dev"),
    optional("debugfs", "/sys/kernel/debug"),
    optional("tracefs", "/sys/kernel/tracing"),
    optional("securityfs", "/sys/kernel/security"),
];

/// Mounts them all.
///
/// # Errors
/// Which of the required ones the kernel refuses, and why.
pub(crate) fn mount() -> Result<(), Error> {
    for Mount { kind, directory, required } in MOUNTS {
        let mounted = mount_on(*kind, *directory, *kind, MountFlags::empty(), None);
        if let (Err(error), true) = (mounted, *required) {
            return Err(refused(kind, directory, error));
        }
    }
    Ok(())
}

/// The error for a missing file system that is required. `ENODEV`: the kernel does not have it
/// (`mount(2)`).
fn refused(kind: &str, directory: &str, error: Errno) -> Error {
    let option = if kind == "proc" { "PROC_FS".to_owned() } else { kind.to_uppercase() };
    let why: Cause = match error {
        Errno::NODEV => {
            let help = format!("the kernel was built without CONFIG_{option}");
            Helped::new(error, help).into()
        }
        _ => error.into(),
    };
    Error::new(format!("failed to mount {kind} on {directory}"), why)
}
