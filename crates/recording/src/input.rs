//! Files that recordings are read from: regular files, FIFOs and standard input.
//!
//! A recording is read as a stream and never held in memory as text. It can be read twice (`file`);
//! data from a pipe is stored in an unnamed temporary file for that. At most [`SIZE_MAX`] bytes
//! are read, and devices, which may be endless, are refused. A wait for the writer of a FIFO is reported,
//! and a signal ends it.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::time::SystemTime;

use rustix::event::PollFlags;
use rustix::fs::{Mode, OFlags};
use units::printable;

use crate::file::{Head, json};
use crate::waiting::Waiting;
use crate::{Error, Kind, Recording};

/// The size in bytes of the largest recording that is read.
pub const SIZE_MAX: u64 = 512 << 20;
const TEXT_MAX: u64 = 16 << 20;

impl Recording {
    /// Reads a file; a FIFO is read until its writer closes it.
    ///
    /// # Errors
    /// As [`Recording::from_json`], and `Kind::Read`, also if the file is a device or larger than
    /// [`SIZE_MAX`].
    pub fn load(file: &Path) -> Result<Self, Error> {
        let failed = |error: io::Error| Error::new(Kind::Read, file, error);
        let mut open = Input::open(file).map_err(failed)?;
        if open.is_fifo() {
            return Self::read(open, file);
        }
        if let Some(read) = Self::in_order(json(&mut Bounded::new(&mut open))) {
            return Ok(read);
        }
        open.rewind().map_err(failed)?;
        let head = Head::read(json(&mut Bounded::new(&mut open)), file)?;
        open.rewind().map_err(failed)?;
        head.body(json(&mut Bounded::new(&mut open)), file)
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

/// A file that is read: a regular file or a FIFO.
#[derive(Debug)]
pub struct Input {
    file: File,
    about: Metadata,
    /// Of a FIFO.
    waiting: Option<Waiting>,
    /// Whether a FIFO has or had a writer.
    has_begun: bool,
}

impl Input {
    /// Opens a file. A FIFO is opened without waiting: the first read waits for its writer.
    ///
    /// # Errors
    /// It cannot be opened, is a device or another file that has no content, or is larger than
    /// [`SIZE_MAX`].
    pub fn open(file: &Path) -> io::Result<Self> {
        // Opening a device may change its state.
        refuse(&fs::metadata(file)?)?;
        let how = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let open: File = rustix::fs::open(file, how, Mode::empty())?.into();
        let about = open.metadata()?;
        refuse(&about)?;
        let shown = printable(&file.to_string_lossy()).into_owned();
        let waiting = || Waiting::new(format!("data from the FIFO {shown}"));
        let waiting = about.file_type().is_fifo().then(waiting);
        Ok(Self { file: open, about, waiting, has_begun: false })
    }

    /// Whether it can be read once only.
    pub fn is_fifo(&self) -> bool {
        self.waiting.is_some()
    }

    /// When it was changed last.
    pub fn modified(&self) -> Option<SystemTime> {
        self.about.modified().ok()
    }

    /// Goes back to the beginning of a regular file.
    ///
    /// # Errors
    /// It is a FIFO.
    pub fn rewind(&mut self) -> io::Result<()> {
        self.file.rewind()
    }
}

impl Read for Input {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let Some(waiting) = &mut self.waiting else { return self.file.read(bytes) };
        // Without a writer, a FIFO is at its end.
        while !self.has_begun {
            self.has_begun = pause(waiting, &self.file)?;
        }
        loop {
            match self.file.read(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    pause(waiting, &self.file)?;
                }
                read => return read,
            }
        }
    }
}

/// Waits for data. Readers repeat a read that fails with `ErrorKind::Interrupted`, so an interruption has
/// another kind here.
fn pause(waiting: &mut Waiting, file: &File) -> io::Result<bool> {
    let ready = waiting.pause(Some((file, PollFlags::IN)));
    ready.map_err(|error| io::Error::other(error.to_string()))
}

/// The text of a small file, of at most 16 MiB.
///
/// # Errors
/// As [`Input::open`]; it is larger, or is no text.
pub fn read_text(file: &Path) -> io::Result<String> {
    let mut text = String::new();
    let length = Input::open(file)?.take(TEXT_MAX + 1).read_to_string(&mut text)?;
    match length as u64 > TEXT_MAX {
        true => Err(too_large(TEXT_MAX)),
        false => Ok(text),
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
            let text = format!("is {name}, neither a file nor a FIFO");
            return Err(io::Error::new(ErrorKind::InvalidInput, text));
        }
    }
    if about.len() > SIZE_MAX { Err(too_large(SIZE_MAX)) } else { Ok(()) }
}

fn too_large(max: u64) -> io::Error {
    let text = format!("larger than {} MiB, the most that is read", max >> 20);
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
        self.left = rest.ok_or_else(|| too_large(SIZE_MAX))?;
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
