//! The summary of `guests`: what each virtual machine costs its host, and what the host would save
//! if each idle one woke up as rarely as the best.
//!
//! Wake-ups are voluntary context switches of the monitor's threads. For an idle guest with `v`
//! vCPUs that used the CPU time `c` and woke up `w` times per second and vCPU, and the lowest such
//! rate `b` of all idle guests, the saving is `c × (1 - b / w)`: each of its wake-ups keeps its own
//! cost, `c / (v × w)`, and there are as many per vCPU as in the best guest. Busy guests and guests
//! with an unknown number of vCPUs are neither compared nor part of the saving.

use std::cmp::Reverse;

use facts::Monitor;
use recording::{
    GuestProcess, GuestUsage, GuestsSeries, GuestsSpec, ThreadUsage, VcpuUsage,
};
use serde::Serialize;
use stats::mean;
use units::{Nanos, PerSecond, Ppm};

/// The wake-ups of all guests and their cost.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GuestsSummary {
    /// The duration of the measurement.
    pub elapsed_ns: Nanos,
    /// CPU time of all guests as a share of one CPU: 1,000,000 is one CPU; null if no time passed.
    pub cpu_ppm: Option<Ppm>,
    /// Wake-ups per second of all guests; null if no time passed.
    pub wakeups_hz: Option<PerSecond>,
    /// The number of idle guests.
    pub idle: u64,
    /// The idle guest with the fewest wake-ups per second and vCPU; null without one.
    pub best: Option<BestGuest>,
    /// CPU time that the host would save if each idle guest woke up as rarely as that one, as a
    /// share of one CPU; null with fewer than two idle guests.
    pub saving_ppm: Option<Ppm>,
    /// The guests, the largest CPU time first.
    pub guests: Vec<GuestSummary>,
    /// The guests that started during the measurement.
    pub started: Vec<GuestProcess>,
    /// The guests that ended during the measurement.
    pub ended: Vec<GuestProcess>,
    /// The number of processes that could not be examined.
    pub hidden: u64,
}

/// The idle guest that others are compared with.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BestGuest {
    /// Its PID.
    pub pid: u32,
    /// Its name, or that of the process.
    pub name: String,
    /// Its wake-ups during the measurement: few of them make the comparison inexact.
    pub wakeups: u64,
    /// Its wake-ups per second and vCPU.
    pub wakeups_per_vcpu_hz: PerSecond,
}

/// One guest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GuestSummary {
    /// The PID of the monitor.
    pub pid: u32,
    /// The guest's name; null if the monitor was not given one.
    pub name: Option<String>,
    /// The name of the process.
    pub process: String,
    /// The monitor.
    pub monitor: Monitor,
    /// What executes the vCPUs, as QEMU names it; null if unknown.
    pub accelerator: Option<String>,
    /// The number of vCPUs; null if unknown.
    pub vcpus: Option<u32>,
    /// Whether no thread used more CPU time than the limit for idle guests.
    pub is_idle: bool,
    /// CPU time of all threads as a share of one CPU; null if no time passed.
    pub cpu_ppm: Option<Ppm>,
    /// Wake-ups per second of all threads; null if no time passed.
    pub wakeups_hz: Option<PerSecond>,
    /// That by the number of vCPUs; null if one of them is unknown.
    pub wakeups_per_vcpu_hz: Option<PerSecond>,
    /// Wake-ups per second and vCPU of the threads of vCPUs only; null if these are unknown.
    pub vcpu_wakeups_hz: Option<PerSecond>,
    /// Involuntary context switches per second of all threads; null if no time passed.
    pub involuntary_hz: Option<PerSecond>,
    /// CPU time by the number of wake-ups; null without one.
    pub wakeup_ns_mean: Option<Nanos>,
    /// CPU time that would be saved, as a share of one CPU; null if it is not compared.
    pub saving_ppm: Option<Ppm>,
    /// The threads of the vCPUs, by their numbers; empty if they are unknown.
    pub vcpu_threads: Vec<VcpuSummary>,
}

/// The thread of a vCPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VcpuSummary {
    /// The TID.
    pub tid: u32,
    /// The number of the vCPU; null if unknown, or if the thread runs all of them.
    pub vcpu: Option<u32>,
    /// CPU time as a share of one CPU; null if no time passed.
    pub cpu_ppm: Option<Ppm>,
    /// Wake-ups per second; null if no time passed.
    pub wakeups_hz: Option<PerSecond>,
    /// Involuntary context switches per second; null if no time passed.
    pub involuntary_hz: Option<PerSecond>,
    /// Time ready to run, but not running, as a share of the time; null if unknown.
    pub waited_ppm: Option<Ppm>,
}

