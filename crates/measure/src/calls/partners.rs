//! The calls that need a second thread on the same CPU, which wake or yield to each other.
//!
//! A repeat is a round trip. For `futex` and `pipe` both are ordinary threads: whether the woken
//! one runs at once, or when the other waits, is the scheduler's choice, and part of the cost. For
//! `switch` both are `SCHED_FIFO` of one priority: only there does `sched_yield(2)` always yield
//! the CPU, so that a repeat is two yields and two switches. An ordinary thread that yields may be
//! picked again.
//!
//! # Caveats
//! On a CPU with RT throttling (`sched_rt_runtime_us`) the threads of `switch` pause once they have
//! used their share of a second; that repeat is long.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::thread::scope;

use rustix::io::{Errno, read, write};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::thread::{futex, sched_yield};
use units::Cpu;

use crate::Error;
use crate::calls::repeats::{Repeats, failed};
use crate::threads::thread::{died, start};

/// The partner's name.
const NAME: &str = "calls/partner";
/// The priority of the threads of `switch`: the lowest real-time one.
const PRIORITY: u8 = 1;

/// The thread that holds the turn.
const OURS: u32 = 0;
const THEIRS: u32 = 1;
/// Neither: the partner ends.
const OVER: u32 = 2;

/// Two threads wake each other.
pub(crate) fn futex(cpu: Cpu, repeats: &mut Repeats<'_>) -> Result<(), Error> {
    let turn = AtomicU32::new(OURS);
    let theirs = || {
        loop {
            // The turn is checked, whether it failed or not.
            let _ = wait_while(&turn, OURS);
            if turn.load(Ordering::Acquire) == OVER {
                return;
            }
            let _ = hand_over(&turn, OURS);
        }
    };
    let ours = || {
        let outcome = repeats.run("futex(2)", || {
            hand_over(&turn, THEIRS)?;
            wait_while(&turn, THEIRS)
        });
        let _ = hand_over(&turn, OVER);
        outcome
    };
    together(cpu, None, theirs, ours)
}

/// Waits at least once, so that a repeat always makes the same number of calls.
#[inline(always)]
fn wait_while(turn: &AtomicU32, held: u32) -> io::Result<()> {
    loop {
        match futex::wait(turn, futex::Flags::PRIVATE, held, None) {
            Ok(()) | Err(Errno::AGAIN | Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if turn.load(Ordering::Acquire) != held {
            return Ok(());
        }
    }
}

#[inline(always)]
fn hand_over(turn: &AtomicU32, next: u32) -> io::Result<()> {
    turn.store(next, Ordering::Release);
    futex::wake(turn, futex::Flags::PRIVATE, 1)?;
    Ok(())
}

/// A byte is sent to the partner and back.
pub(crate) fn pipe(cpu: Cpu, repeats: &mut Repeats<'_>) -> Result<(), Error> {
    let (their_end, our_way) = new_pipe()?;
    let (our_end, their_way) = new_pipe()?;
    let theirs = move || {
        let mut byte = [0];
        while matches!(read(&their_end, &mut byte), Ok(1)) {
            // If the other end is closed, reading fails too.
            let _ = write(&their_way, &byte);
        }
    };
    // The partner ends when the pipe to it is dropped, at the end of this closure.
    let ours = move || {
        repeats.run("read(2) or write(2) of a pipe", || {
            write(&our_way, &[1])?;
            match read(&our_end, &mut [0])? {
                0 => Err(io::ErrorKind::UnexpectedEof.into()),
                _ => Ok(()),
            }
        })
    };
    together(cpu, None, theirs, ours)
}

/// The read end, and the write end.
fn new_pipe() -> Result<(OwnedFd, OwnedFd), Error> {
    pipe_with(PipeFlags::CLOEXEC).map_err(|error| failed("pipe2(2)", error.into()))
}

/// Two threads yield the CPU to each other.
pub(crate) fn switch(cpu: Cpu, repeats: &mut Repeats<'_>) -> Result<(), Error> {
    isolate::outrank(PRIORITY)?;
    let turn = AtomicU32::new(OURS);
    let theirs = || {
        loop {
            match turn.load(Ordering::Acquire) {
                THEIRS => turn.store(OURS, Ordering::Release),
                OVER => return,
                _ => {}
            }
            sched_yield();
        }
    };
    let ours = || {
        let outcome = repeats.run("sched_yield(2)", || {
            turn.store(THEIRS, Ordering::Release);
            while turn.load(Ordering::Acquire) == THEIRS {
                sched_yield();
            }
            Ok(())
        });
        turn.store(OVER, Ordering::Release);
        outcome
    };
    together(cpu, Some(PRIORITY), theirs, ours)
}

/// Runs both sides, `theirs` in a thread on that CPU. `ours` starts when that is pinned, and must
/// end it.
fn together(
    cpu: Cpu,
    fifo: Option<u8>,
    theirs: impl FnOnce() + Send,
    ours: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    scope(|scope| {
        let (place, has_place) = channel();
        let partner = start(scope, NAME, move || {
            let taken = isolate::pin_with_priority(cpu, fifo).map_err(Error::from);
            let is_seated = taken.is_ok();
            if place.send(taken).is_ok() && is_seated {
                theirs();
            }
        })?;
        has_place.recv().unwrap_or_else(|_| Err(died(NAME)))?;
        let outcome = ours();
        partner.join().map_err(|_| died(NAME))?;
        outcome
    })
}
