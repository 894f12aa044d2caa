//! The number of records in the rings of a CPU, which limits how long they may remain unread.
//!
//! A ring must hold all records at the highest rate while the reader cannot run. The rates are
//! those of one CPU that does nothing else, with the programs of `bpf/events.bpf.c` attached:
//!
//! | level | at most, /s | because |
//! |---|---|---|
//! | thread | 2,000,000 | a switch, its system call and its program take 0.5 us or more |
//! | softirq | 500,000 | each needs an interrupt or a system call beside its own work |
//! | handler, vector | 250,000 | an interrupt's entry, exit and two programs take 2 us or more |
//! | NMI | 31,250 | `kernel.perf_event_max_sample_rate` limits them |
//! | quota | 15,625 | a period of a CPU quota lasts 1 ms or more |
//!
//! At these rates rings remain unread for 131 ms at most. The programs wake the reader when a
//! quarter of a ring is full, after 33 ms; it then reads a slice, and 20 ms later, since more was
//! written than a slice holds, everything (`bpf.rs`): 53 ms. Without the alarm it sleeps for 50 ms.
//! Real-time throttling stops a real-time reader for 50 ms of each second
//! (`kernel.sched_rt_runtime_us`); 28 ms are left for non-preemptible sections of the kernel, for a
//! hypervisor that takes the reader's CPU, and for the reading. So the ring of threads has 131 ms x
//! 2,000,000 /s = 262,144 records (a test in `ring.rs` fills it). The limit does not hold if the
//! reader may not be a real-time task, nor on machines with more than 15 CPUs, where rings are
//! shorter.

#[cfg(test)]
use std::time::Duration;

use crate::level::Level;

/// The highest rate of records of threads.
#[cfg(test)]
pub(crate) const SWITCHES_PER_SECOND: u32 = 2_000_000;
/// The longest time that rings remain unread.
#[cfg(test)]
pub(crate) const UNREAD: Duration = Duration::from_millis(131);

/// The ring of stolen time, which follows those of the levels.
pub(crate) const STEAL: usize = Level::ALL.len();
/// The number of rings of a CPU.
pub(crate) const RINGS: usize = STEAL + 1;

/// The records of each ring, powers of two. Stolen time has a record for each time that the
/// hypervisor ran something else: 62,500 /s.
const DEPTHS: [u32; RINGS] =
    [1 << 18, 1 << 16, 1 << 15, 1 << 15, 1 << 12, 1 << 11, 1 << 13];
/// Rings are halved at most this often: that of threads then has 16,384 records.
const HALVED_MAX: u32 = 4;
/// The memory limit for the rings of all CPUs, as far as `HALVED_MAX` permits.
const BYTES: usize = 256 << 20;

/// The rings of one CPU, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RingSizes {
    /// How often each ring was halved.
    halved: u32,
}

impl RingSizes {
    /// The rings of each CPU, for a number of traced CPUs and the sizes of a record and a name in
    /// bytes.
    pub(crate) fn for_cpus(cpus: usize, record: usize, name: usize) -> Self {
        let is_enough = |halved: &u32| {
            let sizes = Self { halved: *halved };
            let each =
                sizes.of_lane() * record + sizes.depth(Level::Thread as usize) * name;
            each.saturating_mul(cpus) <= BYTES
        };
        Self { halved: (0..HALVED_MAX).find(is_enough).unwrap_or(HALVED_MAX) }
    }

    /// The records of each ring.
    pub(crate) fn depths(self) -> [u32; RINGS] {
        DEPTHS.map(|depth| depth >> self.halved)
    }

    /// The offset of each ring in the memory of its CPU.
    pub(crate) fn offsets(self) -> [u32; RINGS] {
        let mut next = 0;
        self.depths().map(|depth| {
            next += depth;
            next - depth
        })
    }

    /// The records of one ring.
    pub(crate) fn depth(self, ring: usize) -> usize {
        usize::try_from(DEPTHS[ring] >> self.halved).unwrap_or(0)
    }

    /// The records of all rings of a CPU.
    pub(crate) fn of_lane(self) -> usize {
        (0..RINGS).map(|ring| self.depth(ring)).sum()
    }

    /// The index of a ring's record with that number, in the ring.
    pub(crate) fn within(self, ring: usize, number: u64) -> usize {
        let depth = u64::from(DEPTHS[ring] >> self.halved);
        usize::try_from(number % depth).unwrap_or(0)
    }

    /// The same in the memory of its CPU.
    pub(crate) fn place(self, ring: usize, number: u64) -> usize {
        let before: usize = (0..ring).map(|ring| self.depth(ring)).sum();
        before + self.within(ring, number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that rings stay within the memory limit, that they have their minimum size, and that
    /// they follow one another.
    #[test]
    fn rings_are_bounded() {
        let sizes = |cpus| RingSizes::for_cpus(cpus, 32, 16);
        let threads = [1, 15, 16, 99, 4_096].map(|cpus| sizes(cpus).depth(0));
        assert_eq!(threads, [262_144, 262_144, 131_072, 32_768, 16_384]);
        for sizes in [sizes(1), sizes(64)] {
            let (depths, offsets) = (sizes.depths(), sizes.offsets());
            assert!(depths.iter().all(|depth| depth.is_power_of_two()));
            for ring in 0..RINGS {
                let place = |number: u32| sizes.place(ring, number.into());
                let [first, last] = [place(0), place(depths[ring] - 1)];
                assert_eq!(first, usize::try_from(offsets[ring]).unwrap());
                assert_eq!(last - first + 1, sizes.depth(ring));
                assert_eq!(place(depths[ring]), first);
            }
            assert_eq!(sizes.of_lane(), sizes.place(STEAL, 0) + sizes.depth(STEAL));
        }
    }

    /// Check that the ring of threads holds all records at the highest rate while it remains
    /// unread.
    #[test]
    fn ring_of_threads() {
        let records = f64::from(SWITCHES_PER_SECOND) * UNREAD.as_secs_f64();
        assert!(f64::from(DEPTHS[Level::Thread as usize]) >= records);
    }
}
