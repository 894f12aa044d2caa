//! The moments of a measurement while it runs: what a loop does with a value above the limit, and
//! which were the worst moments so far.
//!
//! The reader of the kernel's events must not forget the events of these. A loop that goes on writes
//! its moments to a board of its own, which others read at any time: no lock, no allocation, and as
//! many loads as the board has places, after a value that was above the limit. A reader may find the start
//! of one moment with the length of another for an instant; such a moment has only just happened, when
//! no event is forgotten.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use recording::Trigger;
use units::{Cpu, CpuSet, Nanos, Span};

use crate::time::counter;
use crate::{Error, Kind};

/// The worst moments so far.
#[derive(Debug, Default)]
pub struct WorstMoments(OnceLock<Vec<(Cpu, Board)>>);

impl WorstMoments {
    /// Makes room for the moments of these CPUs, if the measurement goes on after them. Once in a measurement; the boards of
    /// the first call remain.
    pub fn prepare(&self, cpus: &CpuSet, trigger: Trigger) {
        if trigger.keep.is_some() && trigger.stop_above_ns.is_some() {
            let board = |cpu| (cpu, Board::with_capacity(trigger.moments_max()));
            self.0.get_or_init(|| cpus.iter().map(board).collect());
        }
    }

    /// Keeps a moment, if it is one of the longest of its CPU; false if there is no room for any. Each CPU has one
    /// writer.
    pub fn keep(&self, cpu: Cpu, moment: Span) -> bool {
        let board = self.board(cpu);
        board.inspect(|board| board.keep(moment)).is_some()
    }

    /// All of them, on `CLOCK_MONOTONIC`.
    pub fn all(&self) -> Vec<Span> {
        let boards = self.0.get().into_iter().flatten();
        boards.flat_map(|(_, board)| board.all()).collect()
    }

    pub(crate) fn board(&self, cpu: Cpu) -> Option<&Board> {
        let boards = self.0.get()?;
        boards.iter().find(|(own, _)| *own == cpu).map(|(_, board)| board)
    }
}

/// The longest moments of a CPU.
#[derive(Debug)]
pub(crate) struct Board(Box<[Place]>);

/// The place of a moment; free while its length is 0.
#[derive(Debug, Default)]
struct Place {
    start: AtomicU64,
    length: AtomicU64,
}

impl Board {
    fn with_capacity(moments: usize) -> Self {
        Self((0..moments).map(|_| Place::default()).collect())
    }

    /// Replaces the shortest moment by a longer one.
    fn keep(&self, moment: Span) {
        let length = |place: &&Place| place.length.load(Ordering::Relaxed);
        let Some(shortest) = self.0.iter().min_by_key(length) else { return };
        if length(&shortest) < moment.length.get() {
            shortest.start.store(moment.start.get(), Ordering::Relaxed);
            shortest.length.store(moment.length.get(), Ordering::Release);
        }
    }

    fn all(&self) -> impl Iterator<Item = Span> {
        let moment = |place: &Place| {
            let length = Nanos::from_nanos(place.length.load(Ordering::Acquire));
            let start = Nanos::from_nanos(place.start.load(Ordering::Relaxed));
            (!length.is_zero()).then_some(Span { start, length })
        };
        self.0.iter().filter_map(moment)
    }
}

/// What a loop does with a value above the limit.
#[derive(Debug, Clone, Copy)]
pub struct OnMoment<'a> {
    stop: &'a AtomicBool,
    board: Option<&'a Board>,
}

impl<'a> OnMoment<'a> {
    /// Makes the stop request of all loops.
    pub fn stopping(stop: &'a AtomicBool) -> Self {
        Self { stop, board: None }
    }

    /// Keeps a moment on this CPU if there is room for moments, else makes the stop request.
    pub(crate) fn of(stop: &'a AtomicBool, worst: &'a WorstMoments, cpu: Cpu) -> Self {
        Self { stop, board: worst.board(cpu) }
    }