impl GuestsSummary {
    /// Summarizes all guests.
    pub fn of(spec: &GuestsSpec, series: &GuestsSeries) -> Self {
        let limit = Ppm::new(f64::from(spec.busy_above_ppm));
        let mut guests: Vec<(u64, GuestSummary)> =
            series.guests.iter().map(|guest| GuestSummary::of(guest, limit)).collect();
        let best = best(&guests);
        let idle = guests.iter().filter(|(_, guest)| guest.is_idle).count();
        let compared = guests.iter().filter_map(|(_, guest)| guest.comparable()).count();
        for (_, guest) in &mut guests {
            guest.saving_ppm = best.as_ref().and_then(|best| guest.saving(best));
        }
        let mut guests: Vec<GuestSummary> =
            guests.into_iter().map(|(_, guest)| guest).collect();
        guests.sort_by(|a, b| {
            let cpu = |guest: &GuestSummary| guest.cpu_ppm.map_or(0.0, Ppm::get);
            cpu(b).total_cmp(&cpu(a)).then(a.pid.cmp(&b.pid))
        });
        let all_ppm = |of: fn(&GuestSummary) -> Option<Ppm>| -> f64 {
            guests.iter().filter_map(of).map(Ppm::get).sum()
        };
        let wakeups = guests.iter().filter_map(|guest| guest.wakeups_hz);
        let has_time = !series.elapsed_ns.is_zero();
        let saving = Ppm::new(all_ppm(|guest| guest.saving_ppm));
        Self {
            elapsed_ns: series.elapsed_ns,
            cpu_ppm: has_time.then(|| Ppm::new(all_ppm(|guest| guest.cpu_ppm))),
            wakeups_hz: has_time
                .then(|| PerSecond::new(wakeups.map(PerSecond::get).sum())),
            idle: idle as u64,
            best,
            saving_ppm: (compared > 1).then_some(saving),
            guests,
            started: series.started.clone(),
            ended: series.ended.clone(),
            hidden: series.hidden,
        }
    }

    /// The idle guests.
    pub fn idle_guests(&self) -> impl Iterator<Item = &GuestSummary> {
        self.guests.iter().filter(|guest| guest.is_idle)
    }

    /// The largest value of an idle guest; `None` without one.
    pub fn idle_max(&self, of: impl Fn(&GuestSummary) -> Option<f64>) -> Option<f64> {
        self.idle_guests().filter_map(of).max_by(f64::total_cmp)
    }

    /// The threads of vCPUs with their guests, the most frequent wake-ups first.
    pub fn most_frequent_vcpus(&self) -> Vec<(&GuestSummary, &VcpuSummary)> {
        let of = |guest| move |vcpu| (guest, vcpu);
        let all = self.guests.iter();
        let mut all: Vec<_> =
            all.flat_map(|guest| guest.vcpu_threads.iter().map(of(guest))).collect();
        let rate = |vcpu: &VcpuSummary| vcpu.wakeups_hz.map_or(0.0, PerSecond::get);
        all.sort_by(|(_, a), (_, b)| rate(b).total_cmp(&rate(a)).then(a.tid.cmp(&b.tid)));
        all
    }
}

/// The idle guest with the lowest rate of wake-ups.
fn best(guests: &[(u64, GuestSummary)]) -> Option<BestGuest> {
    let rated =
        guests.iter().filter_map(|(count, one)| Some((one.comparable()?, *count, one)));
    let (rate, wakeups, guest) = rated.min_by(|(a, _, one), (b, _, two)| {
        a.get().total_cmp(&b.get()).then(one.pid.cmp(&two.pid))
    })?;
    Some(BestGuest {
        pid: guest.pid,
        name: guest.label().to_owned(),
        wakeups,
        wakeups_per_vcpu_hz: rate,
    })
}

