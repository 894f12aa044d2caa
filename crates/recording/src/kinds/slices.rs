//! Time slices of CPU-bound tasks: parameters and measured values.
//!
//! Spinners use all CPU time that they get, sleepers wake up often. The CPU time of each task is
//! read from outside, at the edges of samples; a *turn* is a period with one step's settings, and
//! has one or more samples. The scheduler's switches are stored as well, if they were traced.

use serde::{Deserialize, Serialize};
use units::{Cpu, CpuSet, Nanos};

use crate::tuple::tuple_form;
use crate::{Phases, Simulated, Source, WakersSeries};

/// The parameters of `slices`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlicesSpec {
    /// The number of spinning processes.
    pub spinners: u32,
    /// Each of them calls `getrusage(2)` every so many iterations, as programs do that measure
    /// themselves; `None`: no system calls.
    pub getrusage_every: Option<u32>,
    /// The number of sleeping processes.
    pub sleepers: u32,
    /// The time that a sleeper sleeps.
    pub sleep_ns: Nanos,
    /// The time that it then works; zero: not at all.
    pub burst_ns: Nanos,
    /// The measured time of each step, all its turns and phases together.
    pub duration_ns: Nanos,
    /// The CPUs that the tasks may use.
    pub cpus: CpuSet,
    /// Whether each task is pinned to one of them, round robin.
    pub pinned: bool,
    /// The tasks' nice value.
    pub nice: i8,
    /// The tasks' scheduling policy.
    pub policy: Policy,
    /// The changes of each step; the first step, without changes, is not listed.
    pub steps: Vec<Step>,
    /// The number of turns of each step, in each phase.
    pub turns: u32,
    /// The length of a sample; `None`: a whole turn.
    pub sample_ns: Option<Nanos>,
    /// When processes are started, new ones for each phase; `None`: one phase, which begins at
    /// once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<Phases>,
    /// If it was simulated: with what.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<Box<Simulated>>,
}

impl SlicesSpec {
    /// The length of a turn.
    pub fn turn_ns(&self) -> Nanos {
        let phases = Phases::parts(self.phases.as_ref());
        let turns = u64::from(self.turns.max(1)) * u64::from(phases);
        Nanos::from_nanos(self.duration_ns.get() / turns)
    }

    /// The steps of a turn, in the order in which they run: in every second turn in reverse. 0 is that
    /// with unmodified settings.
    pub fn steps_of_turn(&self, turn: u32) -> impl Iterator<Item = usize> + use<> {
        let last = self.steps.len();
        (0..=last).map(move |at| if turn % 2 == 0 { at } else { last - at })
    }

    /// The CPU that a task is pinned to, by its number among those of its role, round robin.
    pub fn pinned_cpu(&self, number: u32) -> Option<Cpu> {
        let number = usize::try_from(number).unwrap_or(0);
        let place = number % self.cpus.len().max(1);
        self.cpus.iter().nth(place).filter(|_| self.pinned)
    }
}

/// The scheduling policy of ordinary tasks (`sched(7)`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// `SCHED_OTHER`.
    Other,
    /// `SCHED_BATCH`: assumed to be CPU-bound when they wake up.
    Batch,
}

/// Scheduler settings that are changed together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The settings, in their order.
    pub settings: Vec<StepSetting>,
}

/// A scheduler setting and its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepSetting {
    /// A scheduler feature or tunable: `WAKEUP_PREEMPTION`, `base_slice_ns`.
    pub name: String,
    /// `on`, `off`, or a value.
    pub value: String,
}

/// The measured values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlicesSeries {
    /// `CLOCK_MONOTONIC` at the beginning.
    pub began_ns: Nanos,
    /// The spinners, followed by the sleepers.
    pub tasks: Vec<SlicesTask>,
    /// The turns, in their order.
    pub turns: Vec<SlicesTurn>,
    /// The scheduler's switches; `None`: not traced.
    pub switches: Option<Switches>,
    /// The wake-ups on the same CPUs; `None`: not counted.
    pub wakers: Option<WakersSeries>,
    /// Where tasks that woke up were placed; `None`: only simulations know that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub placements: Option<Placements>,
}

/// A process that was measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlicesTask {
    /// The process ID; of several phases, that of the first.
    pub pid: u32,
    /// Its unique name.
    pub name: String,
    /// Its role.
    pub role: Role,
    /// The CPU that it is pinned to, if any.
    pub cpu: Option<Cpu>,
}

/// The role of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Uses all CPU time that it gets.
    Spinner,
    /// Sleeps repeatedly.
    Sleeper,
}

/// A period with one step's settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlicesTurn {
    /// The step, counted from 1; 0: unmodified settings.
    pub step: u32,
    /// The samples, in order.
    pub samples: Vec<SlicesSample>,
}

/// The CPU time of each task in one sample.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlicesSample {
    /// From the recording's beginning to the first reading.
    pub start_ns: Nanos,
    /// From the first reading until the second reading began.
    pub wall_ns: Nanos,
    /// The time of the longer of the two readings.
    pub reading_ns: Nanos,
    /// The tasks, in the order of the series' tasks.
    pub tasks: Vec<TaskTime>,
}

/// The CPU time of one task between two readings. Written as `[cpu_ns, involuntary, voluntary, passes]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(Nanos, u64, u64, u64)", into = "(Nanos, u64, u64, u64)")]
pub struct TaskTime {
    /// CPU time (the CPU clock of its process).
    pub cpu_ns: Nanos,
    /// Involuntary context switches.
    pub involuntary: u64,
    /// Voluntary context switches.
    pub voluntary: u64,
    /// Iterations of a spinner's loop; wake-ups of a sleeper.
    pub passes: u64,
}

