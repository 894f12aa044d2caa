//! The owner of a file on the way to an output, and whether the file may be used.
//!
//! A symbolic link redirects the output, and a FIFO gives it to its reader and makes the writer wait. So
//! neither is used if another user could have placed it: it must belong to root or to this user, and in
//! a folder that others can write to, to this user. There it must have one name: another user
//! could have linked one of this user's (`fs.protected_hardlinks=0`). The kernel has similar rules, for
//! folders with the sticky bit and if they are switched on (`fs.protected_symlinks`, `protected_fifos`,
//! `protected_regular`: proc_sys_fs(5)); these here do not depend on that.

use std::fs::{self, FileType, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use units::printable;

const STICKY: u32 = 0o1000;
/// The write permissions of group and others.
const WRITABLE: u32 = 0o022;
const USERS: &str = "/etc/passwd";
const SHARED: &str = "in a folder that other users can write to";
const SEVERAL_NAMES: &str =
    "which has several names, in a folder that other users can write to";
const HINT: &str = "hint: name a file in a folder of your own";

/// The users whose links and FIFOs are used.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owners {
    own: u32,
    /// The owner of `/`: root, also in a user namespace, where root can have another number.
    root: u32,
}

impl Owners {
    pub(super) fn new() -> Self {
        let own = rustix::process::geteuid().as_raw();
        Self { own, root: fs::metadata("/").map_or(0, |about| about.uid()) }
    }

    /// Checks an entry of a folder before it is used.
    ///
    /// # Errors
    /// `PermissionDenied`, with the owner's name.
    pub(super) fn check(
        self,
        path: &Path,
        entry: &Metadata,
        folder: &Metadata,
    ) -> io::Result<()> {
        let what = entry.file_type();
        let is_shared = self.is_shared(folder);
        let why = if what.is_file() {
            self.against_file(entry, folder)
        } else if what.is_dir() || what.is_socket() {
            None
        } else if redirects(what) && !self.is_trusted(entry.uid()) {
            Some("who is neither root nor this user")
        } else if is_shared && entry.uid() != self.own {
            Some(SHARED)
        } else {
            (is_shared && entry.nlink() > 1).then_some(SEVERAL_NAMES)
        };
        why.map_or(Ok(()), |why| Err(refused(path, entry, why)))
    }

    /// Checks a regular file that is not replaced but written: it may have another name, elsewhere.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub(super) fn check_names(
        self,
        path: &Path,
        file: &Metadata,
        folder: &Metadata,
    ) -> io::Result<()> {
        match self.is_shared(folder) && file.nlink() > 1 {
            true => Err(refused(path, file, SEVERAL_NAMES)),
            false => Ok(()),
        }
    }

    fn is_shared(self, folder: &Metadata) -> bool {
        !self.is_trusted(folder.uid()) || folder.mode() & WRITABLE != 0
    }

    /// The rule of `fs.protected_regular`.
    fn against_file(self, file: &Metadata, folder: &Metadata) -> Option<&'static str> {
        let is_like_tmp = folder.mode() & STICKY != 0 && folder.mode() & WRITABLE != 0;
        (is_like_tmp && !self.is_known(file, folder)).then_some(SHARED)
    }

    /// Checks the owner of a regular file that is read as well, in any folder.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub(super) fn check_content(
        self,
        path: &Path,
        file: &Metadata,
        folder: &Metadata,
    ) -> io::Result<()> {
        match self.is_known(file, folder) {
            true => self.check_names(path, file, folder),
            false => Err(refused(path, file, "who is not the owner of its folder")),
        }
    }

    fn is_known(self, file: &Metadata, folder: &Metadata) -> bool {
        self.is_trusted(file.uid()) || file.uid() == folder.uid()
    }

    fn is_trusted(self, user: u32) -> bool {
        user == 0 || user == self.own || user == self.root
    }
}

fn refused(path: &Path, entry: &Metadata, why: &str) -> io::Error {
    let (path, what) = (path.to_string_lossy(), name(entry.file_type()));
    let (path, owner) = (printable(&path), user(entry.uid()));
    let text = format!("{path} is {what} of {owner}, {why}; {HINT}");
    io::Error::new(ErrorKind::PermissionDenied, text)
}

/// Whether another user's file of that type has an effect on the process that writes to it. Devices are root's
/// or, as terminals are, given to a user by root.
fn redirects(what: FileType) -> bool {
    what.is_symlink() || what.is_fifo()
}

fn name(what: FileType) -> &'static str {
    if what.is_symlink() {
        "a symbolic link"
    } else if what.is_fifo() {
        "a FIFO"
    } else if what.is_file() {
        "a file"
    } else {
        "a device"
    }
}

/// The name of a user, from `/etc/passwd`, else the number.
fn user(number: u32) -> String {
    let users = fs::read_to_string(USERS).unwrap_or_default();
    let of = |line: &str| -> Option<String> {
        let mut fields = line.split(':');
        let name = fields.next()?.to_owned();
        (fields.nth(1)?.parse() == Ok(number)).then_some(name)
    };
    match users.lines().find_map(of) {
        Some(name) => format!("user {} ({number})", printable(&name)),
        None => format!("user {number}"),
    }
}
