//! The BPF programs that add up what uses each CPU, and their sums (`bpf/top.bpf.c`; since Linux 5.11,
//! for the thread that runs at the beginning).
//!
//! Sums only grow: the difference of two readings is what happened in between. The sums of threads that
//! have not run for a while are removed from the table, so that it has a fixed size; a thread that runs
//! again in that moment may lose a run.

use libbpf_rs::MapCore as _;
use units::CpuSet;

use crate::bpf::attached::{Attached, failed};
use crate::bpf::mapped::Mapped;
use crate::bpf::nesting::Nesting;
use crate::bpf::object::{Loaded, Opened};
use crate::bpf::threads::{elements, run_on};
use crate::clock::now;
use crate::error::{Error, Kind};

/// The compiled `top.bpf.c`.
pub(crate) const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/top.o"));
/// `GROUPS` there, and the places of groups in `enum group`.
const GROUPS: usize = 4;
const PROGRAMS: usize = 1;
const KERNEL: usize = 2;
const INTERRUPTS: usize = 3;
/// `BOUNDS` there, their values in ns, and `LENGTHS`.
pub(crate) const BOUNDS: [u64; 16] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    20_000_000,
    50_000_000,
    100_000_000,
];
const LENGTHS: usize = BOUNDS.len() + 1;
/// `LEAVINGS` there.
const LEAVINGS: usize = 3;
/// `THREAD` there.
const THREAD: u32 = 3;
/// The uses for which there is room, and how many more for each CPU.
const USES: u32 = 16384;
const USES_OF_CPU: u32 = 256;
/// A thread's sums are removed when it has not run for this long.
const UNUSED_NS: u64 = 10_000_000_000;
/// How often a slot is read that changes at the same time.
const TRIES: u32 = 100;

/// `struct key`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(C)]
pub(crate) struct Key {
    pub(crate) cpu: u32,
    pub(crate) level: u32,
    pub(crate) id: u32,
    born: u32,
}

/// `struct peak`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
struct Peak {
    interval: u32,
    spare: u32,
    longest: [u64; 2],
}

/// `struct use`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Row {
    ns: u64,
    count: u64,
    last: u64,
    peak: Peak,
    process: u32,
    prio: i32,
    group: u32,
    spare: u32,
    name: [u8; 16],
}

/// `struct slot`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct Slot {
    version: u64,
    since: u64,
    interrupted: u64,
    sums: [u64; GROUPS],
    nesting: Nesting,
    interruptions: Peak,
    waited: u64,
    waits: u64,
    wait: Peak,
    quota: u64,
    quota_since: u64,
    quota_of: u64,
    lost: u64,
    unseen: u64,
    switches: [u64; LEAVINGS],
    interruption_lengths: [u64; LENGTHS],
    wait_lengths: [u64; LENGTHS],
    tid: u32,
    born: u32,
    process: u32,
    prio: i32,
    group: u32,
    has: u32,
    name: [u8; 16],
}

/// What a CPU has done since the beginning, and the longest times of the interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CpuSums {
    pub(crate) cpu: u32,
    pub(crate) programs: u64,
    pub(crate) kernel: u64,
    pub(crate) interrupts: u64,
    pub(crate) interruption_max: u64,
    /// Time waited, the number of waits, and the longest of the interval.
    pub(crate) wait: Option<(u64, u64, u64)>,
    pub(crate) quota: Option<u64>,
    pub(crate) lost: u64,
    pub(crate) unseen: u64,
    /// Threads that went to sleep, were preempted, and the idle task.
    pub(crate) switches: [u64; LEAVINGS],
    /// The number of interruptions and of waits of each length, by [`BOUNDS`].
    pub(crate) interruption_lengths: [u64; LENGTHS],
    pub(crate) wait_lengths: [u64; LENGTHS],
}

/// The same of a thread or an interrupt on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UseSums {
    pub(crate) key: Key,
    pub(crate) ns: u64,
    pub(crate) count: u64,
    pub(crate) longest: u64,
    pub(crate) process: u32,
    pub(crate) prio: i32,
    pub(crate) is_kernel: bool,
    /// Whether it has not run for a while, and was removed from the table: it would begin with 0 again.
    pub(crate) is_removed: bool,
    pub(crate) name: [u8; 16],
}

