//! One spinning thread: takes its CPU, measures the cost of an ordinary pass there, waits for the
//! start, runs the busy loop, and returns its result.

use std::sync::mpsc::Sender;
use std::thread::Scope;

use recording::ProcCounts;
use units::{Cpu, Tsc, TscDelta, TscHz};

use crate::control::moments::OnMoment;
use crate::control::observer::Control;
use crate::proc_counters::ThreadTime;
use crate::spin::{Ring, SpinTotals, spin};
use crate::threads::thread::{PinnedThread, StartGate};
use crate::time::counter;
use crate::time::mark;
use crate::{Error, LoopCost};

/// The configuration of a spinner.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Config {
    pub(crate) cpu: Cpu,
    pub(crate) fifo: Option<u8>,
    pub(crate) capacity: usize,
}

/// The start: when to end, and which passes to record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    pub(crate) end: Tsc,
    pub(crate) threshold: TscDelta,
    /// Longer gaps are moments; and the rate of the counter.
    pub(crate) limit: Option<(TscDelta, TscHz)>,
}

impl Start {
    /// What is left of it now.
    fn params(self) -> SpinParams {
        let Self { end, threshold, limit } = self;
        let length = end.since(counter::now());
        let length = if length.is_backwards() { TscDelta::default() } else { length };
        SpinParams { length, threshold, limit }
    }
}

/// How long to loop, and which passes to record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SpinParams {
    pub(crate) length: TscDelta,
    pub(crate) threshold: TscDelta,
    /// Longer gaps are moments; and the rate of the counter.
    pub(crate) limit: Option<(TscDelta, TscHz)>,
}

impl SpinParams {
    /// Runs the busy loop on the calling thread.
    pub(crate) fn spin(
        self,
        cpu: Cpu,
        ordinary: LoopCost,
        mut ring: Ring,
        moments: OnMoment<'_>,
    ) -> SpinResult {
        let Self { length, threshold, limit } = self;
        let before = ThreadTime::now();
        let longest = TscDelta::from_ticks(threshold.ticks() + ordinary.pass.ticks());
        if let Some((limit, hz)) = limit {
            let pass = TscDelta::from_ticks(limit.ticks() + ordinary.pass.ticks());
            ring.set_limit(pass, hz);
        }
        mark::begin();
        let spun = spin(length, longest, moments, &mut ring);
        mark::end();
        let mut proc = ProcCounts::default();
        ThreadTime::now().add_since(before, &mut proc);
        let ended_on = isolate::current_cpu();
        SpinResult { cpu, ordinary, spun, ring, proc, ended_on }
    }
}

/// The result of a spinner.
pub(crate) struct SpinResult {
    pub(crate) cpu: Cpu,
    pub(crate) ordinary: LoopCost,
    pub(crate) spun: SpinTotals,
    pub(crate) ring: Ring,
    pub(crate) proc: ProcCounts,
    /// The CPU of the thread when it ended.
    pub(crate) ended_on: Option<Cpu>,
}

/// A spinning thread that is pinned to its CPU and waits for the start.
pub(crate) type Spinner<'scope> = PinnedThread<'scope, LoopCost, Start, SpinResult>;

/// Starts a spinning thread; a message is sent to `done` at its end.
pub(crate) fn seat<'scope>(
    scope: &'scope Scope<'scope, '_>,
    config: Config,
    control: &'scope Control,
    done: Sender<()>,
) -> Result<Spinner<'scope>, Error> {
    PinnedThread::spawn(scope, name(config.cpu), done, move |seat| {
        work(config, control, seat)
    })
}

/// `blame` recognises measuring threads by this name, and does not attribute gaps to them.
fn name(cpu: Cpu) -> String {
    format!("spin/{cpu}")
}

/// The thread's main function; `None` if it could not be pinned or was never started.
fn work(
    config: Config,
    control: &Control,
    seat: StartGate<LoopCost, Start>,
) -> Option<SpinResult> {
    let taken = isolate::pin_with_priority(config.cpu, config.fifo)
        .map(|()| LoopCost::measure())
        .map_err(Error::from);
    let ordinary = taken.as_ref().ok().cloned();
    let ring = Ring::new(if ordinary.is_some() { config.capacity } else { 0 });
    let start = seat.wait(taken)?;
    let Control { stop, moments, .. } = control;
    let moments = OnMoment::of(stop.as_atomic(), moments, config.cpu);
    Some(start.params().spin(config.cpu, ordinary?, ring, moments))
}