impl GuestSummary {
    /// The number of wake-ups, and the summary without the saving.
    fn of(guest: &GuestUsage, limit: Ppm) -> (u64, Self) {
        let elapsed = guest.elapsed_ns;
        let vcpus = guest.vcpus.filter(|&count| count > 0);
        let threads = guest.vcpu_threads.iter().map(|vcpu| vcpu.usage);
        let of_vcpus = sum(threads.clone());
        let all = sum([of_vcpus, guest.others].into_iter());
        let most = threads.map(|used| used.cpu_ns).max().unwrap_or_default();
        let most = Ppm::of(most.max(guest.others_cpu_ns_max), elapsed);
        let rate = |count| PerSecond::of(count, elapsed);
        let per_vcpu = |count| {
            let (rate, vcpus) = rate(count).zip(vcpus)?;
            Some(PerSecond::new(rate.get() / f64::from(vcpus)))
        };
        let are_known = !guest.vcpu_threads.is_empty();
        let mut vcpu_threads: Vec<VcpuSummary> = guest
            .vcpu_threads
            .iter()
            .map(|vcpu| VcpuSummary::of(vcpu, elapsed))
            .collect();
        vcpu_threads
            .sort_by_key(|vcpu| (Reverse(vcpu.vcpu.is_some()), vcpu.vcpu, vcpu.tid));
        let process = &guest.guest;
        let summary = Self {
            pid: process.pid,
            name: process.name.clone(),
            process: process.process.clone(),
            monitor: process.monitor,
            accelerator: guest.accelerator.clone(),
            vcpus,
            is_idle: most.is_some_and(|most| most <= limit),
            cpu_ppm: Ppm::of(all.cpu_ns, elapsed),
            wakeups_hz: rate(all.voluntary),
            wakeups_per_vcpu_hz: per_vcpu(all.voluntary),
            vcpu_wakeups_hz: are_known.then(|| per_vcpu(of_vcpus.voluntary)).flatten(),
            involuntary_hz: rate(all.involuntary),
            wakeup_ns_mean: mean(all.cpu_ns.get().into(), all.voluntary)
                .map(Nanos::from_nanos),
            saving_ppm: None,
            vcpu_threads,
        };
        (all.voluntary, summary)
    }

    /// Its name, or that of the process.
    pub fn label(&self) -> &str {
        self.name.as_ref().unwrap_or(&self.process)
    }

    /// The rate that is compared; `None` if the guest was busy, or has no such rate.
    fn comparable(&self) -> Option<PerSecond> {
        self.wakeups_per_vcpu_hz.filter(|_| self.is_idle)
    }

    fn saving(&self, best: &BestGuest) -> Option<Ppm> {
        let (rate, cpu) = self.comparable().zip(self.cpu_ppm)?;
        let least = best.wakeups_per_vcpu_hz.get();
        let share = if rate.get() > least { 1.0 - least / rate.get() } else { 0.0 };
        Some(Ppm::new(cpu.get() * share))
    }
}

impl VcpuSummary {
    fn of(vcpu: &VcpuUsage, elapsed: Nanos) -> Self {
        let VcpuUsage { tid, vcpu, usage } = *vcpu;
        Self {
            tid,
            vcpu,
            cpu_ppm: Ppm::of(usage.cpu_ns, elapsed),
            wakeups_hz: PerSecond::of(usage.voluntary, elapsed),
            involuntary_hz: PerSecond::of(usage.involuntary, elapsed),
            waited_ppm: usage.waited_ns.and_then(|waited| Ppm::of(waited, elapsed)),
        }
    }
}

