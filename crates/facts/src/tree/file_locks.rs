//! File locks, and kernels without them.
//!
//! Without `CONFIG_FILE_LOCKING`, which is optional since Linux 2.6.30 (`CONFIG_EXPERT`),
//! `flock(2)` fails with ENOSYS. A file system without locks, such as some network file systems,
//! causes another error.

use std::fs::File;
use std::io::{Error, ErrorKind};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

const NO_LOCKS: &str = "this kernel has no file locks (flock(2)), which noisefloor needs to detect \
    other runs: it is built without CONFIG_FILE_LOCKING; hint: use a kernel that is built with it";

/// Acquires the lock of an open file without waiting; false if another process holds it.
///
/// # Errors
/// `flock(2)` failed: `ErrorKind::Unsupported` if this kernel has no file locks, otherwise the
/// kernel's error.
pub fn acquire_lock(file: &File) -> Result<bool, Error> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(false),
        Err(errno) => Err(no_lock(errno)),
    }
}

/// The error of `flock(2)`: `ErrorKind::Unsupported` with a text and without errno if this kernel
/// has no file locks, otherwise the kernel's error.
fn no_lock(errno: Errno) -> Error {
    match errno {
        Errno::NOSYS => Error::new(ErrorKind::Unsupported, NO_LOCKS),
        other => other.into(),
    }
}

/// Whether an error is that of [`acquire_lock`] for a kernel without file locks, for which another
/// directory is no remedy.
pub fn has_no_locks(error: &Error) -> bool {
    error.kind() == ErrorKind::Unsupported && error.raw_os_error().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the option is named, and that other errors are unchanged.
    #[test]
    fn kernels_without_locks() {
        let lacks = no_lock(Errno::NOSYS);
        assert_eq!((lacks.kind(), lacks.raw_os_error()), (ErrorKind::Unsupported, None));
        assert!(has_no_locks(&lacks));
        assert!(lacks.to_string().contains("CONFIG_FILE_LOCKING"), "{lacks}");
        let other = no_lock(Errno::NOLCK);
        assert!(!has_no_locks(&other) && !has_no_locks(&no_lock(Errno::OPNOTSUPP)));
        assert_eq!(other.raw_os_error(), Some(Errno::NOLCK.raw_os_error()));
    }
}
