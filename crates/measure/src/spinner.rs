//! One spinning thread: takes its CPU, learns what is ordinary there, waits for the
//! start, spins, and tells what it saw.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::thread::Scope;

use recording::Meanwhile;
use units::{Cpu, Tsc, TscDelta};

use crate::meanwhile::OwnTime;
use crate::spin::{Ring, Spun, spin};
use crate::stop::Stop;
use crate::thread::{Seat, Seated};
use crate::{Error, Ordinary, counter, mark};

/// What a spinner is told before it starts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
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
pub(crate) type Spinner<'scope> = Seated<'scope, Ordinary, Start, Seen>;

/// Starts a spinning thread; `done` is sent to when it has spun.
pub(crate) fn seat<'scope>(
    scope: &'scope Scope<'scope, '_>,
    place: Place,
    stop: &'scope Stop,
    done: Sender<()>,
) -> Result<Spinner<'scope>, Error> {
    Seated::take(scope, name(place.cpu), done, move |seat| work(place, stop, seat))
}

/// By this name the room `blame` knows who is not to be blamed.
fn name(cpu: Cpu) -> String {
    format!("spin/{cpu}")
}

/// The thread's whole life; `None` where it could not be seated or was never started.
fn work(place: Place, stop: &Stop, seat: Seat<Ordinary, Start>) -> Option<Seen> {
    let taken = isolate::pin_with_priority(place.cpu, place.fifo)
        .map(|()| Ordinary::measure())
        .map_err(Error::from);
    let ordinary = taken.as_ref().ok().cloned();
    let ring = Ring::new(if ordinary.is_some() { place.capacity } else { 0 });
    let start = seat.wait(taken)?;
    Some(start.stretch().spin(place.cpu, ordinary?, ring, stop.as_atomic()))
}
