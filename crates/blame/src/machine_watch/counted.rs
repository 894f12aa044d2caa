//! Intervals from the counters of `/proc`, where eBPF is not available: the times of CPUs in steps of 10 ms,
//! timer interrupts, and the processes by their CPU time.
//!
//! Most kernels count a whole tick for what runs at its end: short interrupts and threads are missed.
//! Cannot see single runs, waits, or which CPUs a process used.

use std::collections::HashMap;

use facts::{CpuTime, CpuTimes, Interrupts, Root, TaskStat, Unit};
use recording::{Culprit, CulpritKind, Thread, ThreadOwner, TopCpu, TopUse};
use units::Nanos;

use crate::error::{Error, Kind};
use crate::names::owners;

/// The unit of CPU times in `stat` (`USER_HZ` is 100).
const STEP: Nanos = Nanos::from_millis(10);
/// The processes of an interval that are listed.
const LISTED: usize = 64;

/// A process: its PID, and its start time in ticks, as PIDs are reused.
type Key = (u32, u64);

/// The last reading.
pub(crate) struct Counted {
    /// Whether the hypervisor's clock is exported.
    has_steal: bool,
    times: CpuTimes,
    interrupts: Option<Interrupts>,
    processes: HashMap<Key, u64>,
}

/// A process, with its CPU time in steps.
struct Process {
    key: Key,
    steps: u64,
    name: String,
    is_kernel: bool,
    prio: i32,
}

impl Counted {
    /// Begins the first interval.
    pub(crate) fn begin(root: &Root, has_steal: bool) -> Result<Self, Error> {
        let processes = processes(root).into_iter();
        Ok(Self {
            has_steal,
            times: times(root)?,
            interrupts: interrupts(root),
            processes: processes.map(|one| (one.key, one.steps)).collect(),
        })
    }

    /// Ends an interval.
    pub(crate) fn interval(
        &mut self,
        root: &Root,
    ) -> Result<(Vec<TopCpu>, Vec<TopUse>), Error> {
        let (times, interrupts) = (times(root)?, interrupts(root));
        let mut cpus = Vec::new();
        for cpu in times.cpus().iter() {
            // It was offline before.
            let Some(time) = times.since(&self.times, cpu) else { continue };
            let count = |read: &Option<Interrupts>| read.as_ref()?.timer(cpu);
            let ticks = count(&interrupts).zip(count(&self.interrupts));
            cpus.push(TopCpu {
                cpu,
                ticks: ticks.and_then(|(now, before)| now.checked_sub(before)),
                programs_ns: programs(&time),
                kernel_ns: None,
                interrupts_ns: time.interrupts,
                interruption_ns_max: None,
                steal_ns: self.has_steal.then_some(time.steal),
                quota_ns: None,
                wait_ns: None,
                waits: None,
                wait_ns_max: None,
            });
        }
        (self.times, self.interrupts) = (times, interrupts);
        Ok((cpus, self.uses(root)))
    }

    fn uses(&mut self, root: &Root) -> Vec<TopUse> {
        let now = processes(root);
        let before = std::mem::take(&mut self.processes);
        let mut uses = Vec::new();
        for process in now {
            let steps = before.get(&process.key).copied().unwrap_or(0);
            let grown = process.steps.saturating_sub(steps);
            self.processes.insert(process.key, process.steps);
            if grown > 0 {
                uses.push((grown, process));
            }
        }
        uses.sort_by_key(|(steps, _)| std::cmp::Reverse(*steps));
        uses.truncate(LISTED);
        let used = uses.into_iter().map(|(steps, process)| TopUse {
            cpu: None,
            culprit: process.culprit(root),
            ns: STEP.saturating_mul(steps),
            count: None,
            ns_max: None,
        });
        used.collect()
    }
}

impl Process {
    fn culprit(self, root: &Root) -> Culprit {
        let (pid, _) = self.key;
        let owner = match self.is_kernel {
            true => ThreadOwner::Kernel,
            false => ThreadOwner::Program(self.name.clone()),
        };
        let groups = root.text(&format!("/proc/{pid}/cgroup")).ok();
        let thread = Thread {
            tid: pid,
            pid,
            prio: self.prio,
            owner: Some(owner),
            unit: groups
                .filter(|_| !self.is_kernel)
                .and_then(|text| Unit::of_process(&text)),
            own: pid == std::process::id(),
        };
        Culprit { kind: CulpritKind::Thread, name: self.name, thread: Some(thread) }
    }
}

/// The time of threads: all but idle time, interrupts and the hypervisor's.
fn programs(time: &CpuTime) -> Nanos {
    time.busy.saturating_sub(time.interrupts).saturating_sub(time.steal)
}

fn times(root: &Root) -> Result<CpuTimes, Error> {
    let read =
        root.text(CpuTimes::FILE).and_then(|text| CpuTimes::parse(&text, CpuTimes::FILE));
    read.map_err(|why| Error::new(Kind::Missing, why.to_string()))
}

fn interrupts(root: &Root) -> Option<Interrupts> {
    Interrupts::parse(&root.text(Interrupts::FILE).ok()?, Interrupts::FILE).ok()
}

/// All processes.
fn processes(root: &Root) -> Vec<Process> {
    let names = root.list("/proc").unwrap_or_default();
    let pids = names.iter().filter_map(|name| name.parse::<u32>().ok());
    pids.filter_map(|pid| process(&root.text(&format!("/proc/{pid}/stat")).ok()?))
        .collect()
}

/// A process from its `stat` (`proc_pid_stat(5)`).
fn process(text: &str) -> Option<Process> {
    let stat = TaskStat::parse(text)?;
    Some(Process {
        key: (stat.tid, stat.number(22)?),
        steps: stat.number::<u64>(14)? + stat.number::<u64>(15)?,
        name: stat.name.to_owned(),
        is_kernel: stat.number::<u64>(9)? & owners::PF_KTHREAD > 0,
        // 20 to 59 there are ordinary priorities; real-time ones are negative.
        prio: stat.number::<i32>(18)? + 100,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the fields of a process, and that a truncated line is none.
    #[test]
    fn fields() {
        let rest = "S 1 1 0 -1 -1 4194560 9 9 9 9 30 12 7 7 20 0 1 0 77 1 1\n";
        let found = process(&format!("12 (a) b) {rest}")).unwrap();
        assert_eq!((found.key, found.steps, &*found.name), ((12, 77), 42, "a) b"));
        assert_eq!((found.is_kernel, found.prio), (false, 120));
        assert!(process("12 (a) S 1").is_none());
    }
}
