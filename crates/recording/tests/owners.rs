//! Links, FIFOs and files of other users as the target of results, whatever the kernel protects.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

#[path = "../../cli/tests/shared/file_protections.rs"]
mod file_protections;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};

use file_protections::with_protections_off_and_on;
use recording::{Folder, check_writable, database_path, write_file, write_new_file};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

/// Another user, without a name.
const OTHER: u32 = 59_998;

/// A folder of root's with a private folder and one as /tmp.
struct Site {
    dir: TempDir,
}

impl Site {
    /// `None` without root.
    fn new(test: &str) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            println!("skipped: {test}: it takes root to make another user's files");
            return None;
        }
        let site = Self { dir: tempfile::tempdir().unwrap() };
        for (name, mode) in [("own", 0o755), ("shared", 0o1777)] {
            fs::create_dir(site.path(name)).unwrap();
            fs::set_permissions(site.path(name), Permissions::from_mode(mode)).unwrap();
        }
        fs::write(site.path("own/victim"), "old").unwrap();
        Some(site)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A link that belongs to this user.
    fn link(&self, name: &str, target: &str, owner: u32) {
        symlink(self.path(target), self.path(name)).unwrap();
        lchown(self.path(name), Some(owner), Some(owner)).unwrap();
    }

    fn fifo(&self, name: &str, owner: u32) {
        let mode = Mode::from_raw_mode(0o666);
        mknodat(CWD, self.path(name), FileType::Fifo, mode, 0).unwrap();
        lchown(self.path(name), Some(owner), Some(owner)).unwrap();
    }

    /// Checks that nothing writes there, and that each message names the entry and its owner.
    fn is_refused(&self, name: &str, entry: &str, owner: &str) {
        let file = self.path(name);
        let said = [check_writable(&file), write_file(&file, "new")].map(|it| {
            let said = units::chain(&it.unwrap_err());
            assert!(
                said.contains(&format!("{} is a", self.path(entry).display())),
                "{said}"
            );
            assert!(said.contains(&format!(" of user {owner}")), "{said}");
            said
        });
        assert_eq!(said[0], said[1]);
        assert!(!matches!(write_new_file(&file, "new"), Ok(true)));
        assert_eq!(fs::read_to_string(self.path("own/victim")).unwrap(), "old");
        assert_eq!(fs::read_dir(self.path("own")).unwrap().count(), 1, "{name}");
    }
}

/// Check that no link that another user could have placed is followed: as the last name, before it or
/// behind an own link, to a file or to nothing, in a folder as /tmp or of another user's, or linked there.
#[test]
fn links() {
    let Some(site) = Site::new("links") else { return };
    site.link("shared/file", "own/victim", OTHER);
    site.link("shared/missing", "own/new", OTHER);
    site.link("shared/folder", "own", OTHER);
    site.link("root-owned", "own/victim", OTHER);
    site.link("behind", "shared/file", 0);
    site.link("roots", "own/victim", 0);
    fs::hard_link(site.path("roots"), site.path("shared/linked")).unwrap();
    fs::create_dir(site.path("theirs")).unwrap();
    lchown(site.path("theirs"), Some(OTHER), Some(OTHER)).unwrap();
    site.link("theirs/file", "own/victim", OTHER);
    fs::hard_link(site.path("roots"), site.path("theirs/linked")).unwrap();
    with_protections_off_and_on(|| {
        for (name, entry, owner) in [
            ("shared/file", "shared/file", "59998"),
            ("shared/missing", "shared/missing", "59998"),
            ("shared/folder/new", "shared/folder", "59998"),
            ("shared/folder/victim", "shared/folder", "59998"),
            ("root-owned", "root-owned", "59998"),
            ("behind", "shared/file", "59998"),
            ("shared/linked", "shared/linked", "root (0)"),
            ("theirs/file", "theirs/file", "59998"),
            ("theirs/linked", "theirs/linked", "root (0)"),
        ] {
            site.is_refused(name, entry, owner);
        }
        for folder in ["shared/folder", "shared/folder/sub"] {
            let said = Folder::create(&site.path(folder)).unwrap_err().to_string();
            assert!(said.contains("user 59998"), "{said}");
        }
        for database in ["shared/file", "shared/folder/db"] {
            database_path(&site.path(database), true).unwrap_err();
            database_path(&site.path(database), false).unwrap_err();
        }
    });
}

