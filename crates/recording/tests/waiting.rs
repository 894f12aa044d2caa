//! Waits for the other end of a FIFO. They are the only test here, as the way to wait is the process's.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use recording::{FileWait, Kind, Recording, on_file_wait, write_file};
use rustix::fs::{CWD, FileType, Mode, mknodat};

static STOP: AtomicBool = AtomicBool::new(false);
static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Stops as soon as the wait is reported.
fn report(text: &str) {
    SAID.lock().unwrap().push(text.to_owned());
    STOP.store(true, Ordering::Relaxed);
}

/// Runs it with a FIFO that has no other end, and returns what was reported, and the error.
fn waits(run: fn(&Path) -> recording::Error) -> (String, String) {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    STOP.store(false, Ordering::Relaxed);
    let error = thread::spawn(move || run(&fifo)).join().unwrap();
    assert_eq!(error.is_interruption(), error.kind() == Kind::Write, "{error:?}");
    (SAID.lock().unwrap().pop().unwrap(), units::chain(&error))
}

/// Check that a wait for a reader, and for a writer, is reported, and ends when stopping is requested.
#[test]
fn waits_end() {
    on_file_wait(FileWait {
        report,
        signals: || u32::from(STOP.load(Ordering::Relaxed)),
    });
    let (said, error) = waits(|fifo| write_file(fifo, "text").unwrap_err());
    assert!(said.starts_with("waiting for a reader of the FIFO /"), "{said}");
    assert!(error.contains("interrupted while waiting for a reader"), "{error}");
    let (said, error) = waits(|fifo| Recording::load(fifo).unwrap_err());
    assert!(said.starts_with("waiting for data from the FIFO /"), "{said}");
    assert!(error.contains("interrupted while waiting for data"), "{error}");
}
