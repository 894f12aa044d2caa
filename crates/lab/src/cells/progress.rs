//! The progress of a run of cells, and an estimate of the remaining time.
//!
//! The estimate assumes that every cell takes the mean time of those that ended, of which running
//! cells have used a part. Cannot see that cells differ: long rows at the end of a table take
//! longer than estimated.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use recording::{Cell, Ending};

/// The progress of an experiment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// All cells.
    pub cells: usize,
    /// Cells that were run now.
    pub ran: usize,
    /// Cells whose result was cached.
    pub cached: usize,
    /// Cells without a result.
    pub lost: usize,
    /// Cells that are being run.
    pub running: usize,
    /// The estimated remaining time, if there is one.
    pub left: Option<Duration>,
}

/// The events so far.
pub(crate) struct Tracker {
    cells: usize,
    /// How many cells run in parallel; 0: that is not known, and the remaining time is not estimated.
    jobs: usize,
    /// When each cell that runs booted.
    running: BTreeMap<usize, Instant>,
    ran: usize,
    cached: usize,
    lost: usize,
    /// The number of cells that booted and ended, and their time.
    ended: u32,
    took: Duration,
}

impl Tracker {
    pub(crate) fn new(cells: usize, jobs: usize) -> Self {
        Self {
            cells,
            jobs,
            running: BTreeMap::new(),
            ran: 0,
            cached: 0,
            lost: 0,
            ended: 0,
            took: Duration::ZERO,
        }
    }

    /// A cell boots.
    pub(crate) fn boots(&mut self, index: usize) {
        self.running.insert(index, Instant::now());
    }

    /// A cell has ended; `None` if it was ended early.
    pub(crate) fn ended(&mut self, index: usize, cell: Option<&Cell>) {
        let began = self.running.remove(&index);
        match cell {
            None => return,
            Some(cell) if cell.cached => self.cached += 1,
            Some(cell) => {
                self.ran += 1;
                self.lost += usize::from(matches!(cell.ending, Ending::Lost { .. }));
            }
        }
        if let Some(began) = began {
            self.ended += 1;
            self.took += began.elapsed();
        }
    }

    pub(crate) fn progress(&self) -> Progress {
        let Self { cells, ran, cached, lost, .. } = *self;
        let running = self.running.len();
        let to_do = cells.saturating_sub(ran + cached);
        let had: Vec<Duration> = self.running.values().map(Instant::elapsed).collect();
        let mean = self.took.checked_div(self.ended).filter(|_| self.jobs > 0);
        let left = mean.map(|mean| left(mean, to_do, &had, self.jobs));
        Progress { cells, ran, cached, lost, running, left }
    }
}

/// The time for that many cells, of which some have used some time.
fn left(mean: Duration, to_do: usize, had: &[Duration], jobs: usize) -> Duration {
    let count = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    // A cell that runs longer than the mean does not make the others shorter.
    let had: Duration = had.iter().map(|had| mean.min(*had)).sum();
    let all = mean.saturating_mul(count(to_do)).saturating_sub(had);
    all / count(jobs.min(to_do).max(1))
}

/// A cell without a result.
#[cfg(test)]
pub(crate) fn lost_cell() -> Cell {
    Cell {
        name: String::new(),
        asked: String::new(),
        kernel: String::new(),
        image_bytes: None,
        machine: String::new(),
        params: String::new(),
        settings: Vec::new(),
        services: Vec::new(),
        workload: String::new(),
        watch: None,
        mode: recording::Mode::Exact,
        repeat: 1,
        identity: String::new(),
        cached: false,
        ending: Ending::Lost { why: String::new(), console: "".into() },
        variations: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(cached: bool) -> Cell {
        Cell { cached, ..lost_cell() }
    }

    /// Check that the time that running cells have had is not counted as time left, and that
    /// parallel jobs divide it, as far as there are cells.
    #[test]
    fn time_left() {
        let secs = Duration::from_secs;
        let left = |to_do, had: &[u64], jobs| {
            let had: Vec<Duration> = had.iter().copied().map(secs).collect();
            left(secs(10), to_do, &had, jobs).as_secs()
        };
        assert_eq!(left(4, &[], 1), 40);
        assert_eq!(left(4, &[3], 1), 37);
        assert_eq!(left(4, &[4, 2], 2), 17);
        assert_eq!(left(1, &[4], 8), 6);
        assert_eq!(left(2, &[99], 1), 10);
        assert_eq!(left(0, &[], 2), 0);
    }

    /// Check that a cell runs from its boot to its end, and that a cached one, or one that was lost
    /// before it booted, never runs and does not affect the estimate.
    #[test]
    fn counts_cells() {
        let mut tracker = Tracker::new(4, 2);
        tracker.ended(0, Some(&cell(true)));
        tracker.ended(1, Some(&cell(false)));
        let progress = tracker.progress();
        assert_eq!((progress.cached, progress.ran, progress.running), (1, 1, 0));
        assert_eq!((progress.lost, progress.left), (1, None));
        tracker.boots(2);
        assert_eq!(tracker.progress().running, 1);
        tracker.ended(2, Some(&cell(false)));
        tracker.boots(3);
        tracker.ended(3, None);
        let progress = tracker.progress();
        assert_eq!((progress.ran, progress.running), (2, 0));
        assert!(progress.left.is_some());
    }
}
