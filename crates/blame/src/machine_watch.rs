//! What uses the CPUs of the whole machine, interval by interval, for a live view: threads, interrupts, the
//! hypervisor and quotas of cgroups; and how long threads waited for a CPU. Nothing spins, and nothing is
//! recorded per event.
//!
//! Cannot see: interrupts without a tracepoint (NMIs), and what a thread waited on another CPU than the
//! one where it ran then.

mod counted;
mod samples;
mod traced;

use facts::{Facts, Root};
use recording::{
    Body, Code, Doubt, Recording, Source, TopCounts, TopSample, TopSeries, TopSpec,
};
use rustix::time::ClockId;
use units::Nanos;

use crate::bpf::attached;
use crate::bpf::refusal::{self, Needs};
use crate::bpf::top_programs::TopPrograms;
use crate::clock::{now, read};
use crate::error::{Error, Kind};
use crate::machine_watch::counted::Counted;

use crate::machine_watch::samples::Samples;
use crate::machine_watch::traced::{Traced, online};

/// The programs' requirements.
const NEEDS: Needs =
    Needs { version: (5, 11), why: "programs can read the current thread" };

/// Watches all CPUs, from `start` until `end`.
pub struct MachineWatch {
    spec: TopSpec,
    facts: Facts,
    began_ns: Nanos,
    /// When the current interval began, on `CLOCK_MONOTONIC`, and the CPU time of this process then.
    since: (Nanos, Nanos),
    source: Sums,
    doubts: Vec<Doubt>,
    samples: Samples,
}

/// Where the sums are made.
enum Sums {
    /// In the kernel.
    Traced(Box<Traced>),
    /// From the counters of `/proc`.
    Counted(Box<Counted>),
}

impl MachineWatch {
    /// Starts to count. Without eBPF, only the counters of `/proc` are read.
    ///
    /// # Errors
    /// `Kind::System`: an error of the kernel.
    pub fn start(spec: &TopSpec, facts: &Facts) -> Result<Self, Error> {
        let root = Root::live();
        let online = online(&root)?;
        let has_steal = facts.virt.steal_clock.get().is_some_and(|&exported| exported);
        let begun = refusal::explained(facts, NEEDS, || TopPrograms::begin(&online));
        let (source, doubts) = match begun {
            Ok(programs) => {
                let doubts = attached::without_tracepoints(programs.missing());
                (
                    Sums::Traced(Box::new(Traced::new(programs, &root, has_steal)?)),
                    doubts.into_iter().collect(),
                )
            }
            Err(why) if [Kind::Privilege, Kind::Missing].contains(&why.kind()) => {
                let text =
                    format!("only counters of /proc are read: {}", units::chain(&why));
                let doubt = Doubt::new(Code::Untraced, text);
                (Sums::Counted(Box::new(Counted::begin(&root, has_steal)?)), vec![doubt])
            }
            Err(other) => return Err(other),
        };
        let began_ns = now();
        Ok(Self {
            spec: spec.clone(),
            facts: facts.clone(),
            began_ns,
            since: (began_ns, own_time()),
            source,
            doubts,
            samples: Samples::default(),
        })
    }

    /// Ends an interval; returns it.
    ///
    /// # Errors
    /// `Kind::System`: the sums cannot be read.
    pub fn sample(&mut self) -> Result<&TopSample, Error> {
        let interval = self.interval()?;
        Ok(self.samples.push(interval))
    }

    /// Ends an interval, which is not part of the recording: this can go on forever in constant memory.
    ///
    /// # Errors
    /// `Kind::System`: the sums cannot be read.
    pub fn interval(&mut self) -> Result<TopSample, Error> {
        let root = Root::live();
        let (cpus, uses) = match &mut self.source {
            Sums::Traced(traced) => traced.interval(&root)?,
            Sums::Counted(counted) => counted.interval(&root)?,
        };
        let (now, own) = (now(), own_time());
        let (since, own_before) = std::mem::replace(&mut self.since, (now, own));
        Ok(TopSample {
            at_ns: now.saturating_sub(self.began_ns),
            elapsed_ns: now.saturating_sub(since),
            cpus,
            uses,
            own_ns: own.saturating_sub(own_before),
        })
    }

    /// What each CPU counted since the beginning, until the end of the last interval; `None` without eBPF.
    pub fn counts(&self) -> Option<Vec<TopCounts>> {
        match &self.source {
            Sums::Traced(traced) => Some(traced.counts()),
            Sums::Counted(_) => None,
        }
    }

    /// Time that no thread has, as there was no room, and time in no sum, as a switch was not traced, since
    /// the beginning.
    pub fn lost(&self) -> (Nanos, Nanos) {
        match &self.source {
            Sums::Traced(traced) => traced.lost(),
            Sums::Counted(_) => (Nanos::ZERO, Nanos::ZERO),
        }
    }

