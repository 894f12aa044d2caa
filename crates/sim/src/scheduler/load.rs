//! Load averages of entities and queues: what was runnable and ran, where a millisecond of 32 ms ago counts half
//! (PELT).
//!
//! Source: `kernel/sched/pelt.c` and `kernel/sched/sched-pelt.h`, the same from 5.10 to 7.2. The clock of a
//! simulated CPU is not scaled by its frequency, and does not stop.

use crate::scheduler::fair::Arrival;
use crate::scheduler::queue::{Entity, Queue};

/// Periods are of 1024 us, and times are counted in units of 1024 ns.
const PERIOD: u64 = 1024;
const UNIT_SHIFT: u32 = 10;
/// The capacity of a CPU, and the utilization of a task that always runs (`SCHED_CAPACITY_SCALE`).
pub(crate) const CAPACITY: u64 = 1024;
/// The sum of something that was always so (`LOAD_AVG_MAX`).
const SUM_MAX: u64 = 47_742;
/// After that many periods, a half is left (`LOAD_AVG_PERIOD`).
const HALF: u64 = 32;

/// What is left after so many periods, in units of 2^-32 (`runnable_avg_yN_inv`).
#[allow(clippy::unreadable_literal, reason = "as the kernel writes them")]
const LEFT: [u64; 32] = [
    0xffffffff, 0xfa83b2da, 0xf5257d14, 0xefe4b99a, 0xeac0c6e6, 0xe5b906e6, 0xe0ccdeeb,
    0xdbfbb796, 0xd744fcc9, 0xd2a81d91, 0xce248c14, 0xc9b9bd85, 0xc5672a10, 0xc12c4cc9,
    0xbd08a39e, 0xb8fbaf46, 0xb504f333, 0xb123f581, 0xad583ee9, 0xa9a15ab4, 0xa5fed6a9,
    0xa2704302, 0x9ef5325f, 0x9b8d39b9, 0x9837f050, 0x94f4efa8, 0x91c3d373, 0x8ea4398a,
    0x8b95c1e3, 0x88980e80, 0x85aac367, 0x82cd8698,
];

/// A sum after so many periods (`decay_load`).
fn decayed(sum: u64, periods: u64) -> u64 {
    if periods > HALF * 63 {
        return 0;
    }
    let halved = sum >> (periods / HALF);
    let left = u128::from(LEFT[usize::try_from(periods % HALF).unwrap_or(0)]);
    u64::try_from((u128::from(halved) * left) >> 32).unwrap_or(u64::MAX)
}

/// What was so since the last update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Since {
    /// The weight of a queue; 1 for an entity that is queued.
    pub(crate) load: u64,
    /// The number of runnable tasks.
    pub(crate) runnable: u64,
    /// Whether one of them ran.
    pub(crate) runs: bool,
}

impl Since {
    /// An entity that slept.
    pub(crate) const SLEPT: Self = Self { load: 0, runnable: 0, runs: false };
    /// One that waited for the CPU.
    pub(crate) const WAITED: Self = Self { load: 1, runnable: 1, runs: false };
    /// One that ran.
    pub(crate) const RAN: Self = Self { load: 1, runnable: 1, runs: true };
}

/// The averages of an entity or a queue (`struct sched_avg`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LoadAverage {
    updated: u64,
    /// How much of the current period is in the sums.
    part: u64,
    sums: Averages,
    pub(crate) averages: Averages,
}

/// Averages, or the sums that they are computed from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Averages {
    /// Of what is runnable, by weight.
    pub(crate) load: u64,
    /// Of the number of runnable tasks, of which 1 is 1024.
    pub(crate) runnable: u64,
    /// Of the time in which one of them ran; 1024 is always.
    pub(crate) utilization: u64,
}

impl Averages {
    fn each(&mut self, mut change: impl FnMut(&mut u64)) {
        let Self { load, runnable, utilization } = self;
        [load, runnable, utilization].into_iter().for_each(&mut change);
    }

