//! How long CPU-bound tasks run before something preempts them: what is asked and what is seen.
//!
//! Spinners use all the CPU time that they get, sleepers wake up often. What each task used is
//! read from outside, at the edges of samples; a *turn* is a stretch of time with one step's
//! settings, and has one sample or more. What the scheduler itself tells of each switch is kept
//! beside it, where it could be watched.

use serde::{Deserialize, Serialize};
use units::{Cpu, CpuSet, Nanos};

use crate::{Phases, Source, WakersSeries};

/// What `slices` is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlicesSpec {
    /// How many processes spin.
    pub spinners: u32,
    /// After so many passes of its loop each of them asks the kernel how much time it has used
    /// (`getrusage(2)`), as programs do that measure themselves; `None`: it makes no system call.
    pub getrusage_every: Option<u32>,
    /// How many processes sleep again and again.
    pub sleepers: u32,
    /// How long a sleeper sleeps each time.
    pub sleep_ns: Nanos,
    /// How long it then works; zero: not at all.
    pub burst_ns: Nanos,
    /// How long each step is measured, all its turns and phases together.
    pub duration_ns: Nanos,
    /// The CPUs that the tasks may use.
    pub cpus: CpuSet,
    /// Whether each task stays on one of them, in turns.
    pub pinned: bool,
    /// The tasks' nice value.
    pub nice: i8,
    /// The tasks' scheduling policy.
    pub policy: Policy,
    /// What is changed, step by step; the first one, with nothing changed, is not among them.
    pub steps: Vec<Step>,
    /// How many turns each step has, in each phase.
    pub turns: u32,
    /// How long a sample is; `None`: a whole turn.
    pub sample_ns: Option<Nanos>,
    /// When processes are started, for each phase others; `None`: once, at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<Phases>,
}

/// How ordinary tasks are scheduled (`sched(7)`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// `SCHED_OTHER`.
    Other,
    /// `SCHED_BATCH`: taken for CPU-bound when they wake up.
    Batch,
}

/// Settings of the scheduler that are changed together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The settings, in their order.
    pub settings: Vec<StepSetting>,
}

/// One setting of the scheduler, and what it is to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepSetting {
    /// A feature, or a tunable: `WAKEUP_PREEMPTION`, `base_slice_ns`.
    pub name: String,
    /// `on`, `off`, or a value.
    pub value: String,
}

/// What was seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlicesSeries {
    /// `CLOCK_MONOTONIC` at the beginning.
    pub began_ns: Nanos,
    /// The spinners, then the sleepers.
    pub tasks: Vec<SlicesTask>,
    /// The turns, in their order.
    pub turns: Vec<SlicesTurn>,
    /// Every switch, by the scheduler; `None`: nobody watched.
    pub switches: Option<Switches>,
    /// Who woke up meanwhile, on the same CPUs; `None`: nobody counted.
    pub wakers: Option<WakersSeries>,
}

/// A process that was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlicesTask {
    /// Its number; of several phases', that of the first.
    pub pid: u32,
    /// Its name, which no other one has.
    pub name: String,
    /// What it does.
    pub role: Role,
    /// The CPU that it stays on, if it does.
    pub cpu: Option<Cpu>,
}

/// What a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Uses all the time that it gets.
    Spinner,
    /// Sleeps again and again.
    Sleeper,
}

/// A stretch of time with one step's settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlicesTurn {
    /// The step, counted from 1; 0: everything as it was found.
    pub step: u32,
    /// What was seen, one sample after the other.
    pub samples: Vec<SlicesSample>,
}

/// What each task did in a stretch of time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlicesSample {
    /// From the recording's beginning to the first reading.
    pub start_ns: Nanos,
    /// From then until the second reading began.
    pub wall_ns: Nanos,
    /// How long the longer of the two readings took.
    pub reading_ns: Nanos,
    /// Each task, in the order of the series' tasks.
    pub tasks: Vec<TaskTime>,
}