    /// Reasons not to trust the numbers.
    pub fn doubts(&self) -> &[Doubt] {
        &self.doubts
    }

    /// Ends counting, and returns all intervals; with a doubt, if it was ended before its time.
    pub fn end(self, is_ended_early: bool) -> Recording {
        let (lost_ns, unseen_ns) = self.lost();
        let Self { spec, facts, began_ns, since: (until, _), mut doubts, .. } = self;
        let source = match &self.source {
            Sums::Traced(_) => Source::Bpf,
            Sums::Counted(_) => Source::Proc,
        };
        let samples = self.samples.into_all();
        let elapsed_ns = until.saturating_sub(began_ns);
        doubts.extend(of_lost(lost_ns));
        let cpus = samples.first().map_or(0, |sample| sample.cpus.len());
        let whole = elapsed_ns.saturating_mul(u64::try_from(cpus).unwrap_or(1));
        doubts.extend(of_unseen(unseen_ns, whole));
        doubts.extend(is_ended_early.then(|| Doubt::ended_early("")));
        let series =
            TopSeries { source, began_ns, elapsed_ns, samples, lost_ns, unseen_ns };
        Recording::now(facts, Body::Top { spec, series }, doubts)
    }
}

fn of_lost(lost: Nanos) -> Option<Doubt> {
    let ms = lost.get().div_ceil(1_000_000);
    let text = format!("too many threads: some that ran for {ms} ms are not listed");
    (!lost.is_zero()).then(|| Doubt::new(Code::EventsLost, text))
}

/// If it is more than a tenth of a percent of the time of all CPUs.
fn of_unseen(unseen: Nanos, whole: Nanos) -> Option<Doubt> {
    let ms = unseen.get().div_ceil(1_000_000);
    let text = format!(
        "some context switches were not traced: {ms} ms of the CPUs' time are missing"
    );
    (unseen.get() > whole.get() / 1000).then(|| Doubt::new(Code::EventsLost, text))
}

/// The CPU time of this process.
fn own_time() -> Nanos {
    read(ClockId::ProcessCPUTime)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use recording::{CulpritKind, TopCpu, TopUse};
    use units::Cpu;

    use super::*;

    /// One interval of 200 ms with a busy thread in this process; `None` without eBPF.
    fn interval() -> Option<TopSample> {
        let facts = Facts::read(&Root::live());
        let spec = TopSpec { interval_ns: Nanos::from_millis(200), duration_ns: None };
        let mut watch = MachineWatch::start(&spec, &facts).unwrap();
        if let Some(why) = watch.doubts.iter().find(|doubt| doubt.code == Code::Untraced)
        {
            println!("skipped: {why}");
            return None;
        }
        let begin = std::time::Instant::now();
        while begin.elapsed() < Duration::from_millis(200) {
            std::hint::spin_loop();
        }
        Some(watch.sample().unwrap().clone())
    }

    /// Check that on each CPU, what used it adds up to its sums, which are not longer than the time; and
    /// that this process's own CPU time is among them.
    #[test]
    fn adds_up() {
        let Some(sample) = interval() else { return };
        // A run that ends while it is read is added to the next interval.
        let slack = Nanos::from_millis(8);
        for cpu in &sample.cpus {
            let used: Nanos = uses(&sample, cpu.cpu).map(|one| one.ns).sum();
            let kernel = cpu.kernel_ns.unwrap();
            let sums = cpu.programs_ns + kernel + cpu.interrupts_ns;
            assert!(used <= sums + slack && sums <= used + slack, "{cpu:?}: {used:?}");
            assert!(sums <= sample.elapsed_ns + slack, "{cpu:?}");
            let interrupts = uses(&sample, cpu.cpu)
                .filter(|one| one.culprit.kind != CulpritKind::Thread)
                .map(|one| one.ns)
                .sum::<Nanos>();
            assert!(interrupts <= cpu.interrupts_ns + Nanos::from_millis(1), "{cpu:?}");
        }
        let own = sample.uses.iter().filter(|one| is_own(one)).map(|one| one.ns);
        let own: Nanos = own.sum();
        let interrupts: Nanos =
            sample.cpus.iter().map(|cpu: &TopCpu| cpu.interrupts_ns).sum();
        // The kernel's count of this process's time has interrupts in it.
        assert!(own <= sample.own_ns + slack, "{own:?}: {sample:?}");
        assert!(sample.own_ns <= own + interrupts + slack, "{own:?}: {sample:?}");
    }

    fn uses(sample: &TopSample, cpu: Cpu) -> impl Iterator<Item = &TopUse> {
        sample.uses.iter().filter(move |one| one.cpu == Some(cpu))
    }

    fn is_own(one: &TopUse) -> bool {
        one.culprit.thread.as_ref().is_some_and(|thread| thread.own)
    }
}
