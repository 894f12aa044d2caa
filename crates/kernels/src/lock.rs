//! Waiting for a lock file that another process holds.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// The interval at which the lock is tried again.
const TRY: Duration = Duration::from_millis(100);

/// Takes the lock of a file, held until that is closed; `waits` is called once if another process
/// holds it. `None` if `stop` is set.
///
/// # Errors
/// The file cannot be created or locked.
pub fn lock_or_stop(
    path: &Path,
    stop: &AtomicBool,
    waits: &mut dyn FnMut(),
) -> io::Result<Option<File>> {
    let mut is_reported = false;
    while !stop.load(Ordering::Relaxed) {
        if let Some(file) = isolate::try_lock(path)? {
            return Ok(Some(file));
        }
        if !std::mem::replace(&mut is_reported, true) {
            waits();
        }
        thread::sleep(TRY);
    }
    Ok(None)
}
