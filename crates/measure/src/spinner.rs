//! One spinning thread: takes its CPU, learns what is ordinary there, waits for the
//! start, spins, and tells what it saw.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Scope, ScopedJoinHandle};

use recording::Meanwhile;
use units::{Cpu, Tsc, TscDelta};

use crate::meanwhile::OwnTime;
use crate::spin::{Ring, Spun, spin};
use crate::stop::Stop;
use crate::{Error, Ordinary, counter, mark, thread};

/// What a spinner is told before it starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seat {
    pub(crate) cpu: Cpu,
    pub(crate) fifo: Option<u8>,
    pub(crate) capacity: usize,
}

/// The start: until when to spin, and which passes to keep.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    pub(crate) end: Tsc,
    pub(crate) threshold: TscDelta,
    /// Longer gaps end the run.
    pub(crate) end_above: Option<TscDelta>,
}

impl Start {
    /// What is left of it now.
    fn stretch(self) -> Stretch {
        let Self { end, threshold, end_above } = self;
        let length = end.since(counter::now());
        let length = if length.is_backwards() { TscDelta::default() } else { length };
        Stretch { length, threshold, end_above }
    }
}

/// For how long to spin, and which passes to keep.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stretch {
    pub(crate) length: TscDelta,
    pub(crate) threshold: TscDelta,
    /// Longer gaps end it.
    pub(crate) end_above: Option<TscDelta>,
}

impl Stretch {
    /// Spins on the calling thread.
    pub(crate) fn spin(
        self,
        cpu: Cpu,
        ordinary: Ordinary,
        mut ring: Ring,
        stop: &AtomicBool,
    ) -> Seen {
        let Self { length, threshold, end_above } = self;
        let before = OwnTime::now();
        let longest = TscDelta::from_ticks(threshold.ticks() + ordinary.pass.ticks());
        if let Some(longest) = end_above {
            ring.end_above(TscDelta::from_ticks(longest.ticks() + ordinary.pass.ticks()));
        }
        mark::begin();
        let spun = spin(length, longest, stop, &mut ring);
        mark::end();
        let mut meanwhile = Meanwhile::default();
        OwnTime::now().add_since(before, &mut meanwhile);
        let ended_on = isolate::current_cpu();
        Seen { cpu, ordinary, spun, ring, meanwhile, ended_on }
    }
}

/// What a spinner saw.
pub(crate) struct Seen {
    pub(crate) cpu: Cpu,
    pub(crate) ordinary: Ordinary,
    pub(crate) spun: Spun,
    pub(crate) ring: Ring,
    pub(crate) meanwhile: Meanwhile,
    /// The CPU the thread was on when it ended.
    pub(crate) ended_on: Option<Cpu>,
}

/// A spinning thread that has its CPU and waits for the start.
pub(crate) struct Spinner<'scope> {
    pub(crate) ordinary: Ordinary,
    start: Sender<Start>,
    thread: ScopedJoinHandle<'scope, Option<Seen>>,
}

impl<'scope> Spinner<'scope> {
    /// Starts the thread; `done` is sent to when it has spun.
    pub(crate) fn seat<'env>(
        scope: &'scope Scope<'scope, 'env>,
        seat: Seat,
        stop: &'env Stop,
        done: Sender<()>,
    ) -> Result<Self, Error> {
        let (ready, is_ready) = channel();
        let (start, begin) = channel();
        let thread = thread::start(scope, &name(seat.cpu), move || {
            let seen = work(seat, stop, &ready, &begin);
            // Nobody may be waiting any more; that is their business.
            let _ = done.send(());
            seen
        })?;
        let ordinary =
            is_ready.recv().unwrap_or_else(|_| Err(thread::died(&name(seat.cpu))))?;
        Ok(Self { ordinary, start, thread })
    }

    /// Lets the thread spin.
    pub(crate) fn start(&self, start: Start) {
        // A thread that has died is noticed when it is joined.
        let _ = self.start.send(start);
    }

    /// What the thread saw.
    pub(crate) fn join(self, cpu: Cpu) -> Result<Seen, Error> {
        drop(self.start);
        self.thread.join().ok().flatten().ok_or_else(|| thread::died(&name(cpu)))
    }
}

/// By this name the room `blame` knows who is not to be blamed.
fn name(cpu: Cpu) -> String {
    format!("spin/{cpu}")
}

/// The thread's whole life; `None` where it could not be seated or was never started.
fn work(
    seat: Seat,
    stop: &Stop,
    ready: &Sender<Result<Ordinary, Error>>,
    begin: &Receiver<Start>,
) -> Option<Seen> {
    let taken = isolate::pin(seat.cpu)
        .and_then(|()| seat.fifo.map_or(Ok(()), isolate::outrank))
        .map(|()| Ordinary::measure())
        .map_err(Error::from);
    let ordinary = taken.clone().ok();
    let ring = Ring::new(if ordinary.is_some() { seat.capacity } else { 0 });
    ready.send(taken).ok()?;
    let ordinary = ordinary?;
    let start = begin.recv().ok()?;
    Some(start.stretch().spin(seat.cpu, ordinary, ring, stop.as_atomic()))
}
