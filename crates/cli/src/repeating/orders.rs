//! The orders to the process that runs a program repeatedly: one byte for each run but the first,
//! through its standard input, upon which it answers each time that a recording is saved.
//!
//! The process keeps its trace attached between the runs. It ends when the other end is closed.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use session::ReusedTrace;

/// The next run, with the settings of the last,
const AGAIN: u8 = b'.';
/// and with others.
const AGAIN_CHANGED: u8 = b'!';
/// The answer: a recording is saved.
const SAVED: u8 = b'.';

/// The end of the process that runs the program.
pub(crate) struct Orders(UnixStream);

impl Orders {
    /// Takes the standard input of this process. That of the program is empty.
    pub(crate) fn take() -> io::Result<Self> {
        isolate::take_stdin().map(|orders| Self(orders.into()))
    }

    /// Reports that the recording of a run is saved, and waits for the next order: whether there is
    /// another run.
    pub(crate) fn is_another(&mut self, reused: &mut ReusedTrace) -> io::Result<bool> {
        self.0.write_all(&[SAVED])?;
        let mut order = [0];
        let read = self.0.read(&mut order)?;
        if order == [AGAIN_CHANGED] {
            reused.forget_loop();
        }
        Ok(read > 0)
    }
}

/// The other end.
pub(crate) struct Answers(UnixStream);

impl Answers {
    /// This end, and the standard input of the process.
    pub(crate) fn new() -> io::Result<(Self, UnixStream)> {
        let (own, other) = UnixStream::pair()?;
        own.set_nonblocking(true)?;
        Ok((Self(own), other))
    }

    /// What becomes readable with an answer.
    pub(crate) fn stream(&self) -> &UnixStream {
        &self.0
    }

    /// Orders another run.
    pub(crate) fn order(&mut self, has_other_settings: bool) -> io::Result<()> {
        self.0.write_all(&[if has_other_settings { AGAIN_CHANGED } else { AGAIN }])
    }

    /// Whether a recording was saved since the last call.
    pub(crate) fn is_saved(&mut self) -> io::Result<bool> {
        match self.0.read(&mut [0]) {
            Ok(read) => Ok(read > 0),
            // Reset: the process has ended without having read its last order.
            Err(error)
                if [ErrorKind::WouldBlock, ErrorKind::ConnectionReset]
                    .contains(&error.kind()) =>
            {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a process that ends with an unread order has saved nothing, and is no error.
    #[test]
    fn unread_order() {
        let (mut answers, mut other) = Answers::new().unwrap();
        assert!(!answers.is_saved().unwrap());
        other.write_all(&[SAVED]).unwrap();
        assert!(answers.is_saved().unwrap());
        answers.order(false).unwrap();
        drop(other);
        assert!(!answers.is_saved().unwrap());
        assert!(!answers.is_saved().unwrap());
    }
}
