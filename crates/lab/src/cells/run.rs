//! How cells are run, and what is reported while they run.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use recording::Cell;

use crate::cells::progress::Progress;

/// How to run cells.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// The number of cells that run in parallel, at least one.
    pub jobs: usize,
    /// Whether to run cached cells again and compare the results.
    pub fresh: bool,
    /// The CPU time plus the time asleep that QEMU may use for a guest to boot, to measure in
    /// addition to the measured time, and to power off; a guest that needs more is lost.
    pub deadline: Duration,
    /// Set by another thread to stop early.
    pub stop: &'a AtomicBool,
}

/// Receives the progress of a run.
pub trait CellObserver {
    /// A slow step begins, described in a line.
    fn say(&mut self, text: &str);
    /// What a user has to know of the results, in a line.
    fn remark(&mut self, text: &str);
    /// A cell, or one of its variations, has ended.
    fn ended(&mut self, cell: &Cell);
    /// Cells have started or ended, or a second has passed.
    fn progress(&mut self, progress: Progress);
}

/// A step of a cell before it ends.
pub(crate) enum Step {
    /// Another process runs it.
    Waits,
    /// Its kernel, of that release, is booted to read its symbols.
    ReadsSymbols(String),
    /// Its guest boots.
    Boots,
}

/// Called for each step of a cell.
pub(crate) type Notify<'a> = &'a dyn Fn(Step);
