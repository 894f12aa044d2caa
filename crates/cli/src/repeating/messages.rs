//! The messages of a process: the end of what it printed to standard error since the last time that
//! they were taken.

use std::collections::VecDeque;
use std::io::Read;
use std::os::fd::AsFd;
use std::process::ChildStderr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::ioctl_fionbio;

/// The end of the messages that is stored.
const MESSAGES_MAX: usize = 16 << 10;

/// The messages of a process, which a thread reads, so that the process does not wait.
pub(crate) struct Messages(Arc<Mutex<Pipe>>);

struct Pipe {
    from: ChildStderr,
    end: VecDeque<u8>,
}

impl Pipe {
    /// Reads what was printed; whether more may follow.
    fn drain(&mut self) -> bool {
        let mut buffer = [0; 4096];
        loop {
            match self.from.read(&mut buffer) {
                Ok(0) => return false,
                Ok(length) => {
                    self.end.extend(&buffer[..length]);
                    self.end.drain(..self.end.len().saturating_sub(MESSAGES_MAX));
                }
                Err(error) => return error.kind() == std::io::ErrorKind::WouldBlock,
            }
        }
    }
}

impl Messages {
    pub(crate) fn of(from: ChildStderr) -> std::io::Result<Self> {
        ioctl_fionbio(&from, true)?;
        let awaited = from.as_fd().try_clone_to_owned()?;
        let pipe = Arc::new(Mutex::new(Pipe { from, end: VecDeque::new() }));
        let read = Arc::clone(&pipe);
        thread::spawn(move || {
            loop {
                let mut wanted = [PollFd::new(&awaited, PollFlags::IN)];
                let _ = poll(&mut wanted, None);
                let mut pipe = read.lock().unwrap_or_else(PoisonError::into_inner);
                if !pipe.drain() {
                    break;
                }
            }
        });
        Ok(Self(pipe))
    }

    /// Takes everything that was printed before.
    pub(crate) fn take(&self) -> String {
        let mut pipe = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        pipe.drain();
        let end = Vec::from(std::mem::take(&mut pipe.end));
        String::from_utf8_lossy(&end).into_owned()
    }
}
