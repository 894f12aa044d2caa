//! What takes time from a program that runs already: its threads' waits for a CPU, and what had the
//! CPU meanwhile; interrupts; the longest delays. Sums are made in the kernel.
//!
//! Cannot see delays without a switch or an interrupt's tracepoint: NMIs, system management mode, the
//! hypervisor. Threads whose cgroup's quota was used up while they waited count as waiting for what had
//! the CPU, on kernels before 6.18.

mod by_name;
mod converted;
mod counters;
mod doubts;
pub(crate) mod target;

use facts::{Facts, Root};
use recording::{Body, Code, Doubt, Recording, WatchSpec, WatchedDelay};
use units::Nanos;

use crate::bpf::refusal::{self, Needs};
use crate::bpf::watch_programs::{Request, WatchPrograms};
use crate::clock::now;
use crate::error::{Error, Kind};
use crate::program_watch::converted::{Converted, delays};
use crate::program_watch::counters::Counted;

/// The programs' requirements.
const NEEDS: Needs = Needs { version: (5, 18), why: refusal::STATE };

/// Watches a program's threads, from `start` until `end`.
pub struct ProgramWatch {
    spec: WatchSpec,
    facts: Facts,
    began_ns: Nanos,
    source: Sums,
}

/// Where the sums are made.
enum Sums {
    /// In the kernel; and what was taken from its tables.
    Traced(Box<WatchPrograms>, Converted),
    /// From the counters of `/proc`; and why.
    Counted(Counted, String),
}

impl ProgramWatch {
    /// Starts to count. Without eBPF, only the counters of `/proc` are read.
    ///
    /// # Errors
    /// `Kind::Spec` for a process, a unit or a cgroup that does not exist; `Kind::System` for another error
    /// of the kernel.
    pub fn start(spec: &WatchSpec, facts: &Facts) -> Result<Self, Error> {
        Self::start_with(spec, facts, None)
    }

    fn start_with(
        spec: &WatchSpec,
        facts: &Facts,
        threads: Option<u32>,
    ) -> Result<Self, Error> {
        let selected = target::resolve(&spec.target, &Root::live())?;
        let (target, keep) = (selected.target.clone(), spec.keep);
        let log_above = spec.log_above_ns.map(Nanos::get);
        let request = Request { target, keep, log_above, threads };
        let source = match attach(&request, facts) {
            Ok(programs) => Sums::Traced(Box::new(programs), Converted::default()),
            Err(why) if [Kind::Privilege, Kind::Missing].contains(&why.kind()) => {
                let counted = Counted::begin(&Root::live(), selected);
                Sums::Counted(counted, counters::why(&why))
            }
            Err(other) => return Err(other),
        };
        let (spec, facts) = (spec.clone(), facts.clone());
        Ok(Self { spec, facts, began_ns: now(), source })
    }

    /// The stored delays that have ended since the last call, if the spec says so.
    pub fn next_delays(&self) -> Vec<WatchedDelay> {
        let Sums::Traced(programs, _) = &self.source else { return Vec::new() };
        match programs.written() {
            none if none.is_empty() => Vec::new(),
            some => delays(&Root::live(), &some),
        }
    }

    /// Moves the sums of threads that have ended out of the kernel's tables, to make room for others; and
    /// reads counters.
    ///
    /// # Errors
    /// `Kind::System`: the tables cannot be read.
    pub fn update(&mut self) -> Result<(), Error> {
        match &mut self.source {
            Sums::Traced(programs, so_far) => {
                so_far.add_ended(&Root::live(), &programs.take_ended()?);
            }
            Sums::Counted(counted, _) => counted.update(&Root::live()),
        }
        Ok(())
    }

