//! Files that results are written to.
//!
//! A missing or regular file is replaced by renaming, so that it has the old content or the new
//! one and never a part; it keeps its mode, owner and group. Anything else is opened and written,
//! as a shell's `>` does: a device or a FIFO is not replaced, and a symbolic link is followed, as
//! far as the kernel permits (`fs.protected_symlinks`). A regular file that cannot be replaced,
//! because its folder is not writable, its owner cannot be preserved or it is a mount point, is
//! written in place.

use std::fs::{self, File, FileType, Metadata, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, fchown};
use std::path::Path;

use rustix::fs::{Access, Mode, OFlags, access, open};
use rustix::io::retry_on_intr;
use tempfile::NamedTempFile;

use crate::{Error, Kind};

/// A new file's mode, less the umask.
const NEW_MODE: u32 = 0o666;
/// The mode of a file before it has its owner.
const PRIVATE_MODE: u32 = 0o600;
/// The mode bits that an existing file keeps: new content must not be set-user-ID.
const KEPT_MODE: u32 = 0o777;

/// Writes a file.
///
/// # Errors
/// `Kind::Write`, with the file's name.
pub fn write_file(file: &Path, text: &str) -> Result<(), Error> {
    let bytes = text.as_bytes();
    let written = match entry(file) {
        Ok(None) => replace(file, None, bytes),
        Ok(Some(old)) if old.is_file() => match replace(file, Some(&old), bytes) {
            Err(error) if is_in_the_way(&error) => {
                write_in_place(file, OFlags::NOFOLLOW, bytes)
            }
            replaced => replaced,
        },
        Ok(Some(old)) if old.is_symlink() => write_in_place(file, OFlags::CREATE, bytes),
        Ok(Some(_)) => write_in_place(file, OFlags::empty(), bytes),
        Err(error) => Err(error),
    };
    written.map_err(|error| Error::new(Kind::Write, file, error))
}

/// Writes a file that does not exist yet; returns whether it did not.
///
/// # Errors
/// `Kind::Write`, with the file's name.
pub fn write_new_file(file: &Path, text: &str) -> Result<bool, Error> {
    let written = written(file, NEW_MODE, None, text.as_bytes())
        .and_then(|new| Ok(new.persist_noclobber(file)?));
    match written {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(Error::new(Kind::Write, file, error)),
    }
}

/// Checks that a file can be written, without changing it: a measurement of an hour must not end
/// with "permission denied".
///
/// # Errors
/// `Kind::Write`, with the file's name.
pub fn check_writable(file: &Path) -> Result<(), Error> {
    let checked = match entry(file) {
        Ok(None) => check_new(file),
        Ok(Some(old)) if old.is_symlink() => match fs::metadata(file) {
            Err(error) if error.kind() == ErrorKind::NotFound => check_link(file),
            Err(error) => Err(error),
            Ok(target) => check_existing(file, target.file_type()),
        },
        Ok(Some(old)) => check_existing(file, old.file_type()),
        Err(error) => Err(error),
    };
    checked.map_err(|error| Error::new(Kind::Write, file, error))
}

/// The file of this name, if any; a link is not followed.
fn entry(file: &Path) -> io::Result<Option<Metadata>> {
    match fs::symlink_metadata(file) {
        Ok(old) => Ok(Some(old)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn check_new(file: &Path) -> io::Result<()> {
    if file.file_name().is_none() {
        return Err(ErrorKind::NotFound.into());
    }
    let folder = folder(file);
    access(folder, Access::WRITE_OK | Access::EXEC_OK)
        .map_err(|error| io::Error::other(Error::new(Kind::Write, folder, error)))
}

/// Checks a link to a missing file, which will be created.
fn check_link(link: &Path) -> io::Result<()> {
    let target = folder(link).join(fs::read_link(link)?);
    check_writable(&target).map_err(io::Error::other)
}

fn check_existing(file: &Path, what: FileType) -> io::Result<()> {
    if what.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if what.is_socket() {
        return Err(io::Error::other("is a socket"));
    }
    Ok(access(file, Access::WRITE_OK)?)
}

/// Writes a new file beside the old one and renames it.
fn replace(file: &Path, old: Option<&Metadata>, bytes: &[u8]) -> io::Result<()> {
    if old.is_some() {
        // Renaming needs no permission on the old file; a shell's `>` does.
        access(file, Access::WRITE_OK)?;
    }
    let mode = old.map_or(NEW_MODE, |_| PRIVATE_MODE);
    let new = written(file, mode, old, bytes)?;
    new.persist(file).map(drop).map_err(|error| error.error)
}

/// A new file beside this one, with the owner and the mode of the old one.
fn written(
    file: &Path,
    mode: u32,
    old: Option<&Metadata>,
    bytes: &[u8],
) -> io::Result<NamedTempFile> {
    let mut new = tempfile::Builder::new()
        .prefix(".noisefloor-")
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder(file))?;
    if let Some(old) = old {
        fchown(new.as_file(), Some(old.uid()), Some(old.gid()))?;
        let mode = Permissions::from_mode(old.mode() & KEPT_MODE);
        new.as_file().set_permissions(mode)?;
    }
    new.write_all(bytes)?;
    Ok(new)
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

fn write_in_place(file: &Path, how: OFlags, bytes: &[u8]) -> io::Result<()> {
    let how = how | OFlags::WRONLY | OFlags::TRUNC | OFlags::NOCTTY | OFlags::CLOEXEC;
    let open = retry_on_intr(|| open(file, how, Mode::from_raw_mode(NEW_MODE)))?;
    File::from(open).write_all(bytes)
}

/// The folder of a file, which may be missing.
fn folder(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
