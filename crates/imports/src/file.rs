//! Files and streams, by the format of their first lines.

use std::io::{self, Cursor, Read};
use std::path::Path;

use recording::{Error, Input, Kind, Recording};

use crate::format::Format;

/// The size in bytes of the largest file of another tool that is read.
pub const SIZE_MAX: u64 = 64 << 20;
/// Formats are distinguished by so many bytes.
const HEAD: usize = 16 << 10;

/// Reads a recording, or a file of another tool.
///
/// # Errors
/// As [`Recording::load`]; `Kind::Foreign` also for files of these tools that cannot be read, with
/// what can.
pub fn load(file: &Path) -> Result<Recording, Error> {
    let failed = |error: io::Error| Error::new(Kind::Read, file, error);
    let mut open = Input::open(file).map_err(failed)?;
    if open.is_fifo() {
        return read(open, file);
    }
    let head = head(&mut open).map_err(failed)?;
    let Some(format) = Format::of(&head) else { return Recording::load(file) };
    open.rewind().map_err(failed)?;
    let written = open.modified().and_then(|at| jiff::Timestamp::try_from(at).ok());
    format.parse(&text(open, file)?, written, file)
}

/// Reads a stream to its end; `file` is only for messages.
///
/// # Errors
/// As [`load`].
pub fn read(mut stream: impl Read, file: &Path) -> Result<Recording, Error> {
    let failed = |error: io::Error| Error::new(Kind::Read, file, error);
    let head = head(&mut stream).map_err(failed)?;
    let format = Format::of(&head);
    let whole = Cursor::new(head).chain(stream);
    match format {
        Some(format) => format.parse(&text(whole, file)?, None, file),
        None => Recording::read(whole, file),
    }
}

fn head(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(HEAD);
    stream.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(head)
}

pub(crate) fn text(stream: impl Read, file: &Path) -> Result<String, Error> {
    let mut bytes = Vec::new();
    let read = stream.take(SIZE_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| Error::new(Kind::Read, file, error))?;
    if bytes.len() as u64 > SIZE_MAX {
        let text = format!("larger than {} MiB, the most that is read", SIZE_MAX >> 20);
        return Err(Error::new(Kind::Read, file, text));
    }
    String::from_utf8(bytes).map_err(|_| Error::new(Kind::Corrupt, file, "not a text"))
}
