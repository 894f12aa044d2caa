//! Locks that end with the process that holds them, however it ends (`flock(2)`).

use std::fs::File;
use std::io;
use std::path::Path;

use facts::no_lock;
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;

/// Waits for the lock of that file, which is made if need be.
pub(crate) fn lock(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    loop {
        match flock(&file, FlockOperation::LockExclusive) {
            Err(Errno::INTR) => {}
            done => return done.map(|()| file).map_err(no_lock),
        }
    }
}

/// The lock of that file, which is made if need be; `None` where another one has it.
///
/// # Errors
/// The file cannot be opened, or not be locked: in words where the kernel has no file locks.
pub fn try_lock(path: &Path) -> io::Result<Option<File>> {
    let file = open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(Errno::WOULDBLOCK | Errno::INTR) => Ok(None),
        Err(errno) => Err(no_lock(errno)),
    }
}

/// For reading: a file system that is only to be read may be made so meanwhile.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CREATE | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
    Ok(rustix::fs::open(path, flags, mode)?.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;
    use std::thread;

    use crate::journal::Journal;

    /// Keeps this thread from `flock(2)`, which the kernel then answers with ENOSYS, as one
    /// without `CONFIG_FILE_LOCKING` does: a seccomp filter (`seccomp(2)`), which ends with the
    /// thread. False where the kernel has no such filters.
    fn without_locks() -> bool {
        let statement = |code: u32, value| libc::sock_filter {
            code: u16::try_from(code).unwrap(),
            jt: 0,
            jf: 0,
            k: value,
        };
        let flock = u32::try_from(libc::SYS_flock).unwrap();
        let enosys = libc::SECCOMP_RET_ERRNO | u32::try_from(libc::ENOSYS).unwrap();
        let mut filter = [
            // The number of the system call is the first of what a filter sees.
            statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0),
            libc::sock_filter {
                jf: 1,
                ..statement(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, flock)
            },
            statement(libc::BPF_RET | libc::BPF_K, enosys),
            statement(libc::BPF_RET | libc::BPF_K, libc::SECCOMP_RET_ALLOW),
        ];
        let program = libc::sock_fprog { len: 4, filter: filter.as_mut_ptr() };
        // SAFETY: takes numbers only.
        let is_bound = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) } == 0;
        let (set, mode) = (libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER);
        // SAFETY: the kernel copies the program, which outlives the call.
        is_bound && unsafe { libc::prctl(set, mode, &raw const program) } == 0
    }

    /// Check that a kernel without file locks is named as the reason, by each lock and by the
    /// journal, and that another folder is not proposed.
    #[test]
    fn kernels_without_locks() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lock");
        thread::scope(|scope| {
            let refused = scope.spawn(|| {
                if !without_locks() {
                    println!(
                        "skipped: this kernel has no filters of system calls (seccomp)"
                    );
                    return;
                }
                for error in [lock(&file).unwrap_err(), try_lock(&file).unwrap_err()] {
                    assert_eq!(error.kind(), ErrorKind::Unsupported);
                    assert!(error.to_string().contains("CONFIG_FILE_LOCKING"), "{error}");
                }
                let why = Journal::open(folder.path()).unwrap_err().to_string();
                assert!(why.contains("CONFIG_FILE_LOCKING"), "{why}");
                assert!(!why.contains("names another folder"), "{why}");
            });
            refused.join().unwrap();
        });
        // The filter was the thread's alone.
        assert!(try_lock(&file).unwrap().is_some());
    }
}
