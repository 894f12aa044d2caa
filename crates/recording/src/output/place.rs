//! The place of a file to write: an open folder, and a name in it.
//!
//! A path is resolved here and not by the kernel, one component at a time, each relative to the open
//! folder before it (`O_PATH`) and without following links. So each link is checked before it is
//! followed, wherever it is in the path or behind another link, and no later change of the path has an
//! effect. Only links in `/proc` are followed by the kernel: `/proc/self/fd/1`, which `/dev/stdout` and a
//! shell's `>(...)` lead to, names an open file rather than a path.

use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    CWD, Mode, OFlags, PROC_SUPER_MAGIC, fstatfs, mkdirat, openat, readlinkat,
};
use rustix::io::Errno;
use units::chain;

use super::owners::Owners;
use crate::{Error, Kind};

/// The most links of a path, as the kernel has it.
const LINKS_MAX: u32 = 40;
/// The inode of `/proc` itself, whose links are the kernel's own.
const PROC_ROOT: u64 = 1;

/// An open folder.
#[derive(Debug)]
pub struct Folder {
    pub(super) open: File,
    path: PathBuf,
}

impl Folder {
    /// Opens a folder, which is created with its parents if needed: mode 0777, less the umask. Links of
    /// other users are not followed.
    ///
    /// # Errors
    /// It cannot be created or opened.
    pub fn create(path: &Path) -> io::Result<Self> {
        Walk::new(path, Some(Mode::from_raw_mode(0o777)))?.folder()
    }

    /// Its path without links, as far as it was resolved.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl AsFd for Folder {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.open.as_fd()
    }
}

/// A file that may exist, in an open folder.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) folder: Folder,
    pub(super) name: OsString,
    /// The file; never a link, unless `is_descriptor`: then what the link leads to.
    pub(super) entry: Option<Metadata>,
    /// Whether the name is a link of `/proc` to an open file.
    pub(super) is_descriptor: bool,
}

impl Place {
    /// Finds the place that a path leads to. Missing folders are created with that mode.
    ///
    /// # Errors
    /// A folder is missing, the path is that of a folder, or what is there is another user's
    /// (`Owners::check`).
    pub(super) fn find(path: &Path, create: Option<Mode>) -> io::Result<Self> {
        Walk::new(path, create)?.file()
    }

    /// The path of the file, without links.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.path.join(&self.name)
    }
}

/// A path that is being resolved.
struct Walk {
    folder: Folder,
    /// The names that are left, the next one last.
    rest: Vec<OsString>,
    links: u32,
    create: Option<Mode>,
    owners: Owners,
}

impl Walk {
    fn new(path: &Path, create: Option<Mode>) -> io::Result<Self> {
        // The current folder need not be accessible for an absolute path.
        let begin = if path.is_absolute() { "/" } else { "." };
        let open = enter(CWD, OsStr::new(begin), true)?;
        let folder = Folder { open, path: PathBuf::new() };
        let owners = Owners::new();
        let mut walk = Self { folder, rest: Vec::new(), links: 0, create, owners };
        walk.prepend(path)?;
        Ok(walk)
    }

    /// The folder that the whole path leads to.
    fn folder(mut self) -> io::Result<Folder> {
        self.rest.insert(0, ".".into());
        while let Some(name) = self.rest.pop() {
            self.step(name, false)?;
        }
        Ok(self.folder)
    }

    /// The file that the path leads to, which may be missing.
    fn file(mut self) -> io::Result<Place> {
        while let Some(name) = self.rest.pop() {
            let is_last = self.rest.is_empty();
            if let Some((name, entry, is_descriptor)) = self.step(name, is_last)? {
                return Ok(Place { folder: self.folder, name, entry, is_descriptor });
            }
        }
        Err(ErrorKind::IsADirectory.into())
    }

    /// Adds the names of a path before those that are left. A path with a slash at its end is a
    /// folder's.
    fn prepend(&mut self, path: &Path) -> io::Result<()> {
        let bytes = path.as_os_str().as_bytes();
        if bytes.is_empty() {
            return Err(ErrorKind::NotFound.into());
        }
        if path.is_absolute() {
            let root = Path::new("/");
            self.folder =
                Folder { open: enter(CWD, root.as_os_str(), true)?, path: root.into() };
        }
        if bytes.ends_with(b"/") {
            self.rest.push(".".into());
        }
        let names = bytes.rsplit(|byte| *byte == b'/').filter(|name| !name.is_empty());
        self.rest.extend(names.map(|name| OsStr::from_bytes(name).to_owned()));
        Ok(())
    }

