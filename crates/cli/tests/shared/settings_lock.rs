//! A lock that excludes the tests of other checkouts, which would restore what they found changed.

use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

/// Only root can create it, and change settings.
const LOCK: &str = "/run/noisefloor-tests.lock";

/// Waits until no other tests change settings of this machine; `None` without that privilege. Runs
/// of the program share their changes through one journal, but each of these tests has a journal
/// of its own.
pub(crate) fn lock_settings() -> Option<File> {
    loop {
        match isolate::try_lock(Path::new(LOCK)) {
            Ok(None) => std::thread::sleep(Duration::from_millis(100)),
            Ok(lock) => return lock,
            Err(error) if error.kind() == ErrorKind::PermissionDenied => return None,
            Err(error) => panic!("{LOCK}: {error}"),
        }
    }
}
