//! What the threads of a running program do and wait for: parameters and measured values.

use serde::{Deserialize, Serialize};
use units::{Cpu, Nanos};

use crate::blame::{Culprit, Source};

/// The parameters of `watch`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchSpec {
    /// The threads.
    pub target: WatchTarget,
    /// The duration.
    pub duration_ns: Nanos,
    /// The number of the longest delays to keep.
    pub keep: u32,
    /// Each stored delay that is longer than this is reported when it happens; `None`: none is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_above_ns: Option<Nanos>,
}

/// The threads that are watched, and those that they start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WatchTarget {
    /// Those of these processes.
    Processes(Vec<u32>),
    /// Those of a systemd unit or a container, by its name.
    Unit(String),
    /// Those of a cgroup, by its directory.
    Cgroup(String),
}

/// The measured values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchSeries {
    /// `Bpf`, or `Proc` if only the counters in `/proc` could be read.
    pub source: Source,
    /// `CLOCK_MONOTONIC` at the beginning.
    pub began_ns: Nanos,
    /// The actual duration.
    pub elapsed_ns: Nanos,
    /// The threads, and those that have ended meanwhile, by name.
    pub threads: Vec<WatchedThread>,
    /// The threads that had a CPU while watched threads waited for it.
    pub takers: Vec<WaitTaker>,
    /// What interrupted watched threads.
    pub interruptions: Vec<WatchedInterruption>,
    /// The number of waits for a CPU by their length: the longest length of a bin, which is at most
    /// 1/32 longer than its shortest, and the count.
    pub lengths: Vec<(Nanos, u64)>,
    /// The longest delays, the longest first.
    pub longest: Vec<WatchedDelay>,
    /// What could not be stored.
    pub lost: WatchLost,
}

/// What could not be stored, as tables have a fixed size.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchLost {
    /// Events of threads that are missing.
    pub events: u64,
    /// Waiting time during which an unlisted thread had the CPU.
    pub taken_ns: Nanos,
    /// Delays that were not reported when they happened.
    pub delays: u64,
    /// Waits of which the parts are not known, as a CPU's sums changed while they were read.
    pub unsure: u64,
    /// The time before switches of which the previous one was not traced: a thread may have run other
    /// than the last known one.
    #[serde(default)]
    pub unseen_ns: Nanos,
}

/// A thread, or the threads of one name that have ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedThread {
    /// The thread ID in the initial PID namespace; `None` for threads that have ended.
    pub tid: Option<u32>,
    /// The process ID; `None` if they had several.
    pub pid: Option<u32>,
    /// The name.
    pub name: String,
    /// The number of threads.
    pub count: u64,
    /// The time on a CPU, interrupts included.
    pub run_ns: Nanos,
    /// The time that it waited for a CPU.
    pub wait_ns: Nanos,
    /// How often.
    pub waits: u64,
    /// The longest wait; `None` if only counters were read.
    pub wait_ns_max: Option<Nanos>,
    /// What had the CPU meanwhile; adds up to `wait_ns`. `None` if only counters were read.
    pub parts: Option<WaitParts>,
    /// The part of `run_ns` in interrupts and softirqs; `None` if only counters were read.
    pub interrupted_ns: Option<Nanos>,
    /// How often.
    pub interruptions: Option<u64>,
    /// How often it left the CPU although it could have continued.
    pub preempted: u64,
    /// How often it left the CPU to sleep.
    pub slept: u64,
    /// How often it was moved to another CPU.
    pub migrations: Option<u64>,
    /// Time in user mode, as the kernel accounts it (of whole ticks, on most kernels).
    pub user_ns: Nanos,
    /// The same in the kernel: system calls and page faults.
    pub system_ns: Nanos,
    /// Page faults without a read from a disk.
    pub minor_faults: u64,
    /// Page faults with one.
    pub major_faults: u64,
}

/// What had the CPU while a thread waited for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitParts {
    /// None: the CPU left its idle state, or the thread was about to be moved.
    pub idle_ns: Nanos,
    /// Other threads of the same program.
    pub same_ns: Nanos,
    /// Ordinary threads of other programs.
    pub others_ns: Nanos,
    /// Real-time and deadline threads of other programs.
    pub realtime_ns: Nanos,
    /// Kernel threads.
    pub kernel_ns: Nanos,
    /// Interrupts and softirqs.
    pub interrupts_ns: Nanos,
    /// The quota of its cgroup was used up.
    pub quota_ns: Nanos,
}

/// A thread that had a CPU while watched threads waited for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitTaker {
    /// The thread; `None`: the idle task.
    pub thread: Option<Culprit>,
    /// Whether it is of the program itself.
    pub is_same: bool,
    /// How long they waited meanwhile, summed over them.
    pub ns: Nanos,
    /// Its number of runs.
    pub runs: u64,
}