    /// The stop request.
    #[inline(always)]
    pub(crate) fn stop(self) -> &'a AtomicBool {
        self.stop
    }

    /// Handles a moment; `moment` is how long ago it began, and its length.
    #[cold]
    pub(crate) fn handle(self, moment: impl FnOnce() -> (Nanos, Nanos)) {
        match self.board {
            None => self.stop.store(true, Ordering::Relaxed),
            Some(board) => {
                let (ago, length) = moment();
                let now = counter::kernel(libc::CLOCK_MONOTONIC);
                board.keep(Span { start: now.saturating_sub(ago), length });
            }
        }
    }
}

/// Refuses a limit without a meaning; `what` is above it.
pub(crate) fn check_trigger(what: &str, trigger: Trigger) -> Result<(), Error> {
    let refused = |text: String| Err(Error::new(Kind::Spec, text));
    if trigger.stop_above_ns.is_some_and(Nanos::is_zero) {
        return refused(format!("the {what} limit must be greater than 0"));
    }
    match (trigger.keep, trigger.stop_above_ns) {
        (Some(_), None) => refused("to keep moments, a limit is needed".to_owned()),
        (Some(keep), _) if !(1..=Trigger::KEEP_MAX).contains(&keep) => {
            refused(format!("the moments to keep must be 1 to {}", Trigger::KEEP_MAX))
        }
        (None | Some(_), _) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: u64, length: u64) -> Span {
        Span { start: Nanos::from_nanos(start), length: Nanos::from_nanos(length) }
    }

    fn trigger(above: Option<u64>, keep: Option<u32>) -> Trigger {
        Trigger { stop_above_ns: above.map(Nanos::from_nanos), keep }
    }

    /// Check that each CPU keeps its longest moments, and none without an option for that.
    #[test]
    fn longest_moments() {
        let cpus: CpuSet = "1,3".parse().unwrap();
        let worst = WorstMoments::default();
        worst.prepare(&cpus, trigger(Some(5), None));
        assert!(!worst.keep(Cpu::new(1), span(1, 9)));
        worst.prepare(&cpus, trigger(Some(5), Some(2)));
        for (at, length) in [(1, 9), (20, 7), (40, 8), (60, 30), (100, 6)] {
            assert!(worst.keep(Cpu::new(1), span(at, length)));
        }
        assert!(worst.keep(Cpu::new(3), span(2, 1)));
        assert!(!worst.keep(Cpu::new(2), span(2, 1)));
        let mut all = worst.all();
        all.sort_unstable();
        assert_eq!(all, [span(1, 9), span(2, 1), span(60, 30)]);
    }

    /// Check that a moment makes the stop request, unless there is room for moments.
    #[test]
    fn stops_or_goes_on() {
        let (stop, worst) = (AtomicBool::new(false), WorstMoments::default());
        let cpu = Cpu::new(0);
        worst.prepare(&cpu.into(), trigger(Some(5), Some(1)));
        OnMoment::of(&stop, &worst, cpu)
            .handle(|| (Nanos::from_nanos(9), Nanos::from_nanos(7)));
        assert!(!stop.load(Ordering::Relaxed) && worst.all().len() == 1);
        OnMoment::stopping(&stop).handle(|| (Nanos::from_nanos(9), Nanos::from_nanos(7)));
        assert!(stop.load(Ordering::Relaxed));
    }

    /// Check which limits are refused.
    #[test]
    fn limits() {
        let is_valid = |above, keep| check_trigger("gap", trigger(above, keep)).is_ok();
        assert!(is_valid(None, None) && is_valid(Some(1), None));
        assert!(is_valid(Some(1), Some(1)) && is_valid(Some(1), Some(100)));
        assert!(!is_valid(Some(0), None) && !is_valid(None, Some(1)));
        assert!(!is_valid(Some(1), Some(0)) && !is_valid(Some(1), Some(101)));
    }
}
