//! How cells are run, and what is reported meanwhile.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::cells::progress::Progress;

/// How to run cells.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    /// How many cells side by side, at least one.
    pub jobs: usize,
    /// Whether to run cells whose result is kept, too, to confirm it.
    pub fresh: bool,
    /// The CPU time, and time asleep, that QEMU may take for a guest to boot, to measure beyond
    /// the measured time, and to power off; a guest that takes more is lost.
    pub deadline: Duration,
    /// The order to end early.
    pub stop: &'a AtomicBool,
}

/// Who is told what goes on.
pub trait Observer {
    /// Something that takes a while, in words.
    fn say(&mut self, text: &str);
    /// How far it is.
    fn progress(&mut self, progress: Progress);
}

/// What happens to a cell before it ends.
pub(crate) enum Step {
    /// Another lab runs it.
    Waits,
    /// Its kernel, of that release, is booted to be asked for its symbols.
    AsksSymbols(String),
    /// Its guest boots.
    Boots,
}

/// Who is told of a cell's steps.
pub(crate) type Notify<'a> = &'a dyn Fn(Step);