/// What one task did between two readings. Written as `[cpu_ns, involuntary, voluntary, passes]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(Nanos, u64, u64, u64)", into = "(Nanos, u64, u64, u64)")]
pub struct TaskTime {
    /// The CPU time that it used (its process's CPU clock).
    pub cpu_ns: Nanos,
    /// How often it had to leave the CPU.
    pub involuntary: u64,
    /// How often it left it by itself.
    pub voluntary: u64,
    /// Passes of a spinner's loop; times that a sleeper woke up.
    pub passes: u64,
}

impl From<(Nanos, u64, u64, u64)> for TaskTime {
    fn from(from: (Nanos, u64, u64, u64)) -> Self {
        let (cpu_ns, involuntary, voluntary, passes) = from;
        Self { cpu_ns, involuntary, voluntary, passes }
    }
}

impl From<TaskTime> for (Nanos, u64, u64, u64) {
    fn from(time: TaskTime) -> Self {
        let TaskTime { cpu_ns, involuntary, voluntary, passes } = time;
        (cpu_ns, involuntary, voluntary, passes)
    }
}

/// Every switch between tasks on some CPUs, as the scheduler told it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switches {
    /// Who watched.
    pub source: Source,
    /// The tasks that ran.
    pub tasks: Vec<SwitchedTask>,
    /// What ran when, CPU by CPU in rising order.
    pub cpus: Vec<CpuSwitches>,
}

/// A task that ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchedTask {
    /// Its number, as the kernel counts outside of containers; 0 is idling.
    pub tid: u32,
    /// Its name, the last one if it had several.
    pub name: String,
}

/// What ran on one CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuSwitches {
    /// The CPU.
    pub cpu: Cpu,
    /// What ran, one after the other; between two of which the first does not end where the
    /// second begins some were lost.
    pub stretches: Vec<Stretch>,
    /// Ends of others, whose beginning is not known.
    #[serde(default)]
    pub loose_ends: Vec<LooseEnd>,
    /// Stretches that there was no room for, all after these.
    pub lost: u64,
}

/// A task running, from a switch to it until the next switch. Written as `[start_ns, ns, task,
/// end]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(Nanos, Nanos, u32, End)", into = "(Nanos, Nanos, u32, End)")]
pub struct Stretch {
    /// From the recording's beginning.
    pub start_ns: Nanos,
    /// How long it was, interrupts included.
    pub ns: Nanos,
    /// Which one of the tasks.
    pub task: u32,
    /// Why it ended.
    pub end: End,
}

impl From<(Nanos, Nanos, u32, End)> for Stretch {
    fn from((start_ns, ns, task, end): (Nanos, Nanos, u32, End)) -> Self {
        Self { start_ns, ns, task, end }
    }
}

impl From<Stretch> for (Nanos, Nanos, u32, End) {
    fn from(Stretch { start_ns, ns, task, end }: Stretch) -> Self {
        (start_ns, ns, task, end)
    }
}

/// The end of a stretch whose beginning is not known: the switch to the task was not told, or it
/// ran when the recording began. Written as `[at_ns, task, end]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(Nanos, u32, End)", into = "(Nanos, u32, End)")]
pub struct LooseEnd {
    /// From the recording's beginning.
    pub at_ns: Nanos,
    /// Which one of the tasks.
    pub task: u32,
    /// Why it ended.
    pub end: End,
}

impl From<(Nanos, u32, End)> for LooseEnd {
    fn from((at_ns, task, end): (Nanos, u32, End)) -> Self {
        Self { at_ns, task, end }
    }
}

impl From<LooseEnd> for (Nanos, u32, End) {
    fn from(LooseEnd { at_ns, task, end }: LooseEnd) -> Self {
        (at_ns, task, end)
    }
}