/// A reading of all sums.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reading {
    pub(crate) cpus: Vec<CpuSums>,
    pub(crate) uses: Vec<UseSums>,
}

/// The attached programs.
pub(crate) struct TopPrograms {
    slots: Mapped<Slot>,
    count: usize,
    loaded: Loaded,
    attached: Attached,
    interval: u32,
}

impl Key {
    /// Whether it is a thread.
    pub(crate) fn is_thread(self) -> bool {
        self.level == THREAD
    }
}

impl TopPrograms {
    /// Loads and attaches the programs, and counts from now on.
    ///
    /// # Errors
    /// The kernel refuses them.
    pub(crate) fn begin(online: &CpuSet) -> Result<Self, Error> {
        // CPUs may be switched on meanwhile.
        let count = libbpf_rs::num_possible_cpus().map_err(failed)?;
        let cpus = u32::try_from(count).unwrap_or(u32::MAX);
        let mut opened = Opened::open("noisefloor", OBJECT)?;
        opened.set("bounds", &BOUNDS)?;
        opened.set_capacity("slots", cpus)?;
        let uses = USES.saturating_add(USES_OF_CPU.saturating_mul(cpus));
        opened.set_capacity("uses", uses)?;
        let loaded = opened.load()?;
        let slots = Mapped::new(&loaded.map("slots")?, count)?;
        let mut attached = Attached::default();
        attached.interrupts(&loaded)?;
        let switched = loaded.program("switched")?;
        attached.links.push(switched.attach_trace().map_err(failed)?);
        run_on(&loaded.program("begin_here")?, online);
        Ok(Self { slots, count, loaded, attached, interval: 0 })
    }

    /// The tracepoints of interrupts that this kernel lacks.
    pub(crate) fn missing(&self) -> &[&'static str] {
        &self.attached.missing
    }

    /// Ends an interval, and reads the sums of the CPUs that have been online.
    ///
    /// # Errors
    /// They cannot be read.
    pub(crate) fn read(&mut self) -> Result<Reading, Error> {
        let ended = self.interval;
        self.interval = ended.wrapping_add(1);
        self.loaded.set("interval", self.interval)?;
        let map = self.loaded.map("uses")?;
        let rows: Vec<(Key, Row)> = elements(&map)?;
        let slots = (0..self.count).map(|place| self.slot(place));
        let slots = slots.collect::<Result<Vec<Slot>, Error>>()?;
        let now = now().get();
        let mut reading = Reading::default();
        let mut is_listed = vec![false; slots.len()];
        for (key, row) in &rows {
            let cpu = key.cpu as usize;
            let runs = slots.get(cpu).filter(|slot| slot.runs(*key));
            if runs.is_some() {
                is_listed[cpu] = true;
            }
            let mut sums = row.sums(*key, runs, ended, now);
            if runs.is_none() && now.saturating_sub(row.last) > UNUSED_NS {
                // Another one may have been stored in its place: that is not an error.
                let _ = map.delete(&key.bytes());
                sums.is_removed = true;
            }
            reading.uses.push(sums);
        }
        for ((cpu, slot), is_listed) in (0_u32..).zip(&slots).zip(is_listed) {
            if slot.since > 0 {
                reading.cpus.push(slot.sums(cpu, ended, now));
                if slot.tid > 0 && !is_listed {
                    let (key, row) = slot.row(cpu);
                    reading.uses.push(row.sums(key, Some(slot), ended, now));
                }
            }
        }
        Ok(reading)
    }

    /// A slot that does not change while it is read.
    fn slot(&self, place: usize) -> Result<Slot, Error> {
        let failed = || Error::new(Kind::System, "failed to read the sums of a CPU");
        for _ in 0..TRIES {
            let first = self.slots.read(place).ok_or_else(failed)?;
            let again = self.slots.read(place).ok_or_else(failed)?;
            if first.version == again.version && first.version % 2 == 0 {
                return Ok(first);
            }
            std::hint::spin_loop();
        }
        Err(failed())
    }
}

impl Key {
    fn bytes(self) -> [u8; 16] {
        let mut bytes = [0; 16];
        let parts = [self.cpu, self.level, self.id, self.born];
        for (to, part) in bytes.chunks_exact_mut(4).zip(parts) {
            to.copy_from_slice(&part.to_ne_bytes());
        }
        bytes
    }
}

