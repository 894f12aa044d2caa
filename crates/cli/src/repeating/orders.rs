//! The orders to the process that runs a program repeatedly: one byte for each run but the first,
//! through its standard input, upon which it answers each time that a recording is saved.
//!
//! The process keeps its trace attached between the runs. It ends when the other end is closed.
//!
//! The two programs of a duet have a process each. Each of its runs, also the first one, is ordered with the
//! number of its CPU, and passes a gate ([`isolate::Gate`]) in between, whose bytes take the same way.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;

use isolate::Gate;
use session::ReusedTrace;

/// The next run, with the settings of the last,
const AGAIN: u8 = b'.';
/// and with others.
const AGAIN_CHANGED: u8 = b'!';
/// A run of a duet, on the first of the CPUs,
const ON_FIRST: u8 = b'1';
/// and on the second one.
const ON_SECOND: u8 = b'2';
/// The answer: a recording is saved.
const SAVED: u8 = b'.';

/// The CPU of a run of a duet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PairCpu {
    First,
    Second,
}

/// What a process has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A program waits at its gate.
    Ready,
    /// A program has ended, and succeeded.
    Succeeded,
    /// A program has ended, and failed.
    Failed,
    /// A recording is saved.
    Saved,
}

impl Answer {
    fn of(byte: u8) -> Self {
        match byte {
            Gate::READY => Self::Ready,
            Gate::SUCCEEDED => Self::Succeeded,
            Gate::FAILED => Self::Failed,
            _ => Self::Saved,
        }
    }
}

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

    /// Waits for the next run of a duet; `None` if there is none.
    pub(crate) fn next_cpu(&mut self) -> io::Result<Option<PairCpu>> {
        let mut order = [0];
        let read = self.0.read(&mut order)?;
        let cpu = if order == [ON_SECOND] { PairCpu::Second } else { PairCpu::First };
        Ok((read > 0).then_some(cpu))
    }

    /// Reports that the recording of a run of a duet is saved.
    pub(crate) fn saved(&mut self) -> io::Result<()> {
        self.0.write_all(&[SAVED])
    }

    /// The gate of a program.
    pub(crate) fn gate(&self) -> io::Result<Gate> {
        self.0.try_clone().map(Gate::new)
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

    /// Orders a run of a duet.
    pub(crate) fn order_on(&mut self, cpu: PairCpu) -> io::Result<()> {
        self.0.write_all(&[match cpu {
            PairCpu::First => ON_FIRST,
            PairCpu::Second => ON_SECOND,
        }])
    }

    /// Opens the gate of a program.
    pub(crate) fn open_gate(&mut self) -> io::Result<()> {
        self.0.write_all(&[Gate::OPEN])
    }

    /// Whether a recording was saved since the last call.
    pub(crate) fn is_saved(&mut self) -> io::Result<bool> {
        self.next().map(|answer| answer.is_some())
    }

    /// The next answer, if there is one.
    pub(crate) fn next(&mut self) -> io::Result<Option<Answer>> {
        let mut answer = [0];
        match self.0.read(&mut answer) {
            Ok(read) => Ok((read > 0).then(|| Answer::of(answer[0]))),
            // Reset: the process has ended without having read its last order.
            Err(error)
                if [ErrorKind::WouldBlock, ErrorKind::ConnectionReset]
                    .contains(&error.kind()) =>
            {
                Ok(None)
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

    /// Check that a process of a duet gets its CPUs in order, that its gate and its answers take the same way,
    /// and that it ends with the other end.
    #[test]
    fn duets() {
        let (mut answers, other) = Answers::new().unwrap();
        let mut orders = Orders(other);
        let gate = orders.gate().unwrap();
        for cpu in [PairCpu::First, PairCpu::Second] {
            answers.order_on(cpu).unwrap();
            assert_eq!(orders.next_cpu().unwrap(), Some(cpu));
            assert_eq!(answers.next().unwrap(), None);
            answers.open_gate().unwrap();
            gate.pass_after(false);
            orders.saved().unwrap();
            let found = [answers.next().unwrap(), answers.next().unwrap()];
            assert_eq!(found, [Some(Answer::Failed), Some(Answer::Saved)]);
        }
        drop(answers);
        gate.pass_after(true);
        assert_eq!(orders.next_cpu().unwrap(), None);
    }
}
