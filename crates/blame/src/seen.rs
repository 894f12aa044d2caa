//! What was seen: events as they ended, CPU by CPU, and those that were not kept.

use units::Cpu;

use crate::level::Level;

/// So many events of one CPU are kept: 56 bytes each.
const KEPT: usize = 1 << 22;

/// Of a vector without a number (arm64).
pub(crate) const NAMED: u32 = u32::MAX;

/// Something that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) level: Level,
    /// On the kernel's monotonic clock, in nanoseconds.
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Of a vector the function of the first timer that expired; of a thread its process in
    /// the upper half, its priority in the lower.
    pub(crate) detail: u64,
    /// The vector, IRQ, softirq or thread. [`NAMED`]: an interrupt that has no number;
    /// `detail` is where the kernel keeps its name.
    pub(crate) id: u32,
    /// A thread's name.
    pub(crate) comm: [u8; 16],
    /// What was found out about a thread, where that was asked for.
    pub(crate) mark: Mark,
}

/// Whose a thread is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// It is of a process that this one has started, or one of those.
    pub(crate) is_own: bool,
    /// It could have run on when it left the CPU.
    pub(crate) is_runnable: bool,
}

impl Record {
    /// Whether it is the thread that runs when nobody wants to.
    pub(crate) fn is_idle(&self) -> bool {
        self.level == Level::Thread && self.id == 0
    }
}

/// What was seen on one CPU.
pub(crate) struct Lane {
    pub(crate) cpu: Cpu,
    /// Level by level in the order in which they ended, as far as they were read at once.
    pub(crate) records: Vec<Record>,
    /// How many more there were: overwritten before they were read, or too many to keep.
    pub(crate) lost: u64,
    /// When they were, on the records' clock: after and before which kept ones of their level,
    /// or in which stretch without any.
    pub(crate) losses: Vec<(u64, u64)>,
    /// When the last one of each level ended, and where in `losses` those after it are.
    last: [(u64, Option<usize>); Level::ALL.len()],
}

impl Lane {
    pub(crate) fn new(cpu: Cpu) -> Self {
        let last = [(0, None); Level::ALL.len()];
        Self { cpu, records: Vec::new(), lost: 0, losses: Vec::new(), last }
    }

    /// Keeps a record of that level; `None`: one was lost.
    pub(crate) fn take(&mut self, level: Level, record: Option<Record>) {
        let (end, loss) = &mut self.last[level as usize];
        let Some(record) = record.filter(|_| self.records.len() < KEPT) else {
            self.lost += 1;
            loss.get_or_insert_with(|| {
                self.losses.push((*end, u64::MAX));
                self.losses.len() - 1
            });
            return;
        };
        if let Some((_, until)) = loss.take().and_then(|loss| self.losses.get_mut(loss)) {
            *until = record.end;
        }
        *end = record.end;
        self.records.push(record);
    }

    /// So many events of any level were lost between two times. Returns the loss's place.
    pub(crate) fn lose(&mut self, events: u64, from: u64, until: u64) -> usize {
        self.lost = self.lost.saturating_add(events);
        self.losses.push((from, until));
        self.losses.len() - 1
    }

    /// What went on when events were lost went on until then, at least.
    pub(crate) fn stretch(&mut self, loss: usize, until: u64) {
        if let Some((_, end)) = self.losses.get_mut(loss) {
            *end = until.max(*end);
        }
    }
}
