//! Locks of files, and why a kernel has none.
//!
//! Without `CONFIG_FILE_LOCKING`, which can be left out since Linux 2.6.30 (`CONFIG_EXPERT`),
//! `flock(2)` is no system call: it fails with ENOSYS. A file system without locks, as some network
//! file systems are, fails with another error.

use std::fs::File;
use std::io::{Error, ErrorKind};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

const NO_LOCKS: &str = "this kernel has no file locks (flock(2)), by which runs of noisefloor tell \
    whether another one goes on: it was built without CONFIG_FILE_LOCKING; hint: use a kernel \
    that was built with it";

/// Acquires the lock of an open file without waiting; false where another process holds it.
///
/// # Errors
/// `flock(2)` failed: `ErrorKind::Unsupported` where this kernel has no file locks, else the
/// kernel's own error.
pub fn acquire_lock(file: &File) -> Result<bool, Error> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(false),
        Err(errno) => Err(no_lock(errno)),
    }
}

/// Why `flock(2)` failed: in words, and as `ErrorKind::Unsupported` without a number, where this
/// kernel has no file locks; else the kernel's own error.
fn no_lock(errno: Errno) -> Error {
    match errno {
        Errno::NOSYS => Error::new(ErrorKind::Unsupported, NO_LOCKS),
        other => other.into(),
    }
}

/// Whether an error is that of `no_lock` for a kernel without file locks: another folder is no
/// help.
pub fn has_no_locks(error: &Error) -> bool {
    error.kind() == ErrorKind::Unsupported && error.raw_os_error().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the option is named, and that other errors stay what they are.
    #[test]
    fn only_what_the_kernel_lacks() {
        let lacks = no_lock(Errno::NOSYS);
        assert_eq!((lacks.kind(), lacks.raw_os_error()), (ErrorKind::Unsupported, None));
        assert!(has_no_locks(&lacks));
        assert!(lacks.to_string().contains("CONFIG_FILE_LOCKING"), "{lacks}");
        let other = no_lock(Errno::NOLCK);
        assert!(!has_no_locks(&other) && !has_no_locks(&no_lock(Errno::OPNOTSUPP)));
        assert_eq!(other.raw_os_error(), Some(Errno::NOLCK.raw_os_error()));
    }
}
