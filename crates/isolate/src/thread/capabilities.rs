//! Dropping capabilities before untrusted code is executed.
//!
//! A user may have capabilities only through the program's file (`setcap(8)`); a library that the
//! program loads would get them, too. (Root has them in any case.) Capabilities are attributes of
//! threads (`capabilities(7)`), and a library can write to all memory of its process: so every
//! thread must drop them, which is verified.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, geteuid, getuid};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use units::Cause;

use crate::error::{Error, Kind};

/// The timeout for other threads to drop theirs.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The capabilities that a thread retains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retain {
    /// `CAP_SYS_NICE`, if it has that: the thread starts a thread that becomes a real-time task.
    SysNice,
    /// None.
    Nothing,
}

/// Drops the calling thread's capabilities permanently, unless the user is root. Threads that it
/// starts later do not have them either.
///
/// # Errors
/// `Kind::Privilege` if the process has the rights of another user: a set-user-ID program.
pub fn drop_capabilities(retained: Retain) -> Result<(), Error> {
    if getuid().is_root() {
        return Ok(());
    }
    if geteuid() != getuid() {
        let text = "failed to drop privileges: this program is set-user-ID; hint: use \
                    capabilities (setcap) instead";
        return Err(Error::new(Kind::Privilege, text));
    }
    let permitted = match retained {
        Retain::SysNice => {
            let now = capabilities(None).map_err(failed)?;
            now.permitted & CapabilitySet::SYS_NICE
        }
        Retain::Nothing => CapabilitySet::empty(),
    };
    // Ambient capabilities are removed with the inheritable ones.
    let inheritable = CapabilitySet::empty();
    let sets = CapabilitySets { effective: permitted, permitted, inheritable };
    set_capabilities(None, sets).map_err(failed)
}

/// Drops the calling thread's capabilities, and waits until no other thread of this process has
/// any, unless the user is root.
///
/// # Errors
/// As [`drop_capabilities`], and if another thread retains capabilities.
pub fn drop_all_capabilities() -> Result<(), Error> {
    drop_capabilities(Retain::Nothing)?;
    let until = Instant::now() + TIMEOUT;
    while let Some(thread) = privileged_thread().map_err(failed)? {
        if Instant::now() > until {
            let text =
                format!("failed to drop capabilities: thread {thread} still has some");
            return Err(Error::new(Kind::Privilege, text));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// A thread of this process that has capabilities.
fn privileged_thread() -> io::Result<Option<i32>> {
    if getuid().is_root() {
        return Ok(None);
    }
    for entry in fs::read_dir("/proc/self/task")? {
        let name = entry?.file_name();
        let thread = name.to_str().and_then(|name| name.parse().ok());
        let thread = thread.and_then(Pid::from_raw);
        match capabilities(Some(thread.ok_or(Errno::INVAL)?)) {
            Ok(sets) if (sets.permitted | sets.inheritable).is_empty() => {}
            Ok(_) => return Ok(thread.map(Pid::as_raw_pid)),
            // The thread has ended.
            Err(Errno::SRCH) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

fn failed(why: impl Into<Cause>) -> Error {
    Error::new(Kind::System, "failed to drop capabilities").caused_by(why)
}
