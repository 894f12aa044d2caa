//! The kernel's protections of folders such as /tmp, switched off and on.

use std::fs::{self, File, OpenOptions};
use std::io::Write;

use rustix::fs::{FlockOperation, flock};

/// Only root can create it; it excludes other tests that change these settings.
const LOCK: &str = "/run/noisefloor-tests-protections.lock";
/// Settings (proc_sys_fs(5)), and their values for "on".
const SETTINGS: [(&str, &str); 4] = [
    ("/proc/sys/fs/protected_symlinks", "1"),
    ("/proc/sys/fs/protected_hardlinks", "1"),
    ("/proc/sys/fs/protected_fifos", "2"),
    ("/proc/sys/fs/protected_regular", "2"),
];

/// What the settings were, and are again when this is dropped, also by a panic.
struct Before {
    values: Vec<(&'static str, String)>,
    _lock: File,
}

impl Drop for Before {
    fn drop(&mut self) {
        for (file, value) in &self.values {
            // The others have to be restored in any case.
            let _ = write(file, value);
        }
    }
}

fn write(file: &str, value: &str) -> std::io::Result<()> {
    OpenOptions::new().write(true).open(file)?.write_all(value.as_bytes())
}

/// Runs a test with all protections switched off, and then with all of them; once, as they are, where
/// they cannot be changed.
pub(crate) fn with_protections_off_and_on(test: impl Fn()) {
    let is_off_and_on = (|| -> std::io::Result<()> {
        let lock = File::create(LOCK)?;
        flock(&lock, FlockOperation::LockExclusive)?;
        let read = |&(file, _): &(&'static str, &str)| {
            fs::read_to_string(file).map(|value| (file, value))
        };
        let values = SETTINGS.iter().map(read).collect::<Result<_, _>>()?;
        let _before = Before { values, _lock: lock };
        for is_on in [false, true] {
            for (file, on) in SETTINGS {
                write(file, if is_on { on } else { "0" })?;
            }
            test();
        }
        Ok(())
    })();
    if let Err(why) = is_off_and_on {
        println!("skipped: both values of fs.protected_*: {why}");
        test();
    }
}