/// What interrupted watched threads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedInterruption {
    /// The interrupt or softirq.
    pub culprit: Culprit,
    /// Its time, without others that interrupted it.
    pub ns: Nanos,
    /// How often.
    pub count: u64,
    /// The longest one.
    pub ns_max: Nanos,
}

/// Why a thread did not continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DelayKind {
    /// It waited for a CPU after it was woken.
    Woken,
    /// It waited for a CPU after another thread had preempted it.
    Preempted,
    /// It was interrupted.
    Interrupted,
}

/// A delay of a thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedDelay {
    /// `CLOCK_MONOTONIC` at its beginning.
    pub begin_ns: Nanos,
    /// Its length.
    pub ns: Nanos,
    /// Why the thread did not continue.
    pub kind: DelayKind,
    /// The delayed thread.
    pub thread: Culprit,
    /// The CPU on which it continued.
    pub cpu: Cpu,
    /// How long it had waited on other CPUs before.
    pub elsewhere_ns: Nanos,
    /// What had the CPU meanwhile; adds up to `ns`.
    pub parts: WaitParts,
    /// What ended an interruption.
    pub interruption: Option<Culprit>,
    /// The threads that had the CPU meanwhile, in order: the last ones.
    pub runs: Vec<DelayRun>,
    /// How many runs before these are not listed.
    pub runs_before: u64,
}

/// A run of another thread during a delay.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DelayRun {
    /// The thread; `None`: the CPU was idle.
    pub thread: Option<Culprit>,
    /// Whether it is of the program itself.
    pub is_same: bool,
    /// How long it had run when the delay began.
    pub before_ns: Nanos,
    /// How long it ran during the delay, interrupts included.
    pub ns: Nanos,
}

impl WatchedDelay {
    /// The delay as one line of JSON, with the time at which this is called.
    ///
    /// # Errors
    /// None is known: all values can be written as JSON.
    pub fn to_line(&self) -> serde_json::Result<String> {
        #[derive(Serialize)]
        struct Line<'a> {
            written: String,
            #[serde(flatten)]
            delay: &'a WatchedDelay,
        }
        let line = Line { written: crate::Recording::moment(), delay: self };
        Ok(serde_json::to_string(&line)? + "\n")
    }
}

impl WaitParts {
    /// All parts.
    pub fn sum(&self) -> Nanos {
        self.all().into_iter().fold(Nanos::ZERO, Nanos::saturating_add)
    }

    /// Each part, in order of the fields.
    pub fn all(&self) -> [Nanos; 7] {
        let Self { idle_ns, same_ns, others_ns, realtime_ns, .. } = *self;
        let Self { kernel_ns, interrupts_ns, quota_ns, .. } = *self;
        [idle_ns, same_ns, others_ns, realtime_ns, kernel_ns, interrupts_ns, quota_ns]
    }
}

impl From<[Nanos; 7]> for WaitParts {
    fn from(parts: [Nanos; 7]) -> Self {
        let [
            idle_ns,
            same_ns,
            others_ns,
            realtime_ns,
            kernel_ns,
            interrupts_ns,
            quota_ns,
        ] = parts;
        Self {
            idle_ns,
            same_ns,
            others_ns,
            realtime_ns,
            kernel_ns,
            interrupts_ns,
            quota_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the parts are in the order of the fields, and add up.
    #[test]
    fn parts() {
        let all = [1, 2, 3, 4, 5, 6, 7].map(Nanos::from_nanos);
        let parts = WaitParts::from(all);
        assert_eq!((parts.idle_ns, parts.quota_ns), (all[0], all[6]));
        assert_eq!((parts.all(), parts.sum()), (all, Nanos::from_nanos(28)));
    }

    /// Check the keys of a line of the log.
    #[test]
    fn line() {
        let culprit =
            |kind, name: &str| Culprit { kind, name: name.into(), thread: None };
        let delay = WatchedDelay {
            begin_ns: Nanos::from_secs(70),
            ns: Nanos::from_millis(2),
            kind: DelayKind::Interrupted,
            thread: culprit(crate::CulpritKind::Thread, "a\u{1b}\nb"),
            cpu: Cpu::new(3),
            elsewhere_ns: Nanos::ZERO,
            parts: WaitParts::default(),
            interruption: Some(culprit(crate::CulpritKind::Softirq, "NET_RX")),
            runs: Vec::new(),
            runs_before: 0,
        };
        let line = delay.to_line().unwrap();
        assert!(line.ends_with("}\n") && line.lines().count() == 1, "{line}");
        let mut read: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert!(read.as_object_mut().unwrap().remove("written").is_some());
        assert_eq!(serde_json::from_value::<WatchedDelay>(read).unwrap(), delay);
    }
}
