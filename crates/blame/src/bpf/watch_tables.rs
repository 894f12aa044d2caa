//! The tables of the BPF programs that watch a program's threads, as in `watch.bpf.c`.

use crate::bpf::nesting::Nesting;
use crate::bpf::threads::ThreadKey;

/// `NUMBERS`, `GROUPS`, `SUMS`, `RUNS`, `RECENT`, `FINE` there.
pub(crate) const NUMBERS: u32 = 256;
pub(crate) const GROUPS: usize = 7;
const SUMS: usize = QUOTA;
const RUNS: usize = 16;
const RECENT: usize = 64;
const FINE: u32 = 5;
/// `enum group`.
pub(crate) const WATCHED: u32 = 1;
const QUOTA: usize = 6;
/// By how many nanoseconds sums may be ahead.
const AHEAD: u64 = 10_000;
/// `enum state`.
const WAITS: u8 = 2;

/// `struct thread`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Thread {
    pub(crate) who: ThreadKey,
    cpu: u16,
    state: u8,
    was_preempted: u8,
    is_throttled: u8,
    has_moved: u8,
    is_misread: u8,
    unused: u8,
    since: u64,
    begun: u64,
    pub(crate) run: u64,
    pub(crate) wait: u64,
    pub(crate) waits: u64,
    pub(crate) longest: u64,
    head: u32,
    pub(crate) prio: i32,
    pub(crate) slept: u64,
    before: [u64; SUMS],
    took: u64,
    runs: u64,
    pub(crate) preempted: u64,
    user: u64,
    system: u64,
    minor: u64,
    major: u64,
    pub(crate) process: u32,
    has_ended: u32,
    pub(crate) parts: [u64; GROUPS],
    pub(crate) interrupted: u64,
    pub(crate) interruptions: u64,
    pub(crate) moved: u64,
    user_before: u64,
    system_before: u64,
    minor_before: u64,
    major_before: u64,
    so_far: [u64; SUMS],
    pub(crate) name: [u8; 16],
    place: u32,
    spare: [u32; 3],
}

/// `struct taker`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Taker {
    pub(crate) ns: u64,
    pub(crate) runs: u64,
    pub(crate) process: u32,
    pub(crate) prio: i32,
    pub(crate) group: u32,
    spare: u32,
    pub(crate) name: [u8; 16],
}

/// `struct source`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(C)]
pub(crate) struct Source {
    pub(crate) level: u32,
    pub(crate) id: u32,
}

/// `struct interruption`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Interruption {
    pub(crate) ns: u64,
    pub(crate) count: u64,
    pub(crate) longest: u64,
}

/// `struct run`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Run {
    pub(crate) since: u64,
    pub(crate) tid: u32,
    pub(crate) process: u32,
    pub(crate) prio: i32,
    pub(crate) group: u32,
    pub(crate) name: [u8; 16],
}

/// `struct delay`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Delay {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) here: u64,
    pub(crate) parts: [u64; GROUPS],
    pub(crate) who: ThreadKey,
    pub(crate) process: u32,
    pub(crate) prio: i32,
    pub(crate) cpu: u32,
    pub(crate) kind: u32,
    pub(crate) was_preempted: u32,
    pub(crate) runs_seen: u32,
    pub(crate) source: Source,
    pub(crate) name: [u8; 16],
    pub(crate) runs: [Run; RUNS],
}

/// `struct slot`.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Slot {
    nesting: Nesting,
    version: u64,
    since: u64,
    interrupted: u64,
    interruptions: u32,
    has_ended: u32,
    group: u32,
    is_watched: u32,
    runs: ThreadKey,
    waiting: u32,
    counted: u32,
    arrived: u32,
    head: u32,
    sums: [u64; SUMS],
    charged: u64,
    charged_at: u64,
    inside: u64,
    outside: u64,
    least: u64,
    least_at: u32,
    pub(crate) stored: u32,
    pub(crate) lost_threads: u64,
    pub(crate) lost_takers: u64,
    pub(crate) lost_delays: u64,
    pub(crate) unsure: u64,
    pub(crate) unknown: u64,
    pub(crate) unseen: u64,
    spare: [u64; 6],
    recent: [Run; RECENT],
}

impl Thread {
    /// Whether a place has a thread.
    pub(crate) fn is_used(&self) -> bool {
        self.who.tid != 0
    }

