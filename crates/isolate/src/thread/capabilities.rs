//! Capabilities that are given up before code runs that is not this tool's.
//!
//! A user may have capabilities through this program's file only (`setcap(8)`); a library that
//! this program loads would have them, too. Root has them anyway. They are each thread's own
//! (`capabilities(7)`), and a library may write to all memory of its process: every thread has to
//! give them up, and it is looked whether each did.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, geteuid, getuid};
use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};
use units::Cause;

use crate::error::{Error, Kind};

/// Threads that have just been started take so long at most to give theirs up.
const PATIENCE: Duration = Duration::from_secs(10);

/// Which capabilities a thread keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// `CAP_SYS_NICE`, if it has that: it starts a thread that becomes a real-time task.
    SysNice,
    /// None.
    Nothing,
}

/// Gives up the calling thread's capabilities for good, unless the user is root. Threads that it
/// starts later do not have them either.
///
/// # Errors
/// `Kind::Privilege` where the process has another user's rights: a set-user-ID program.
pub fn drop_capabilities(kept: Kept) -> Result<(), Error> {
    if getuid().is_root() {
        return Ok(());
    }
    if geteuid() != getuid() {
        let text = "failed to drop privileges: this program is set-user-ID; hint: use \
                    capabilities (setcap) instead";
        return Err(Error::new(Kind::Privilege, text));
    }
    let permitted = match kept {
        Kept::SysNice => {
            let now = capabilities(None).map_err(failed)?;
            now.permitted & CapabilitySet::SYS_NICE
        }
        Kept::Nothing => CapabilitySet::empty(),
    };
    // Ambient capabilities go with those that may be inherited.
    let inheritable = CapabilitySet::empty();
    let sets = CapabilitySets { effective: permitted, permitted, inheritable };
    set_capabilities(None, sets).map_err(failed)
}

/// Gives up the calling thread's capabilities, and waits until no other thread of this process
/// has any, unless the user is root.
///
/// # Errors
/// As [`drop_capabilities`], and where another thread keeps some.
pub fn drop_all_capabilities() -> Result<(), Error> {
    drop_capabilities(Kept::Nothing)?;
    let until = Instant::now() + PATIENCE;
    while let Some(thread) = privileged_thread().map_err(failed)? {
        if Instant::now() > until {
            let text = format!("failed to drop capabilities: thread {thread} keeps them");
            return Err(Error::new(Kind::Privilege, text));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// A thread of this process that has capabilities which its user has not.
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
            // It has ended meanwhile.
            Err(Errno::SRCH) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(None)
}

fn failed(why: impl Into<Cause>) -> Error {
    Error::new(Kind::System, "failed to drop capabilities").caused_by(why)
}