    /// Ends counting, and returns the sums; with a doubt, if it was ended early.
    ///
    /// # Errors
    /// `Kind::System`: the sums cannot be read.
    pub fn end(self, is_ended_early: bool) -> Result<Recording, Error> {
        let Self { spec, facts, began_ns, source } = self;
        let elapsed_ns = now().saturating_sub(began_ns);
        let (series, mut doubts) = match source {
            Sums::Traced(programs, so_far) => {
                let sums = programs.end()?;
                let doubts = doubts::of(&sums);
                (so_far.series(&Root::live(), sums, began_ns, elapsed_ns), doubts)
            }
            Sums::Counted(mut counted, why) => {
                counted.update(&Root::live());
                let doubt = Doubt::new(Code::Untraced, why);
                (counted.series(began_ns, elapsed_ns), vec![doubt])
            }
        };
        doubts.extend(is_ended_early.then(|| Doubt::ended_early("")));
        if series.threads.is_empty() {
            let text = "no thread was seen: none of them ran or was woken";
            doubts.push(Doubt::new(Code::NothingMeasured, text));
        }
        Ok(Recording::now(facts, Body::Watch { spec, series }, doubts))
    }
}

fn attach(request: &Request, facts: &Facts) -> Result<WatchPrograms, Error> {
    let online = facts.cpus.online.value();
    let online = online.map_err(|why| Error::new(Kind::System, why.to_string()))?;
    refusal::explained(facts, NEEDS, || WatchPrograms::begin(request, online))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use recording::WatchTarget;

    use super::*;

    const THREADS: u32 = 16;

    /// Threads of this process that sleep some times each.
    fn sleep() {
        let sleeps =
            || (0..20).for_each(|_| std::thread::sleep(Duration::from_millis(1)));
        std::thread::scope(|scope| {
            (0..THREADS).for_each(|_| drop(scope.spawn(sleeps)));
        });
    }

    fn started_with(threads: Option<u32>) -> ProgramWatch {
        let facts = Facts::read(&Root::live());
        let spec = WatchSpec {
            target: WatchTarget::Processes(vec![std::process::id()]),
            duration_ns: Nanos::from_secs(1),
            keep: 5,
            log_above_ns: None,
        };
        ProgramWatch::start_with(&spec, &facts, threads).unwrap()
    }

    fn watched_with(threads: Option<u32>) -> Option<Recording> {
        let mut watch = started_with(threads);
        sleep();
        watch.update().unwrap();
        traced(watch.end(false).unwrap())
    }

    /// The recording, unless the threads cannot be traced here.
    fn traced(recording: Recording) -> Option<Recording> {
        let untraced = recording.doubts.iter().find(|doubt| doubt.code == Code::Untraced);
        if let Some(why) = untraced {
            println!("skipped: {why}");
            return None;
        }
        Some(recording)
    }

    /// Check that all threads are seen, also those that have ended, and that each of their waits is
    /// counted.
    #[test]
    fn threads_that_end() {
        let Some(recording) = watched_with(None) else { return };
        let Body::Watch { series, .. } = &recording.body else { unreachable!() };
        let seen: u64 = series.threads.iter().map(|thread| thread.count).sum();
        assert!(seen >= u64::from(THREADS), "{series:?}");
        let waits: u64 = series.threads.iter().map(|thread| thread.waits).sum();
        assert!(waits >= u64::from(THREADS) * 20, "{waits}");
        assert_eq!(series.lost.events, 0);
        assert!(!series.longest.is_empty() && series.longest.len() <= 5);
    }

    /// Check that the places of threads that have ended are used again: many more threads than places,
    /// each of which is counted once.
    #[test]
    fn places_of_ended_threads() {
        let mut watch = started_with(Some(256));
        for _ in 0..100 {
            (0..10).for_each(|_| std::thread::spawn(|| ()).join().unwrap());
            watch.update().unwrap();
        }
        let Some(recording) = traced(watch.end(false).unwrap()) else { return };
        let Body::Watch { series, .. } = &recording.body else { unreachable!() };
        let seen: u64 = series.threads.iter().map(|thread| thread.count).sum();
        assert_eq!(series.lost.events, 0);
        assert!(seen >= 1000, "{seen}");
    }

    /// Check that a full table is counted and is a doubt.
    #[test]
    fn full_table() {
        let Some(recording) = watched_with(Some(4)) else { return };
        let Body::Watch { series, .. } = &recording.body else { unreachable!() };
        assert!(series.lost.events > 0, "{series:?}");
        let says_it = |doubt: &Doubt| doubt.text.starts_with("too many threads");
        assert!(recording.doubts.iter().any(says_it), "{:?}", recording.doubts);
    }
}
