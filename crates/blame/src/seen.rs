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
    /// It is known to be the kernel's.
    pub(crate) is_kernels: bool,
}

impl Record {
    /// A thread's name.
    pub(crate) fn name(&self) -> String {
        text_of(self.comm)
    }

    /// Of a thread, its process.
    pub(crate) fn process(&self) -> u32 {
        u32::try_from(self.detail >> 32).unwrap_or(0)
    }

    /// Whether it is the thread that runs when nobody wants to.
    pub(crate) fn is_idle(&self) -> bool {
        self.level == Level::Thread && self.id == 0
    }
}

/// A thread's name, which ends with its first zero.
pub(crate) fn text_of(comm: [u8; 16]) -> String {
    let end = comm.iter().position(|byte| *byte == 0).unwrap_or(comm.len());
    String::from_utf8_lossy(&comm[..end]).into_owned()
}

/// Time that the hypervisor took from a CPU, as its clock counted it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stolen {
    /// When the clock had been read before, on the records' clock.
    pub(crate) from: u64,
    /// When it was read.
    pub(crate) until: u64,
    /// What it counted in between.
    pub(crate) ns: u64,
}

/// Events that were not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Loss {
    /// After that time of the records' clock.
    pub(crate) from: u64,
    /// Before that time.
    pub(crate) until: u64,
    /// How many.
    pub(crate) events: u64,
}

/// What was seen on one CPU.
pub(crate) struct Lane {
    pub(crate) cpu: Cpu,
    /// Level by level in the order in which they ended, as far as they were read at once.
    pub(crate) records: Vec<Record>,
    /// Those that were overwritten before they were read, or were too many to keep: between which
    /// kept ones of their level they ended, or in which stretch without any.
    pub(crate) losses: Vec<Loss>,
    /// What the hypervisor took, in rising order.
    pub(crate) stolen: Vec<Stolen>,
    /// Whether `stolen` is all of it: its clock could be read.
    pub(crate) has_steal_clock: bool,
    /// Some of `stolen` was overwritten before it was read.
    has_lost_steal: bool,
    /// When the last one of each level ended, and where in `losses` those after it are.
    last: [(u64, Option<usize>); Level::ALL.len()],
}

impl Lane {
    pub(crate) fn new(cpu: Cpu) -> Self {
        Self {
            cpu,
            records: Vec::new(),
            losses: Vec::new(),
            stolen: Vec::new(),
            has_steal_clock: false,
            has_lost_steal: false,
            last: [(0, None); Level::ALL.len()],
        }
    }

    /// Keeps a record of that level; `None`: one was lost.
    pub(crate) fn take(&mut self, level: Level, record: Option<Record>) {
        let (end, place) = &mut self.last[level as usize];
        let Some(record) = record.filter(|_| self.records.len() < KEPT) else {
            let place = *place.get_or_insert_with(|| {
                self.losses.push(Loss { from: *end, until: u64::MAX, events: 0 });
                self.losses.len() - 1
            });
            if let Some(loss) = self.losses.get_mut(place) {
                loss.events += 1;
            }
            return;
        };
        if let Some(loss) = place.take().and_then(|place| self.losses.get_mut(place)) {
            loss.until = record.end;
        }
        *end = record.end;
        self.records.push(record);
    }

    /// Keeps what the hypervisor took; `None`: that was lost.
    pub(crate) fn steal(&mut self, stolen: Option<Stolen>) {
        self.has_lost_steal |= stolen.is_none();
        self.stolen.extend(stolen);
    }

    /// What the hypervisor took; `None` where that is not known.
    pub(crate) fn all_stolen(&self) -> Option<&[Stolen]> {
        (self.has_steal_clock && !self.has_lost_steal).then_some(&self.stolen)
    }

    /// So many events of any level were lost between two times. Returns the loss's place.
    pub(crate) fn lose(&mut self, events: u64, from: u64, until: u64) -> usize {
        self.losses.push(Loss { from, until, events });
        self.losses.len() - 1
    }

    /// So many more events were lost than is known from where: with the last ones that were, or at
    /// any time.
    pub(crate) fn lose_more(&mut self, events: u64) {
        match self.losses.last_mut() {
            _ if events == 0 => {}
            Some(loss) => loss.events = loss.events.saturating_add(events),
            None => {
                self.lose(events, 0, u64::MAX);
            }
        }
    }

    /// What went on when events were lost went on until then, at least.
    pub(crate) fn stretch(&mut self, place: usize, until: u64) {
        if let Some(loss) = self.losses.get_mut(place) {
            loss.until = until.max(loss.until);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::tests::record;

    /// Check that losses of each level say how many events were lost between which ones that were
    /// kept.
    #[test]
    fn losses_are_counted() {
        let mut lane = Lane::new(Cpu::new(1));
        let thread = |end| Some(record(Level::Thread, 1, end));
        for taken in [None, thread(10), None, None, thread(40), None] {
            lane.take(Level::Thread, taken);
        }
        lane.take(Level::Softirq, None);
        let found: Vec<_> =
            lane.losses.iter().map(|loss| (loss.from, loss.until, loss.events)).collect();
        let end = u64::MAX;
        assert_eq!(found, [(0, 10, 1), (10, 40, 2), (40, end, 1), (0, end, 1)]);
        lane.lose_more(7);
        assert_eq!(lane.losses.iter().map(|loss| loss.events).sum::<u64>(), 12);
    }
}
