//! Files that results are written to.
//!
//! A missing or regular file is replaced by renaming, so that it has the old content or the new
//! one and never a part; it keeps its mode, owner and group. Anything else is opened and written,
//! as a shell's `>` does: a device or a FIFO is not replaced, and a symbolic link is followed. Links and
//! FIFOs that another user could have placed are refused (`owners`), on the whole path and without a
//! moment between the check and the use (`place`). A regular file that cannot be replaced,
//! because its folder is not writable, its owner cannot be preserved or it is a mount point, is
//! written in place, and so is the file behind `/dev/stdout` and `/dev/fd/N`.

mod new_file;
mod owners;
mod place;

use std::fs::{File, FileType, Metadata, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use rustix::event::PollFlags;
use rustix::fs::{Access, AtFlags, Mode, OFlags, accessat, ftruncate, openat};
use rustix::io::Errno;
use units::printable;

use self::new_file::NewFile;
use self::owners::Owners;
pub use self::place::Folder;
use self::place::Place;
use crate::waiting::Waiting;
use crate::{Error, Kind};

/// A new file's mode, less the umask.
const NEW_MODE: u32 = 0o666;
/// The mode of a file before it has its owner.
const PRIVATE_MODE: u32 = 0o600;
/// The mode bits that an existing file keeps: new content must not be set-user-ID.
const KEPT_MODE: u32 = 0o777;
/// The mode of a folder for a database.
const PRIVATE_FOLDER: Mode = Mode::from_raw_mode(0o700);
/// What SQLite appends to the name of a database, for files beside it.
const BESIDE: [&str; 4] = ["", "-journal", "-wal", "-shm"];

/// Writes a file. A FIFO without a reader is waited for.
///
/// # Errors
/// `Kind::Write`, with the file's name; `Error::is_interruption` if a signal ended the wait.
pub fn write_file(file: &Path, text: impl AsRef<[u8]>) -> Result<(), Error> {
    let written = Place::find(file, None).and_then(|place| place.write(text.as_ref()));
    written.map_err(|error| Error::new(Kind::Write, file, error))
}

/// Writes a file that does not exist yet; returns whether it did not.
///
/// # Errors
/// `Kind::Write`, with the file's name.
pub fn write_new_file(file: &Path, text: impl AsRef<[u8]>) -> Result<bool, Error> {
    let written = Place::find(file, None).and_then(|place| match place.entry {
        Some(_) => Ok(false),
        None => NewFile::create(&place.folder.open, NEW_MODE, text.as_ref())?
            .place(&place.name),
    });
    written.map_err(|error| Error::new(Kind::Write, file, error))
}

/// Checks that a file can be written, without changing it: a measurement of an hour must not end
/// with "permission denied".
///
/// # Errors
/// `Kind::Write`, with the file's name.
pub fn check_writable(file: &Path) -> Result<(), Error> {
    let checked = Place::find(file, None).and_then(|place| place.check());
    checked.map_err(|error| Error::new(Kind::Write, file, error))
}

/// The path of a database without links, after a check that it and the files that SQLite creates
/// beside it are missing or regular files that no other user could have placed. With `create`, missing
/// folders are created, for this user only; without, the path of a missing database is returned as it
/// is.
///
/// # Errors
/// `Kind::Write`, with the file's name.
pub fn database_path(file: &Path, create: bool) -> Result<PathBuf, Error> {
    let create = create.then_some(PRIVATE_FOLDER);
    let find = |ending: &str| {
        let mut name = file.as_os_str().to_owned();
        name.push(ending);
        let place = Place::find(Path::new(&name), create)?;
        let path = place.path();
        if let Some(entry) = &place.entry {
            if !entry.is_file() || place.is_descriptor {
                return Err(io::Error::other("not a regular file"));
            }
            let folder = place.folder.open.metadata()?;
            Owners::new().check_content(&path, entry, &folder)?;
        }
        Ok(path)
    };
    let mut paths = BESIDE.iter().map(|ending| find(ending));
    let path = paths.next().unwrap_or_else(|| Ok(file.to_owned()));
    match path.and_then(|path| paths.try_for_each(|it| it.map(drop)).map(|()| path)) {
        Err(error) if error.kind() == ErrorKind::NotFound && create.is_none() => {
            Ok(file.to_owned())
        }
        found => found.map_err(|error| Error::new(Kind::Write, file, error)),
    }
}

impl Place {
    fn check(&self) -> io::Result<()> {
        let Some(entry) = &self.entry else {
            let how = Access::WRITE_OK | Access::EXEC_OK;
            let checked = accessat(&self.folder, ".", how, AtFlags::empty());
            return checked.map_err(|error| {
                let path = match self.folder.path() {
                    path if path.as_os_str().is_empty() => Path::new("."),
                    path => path,
                };
                io::Error::other(Error::new(Kind::Write, path, io::Error::from(error)))
            });
        };
        if entry.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        }
        if entry.file_type().is_socket() {
            return Err(io::Error::other("is a socket"));
        }
        self.check_permission()
    }

    fn check_permission(&self) -> io::Result<()> {
        Ok(accessat(&self.folder, &self.name, Access::WRITE_OK, AtFlags::empty())?)
    }

    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        match &self.entry {
            None => self.replace(None, bytes),
            Some(old) if old.is_file() && !self.is_descriptor => {
                match self.replace(Some(old), bytes) {
                    Err(error) if is_in_the_way(&error) => {
                        self.write_in_place(old, bytes)
                    }
                    replaced => replaced,
                }
            }
            Some(old) => self.write_in_place(old, bytes),
        }
    }

    /// Writes a new file beside the old one and renames it.
    fn replace(&self, old: Option<&Metadata>, bytes: &[u8]) -> io::Result<()> {
        let folder = &self.folder.open;
        let Some(old) = old else {
            return NewFile::create(folder, NEW_MODE, bytes)?.replace(&self.name);
        };
        // Renaming needs no permission on the old file; a shell's `>` does.
        self.check_permission()?;
        let new = NewFile::create(folder, PRIVATE_MODE, bytes)?;
        fchown(&new.file, Some(old.uid()), Some(old.gid()))?;
        new.file.set_permissions(Permissions::from_mode(old.mode() & KEPT_MODE))?;
        new.replace(&self.name)
    }

    fn write_in_place(&self, old: &Metadata, bytes: &[u8]) -> io::Result<()> {
        let shown = printable(&self.path().to_string_lossy()).into_owned();
        let mut waiting = Waiting::new(format!("a reader of the FIFO {shown}"));
        let file = self.open(old, &mut waiting)?;
        waiting.is_connected();
        if old.is_file() {
            ftruncate(&file, 0)?;
        }
        write_all(&file, bytes, &mut waiting)
    }

    /// Opens the file that was found and checked.
    fn open(&self, old: &Metadata, waiting: &mut Waiting) -> io::Result<File> {
        let how = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let how = if self.is_descriptor { how } else { how | OFlags::NOFOLLOW };
        let file = loop {
            match openat(&self.folder, &self.name, how, Mode::empty()) {
                Err(Errno::NXIO) if old.file_type().is_fifo() => {
                    waiting.pause(None)?;
                }
                Err(Errno::INTR) => {}
                opened => break File::from(opened?),
            }
        };
        if !self.is_descriptor {
            self.check_opened(&file.metadata()?, old.file_type())?;
        }
        Ok(file)
    }

    /// Checks again: what was found may have been replaced since.
    fn check_opened(&self, now: &Metadata, what: FileType) -> io::Result<()> {
        if now.file_type() != what {
            return Err(io::Error::other("was replaced by another file"));
        }
        let (path, folder) = (self.path(), self.folder.open.metadata()?);
        let owners = Owners::new();
        owners.check(&path, now, &folder)?;
        if now.is_file() { owners.check_names(&path, now, &folder) } else { Ok(()) }
    }
}

/// Writes to a file that was opened without blocking.
fn write_all(mut file: &File, mut bytes: &[u8], waiting: &mut Waiting) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.write(bytes) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                waiting.pause(Some((file, PollFlags::OUT)))?;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Whether a file that cannot be replaced may be writable.
fn is_in_the_way(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::PermissionDenied
            | ErrorKind::ReadOnlyFilesystem
            | ErrorKind::ResourceBusy
    )
}
