//! Locks of the runs that need changed settings: each has a file in `holders/` of the state
//! directory, and holds its lock. If a run's lock can be acquired, the run has ended, even if its
//! PID has been reused.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use facts::acquire_lock;

use crate::settings::state::State;

const HOLDERS: &str = "holders";

/// Distinguishes the runs of one process.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// The lock of a run of this process.
#[derive(Debug)]
pub(crate) struct RunLock {
    pub(crate) name: String,
    /// The PID of the process.
    pub(crate) process: u32,
    holders: State,
    _lock: File,
}

impl RunLock {
    /// Creates and acquires a new lock. The journal must be locked.
    pub(crate) fn new(state: &State) -> io::Result<Self> {
        let holders = state.subdirectory(HOLDERS)?;
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let process = std::process::id();
            let name = format!("{process}-{number}");
            let file = holders.create_file(&name)?;
            // A process in another PID namespace may have the same PID.
            if acquire_lock(&file)? {
                return Ok(Self { name, process, holders, _lock: file });
            }
        }
    }

    /// Whether this process acquired the lock. A forked process has a copy of it, but must neither
    /// restore settings nor remove the file.
    pub(crate) fn is_own(&self) -> bool {
        self.process == std::process::id()
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        if self.is_own() {
            // If this fails, the next run removes the file.
            let _ = self.holders.remove(&self.name);
        }
    }
}

/// The PID in the name of a run.
pub(crate) fn process(name: &str) -> Option<u32> {
    name.split('-').next()?.parse().ok()
}

/// Whether a run is still active. Removes the file of a run that has ended.
pub(crate) fn is_active(state: &State, name: &str) -> bool {
    // The name is read from the journal, and must not refer to another directory.
    let Some(holders) = state.subdirectory(HOLDERS).ok().filter(|_| !name.contains('/'))
    else {
        return false;
    };
    let is_free = holders.open_file(name).and_then(|file| acquire_lock(&file));
    if let Ok(true) = is_free {
        let _ = holders.remove(name);
    }
    matches!(is_free, Ok(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that runs are active until they end, and that a process can have two runs.
    #[test]
    fn active_until_they_end() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::create(dir.path()).unwrap();
        let [one, two] = [(); 2].map(|()| RunLock::new(&state).unwrap());
        let is_active = |name: &str| is_active(&state, name);
        assert!(is_active(&one.name) && is_active(&two.name));
        let ended = one.name.clone();
        drop(one);
        assert!(!is_active(&ended) && is_active(&two.name));
        assert!(!is_active("77-0") && !is_active("../lock"));
    }

    /// Check that a run of a killed process is not active although its file exists.
    #[test]
    fn killed_runs_are_not_active() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::create(dir.path()).unwrap();
        let RunLock { name, _lock, .. } = &RunLock::new(&state).unwrap();
        let file = dir.path().join(HOLDERS).join(name);
        rustix::fs::flock(_lock, rustix::fs::FlockOperation::Unlock).unwrap();
        assert!(file.exists() && !is_active(&state, name) && !file.exists());
    }
}