/// Why a task's turn on a CPU ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// A tick found that it had run long enough.
    Tick,
    /// The one that comes next was woken, and preempted it.
    Wakeup,
    /// It let others go first.
    Yield,
    /// It had nothing more to do.
    Sleep,
    /// Something else made it go: it was moved, or its priority changed.
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> SlicesSpec {
        let setting = StepSetting { name: "RUN_TO_PARITY".into(), value: "off".into() };
        SlicesSpec {
            spinners: 16,
            getrusage_every: None,
            sleepers: 2,
            sleep_ns: Nanos::from_millis(1),
            burst_ns: Nanos::ZERO,
            duration_ns: Nanos::from_secs(5),
            cpus: "0-1".parse().unwrap(),
            pinned: false,
            nice: 0,
            policy: Policy::Other,
            steps: vec![Step { settings: vec![setting] }],
            turns: 3,
            sample_ns: None,
            phases: None,
        }
    }

    fn series() -> SlicesSeries {
        let time = TaskTime {
            cpu_ns: Nanos::from_millis(600),
            involuntary: 640,
            voluntary: 1,
            passes: 9_000,
        };
        let sample = SlicesSample {
            start_ns: Nanos::from_micros(3),
            wall_ns: Nanos::from_secs(5),
            reading_ns: Nanos::from_micros(200),
            tasks: vec![time],
        };
        let stretch = Stretch {
            start_ns: Nanos::from_micros(9),
            ns: Nanos::from_micros(980),
            task: 0,
            end: End::Wakeup,
        };
        let loose = LooseEnd { at_ns: Nanos::from_micros(4), task: 0, end: End::Tick };
        let name = || "spin/0".to_owned();
        let cpu = Some(Cpu::new(1));
        SlicesSeries {
            began_ns: Nanos::from_secs(70),
            tasks: vec![SlicesTask { pid: 7, name: name(), role: Role::Spinner, cpu }],
            turns: vec![SlicesTurn { step: 1, samples: vec![sample] }],
            switches: Some(Switches {
                source: Source::Bpf,
                tasks: vec![SwitchedTask { tid: 1007, name: name() }],
                cpus: vec![CpuSwitches {
                    cpu: Cpu::new(1),
                    stretches: vec![stretch],
                    loose_ends: vec![loose],
                    lost: 2,
                }],
            }),
            wakers: None,
        }
    }

    /// Check the keys and the form of every value: this is what files hold.
    #[test]
    fn contract() {
        let asked = serde_json::json!({
            "spinners": 16, "getrusage_every": null, "sleepers": 2, "sleep_ns": 1_000_000, "burst_ns": 0,
            "duration_ns": 5_000_000_000_u64, "cpus": "0,1", "pinned": false, "nice": 0,
            "policy": "other", "turns": 3, "sample_ns": null,
            "steps": [{"settings": [{"name": "RUN_TO_PARITY", "value": "off"}]}],
        });
        let seen = serde_json::json!({
            "began_ns": 70_000_000_000_u64,
            "tasks": [{"pid": 7, "name": "spin/0", "role": "spinner", "cpu": 1}],
            "turns": [{"step": 1, "samples": [{
                "start_ns": 3_000, "wall_ns": 5_000_000_000_u64, "reading_ns": 200_000,
                "tasks": [[600_000_000, 640, 1, 9_000]],
            }]}],
            "switches": {"source": "bpf", "tasks": [{"tid": 1007, "name": "spin/0"}],
                "cpus": [{"cpu": 1, "stretches": [[9_000, 980_000, 0, "wakeup"]],
                    "loose_ends": [[4_000, 0, "tick"]], "lost": 2}]},
            "wakers": null,
        });
        assert_eq!(serde_json::to_value(spec()).unwrap(), asked);
        assert_eq!(serde_json::from_value::<SlicesSpec>(asked).unwrap(), spec());
        assert_eq!(serde_json::to_value(series()).unwrap(), seen);
        assert_eq!(serde_json::from_value::<SlicesSeries>(seen).unwrap(), series());
    }
}