    /// Goes to the next name: `None` if that was a folder or a link, else the last name and what is
    /// there.
    fn step(&mut self, name: OsString, is_last: bool) -> io::Result<Option<End>> {
        if name == "." || name == ".." {
            self.enter(&name, true)?;
            return Ok(None);
        }
        let Some(found) = self.open(&name, is_last)? else {
            return Ok(Some((name, None, false)));
        };
        let (about, folder) = (found.metadata()?, self.folder.open.metadata()?);
        let is_proc =
            about.is_symlink() && fstatfs(&self.folder.open)?.f_type == PROC_SUPER_MAGIC;
        if !(is_proc && folder.ino() == PROC_ROOT) && (is_last || about.is_symlink()) {
            self.owners.check(&self.folder.path.join(&name), &about, &folder)?;
        }
        if about.is_symlink() {
            return self.follow(name, &found, is_proc, is_last);
        }
        if is_last {
            return Ok(Some((name, Some(about), false)));
        }
        self.enter(&name, false)?;
        Ok(None)
    }

    /// Opens the next name to look at it; `None` if it is the last one, and missing.
    fn open(&self, name: &OsStr, is_last: bool) -> io::Result<Option<File>> {
        let how = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = || openat(&self.folder.open, name, how, Mode::empty()).map(File::from);
        let opened = match (open(), self.create) {
            (Err(Errno::NOENT), _) if is_last => return Ok(None),
            (Err(Errno::NOENT), Some(mode)) => {
                match mkdirat(&self.folder.open, name, mode) {
                    Ok(()) | Err(Errno::EXIST) => open(),
                    Err(refused) => Err(refused),
                }
            }
            (opened, _) => opened,
        };
        opened.map(Some).map_err(|why| self.at(name, why))
    }

    /// Follows a link that was checked.
    fn follow(
        &mut self,
        name: OsString,
        link: &File,
        is_proc: bool,
        is_last: bool,
    ) -> io::Result<Option<End>> {
        self.links += 1;
        if self.links > LINKS_MAX {
            return Err(Errno::LOOP.into());
        }
        let target = readlinkat(link, "", Vec::new())?.into_bytes();
        let target = PathBuf::from(OsString::from_vec(target));
        if !is_proc {
            self.prepend(&target)?;
            return Ok(None);
        }
        if is_last {
            let how = OFlags::PATH | OFlags::CLOEXEC;
            let open = openat(&self.folder.open, &name, how, Mode::empty());
            let about =
                File::from(open.map_err(|why| self.at(&name, why))?).metadata()?;
            return Ok(Some((name, Some(about), true)));
        }
        self.folder =
            Folder { open: enter(&self.folder.open, &name, true)?, path: target };
        Ok(None)
    }

    fn enter(&mut self, name: &OsStr, follows: bool) -> io::Result<()> {
        let open = enter(&self.folder.open, name, follows);
        self.folder.open = open.map_err(|why| self.at(name, why))?;
        let path = &mut self.folder.path;
        match name.as_bytes() {
            b"." => {}
            // The names before it are no links.
            b".." if path.file_name().is_some() => drop(path.pop()),
            b".." if path.has_root() => {}
            _ => path.push(name),
        }
        Ok(())
    }

    /// An error about a component of the path.
    fn at(&self, name: &OsStr, why: Errno) -> io::Error {
        let error = io::Error::from(why);
        // The caller names the whole path.
        if self.rest.iter().all(|name| name == ".") {
            return error;
        }
        let (kind, path) = (error.kind(), self.folder.path.join(name));
        io::Error::new(kind, chain(&Error::new(Kind::Write, &path, error)))
    }
}

/// The last name of a path, what is there, and whether it is a link to an open file.
type End = (OsString, Option<Metadata>, bool);

/// Opens a folder in a folder.
fn enter(folder: impl AsFd, name: &OsStr, follows: bool) -> Result<File, Errno> {
    let how = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let how = if follows { how } else { how | OFlags::NOFOLLOW };
    Ok(openat(folder, name, how, Mode::empty())?.into())
}
