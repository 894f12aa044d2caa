//! The runs that need settings changed: each has a file of its own in `holders/` of the state
//! directory, and holds its lock. If a run's lock can be acquired, the run has ended, even if its
//! PID has been reused.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

use facts::acquire_lock;

use crate::settings::state::State;

const HOLDERS: &str = "holders";

/// Runs of one process are told apart by this.
static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A run of this process.
#[derive(Debug)]
pub(crate) struct Holder {
    pub(crate) name: String,
    /// The process whose run it is.
    pub(crate) process: u32,
    holders: State,
    _lock: File,
}

impl Holder {
    /// A new one. The journal has to be held.
    pub(crate) fn new(state: &State) -> io::Result<Self> {
        let holders = state.subdirectory(HOLDERS)?;
        loop {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let process = std::process::id();
            let name = format!("{process}-{number}");
            let file = holders.create_file(&name)?;
            // A container's process may have the same number.
            if acquire_lock(&file)? {
                return Ok(Self { name, process, holders, _lock: file });
            }
        }
    }

    /// Whether this is the process whose run it is, and not one that it forked: to that one
    /// nothing belongs, though it has a copy of everything.
    pub(crate) fn is_own(&self) -> bool {
        self.process == std::process::id()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        if self.is_own() {
            // What stays is removed by the next one.
            let _ = self.holders.remove(&self.name);
        }
    }
}

/// The process whose run has that name.
pub(crate) fn process(name: &str) -> Option<u32> {
    name.split('-').next()?.parse().ok()
}

/// Whether a run still goes on. Of one that has ended nothing stays.
pub(crate) fn lives(state: &State, name: &str) -> bool {
    // A name comes from a file; it must not lead anywhere else.
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

    /// Check that runs live until they end, and that two of one process are two.
    #[test]
    fn live_until_they_end() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::create(dir.path()).unwrap();
        let [one, two] = [(); 2].map(|()| Holder::new(&state).unwrap());
        let lives = |name: &str| lives(&state, name);
        assert!(lives(&one.name) && lives(&two.name));
        let gone = one.name.clone();
        drop(one);
        assert!(!lives(&gone) && lives(&two.name));
        assert!(!lives("77-0") && !lives("../lock"));
    }

    /// Check that a run whose process was killed does not live, though its file is there.
    #[test]
    fn killed_ones_do_not_live() {
        let dir = tempfile::tempdir().unwrap();
        let state = State::create(dir.path()).unwrap();
        let Holder { name, _lock, .. } = &Holder::new(&state).unwrap();
        let file = dir.path().join(HOLDERS).join(name);
        rustix::fs::flock(_lock, rustix::fs::FlockOperation::Unlock).unwrap();
        assert!(file.exists() && !lives(&state, name) && !file.exists());
    }
}
