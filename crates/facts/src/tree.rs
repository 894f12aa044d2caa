//! A directory whose files are opened only below it, even through symbolic links, since recorded
//! trees may come from untrusted sources.
//!
//! The kernel resolves links as if the directory were `/` (`openat2(2)`, `RESOLVE_IN_ROOT`, since
//! Linux 5.6). On older kernels, links are not followed. Only regular files are opened: opening a
//! FIFO may block, and opening a device may change its state.

pub(crate) mod file_locks;
pub(crate) mod holders;
pub(crate) mod root;

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{
    CWD, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, mkdirat, openat, openat2,
};
use rustix::io::Errno;

/// Permissions before the umask.
const FOLDER_MODE: Mode = Mode::from_raw_mode(0o777);
const FILE_MODE: Mode = Mode::from_raw_mode(0o666);

/// An open directory.
#[derive(Debug)]
pub(crate) struct Tree(OwnedFd);

impl Tree {
    /// Opens a directory.
    pub(crate) fn open(dir: &Path) -> io::Result<Self> {
        let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(openat(CWD, dir, how, Mode::empty())?))
    }

    /// A directory that is open, possibly to look up names only (`O_PATH`).
    pub(crate) fn of(folder: impl AsFd) -> io::Result<Self> {
        let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(openat(folder, ".", how, Mode::empty())?))
    }

    /// Whether a path exists; links are not followed.
    pub(crate) fn has(&self, path: &str) -> io::Result<()> {
        self.below(path, OFlags::PATH | OFlags::NOFOLLOW).map(drop)
    }

    /// Opens a regular file for reading; `None` if it is not regular.
    pub(crate) fn file(&self, path: &str) -> io::Result<Option<File>> {
        if !is_regular(&self.below(path, OFlags::PATH)?)? {
            return Ok(None);
        }
        // It may have been replaced in the meantime.
        let file = self.below(path, OFlags::RDONLY | OFlags::NONBLOCK)?;
        Ok(if is_regular(&file)? { Some(file.into()) } else { None })
    }

    /// The names in a directory.
    pub(crate) fn list(&self, path: &str) -> io::Result<Vec<String>> {
        let folder = self.below(path, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut names = Vec::new();
        for entry in Dir::new(folder)? {
            match entry?.file_name().to_str() {
                Ok("." | "..") | Err(_) => {}
                Ok(name) => names.push(name.to_owned()),
            }
        }
        Ok(names)
    }

    /// Whether the directory is empty.
    pub(crate) fn is_empty(&self) -> io::Result<bool> {
        Ok(self.list(".")?.is_empty())
    }

    /// Creates a file that must not exist, and its parent directories.
    pub(crate) fn write(&self, path: &str, bytes: &[u8]) -> io::Result<()> {
        let mut folder = self.0.try_clone()?;
        let mut names = path.split('/').filter(|name| !name.is_empty()).peekable();
        while let Some(name) = names.next() {
            if names.peek().is_none() {
                let how =
                    OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                let file = openat(&folder, name, how, FILE_MODE)?;
                return File::from(file).write_all(bytes);
            }
            match mkdirat(&folder, name, FOLDER_MODE) {
                Ok(()) | Err(Errno::EXIST) => folder = step(&folder, name)?,
                Err(error) => return Err(error.into()),
            }
        }
        Err(ErrorKind::NotFound.into())
    }

    fn below(&self, path: &str, how: OFlags) -> io::Result<OwnedFd> {
        let path = match path.trim_start_matches('/') {
            "" => ".",
            path => path,
        };
        let how = how | OFlags::CLOEXEC;
        let inside = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
        match openat2(&self.0, path, how, Mode::empty(), inside) {
            // Before Linux 5.6, or in a seccomp filter that does not allow openat2.
            Err(Errno::NOSYS | Errno::PERM) => self.without_links(path, how),
            opened => Ok(opened?),
        }
    }

    fn without_links(&self, path: &str, how: OFlags) -> io::Result<OwnedFd> {
        let mut folder = self.0.try_clone()?;
        let (folders, name) = path.rsplit_once('/').unwrap_or(("", path));
        for name in folders.split('/').filter(|name| !name.is_empty()) {
            folder = step(&folder, name)?;
        }
        match name {
            ".." => Err(ErrorKind::NotFound.into()),
            name => Ok(openat(folder, name, how | OFlags::NOFOLLOW, Mode::empty())?),
        }
    }
}