    /// Whether the thread has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended != 0
    }

    /// What it had of CPUs while other watched threads waited for them.
    pub(crate) fn as_taker(&self) -> Option<Taker> {
        (self.runs > 0).then_some(Taker {
            ns: self.took,
            runs: self.runs,
            process: self.process,
            prio: self.prio,
            group: WATCHED,
            spare: 0,
            name: self.name,
        })
    }

    /// Times in user mode and in the kernel, in nanoseconds; page faults without and with a read.
    pub(crate) fn usage(&self) -> [u64; 4] {
        [
            self.user.saturating_sub(self.user_before),
            self.system.saturating_sub(self.system_before),
            self.minor.saturating_sub(self.minor_before),
            self.major.saturating_sub(self.major_before),
        ]
    }

    /// Adds a wait that has not ended, until the end of its CPU's sums.
    pub(crate) fn end_wait(&mut self, slots: &[Slot]) {
        let slot = slots.get(usize::from(self.cpu));
        let Some(slot) = slot.filter(|_| self.state == WAITS) else { return };
        let length = slot.since.saturating_sub(self.begun);
        self.wait += length;
        self.waits += 1;
        self.longest = self.longest.max(length);
        if self.is_throttled != 0 {
            self.parts[QUOTA] += length;
            return;
        }
        let mut parts = if self.has_moved == 0 { [0; SUMS] } else { self.so_far };
        for (at, part) in parts.iter_mut().enumerate() {
            *part += slot.sums[at].saturating_sub(self.before[at]);
        }
        if self.is_misread == 0 && parts.iter().sum::<u64>() <= length + AHEAD {
            self.parts.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
        }
    }
}

/// The longest length in a bin, as `bin_of` in `watch.bpf.c` has them.
pub(crate) fn longest_of_bin(bin: u32) -> u64 {
    let steps = 1 << FINE;
    let (power, step) = (bin >> FINE, u64::from(bin) & (steps - 1));
    match power.checked_sub(1) {
        None => step,
        Some(shift) => {
            let next = u128::from(steps + step + 1) << shift;
            u64::try_from(next - 1).unwrap_or(u64::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::object::layout::check_layout;
    use crate::bpf::watch_programs::OBJECT;

    /// Check that the structures are those of the BPF programs: threads.
    #[test]
    fn layout_of_threads() {
        check_layout!(
            OBJECT,
            "thread",
            Thread {
                who,
                cpu,
                state,
                was_preempted,
                is_throttled,
                has_moved,
                is_misread,
                unused,
                since,
                begun,
                run,
                wait,
                waits,
                longest,
                head,
                prio,
                slept,
                before,
                took,
                runs,
                preempted,
                user,
                system,
                minor,
                major,
                process,
                has_ended,
                parts,
                interrupted,
                interruptions,
                moved,
                user_before,
                system_before,
                minor_before,
                major_before,
                so_far,
                name,
                place,
                spare
            }
        );
    }

    /// The same of what delays them.
    #[test]
    fn layout_of_delays() {
        check_layout!(
            OBJECT,
            "taker",
            Taker { ns, runs, process, prio, group, spare, name }
        );
        check_layout!(OBJECT, "source", Source { level, id });
        check_layout!(OBJECT, "interruption", Interruption { ns, count, longest });
        check_layout!(OBJECT, "run", Run { since, tid, process, prio, group, name });
        check_layout!(
            OBJECT,
            "delay",
            Delay {
                begin,
                end,
                here,
                parts,
                who,
                process,
                prio,
                cpu,
                kind,
                was_preempted,
                runs_seen,
                source,
                name,
                runs
            }
        );
    }

    /// The same of CPUs.
    #[test]
    fn layout_of_slots() {
        check_layout!(
            OBJECT,
            "slot",
            Slot {
                nesting,
                version,
                since,
                interrupted,
                interruptions,
                has_ended,
                group,
                is_watched,
                runs,
                waiting,
                counted,
                arrived,
                head,
                sums,
                charged,
                charged_at,
                inside,
                outside,
                least,
                least_at,
                stored,
                lost_threads,
                lost_takers,
                lost_delays,
                unsure,
                unknown,
                unseen,
                spare,
                recent
            }
        );
    }

    /// Check that the values of the most used tables are whole cache lines.
    #[test]
    fn cache_lines() {
        assert_eq!(size_of::<Thread>() % 64, 0);
        assert_eq!(size_of::<Slot>() % 64, 0);
        assert_eq!(std::mem::offset_of!(Slot, sums), 128);
    }

    /// Check that bins adjoin, and that none is wider than 1/32 of its lengths.
    #[test]
    fn bins() {
        assert_eq!(longest_of_bin(0), 0);
        assert_eq!(longest_of_bin(63), 63);
        for bin in 1..1920 {
            let (shortest, longest) = (longest_of_bin(bin - 1) + 1, longest_of_bin(bin));
            assert!(longest >= shortest && longest - shortest <= shortest / 32, "{bin}");
        }
        assert_eq!(longest_of_bin(1919), u64::MAX);
    }
}