impl Peak {
    /// The longest of an interval that has just ended.
    fn of(&self, ended: u32) -> u64 {
        let is_known = [ended, ended.wrapping_add(1)].contains(&self.interval);
        let [even, odd] = self.longest;
        if !is_known {
            0
        } else if ended % 2 == 0 {
            even
        } else {
            odd
        }
    }
}

impl Row {
    /// With the run of now, if it is the current thread of this CPU.
    fn sums(&self, key: Key, runs: Option<&Slot>, ended: u32, now: u64) -> UseSums {
        let (current, since) = runs
            .map_or((0, 0), |slot| (slot.current(now), now.saturating_sub(slot.since)));
        UseSums {
            key,
            ns: self.ns + current,
            count: self.count,
            longest: self.peak.of(ended).max(since),
            process: self.process,
            prio: self.prio,
            is_kernel: self.group as usize == KERNEL,
            is_removed: false,
            name: self.name,
        }
    }
}

impl Slot {
    fn runs(&self, key: Key) -> bool {
        key.is_thread() && key.id == self.tid && key.born == self.born
    }

    /// The time of the interrupts in progress.
    fn interrupt(&self, now: u64) -> u64 {
        self.nesting.since().map_or(0, |since| now.saturating_sub(since))
    }

    /// The time of the current thread since it got the CPU, without interrupts.
    fn current(&self, now: u64) -> u64 {
        let whole = now.saturating_sub(self.since);
        whole.saturating_sub(self.interrupted).saturating_sub(self.interrupt(now))
    }

    fn sums(&self, cpu: u32, ended: u32, now: u64) -> CpuSums {
        let of = |group: usize| {
            let current =
                if self.group as usize == group { self.current(now) } else { 0 };
            self.sums[group] + current
        };
        let interrupt = self.interrupt(now);
        let quota = self.quota
            + if self.quota_since > 0 { now.saturating_sub(self.quota_since) } else { 0 };
        CpuSums {
            cpu,
            programs: of(PROGRAMS),
            kernel: of(KERNEL),
            interrupts: self.sums[INTERRUPTS] + interrupt,
            interruption_max: self.interruptions.of(ended).max(interrupt),
            wait: (self.has & 1 > 0)
                .then(|| (self.waited, self.waits, self.wait.of(ended))),
            quota: (self.has & 2 > 0).then_some(quota),
            lost: self.lost,
            unseen: self.unseen,
            switches: self.switches,
            interruption_lengths: self.interruption_lengths,
            wait_lengths: self.wait_lengths,
        }
    }

    /// The current thread, whose sums are those of a thread that has not run here before.
    fn row(&self, cpu: u32) -> (Key, Row) {
        let key = Key { cpu, level: THREAD, id: self.tid, born: self.born };
        let row = Row {
            ns: 0,
            count: 0,
            last: self.since,
            peak: Peak::default(),
            process: self.process,
            prio: self.prio,
            group: self.group,
            spare: 0,
            name: self.name,
        };
        (key, row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bpf::object::layout::check_layout;

    /// Check that the structures are those of the BPF programs.
    #[test]
    fn layouts() {
        check_layout!(OBJECT, "key", Key { cpu, level, id, born });
        check_layout!(OBJECT, "peak", Peak { interval, spare, longest });
        check_layout!(
            OBJECT,
            "use",
            Row { ns, count, last, peak, process, prio, group, spare, name }
        );
        check_layout!(
            OBJECT,
            "slot",
            Slot {
                version,
                since,
                interrupted,
                sums,
                nesting,
                interruptions,
                waited,
                waits,
                wait,
                quota,
                quota_since,
                quota_of,
                lost,
                unseen,
                switches,
                interruption_lengths,
                wait_lengths,
                tid,
                born,
                process,
                prio,
                group,
                has,
                name
            }
        );
    }

    /// Check that the longest time is that of the interval that ended, also if another one has begun, and
    /// none of older intervals.
    #[test]
    fn longest_of_an_interval() {
        let peak = |interval| Peak { interval, spare: 0, longest: [5, 7] };
        assert_eq!([peak(4).of(4), peak(5).of(4), peak(5).of(5)], [5, 5, 7]);
        assert_eq!([peak(3).of(4), peak(6).of(4)], [0, 0]);
    }
}
