//! What is known of a run of `slices`, which its summary is made of.

use serde::{Deserialize, Serialize};
use units::Nanos;

/// Everything that is known of a run.
#[derive(Debug, Clone, Default)]
pub struct SlicesInput<'a> {
    /// The tasks: spinners, then sleepers.
    pub tasks: Vec<SlicesTaskInput<'a>>,
    /// How many of them spin.
    pub spinners: usize,
    /// How many CPUs they may use.
    pub cpus: usize,
    /// The steps' settings in words; the first one, as everything was found, is not among them.
    pub steps: Vec<String>,
    /// The turns, in their order.
    pub turns: Vec<SlicesTurnInput>,
    /// What ran, CPU by CPU, in its order; `None`: nobody watched.
    pub stretches: Option<Vec<Vec<StretchInput<'a>>>>,
    /// The length of a tick, in which the 2009 report counted.
    pub tick: Option<Nanos>,
}

/// A task.
#[derive(Debug, Clone, Copy)]
pub struct SlicesTaskInput<'a> {
    /// Its name, which no other task has.
    pub name: &'a str,
}

/// A stretch of time with one step's settings.
#[derive(Debug, Clone)]
pub struct SlicesTurnInput {
    /// The step, counted from 1; 0: as everything was found.
    pub step: usize,
    /// What was seen, one sample after the other.
    pub samples: Vec<SlicesSampleInput>,
}

/// What each task did in a stretch of time.
#[derive(Debug, Clone)]
pub struct SlicesSampleInput {
    /// When it began.
    pub start: Nanos,
    /// How long it was.
    pub wall: Nanos,
    /// Each task, in the tasks' order.
    pub tasks: Vec<TaskTimeInput>,
}

/// What one task did.
#[derive(Debug, Clone, Copy, Default)]
pub struct TaskTimeInput {
    /// The CPU time that it used.
    pub cpu: Nanos,
    /// How often it had to leave the CPU.
    pub involuntary: u64,
    /// How often it left it by itself.
    pub voluntary: u64,
    /// Passes of a spinner's loop; times that a sleeper woke up.
    pub passes: u64,
}

/// A task that ran on a CPU, and left it.
#[derive(Debug, Clone, Copy)]
pub struct StretchInput<'a> {
    /// When it left.
    pub left: Nanos,
    /// How long it had run; `None` where nobody saw it begin.
    pub length: Option<Nanos>,
    /// The task's name.
    pub task: &'a str,
    /// Why it ended.
    pub end: SliceEnd,
}

/// Why a slice ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SliceEnd {
    /// A tick found that it had been long enough.
    Tick,
    /// Another task was woken, and preempted it.
    Wakeup,
    /// The task let others go first.
    Yield,
    /// It had nothing more to do.
    Sleep,
    /// Something else.
    Other,
}

impl SlicesInput<'_> {
    /// The turns of a step.
    pub(crate) fn turns(&self, step: usize) -> impl Iterator<Item = &SlicesTurnInput> {
        self.turns.iter().filter(move |turn| turn.step == step)
    }
}

impl TaskTimeInput {
    /// One task's time, or several tasks', added up.
    pub(crate) fn sum<'a>(times: impl IntoIterator<Item = &'a Self>) -> Self {
        times.into_iter().fold(Self::default(), |sum, time| Self {
            cpu: sum.cpu + time.cpu,
            involuntary: sum.involuntary + time.involuntary,
            voluntary: sum.voluntary + time.voluntary,
            passes: sum.passes.saturating_add(time.passes),
        })
    }

    /// The mean slice; `None` where the task never had to leave the CPU.
    pub(crate) fn mean_slice(&self) -> Option<Nanos> {
        self.cpu.get().checked_div(self.involuntary).map(Nanos::from_nanos)
    }
}
