//! Inputs of recordings: FIFOs, devices, and files that are too large.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;

use recording::{Kind, Recording, SIZE_MAX};
use rustix::fs::{CWD, FileType, Mode, mknodat};

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/noise-1.json")
}

/// Check that a FIFO and a stream give the same recording as the file.
#[test]
fn streams() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let writer = thread::spawn({
        let fifo = fifo.clone();
        move || {
            let mut fifo = OpenOptions::new().write(true).open(fifo).unwrap();
            fifo.write_all(&fs::read(golden()).unwrap()).unwrap();
        }
    });
    let whole = Recording::load(&golden()).unwrap();
    assert_eq!(Recording::load(&fifo).unwrap(), whole);
    writer.join().unwrap();
    let stream = File::open(golden()).unwrap();
    assert_eq!(Recording::read(stream, Path::new("-")).unwrap(), whole);
}

/// Check that a FIFO is a truncated file if its writer exits in the middle.
#[test]
fn early_end() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    mknodat(CWD, &fifo, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let writer = thread::spawn({
        let fifo = fifo.clone();
        move || {
            let mut fifo = OpenOptions::new().write(true).open(fifo).unwrap();
            fifo.write_all(&fs::read(golden()).unwrap()[..1000]).unwrap();
        }
    });
    assert_eq!(Recording::load(&fifo).unwrap_err().kind(), Kind::Truncated);
    writer.join().unwrap();
}

/// Check that devices are rejected by type, and larger files by size.
#[test]
fn refusals() {
    let dir = tempfile::tempdir().unwrap();
    let large = dir.path().join("large");
    File::create(&large).unwrap().set_len(SIZE_MAX + 1).unwrap();
    for (file, why) in [
        (Path::new("/dev/zero"), "/dev/zero: is a character device"),
        (&large, "larger than 512 MiB"),
        (dir.path(), "directory"),
    ] {
        let error = Recording::load(file).unwrap_err();
        assert_eq!(error.kind(), Kind::Read, "{error}");
        let text = units::chain(&error);
        assert!(text.contains(why), "{text}");
    }
}

/// Check that an endless stream is rejected at its first byte if it is not a recording.
#[test]
fn endless_streams() {
    let zeros = std::io::repeat(0);
    let error = Recording::read(zeros, Path::new("-")).unwrap_err();
    assert_eq!(error.kind(), Kind::Foreign, "{error}");
}
