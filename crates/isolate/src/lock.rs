//! Locks that end with the process that holds them, however it ends (`flock(2)`).

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags, flock};

/// Waits for the lock of that file, which is made if need be.
pub(crate) fn lock(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    loop {
        match flock(&file, FlockOperation::LockExclusive) {
            Err(rustix::io::Errno::INTR) => {}
            done => return done.map(|()| file).map_err(Into::into),
        }
    }
}

/// The lock of that file; `None` where somebody has it.
pub(crate) fn try_lock(path: &Path) -> io::Result<Option<File>> {
    let file = open(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// For reading: a file system that is only to be read may be made so meanwhile.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CREATE | OFlags::CLOEXEC;
    let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
    Ok(rustix::fs::open(path, flags, mode)?.into())
}