fn sum(all: impl Iterator<Item = ThreadUsage>) -> ThreadUsage {
    let add = |sum: ThreadUsage, used: ThreadUsage| ThreadUsage {
        cpu_ns: sum.cpu_ns.saturating_add(used.cpu_ns),
        waited_ns: None,
        voluntary: sum.voluntary.saturating_add(used.voluntary),
        involuntary: sum.involuntary.saturating_add(used.involuntary),
    };
    all.fold(ThreadUsage::default(), add)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn used(cpu_millis: u64, voluntary: u64) -> ThreadUsage {
        ThreadUsage {
            cpu_ns: Nanos::from_millis(cpu_millis),
            waited_ns: Some(Nanos::from_millis(1)),
            voluntary,
            involuntary: 20,
        }
    }

    /// A guest that was observed for 10 s, with its vCPU threads and all others.
    fn guest(pid: u32, vcpus: &[ThreadUsage], others: ThreadUsage) -> GuestUsage {
        let thread = |(usage, number): (&ThreadUsage, u32)| VcpuUsage {
            tid: pid + 1 + number,
            vcpu: Some(number),
            usage: *usage,
        };
        GuestUsage {
            guest: GuestProcess {
                pid,
                name: Some(format!("vm{pid}")),
                process: "qemu-kvm".to_owned(),
                monitor: Monitor::Qemu,
            },
            accelerator: Some("KVM".to_owned()),
            vcpus: u32::try_from(vcpus.len()).ok().filter(|&count| count > 0),
            elapsed_ns: Nanos::from_secs(10),
            vcpu_threads: vcpus.iter().zip(0..).map(thread).collect(),
            others,
            others_cpu_ns_max: others.cpu_ns,
            ended_threads: 0,
        }
    }

    fn summary(guests: Vec<GuestUsage>) -> GuestsSummary {
        let elapsed_ns = Nanos::from_secs(10);
        let spec =
            GuestsSpec { duration_ns: elapsed_ns, busy_above_ppm: 100_000, top: 20 };
        let series = GuestsSeries { elapsed_ns, guests, ..GuestsSeries::default() };
        GuestsSummary::of(&spec, &series)
    }

    fn close(found: Option<Ppm>, expected: f64) {
        assert!((found.unwrap().get() - expected).abs() < 1e-6, "{found:?}");
    }

    /// Check the keys and values of the JSON contract.
    #[test]
    fn contract() {
        let found = summary(vec![guest(7, &[used(200, 2_400)], used(50, 100))]);
        let expected = serde_json::json!({
            "elapsed_ns": 10_000_000_000_u64, "cpu_ppm": 25_000.0, "wakeups_hz": 250.0,
            "idle": 1, "saving_ppm": null, "hidden": 0, "started": [], "ended": [],
            "best": {"pid": 7, "name": "vm7", "wakeups": 2_500,
                "wakeups_per_vcpu_hz": 250.0},
            "guests": [{
                "pid": 7, "name": "vm7", "process": "qemu-kvm", "monitor": "qemu",
                "accelerator": "KVM", "vcpus": 1, "is_idle": true, "cpu_ppm": 25_000.0,
                "wakeups_hz": 250.0, "wakeups_per_vcpu_hz": 250.0,
                "vcpu_wakeups_hz": 240.0, "involuntary_hz": 4.0,
                "wakeup_ns_mean": 100_000, "saving_ppm": 0.0,
                "vcpu_threads": [{"tid": 8, "vcpu": 0, "cpu_ppm": 20_000.0,
                    "wakeups_hz": 240.0, "involuntary_hz": 2.0, "waited_ppm": 100.0}],
            }],
        });
        assert_eq!(serde_json::to_value(&found).unwrap(), expected);
    }

    /// Check the saving against manual calculation: by vCPU, and without busy guests and those with
    /// an unknown number of vCPUs.
    #[test]
    fn saving() {
        let quiet = guest(1, &[used(5, 100)], used(0, 0));
        let ticking = guest(2, &[used(100, 1_000), used(300, 1_000)], used(0, 0));
        let busy = guest(3, &[used(9_000, 10)], used(0, 0));
        let unknown = guest(4, &[], used(1, 1));
        let found = summary(vec![quiet, ticking, busy, unknown]);
        // 0.04 CPUs, and 100 instead of 1,000 wake-ups of each vCPU in 10 s.
        close(found.saving_ppm, 36_000.0);
        assert_eq!((found.best.as_ref().unwrap().pid, found.idle), (1, 3));
        let order: Vec<u32> = found.guests.iter().map(|guest| guest.pid).collect();
        assert_eq!(order, [3, 2, 1, 4]);
        assert_eq!((found.guests[0].is_idle, found.guests[0].saving_ppm), (false, None));
        assert_eq!(found.guests[3].saving_ppm, None);
        assert_eq!(found.idle_max(|guest| Some(guest.cpu_ppm?.get())), Some(40_000.0));
        let vcpus = found.most_frequent_vcpus();
        assert_eq!((vcpus.len(), vcpus[0].1.tid, vcpus[3].1.tid), (4, 3, 4));
    }

    /// Check that a guest without a wake-up is the best one, and that the saving is then all CPU
    /// time of the others.
    #[test]
    fn a_guest_without_wakeups() {
        let still = guest(1, &[used(0, 0)], used(0, 0));
        let ticking = guest(2, &[used(100, 1_000)], used(0, 0));
        let found = summary(vec![still, ticking]);
        close(found.saving_ppm, 10_000.0);
        assert_eq!(found.guests[1].wakeup_ns_mean, None);
        let none = summary(Vec::new());
        assert_eq!((none.best, none.saving_ppm), (None, None));
    }

    proptest! {
        /// Check that the saving is never more than the CPU time, nor negative, and that the best
        /// guest saves nothing.
        #[test]
        fn bounds(all in prop::collection::vec((0u64..900, 0u64..20_000), 0..12)) {
            let guests = all.iter().zip(1..).map(|(&(cpu, woken), pid)| {
                guest(pid * 10, &[used(cpu, woken)], used(0, 0))
            });
            let found = summary(guests.collect());
            let saving = found.saving_ppm.map_or(0.0, Ppm::get);
            prop_assert!(saving >= 0.0 && saving <= found.cpu_ppm.unwrap().get() + 1e-6);
            if let Some(best) = found.best {
                let own = found.guests.iter().find(|guest| guest.pid == best.pid).unwrap();
                prop_assert_eq!(own.saving_ppm, Some(Ppm::new(0.0)));
            }
        }
    }
}