    fn with(&mut self, others: Self, combine: impl Fn(u64, u64) -> u64) {
        self.load = combine(self.load, others.load);
        self.runnable = combine(self.runnable, others.runnable);
        self.utilization = combine(self.utilization, others.utilization);
    }
}

impl LoadAverage {
    /// Adds what was so until now (`___update_load_sum`, `___update_load_avg`). `weight` is that of an entity;
    /// 1 for a queue.
    pub(crate) fn update(&mut self, now: u64, since: Since, weight: u64) {
        let units = now.saturating_sub(self.updated) >> UNIT_SHIFT;
        if units == 0 {
            return;
        }
        self.updated += units << UNIT_SHIFT;
        if self.add(units, since) {
            let divider = self.divider();
            self.averages = self.sums;
            self.averages.load *= weight;
            self.averages.each(|sum| *sum /= divider);
        }
    }

    /// Adds so much time; returns whether a period has ended (`accumulate_sum`).
    fn add(&mut self, units: u64, since: Since) -> bool {
        let passed = units + self.part;
        let (periods, part) = (passed / PERIOD, passed % PERIOD);
        let added = match periods {
            0 => units,
            _ => {
                let first = decayed(PERIOD - self.part, periods);
                let between = SUM_MAX - decayed(SUM_MAX, periods) - PERIOD;
                first + between + part
            }
        };
        if periods > 0 {
            self.sums.each(|sum| *sum = decayed(*sum, periods));
        }
        self.part = part;
        self.sums.load += since.load * added;
        if since.load > 0 {
            self.sums.runnable += (since.runnable * added) << UNIT_SHIFT;
            self.sums.utilization += (u64::from(since.runs) * added) << UNIT_SHIFT;
        }
        periods > 0
    }

    /// What the sums are of something that was always so (`get_pelt_divider`).
    fn divider(&self) -> u64 {
        SUM_MAX - PERIOD + self.part
    }
}

impl Entity {
    /// Adds what was so until now, in a queue that has averages.
    pub(crate) fn update_load(&mut self, now: u64, since: Since) {
        self.average.update(now, since, self.weight);
    }
}

/// Only queues of several CPUs have averages: elsewhere nothing depends on them.
impl Queue {
    /// Adds what was so until now, for the queue and its running entity.
    #[inline]
    pub(crate) fn update_load(&mut self, now: u64) {
        if self.average.is_some() {
            self.add_load(now);
        }
    }

    fn add_load(&mut self, now: u64) {
        let runnable = (self.len() + self.above.tasks) as u64;
        let since = Since { load: self.load(), runnable, runs: self.current.is_some() };
        if let Some(average) = &mut self.average {
            average.update(now, since, 1);
        }
        if let Some(current) = &mut self.current {
            current.update_load(now, Since::RAN);
        }
    }

    /// An entity comes to it. The queue's averages are up to date.
    pub(crate) fn add_load_of(
        &mut self,
        entity: &mut Entity,
        arrival: Arrival,
        now: u64,
    ) {
        entity.moved_last = now;
        match arrival {
            Arrival::Woken => return entity.update_load(now, Since::SLEPT),
            Arrival::New => self.begin_load(entity),
            Arrival::WokenElsewhere | Arrival::Moved => {}
        }
        self.attach_load(entity);
    }

    /// An entity was added to it that is new, or was on another CPU (`attach_entity_load_avg`). The queue's
    /// averages are up to date.
    pub(crate) fn attach_load(&mut self, entity: &mut Entity) {
        let Some(own) = &mut self.average else { return };
        let (average, divider) = (&mut entity.average, own.divider());
        (average.updated, average.part) = (own.updated, own.part);
        average.sums = average.averages;
        average.sums.each(|sum| *sum *= divider);
        average.sums.load = (average.sums.load / entity.weight.max(1)).max(1);
        own.averages.with(average.averages, |own, other| own + other);
        own.sums.with(entity.weighted_sums(), |own, other| own + other);
    }

    /// An entity goes to another CPU (`detach_entity_load_avg`). Both are up to date.
    pub(crate) fn detach_load(&mut self, entity: &Entity) {
        let Some(own) = &mut self.average else { return };
        own.averages.with(entity.average.averages, u64::saturating_sub);
        own.sums.with(entity.weighted_sums(), u64::saturating_sub);
    }

