//! Files that recordings are read from: regular files, FIFOs and standard input.
//!
//! A recording is read as a stream and never held in memory as text. It is read twice (`file`);
//! data from a pipe is stored in an unnamed temporary file for that. At most [`SIZE_MAX`] bytes
//! are read, and devices, which may be endless, are refused.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use crate::file::{Head, json};
use crate::{Error, Kind, Recording};

/// The size in bytes of the largest recording that is read.
pub const SIZE_MAX: u64 = 512 << 20;

impl Recording {
    /// Reads a file; a FIFO is read until its writer closes it.
    ///
    /// # Errors
    /// As [`Recording::from_json`], and `Kind::Read`, also if the file is a device or larger than
    /// [`SIZE_MAX`].
    pub fn load(file: &Path) -> Result<Self, Error> {
        let failed = |error: io::Error| Error::new(Kind::Read, file, error);
        // Opening a device may change its state.
        refuse(&fs::metadata(file).map_err(failed)?).map_err(failed)?;
        let mut open = File::open(file).map_err(failed)?;
        let about = open.metadata().map_err(failed)?;
        refuse(&about).map_err(failed)?;
        if !about.is_file() {
            return Self::read(open, file);
        }
        let head = Head::read(json(&mut Bounded::new(&open)), file)?;
        open.rewind().map_err(failed)?;
        head.body(json(&mut Bounded::new(&open)), file)
    }

    /// Reads a stream to its end; `file` is only for messages.
    ///
    /// # Errors
    /// As [`Recording::from_json`], and `Kind::Read`, also if it is longer than [`SIZE_MAX`].
    pub fn read(stream: impl Read, file: &Path) -> Result<Self, Error> {
        let failed = |error: io::Error| Error::new(Kind::Read, file, error);
        let mut copy = tempfile::tempfile().map_err(failed)?;
        let mut stream = Copied { stream: Bounded::new(stream), copy: &copy };
        let head = Head::read(json(&mut stream), file)?;
        copy.rewind().map_err(failed)?;
        head.body(json(&mut copy), file)
    }
}

/// Refuses files that cannot be recordings by their type and size.
fn refuse(about: &Metadata) -> io::Result<()> {
    let what = about.file_type();
    if what.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    for (is_it, name) in [
        (what.is_char_device(), "a character device"),
        (what.is_block_device(), "a block device"),
        (what.is_socket(), "a socket"),
    ] {
        if is_it {
            let text = format!("is {name}, not a recording; '-' reads standard input");
            return Err(io::Error::new(ErrorKind::InvalidInput, text));
        }
    }
    if about.len() > SIZE_MAX { Err(too_large()) } else { Ok(()) }
}

fn too_large() -> io::Error {
    let text = format!("larger than {} MiB, the most that is read", SIZE_MAX >> 20);
    io::Error::new(ErrorKind::FileTooLarge, text)
}

/// A stream that fails if it is longer than [`SIZE_MAX`].
struct Bounded<R> {
    stream: R,
    left: u64,
}

impl<R> Bounded<R> {
    fn new(stream: R) -> Self {
        Self { stream, left: SIZE_MAX }
    }
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        // One more byte shows whether there is more.
        let read = (&mut self.stream).take(self.left + 1).read(bytes)?;
        let rest = self.left.checked_sub(read as u64);
        self.left = rest.ok_or_else(too_large)?;
        Ok(read)
    }
}

/// A stream that is copied to a file as it is read.
struct Copied<'a, R> {
    stream: R,
    copy: &'a File,
}

impl<R: Read> Read for Copied<'_, R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.stream.read(bytes)?;
        self.copy.write_all(&bytes[..read])?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a stream is read to the largest size and refused beyond it.
    #[test]
    fn bounded() {
        let mut whole = Bounded { stream: io::repeat(b' ').take(100), left: 100 };
        assert_eq!(io::copy(&mut whole, &mut io::sink()).unwrap(), 100);
        let mut longer = Bounded { stream: io::repeat(b' ').take(101), left: 100 };
        let error = io::copy(&mut longer, &mut io::sink()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileTooLarge);
    }
}