/// Opens a directory in a directory.
fn step(folder: impl AsFd, name: &str) -> io::Result<OwnedFd> {
    if name == ".." {
        return Err(ErrorKind::NotFound.into());
    }
    let how = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(folder, name, how, Mode::empty())?)
}

fn is_regular(file: &OwnedFd) -> io::Result<bool> {
    let about = fstat(file)?;
    Ok(FileType::from_raw_mode(about.st_mode) == FileType::RegularFile)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn read(tree: &Tree, path: &str) -> Option<String> {
        io::read_to_string(tree.file(path).ok()??).ok()
    }

    /// Check that relative, absolute and ascending links lead to files in the tree only.
    #[test]
    fn links() {
        let dir = tempfile::tempdir().unwrap();
        let outside = dir.path().join("secret");
        fs::write(&outside, "outside").unwrap();
        let root = dir.path().join("tree");
        fs::create_dir_all(root.join("proc")).unwrap();
        fs::write(root.join("proc/version"), "inside").unwrap();
        fs::write(root.join("secret"), "inside").unwrap();
        for (link, to) in [
            ("relative", "proc/version".as_ref()),
            ("absolute", Path::new("/proc/version")),
            ("proc/climbs", "../../../../secret".as_ref()),
            ("proc/folder", "../proc".as_ref()),
            ("out", &*outside),
            ("self", "/proc/self".as_ref()),
            ("root", "/".as_ref()),
        ] {
            symlink(to, root.join(link)).unwrap();
        }
        let tree = Tree::open(&root).unwrap();
        for path in [
            "relative",
            "/absolute",
            "proc/climbs",
            "proc/folder/version",
            "root/secret",
            "../../secret",
        ] {
            assert_eq!(read(&tree, path).as_deref(), Some("inside"), "{path}");
        }
        for path in ["out", "self/comm", "root/etc/passwd"] {
            assert_eq!(read(&tree, path), None, "{path}");
        }
        assert!(tree.has("out").is_ok() && tree.has("nothing").is_err());
        let unfollowed = |path| tree.without_links(path, OFlags::RDONLY).is_ok();
        assert!(unfollowed("proc/version"));
        for path in ["relative", "proc/folder/version", "out", "..", "../secret"] {
            assert!(!unfollowed(path), "{path}");
        }
    }

    /// Check that files that are not regular are not opened: a FIFO without a writer would block.
    #[test]
    fn nodes() {
        let dir = tempfile::tempdir().unwrap();
        let mode = Mode::from_raw_mode(0o600);
        let fifo = dir.path().join("fifo");
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, mode, 0).unwrap();
        let tree = Tree::open(dir.path()).unwrap();
        assert!(tree.file("fifo").unwrap().is_none());
        assert!(tree.file(".").unwrap().is_none());
        assert_eq!(tree.list("/").unwrap(), ["fifo"]);
    }

    /// Check that files are created in new directories, and replace no link or file.
    #[test]
    fn written() {
        let dir = tempfile::tempdir().unwrap();
        let (root, outside) = (dir.path().join("tree"), dir.path().join("outside"));
        fs::create_dir_all(&outside).unwrap();
        fs::create_dir_all(&root).unwrap();
        symlink(&outside, root.join("sys")).unwrap();
        symlink(outside.join("file"), root.join("link")).unwrap();
        let tree = Tree::open(&root).unwrap();
        tree.write("/proc/sys/kernel/x", b"1").unwrap();
        assert_eq!(read(&tree, "proc/sys/kernel/x").as_deref(), Some("1"));
        for path in ["/proc/sys/kernel/x", "sys/file", "link", "../file", ""] {
            assert!(tree.write(path, b"2").is_err(), "{path}");
        }
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    }
}