    /// The weight of one of its entities changes, which is not among them now (`reweight_entity`).
    pub(crate) fn reweight_load(&mut self, entity: &mut Entity, weight: u64) {
        let (load, sum) = (entity.average.averages.load, entity.weighted_sums().load);
        entity.weight = weight;
        let Some(own) = &mut self.average else { return };
        let average = &mut entity.average;
        average.averages.load = weight * average.sums.load / average.divider();
        own.averages.load =
            own.averages.load.saturating_sub(load) + average.averages.load;
        own.sums.load = own.sums.load.saturating_sub(sum) + entity.weighted_sums().load;
    }

    /// The averages of a new entity (`init_entity_runnable_average`, `post_init_entity_util_avg`): its whole
    /// weight, and half of the utilization that is left at most.
    fn begin_load(&self, entity: &mut Entity) {
        let Some(own) = &self.average else { return };
        let Averages { load, utilization, .. } = own.averages;
        let most = CAPACITY.saturating_sub(utilization) / 2;
        let guess = match utilization {
            0 => most,
            _ => (utilization * entity.weight / (load + 1)).min(most),
        };
        let (runnable, utilization) = (guess, guess);
        entity.average.averages = Averages { load: entity.weight, runnable, utilization };
    }
}

impl Entity {
    /// Its sums as parts of its queue's.
    fn weighted_sums(&self) -> Averages {
        let sums = self.average.sums;
        Averages { load: sums.load * self.weight, ..sums }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// Check that an entity that always runs has its weight as load and is fully utilized, that half of both is
    /// left after 32 periods of sleep, and that updates may be of any length.
    #[test]
    fn half_in_32_periods() {
        let weight = 3 * 1024;
        for step in [1_000, 999_999, 40 * MS] {
            let mut average = LoadAverage::default();
            (0..2_000 * MS / step).for_each(|passed| {
                average.update((passed + 1) * step, Since::RAN, weight);
            });
            let Averages { load, runnable, utilization } = average.averages;
            let near = |value: u64, whole: u64| value.abs_diff(whole) * 200 <= whole;
            assert!(near(load, weight), "{step}: {load}");
            assert!(near(runnable, 1024) && near(utilization, 1024), "{step}");
            average.update(2_000 * MS + 32 * 1024 * 1024, Since::SLEPT, weight);
            let Averages { load, utilization, .. } = average.averages;
            assert!(near(load, weight / 2) && near(utilization, 512), "{step}: {load}");
        }
    }

    /// Check a task that runs for 50 ms and sleeps for 50 ms: after it ran, a machine with 6.18 has a load and a
    /// utilization of 744 to 753 (`/proc/PID/sched`), and the sum of the series is 765 of 1024.
    #[test]
    fn half_of_the_time() {
        let mut average = LoadAverage::default();
        for turn in 0..40 {
            average.update((100 * turn + 50) * MS, Since::RAN, 1024);
            let Averages { load, utilization, .. } = average.averages;
            assert!(turn < 5 || (750..=770).contains(&load), "{turn}: {load}");
            assert!(load.abs_diff(utilization) <= 1, "{turn}: {load}, {utilization}");
            average.update((100 * turn + 100) * MS, Since::SLEPT, 1024);
        }
    }

    /// Check the first two milliseconds by hand. 1,000,000 ns are 976 units of 1024 ns, and the first period has
    /// not ended. 977 more end it: the 976 decay to 955, the 48 that it lacked to 46, and 929 are new, so that
    /// the sum is 1930 of at most 46,718 + 929.
    #[test]
    fn first_periods() {
        let mut average = LoadAverage::default();
        average.update(MS, Since::RAN, 1024);
        assert_eq!((average.sums.load, average.averages.load), (976, 0));
        average.update(2 * MS, Since::RAN, 1024);
        assert_eq!((average.sums.load, average.part), (1930, 929));
        assert_eq!(average.averages.load, 1930 * 1024 / (46_718 + 929));
    }
}