/// Check that own links are followed, in a folder as /tmp too, through folders and other links, and that
/// the path of a database is the one behind them.
#[test]
fn own_links() {
    let Some(site) = Site::new("own_links") else { return };
    site.link("shared/folder", "own", 0);
    site.link("first", "shared/folder/../own/./victim", 0);
    with_protections_off_and_on(|| {
        for name in ["shared/folder/victim", "first"] {
            check_writable(&site.path(name)).unwrap();
            write_file(&site.path(name), name).unwrap();
            assert_eq!(fs::read_to_string(site.path("own/victim")).unwrap(), name);
        }
        let database = database_path(&site.path("shared/folder/new/db"), true).unwrap();
        let expected = site.dir.path().canonicalize().unwrap().join("own/new/db");
        assert_eq!(database, expected);
        let mode = fs::metadata(site.path("own/new")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        site.link("own/new/db-wal", "own/victim", OTHER);
        database_path(&site.path("own/new/db"), true).unwrap_err();
        fs::remove_file(site.path("own/new/db-wal")).unwrap();
    });
}

/// Check that links that lead to each other end.
#[test]
fn circles() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a");
    symlink(dir.path().join("b"), &file).unwrap();
    symlink(&file, dir.path().join("b")).unwrap();
    let said = units::chain(&write_file(&file, "new").unwrap_err());
    assert!(said.contains("symbolic links"), "{said}");
}

/// Check that another user's FIFO is refused at once, and one of root's with a second name.
#[test]
fn fifos() {
    let Some(site) = Site::new("fifos") else { return };
    site.fifo("shared/theirs", OTHER);
    site.fifo("root-owned", OTHER);
    site.fifo("roots", 0);
    fs::hard_link(site.path("roots"), site.path("shared/linked")).unwrap();
    site.fifo("shared/mine", 0);
    with_protections_off_and_on(|| {
        site.is_refused("shared/theirs", "shared/theirs", "59998");
        site.is_refused("root-owned", "root-owned", "59998");
        site.is_refused("shared/linked", "shared/linked", "root (0)");
        check_writable(&site.path("shared/mine")).unwrap();
    });
}

/// Check that another user's file is not written in a folder as /tmp, and that its owner's folder, or one
/// without the sticky bit, may have it.
#[test]
fn files() {
    let Some(site) = Site::new("files") else { return };
    let theirs = |name: &str| {
        fs::write(site.path(name), "theirs").unwrap();
        fs::set_permissions(site.path(name), Permissions::from_mode(0o666)).unwrap();
        lchown(site.path(name), Some(OTHER), Some(OTHER)).unwrap();
    };
    theirs("shared/file");
    fs::create_dir(site.path("home")).unwrap();
    lchown(site.path("home"), Some(OTHER), Some(OTHER)).unwrap();
    theirs("home/file");
    with_protections_off_and_on(|| {
        site.is_refused("shared/file", "shared/file", "59998");
        assert_eq!(fs::read_to_string(site.path("shared/file")).unwrap(), "theirs");
        write_file(&site.path("home/file"), "new").unwrap();
        assert_eq!(fs::read_to_string(site.path("home/file")).unwrap(), "new");
    });
}

/// Check that the files behind `/dev/fd` and `/proc/self` are written, not replaced.
#[test]
fn descriptors() {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    let open = fs::File::create(&file).unwrap();
    let inode = fs::metadata(&file).unwrap().ino();
    for folder in ["/dev/fd", "/proc/self/fd", "/proc/thread-self/fd"] {
        let name = Path::new(folder).join(open.as_raw_fd().to_string());
        check_writable(&name).unwrap();
        write_file(&name, folder).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), folder);
        assert_eq!(fs::metadata(&file).unwrap().ino(), inode);
    }
}
