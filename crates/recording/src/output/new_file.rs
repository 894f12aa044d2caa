//! A new file with a temporary name, which gets its own name when it is complete.

use std::collections::hash_map::RandomState;
use std::ffi::OsStr;
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};

use rustix::fs::{
    AtFlags, Mode, OFlags, RenameFlags, linkat, openat, renameat, renameat_with, unlinkat,
};
use rustix::io::Errno;

/// A file that is removed unless it gets its name.
pub(super) struct NewFile<'a> {
    folder: &'a File,
    name: String,
    pub(super) file: File,
}

impl<'a> NewFile<'a> {
    /// A file with that mode, less the umask.
    pub(super) fn create(folder: &'a File, mode: u32, bytes: &[u8]) -> io::Result<Self> {
        let how = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        loop {
            // Its keys are random.
            let random = RandomState::new().build_hasher().finish();
            let name = format!(".noisefloor-{random:016x}");
            match openat(folder, &name, how, Mode::from_raw_mode(mode)) {
                Err(Errno::EXIST) => {}
                Err(refused) => return Err(refused.into()),
                Ok(file) => {
                    let mut new = Self { folder, name, file: file.into() };
                    new.file.write_all(bytes)?;
                    return Ok(new);
                }
            }
        }
    }

    /// Gives it its name; a file of that name is replaced.
    pub(super) fn replace(mut self, name: &OsStr) -> io::Result<()> {
        renameat(self.folder, &self.name, self.folder, name)?;
        self.name.clear();
        Ok(())
    }

    /// Gives it its name unless there is a file of that name; returns whether there was none.
    pub(super) fn place(mut self, name: &OsStr) -> io::Result<bool> {
        let placed = renameat_with(
            self.folder,
            &self.name,
            self.folder,
            name,
            RenameFlags::NOREPLACE,
        );
        match placed {
            Ok(()) => self.name.clear(),
            // Not every file system can do this; the temporary name is removed.
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => {
                let flags = AtFlags::empty();
                match linkat(self.folder, &self.name, self.folder, name, flags) {
                    Err(Errno::EXIST) => return Ok(false),
                    linked => linked?,
                }
            }
            Err(Errno::EXIST) => return Ok(false),
            Err(refused) => return Err(refused.into()),
        }
        Ok(true)
    }
}

impl Drop for NewFile<'_> {
    fn drop(&mut self) {
        if !self.name.is_empty() {
            // What cannot be removed does no harm.
            let _ = unlinkat(self.folder, &self.name, AtFlags::empty());
        }
    }
}
