//! What `/proc` counts of the threads of a program, where eBPF is not available: their times, their
//! waits as a sum, and their page faults.
//!
//! `/proc/PID/task/TID/`: `schedstat` (time on CPUs, time waiting, runs), `stat` (page faults, times in
//! user mode and in the kernel, in steps of 10 ms) and `status` (context switches). Threads are read
//! several times, so that those that end are counted until shortly before. Cannot see single waits, what
//! had the CPU meanwhile, nor interrupts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use facts::{ContextSwitches, Root, SchedStat, TaskStat};
use recording::{Source, WatchLost, WatchSeries, WatchedThread};
use units::Nanos;

use crate::bpf::watch_programs::Target;
use crate::error::Error;
use crate::program_watch::target::{Selected, each_below};

/// The unit of CPU times in `stat` (`USER_HZ` is 100).
const STEP: Nanos = Nanos::from_millis(10);

/// A thread: its TID, and its start time in ticks, as TIDs are reused.
type Key = (u32, u64);

/// The counters of a thread since its start.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Counters {
    pid: u32,
    name: String,
    times: SchedStat,
    switches: ContextSwitches,
    user: u64,
    system: u64,
    minor: u64,
    major: u64,
}

/// The first and the last reading of each thread.
pub(crate) struct Counted {
    selected: Selected,
    threads: BTreeMap<Key, (Option<Counters>, Counters)>,
}

impl Counted {
    /// Reads all threads.
    pub(crate) fn begin(root: &Root, selected: Selected) -> Self {
        let first = read(root, &selected);
        let both =
            |(key, counters): (Key, Counters)| (key, (Some(counters.clone()), counters));
        Self { selected, threads: first.into_iter().map(both).collect() }
    }

    /// Reads them again; a new one counts from its start.
    pub(crate) fn update(&mut self, root: &Root) {
        for (key, counters) in read(root, &self.selected) {
            match self.threads.get_mut(&key) {
                Some((_, last)) => *last = counters,
                None => drop(self.threads.insert(key, (None, counters))),
            }
        }
    }

    /// The differences.
    pub(crate) fn series(self, began_ns: Nanos, elapsed_ns: Nanos) -> WatchSeries {
        let threads = self.threads.iter();
        let threads =
            threads.map(|((tid, _), (first, last))| last.since(*tid, first.as_ref()));
        WatchSeries {
            source: Source::Proc,
            began_ns,
            elapsed_ns,
            threads: threads.collect(),
            takers: Vec::new(),
            interruptions: Vec::new(),
            lengths: Vec::new(),
            longest: Vec::new(),
            lost: WatchLost::default(),
        }
    }
}

impl Counters {
    fn read(root: &Root, folder: &str, pid: u32) -> Option<(Key, Self)> {
        let text = |file: &str| root.text(&format!("{folder}/{file}")).ok();
        let stat = text("stat")?;
        let stat = TaskStat::parse(&stat)?;
        let counters = Self {
            pid,
            name: stat.name.to_owned(),
            times: SchedStat::parse(&text("schedstat")?)?,
            switches: ContextSwitches::parse(&text("status")?)?,
            minor: stat.number(10)?,
            major: stat.number(12)?,
            user: stat.number(14)?,
            system: stat.number(15)?,
        };
        Some(((stat.tid, stat.number(22)?), counters))
    }

    fn since(&self, tid: u32, first: Option<&Self>) -> WatchedThread {
        let count = |of: fn(&Self) -> u64| of(self).saturating_sub(first.map_or(0, of));
        let time = |of: fn(&Self) -> u64| Nanos::from_nanos(count(of));
        WatchedThread {
            tid: Some(tid),
            pid: Some(self.pid),
            name: self.name.clone(),
            count: 1,
            run_ns: time(|one| one.times.ran.get()),
            wait_ns: time(|one| one.times.waited.get()),
            waits: count(|one| one.times.runs),
            wait_ns_max: None,
            parts: None,
            interrupted_ns: None,
            interruptions: None,
            preempted: count(|one| one.switches.involuntary),
            slept: count(|one| one.switches.voluntary),
            migrations: None,
            user_ns: STEP.saturating_mul(count(|one| one.user)),
            system_ns: STEP.saturating_mul(count(|one| one.system)),
            minor_faults: count(|one| one.minor),
            major_faults: count(|one| one.major),
        }
    }
}

/// All threads that exist now.
fn read(root: &Root, selected: &Selected) -> BTreeMap<Key, Counters> {
    let pids = match &selected.target {
        Target::Processes(processes) => processes.clone(),
        Target::Cgroups(_) => processes_below(&selected.directory),
    };
    let threads = pids.iter().flat_map(|pid| {
        let folder = format!("/proc/{pid}/task");
        let tids = root.list(&folder).unwrap_or_default();
        tids.into_iter()
            .filter_map(move |tid| Counters::read(root, &format!("{folder}/{tid}"), *pid))
    });
    threads.collect()
}

/// The processes in a cgroup and in those below it.
fn processes_below(directory: &Path) -> Vec<u32> {
    let mut directories: Vec<PathBuf> = vec![directory.to_owned()];
    each_below(directory, &mut |below| directories.push(below.to_owned()));
    let texts = directories.iter();
    let texts =
        texts.filter_map(|one| std::fs::read_to_string(one.join("cgroup.procs")).ok());
    let pids = texts.flat_map(|text| {
        text.lines().filter_map(|line| line.parse().ok()).collect::<Vec<u32>>()
    });
    pids.collect()
}

/// Why single waits are unknown.
pub(crate) fn why(error: &Error) -> String {
    format!(
        "only counters of /proc were read, which do not show what had the CPU while threads waited: {}",
        units::chain(error)
    )
}
