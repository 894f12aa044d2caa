//! Files of every kind as the target of results: real nodes in a temporary folder.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::fs::{self, File, Metadata, Permissions};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::thread;

use recording::{check_writable, write_file};
use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

fn about(file: &Path) -> Metadata {
    fs::symlink_metadata(file).unwrap()
}

fn mode(file: &Path) -> u32 {
    about(file).mode() & 0o7777
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn node(file: &Path, what: FileType, device: u64) {
    mknodat(CWD, file, what, Mode::from_raw_mode(0o600), device).unwrap();
}

/// Writes as the commands do: first the check, then the file.
fn write(file: &Path, text: &str) {
    check_writable(file).unwrap();
    write_file(file, text).unwrap();
}

/// Check that a new file has the mode of the umask, and that a regular file is replaced as a whole,
/// without a change of its mode and without temporary files.
#[test]
fn regular_files() {
    let dir = tempfile::tempdir().unwrap();
    let (new, other) = (dir.path().join("new"), dir.path().join("other"));
    File::create(&other).unwrap();
    write(&new, "one");
    assert_eq!(mode(&new), mode(&other));
    fs::set_permissions(&new, Permissions::from_mode(0o600)).unwrap();
    let before = about(&new).ino();
    write(&new, "two");
    assert_eq!((fs::read_to_string(&new).unwrap().as_str(), mode(&new)), ("two", 0o600));
    assert_ne!(about(&new).ino(), before);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
}

/// Check that writing as root does not change a file's owner and group, and removes set-user-ID.
#[test]
fn owners() {
    if !is_root() {
        println!("skipped: owners: it takes root");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("theirs");
    fs::write(&file, "one").unwrap();
    chown(&file, Some(1234), Some(2345)).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o4640)).unwrap();
    write(&file, "two");
    let about = about(&file);
    assert_eq!((about.uid(), about.gid(), mode(&file)), (1234, 2345, 0o640));
    assert_eq!(fs::read_to_string(&file).unwrap(), "two");
}

/// Check that a link is not replaced: its target is written, and created if it is missing.
#[test]
fn links() {
    let dir = tempfile::tempdir().unwrap();
    for (link, target) in [("link", "real"), ("dangling", "missing")] {
        let (link, target) = (dir.path().join(link), dir.path().join(target));
        symlink(target.file_name().unwrap(), &link).unwrap();
        if target.ends_with("real") {
            fs::write(&target, "longer than the new content").unwrap();
            fs::set_permissions(&target, Permissions::from_mode(0o600)).unwrap();
        }
        write(&link, "new");
        assert!(about(&link).is_symlink());
        assert_eq!(fs::read_to_string(&target).unwrap(), "new");
    }
    assert_eq!(mode(&dir.path().join("real")), 0o600);
}

/// Check that a device is written to, not replaced.
#[test]
fn devices() {
    if !is_root() {
        println!("skipped: devices: it takes root to make one");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (null, full) = (dir.path().join("null"), dir.path().join("full"));
    node(&null, FileType::CharacterDevice, makedev(1, 3));
    node(&full, FileType::CharacterDevice, makedev(1, 7));
    if File::open(&null).is_err() {
        println!("skipped: devices: {} allows none", dir.path().display());
        return;
    }
    write(&null, "one");
    check_writable(&full).unwrap();
    let said = units::chain(&write_file(&full, "one").unwrap_err());
    assert!(said.contains("No space left"), "{said}");
    for device in [null, full] {
        let about = about(&device);
        assert!(about.file_type().is_char_device());
        assert_eq!(mode(&device), 0o600);
    }
}

/// Check that a FIFO is not replaced, and that its reader gets the whole text.
#[test]
fn fifos() {
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    node(&fifo, FileType::Fifo, 0);
    let text = "text ".repeat(100_000);
    let reader = thread::spawn({
        let fifo = fifo.clone();
        move || {
            let mut read = String::new();
            File::open(fifo).unwrap().read_to_string(&mut read).map(|_| read)
        }
    });
    write(&fifo, &text);
    assert!(reader.join().unwrap().unwrap() == text);
    assert!(about(&fifo).file_type().is_fifo());
}

/// Check that a target that cannot be written is rejected before the measurement, and is not changed.
#[test]
fn refusals() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    let gone = dir.path().join("gone/file");
    let link = dir.path().join("link");
    symlink(&gone, &link).unwrap();
    for (file, why) in [
        (dir.path(), "is a directory"),
        (&socket, "is a socket"),
        (&gone, "gone: No such file"),
        (&link, "gone: No such file"),
        (Path::new(""), "not found"),
    ] {
        let said = units::chain(&check_writable(file).unwrap_err());
        assert!(said.contains(why), "{said}");
        write_file(file, "new").unwrap_err();
    }
    assert!(about(&socket).file_type().is_socket());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
}