tuple_form!(TaskTime { cpu_ns: Nanos, involuntary: u64, voluntary: u64, passes: u64 });

/// The scheduler's switches between tasks on some CPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switches {
    /// The source of the events.
    pub source: Source,
    /// The tasks that ran.
    pub tasks: Vec<SwitchedTask>,
    /// What ran on each CPU, in rising order.
    pub cpus: Vec<CpuSwitches>,
}

/// A task that ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchedTask {
    /// The thread ID in the initial PID namespace; 0 is the idle task.
    pub tid: u32,
    /// The name; the last one, if it was renamed.
    pub name: String,
}

/// What ran on one CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuSwitches {
    /// The CPU.
    pub cpu: Cpu,
    /// The times when tasks ran, in order. If one does not end where the next begins, switches
    /// between them were lost.
    pub stretches: Vec<Stretch>,
    /// The ends of further ones, whose beginning is not known.
    #[serde(default)]
    pub loose_ends: Vec<LooseEnd>,
    /// The number of later ones that were not stored because the buffer was full.
    pub lost: u64,
}

/// A task running from a switch to it until the next switch. Written as `[start_ns, ns, task, end]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(Nanos, Nanos, u32, End)", into = "(Nanos, Nanos, u32, End)")]
pub struct Stretch {
    /// From the recording's beginning.
    pub start_ns: Nanos,
    /// The length, interrupts included.
    pub ns: Nanos,
    /// The index of the task.
    pub task: u32,
    /// Why it ended.
    pub end: End,
}

tuple_form!(Stretch { start_ns: Nanos, ns: Nanos, task: u32, end: End });

/// The end of a stretch whose beginning is not known: the switch to the task was not traced, or
/// the task ran when the recording began. Written as `[at_ns, task, end]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(Nanos, u32, End)", into = "(Nanos, u32, End)")]
pub struct LooseEnd {
    /// From the recording's beginning.
    pub at_ns: Nanos,
    /// The index of the task.
    pub task: u32,
    /// Why it ended.
    pub end: End,
}

tuple_form!(LooseEnd { at_ns: Nanos, task: u32, end: End });

/// Where tasks were placed in the scheduler's queue when they woke up, in virtual time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placements {
    /// How far a task of nice 0 has to be placed before the running one to preempt it (CFS), in the last
    /// round; `None`: that is decided otherwise (EEVDF).
    pub granularity_ns: Option<Nanos>,
    /// Wake-ups while a task ran, in their order.
    pub wakeups: Vec<Placement>,
    /// The number of later ones that were not stored.
    pub lost: u64,
}

/// A task that woke up. Written as `[at_ns, cpu, task, running, ahead_ns, ahead_of_average_ns, lost_ns]`;
/// `lost_ns` is null if it did not preempt the running task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "PlacementTuple", into = "PlacementTuple")]
pub struct Placement {
    /// From the recording's beginning.
    pub at_ns: Nanos,
    /// The CPU.
    pub cpu: Cpu,
    /// The index of the task among the measured ones.
    pub task: u32,
    /// The index of the running task.
    pub running: u32,
    /// How far it was placed before the running task; negative: behind it.
    pub ahead_ns: i64,
    /// How far it was placed before the average of all others.
    pub ahead_of_average_ns: i64,
    /// What the running task lost of its slice; `None`: it was not preempted.
    pub lost_ns: Option<Nanos>,
}

type PlacementTuple = (Nanos, Cpu, u32, u32, i64, i64, Option<Nanos>);

tuple_form!(Placement {
    at_ns: Nanos,
    cpu: Cpu,
    task: u32,
    running: u32,
    ahead_ns: i64,
    ahead_of_average_ns: i64,
    lost_ns: Option<Nanos>
});

/// Why a stretch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// At a tick, the scheduler found that it had run long enough.
    Tick,
    /// The next task was woken and preempted it.
    Wakeup,
    /// It called `sched_yield(2)`.
    Yield,
    /// It slept or ended.
    Sleep,
    /// Another reason: it was migrated, or its priority changed.
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
            simulated: None,
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
            placements: Some(placements()),
        }
    }

    fn placements() -> Placements {
        let placement = Placement {
            at_ns: Nanos::from_micros(12),
            cpu: Cpu::new(1),
            task: 1,
            running: 0,
            ahead_ns: 40_000_000,
            ahead_of_average_ns: -3_000,
            lost_ns: Some(Nanos::from_millis(7)),
        };
        let behind = Placement { ahead_ns: -5, lost_ns: None, ..placement };
        let granularity_ns = Some(Nanos::from_millis(10));
        Placements { granularity_ns, wakeups: vec![placement, behind], lost: 3 }
    }

    /// Check the keys and the form of every value in files.
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
            "placements": {"granularity_ns": 10_000_000, "lost": 3, "wakeups": [
                [12_000, 1, 1, 0, 40_000_000, -3_000, 7_000_000], [12_000, 1, 1, 0, -5, -3_000, null],
            ]},
        });
        assert_eq!(serde_json::to_value(spec()).unwrap(), asked);
        assert_eq!(serde_json::from_value::<SlicesSpec>(asked).unwrap(), spec());
        assert_eq!(serde_json::to_value(series()).unwrap(), seen);
        assert_eq!(serde_json::from_value::<SlicesSeries>(seen).unwrap(), series());
    }

    /// Check that a file without placements, as a kernel's are, has no key of them.
    #[test]
    fn without_placements() {
        let measured = SlicesSeries { placements: None, ..series() };
        let seen = serde_json::to_value(&measured).unwrap();
        assert_eq!(seen.get("placements"), None);
        assert_eq!(serde_json::from_value::<SlicesSeries>(seen).unwrap(), measured);
    }
}
