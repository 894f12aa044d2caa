//! Removes what killed runs left behind: their trace instances in tracefs
//! ([`crate::tracefs::instance`]). The kernel ended them with their process; they only use memory,
//! and some have a tracer ([`crate::tracefs::osnoise`]), which is removed with them.
//!
//! The lock of such a trace is free. Cannot see those of another kernel's tracefs, and none without
//! the privilege to read it.

use std::fs;
use std::path::{Path, PathBuf};

use crate::tracefs::instance::{self, PREFIX};

/// Removes all leftovers in tracefs; returns their folders.
pub(crate) fn remove() -> Vec<PathBuf> {
    instance::tracefs().map_or_else(|_| Vec::new(), |tracefs| remove_in(&tracefs))
}

fn remove_in(tracefs: &Path) -> Vec<PathBuf> {
    let instances = fs::read_dir(tracefs.join("instances")).into_iter().flatten();
    let folders = instances
        .flatten()
        .filter(|entry| entry.file_name().to_str().is_some_and(is_ours));
    let mut left: Vec<PathBuf> = folders.map(|entry| entry.path()).collect();
    left.retain(|folder| {
        let lock = instance::lock(folder);
        matches!(lock, Ok(Some(_))) && fs::remove_dir(folder).is_ok()
    });
    left.sort();
    left
}

/// `noisefloor-PID`, or `noisefloor-PID-NUMBER`.
pub(crate) fn is_ours(name: &str) -> bool {
    let numbers = name.strip_prefix(PREFIX).map(|numbers| numbers.splitn(2, '-'));
    let is_number = |text: &str| text.parse::<u32>().is_ok();
    numbers.is_some_and(|mut numbers| numbers.all(is_number))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check which names are those of noisefloor.
    #[test]
    fn names() {
        assert!(is_ours("noisefloor-1") && is_ours("noisefloor-4194304-2"));
        for other in
            ["noisefloor-", "noisefloor", "noisefloor-1-", "noisefloor-a", "rtla"]
        {
            assert!(!is_ours(other), "{other}");
        }
    }

    /// Check that locked folders remain, and free ones are removed, with folders that are no traces
    /// but can be locked as well.
    #[test]
    fn holds_what_is_held() {
        let dir = tempfile::tempdir().unwrap();
        let instances = dir.path().join("instances");
        for name in ["noisefloor-1", "noisefloor-2", "others"] {
            fs::create_dir_all(instances.join(name)).unwrap();
        }
        let held = instance::lock(&instances.join("noisefloor-1")).unwrap().unwrap();
        assert_eq!(remove_in(dir.path()), [instances.join("noisefloor-2")]);
        drop(held);
        assert_eq!(remove_in(dir.path()), [instances.join("noisefloor-1")]);
        assert!(instances.join("others").is_dir());
    }
}
