//! Interruptions of a program on CPUs of its own: parameters and measured values.

use serde::{Deserialize, Deserializer, Serialize};
use units::{Cpu, CpuSet, Nanos, Span};

use crate::ProcCounts;
use crate::Words;
use crate::blame::{Blamed, CulpritKind, Source};
use crate::moment::Trigger;
use crate::moments_found::{Value, Values};

/// The parameters of `run`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSpec {
    /// The command line.
    pub command: Words,
    /// The CPUs that the program and its children are restricted to. Files of earlier versions
    /// have `cpu`, a number.
    #[serde(alias = "cpu", deserialize_with = "one_or_several")]
    pub cpus: CpuSet,
    /// Why these CPUs were chosen.
    pub picked: Picked,
    /// The `SCHED_FIFO` priority of all its threads; `None`: ordinary tasks.
    pub fifo: Option<u8>,
    /// The number of longest interruptions to report.
    pub top: u32,
    /// The limit above which an interruption is a moment.
    #[serde(flatten)]
    pub trigger: Trigger,
}

/// Reads a list of CPUs, or the number of one.
fn one_or_several<'a, D: Deserializer<'a>>(from: D) -> Result<CpuSet, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Cpus {
        One(Cpu),
        Several(CpuSet),
    }
    Ok(match Cpus::deserialize(from)? {
        Cpus::One(cpu) => cpu.into(),
        Cpus::Several(cpus) => cpus,
    })
}

/// Why a CPU was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Picked {
    /// The user named it.
    Asked,
    /// `nohz_full`: its tick stops while a single task runs there.
    NohzFull,
    /// It is isolated from the scheduler's load balancing.
    Isolated,
    /// It has had the fewest interrupts since boot.
    LeastInterrupted,
    /// A reason of a later version.
    #[serde(other)]
    Other,
}

/// The end of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// It exited with this code.
    Exited(u8),
    /// It was killed by this signal.
    Killed(u8),
}

impl Ended {
    /// The exit code of a shell: the code, or 128 plus the signal.
    pub fn code(self) -> u8 {
        match self {
            Self::Exited(code) => code,
            Self::Killed(signal) => signal.saturating_add(128),
        }
    }
}

/// The measured values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSeries {
    /// `CLOCK_MONOTONIC` just before the program's exec; in files of earlier versions, when its process
    /// was started.
    pub began_ns: Nanos,
    /// The time until its end.
    pub elapsed_ns: Nanos,
    /// The parts of that time in which the program was stopped.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stopped: Vec<Stopped>,
    /// Where it ran apart from its CPUs, as far as that was traced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<CpuRun>,
    /// Its end.
    pub ended: Ended,
    /// Its resource usage (`wait4(2)`), with that of the children that it waited for.
    pub usage: Usage,
    /// The source of the events; `None` if events were not traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// The interruptions; `None` if single events could not be traced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interruptions: Option<Interruptions>,
    /// The `/proc` counters of its CPUs, added up; `preempted` is of the whole program.
    pub proc: ProcCounts,
}

/// The time in which all threads of a program were stopped, for one reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stopped {
    /// What stopped the last of them.
    pub by: StoppedBy,
    /// How long, in total.
    pub ns: Nanos,
    /// How often.
    pub count: u64,
}

/// What stops a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoppedBy {
    /// A signal: `SIGSTOP`, `SIGTSTP` (Ctrl-Z), `SIGTTIN`, `SIGTTOU`.
    Signal,
    /// A debugger or another tracer (`ptrace(2)`).
    Debugger,
    /// The freezer of cgroups.
    Freezer,
    /// Something of a later version.
    #[serde(other)]
    Other,
}

/// The time that a program's threads ran on a CPU, added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuRun {
    /// The CPU.
    pub cpu: Cpu,
    /// The time.
    pub ns: Nanos,
}

/// The resource usage of a program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time in user mode.
    pub user_ns: Nanos,
    /// CPU time in kernel mode.
    pub system_ns: Nanos,
    /// Voluntary context switches.
    pub voluntary: u64,
    /// Involuntary context switches.
    pub involuntary: u64,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults with I/O.
    pub major_faults: u64,
}

/// The times when the program was runnable and did not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interruptions {
    /// How long its threads ran or could have run on, with all interruptions.
    pub ready_ns: Nanos,
    /// Each interruption, from the program's start: interrupts while it ran, and other threads
    /// that preempted it.
    pub gaps: Vec<Span>,
    /// The CPU of each of them; empty if the program had one CPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gap_cpus: Vec<Cpu>,
    /// Their causes.
    pub blamed: Blamed,
    /// Time that the hypervisor took while the program ran, outside of the interruptions; `None` if no
    /// steal clock could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal_ns: Option<Nanos>,
    /// The time by which each interruption was extended on both sides, because it begins before the
    /// first tracepoint of its events and ends after the last: medians of the gaps of a busy loop on
    /// the same CPU, just before the program was started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub edges: Vec<Edges>,
}

/// The time of an interruption outside of its tracepoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edges {
    /// The kind of the first event, or of the last one.
    pub kind: CulpritKind,
    /// Before the first event.
    pub entry_ns: Nanos,
    /// After the last event.
    pub exit_ns: Nanos,
}

impl RunSeries {
    /// The interruptions, if they were traced.
    pub(crate) fn values(&self, spec: &RunSpec) -> Values<'_> {
        let found = self.interruptions.as_ref().zip(spec.cpus.first());
        let Some((found, first)) = found else { return Box::new(std::iter::empty()) };
        Box::new(found.gaps.iter().enumerate().map(move |(place, gap)| Value {
            cpu: found.gap_cpus.get(place).copied().unwrap_or(first),
            place,
            after: gap.start,
            span: Span { start: self.began_ns + gap.start, ..*gap },
            value: gap.length,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the keys and the form of every value in files.
    #[test]
    fn contract() {
        let spec = RunSpec {
            command: Words::new(["sleep".into(), "1".into()]),
            cpus: Cpu::new(1).into(),
            picked: Picked::LeastInterrupted,
            fifo: Some(99),
            top: 10,
            trigger: Trigger::default(),
        };
        let (length, start) = (Nanos::from_micros(4), Nanos::from_millis(1));
        let series = RunSeries {
            began_ns: Nanos::from_secs(70),
            elapsed_ns: Nanos::from_secs(1),
            stopped: vec![Stopped { by: StoppedBy::Signal, ns: start, count: 2 }],
            elsewhere: vec![CpuRun { cpu: Cpu::new(3), ns: length }],
            ended: Ended::Killed(15),
            usage: Usage { user_ns: start, voluntary: 2, ..Usage::default() },
            source: Some(Source::Bpf),
            interruptions: Some(Interruptions {
                ready_ns: Nanos::from_millis(2),
                gaps: vec![Span { start, length }],
                gap_cpus: vec![],
                blamed: Blamed::default(),
                steal_ns: None,
                edges: vec![],
            }),
            proc: ProcCounts::default(),
        };
        let asked = serde_json::json!({
            "command": ["sleep", "1"], "cpus": "1", "picked": "least_interrupted",
            "fifo": 99, "top": 10,
        });
        let seen = serde_json::json!({
            "began_ns": 70_000_000_000_u64, "elapsed_ns": 1_000_000_000,
            "stopped": [{"by": "signal", "ns": 1_000_000, "count": 2}],
            "elsewhere": [{"cpu": 3, "ns": 4_000}],
            "ended": {"killed": 15},
            "usage": {"user_ns": 1_000_000, "system_ns": 0, "voluntary": 2,
                "involuntary": 0, "minor_faults": 0, "major_faults": 0},
            "source": "bpf",
            "interruptions": {"ready_ns": 2_000_000, "gaps": [[1_000_000, 4_000]],
                "blamed": {"culprits": [], "shares": [], "events": [], "lost": 0}},
            "proc": {"span_ns": 0, "interrupts": null, "softirqs": null,
                "preempted": 0, "waited_ns": null, "steal_ns": null},
        });
        assert_eq!(serde_json::to_value(&spec).unwrap(), asked);
        assert_eq!(serde_json::from_value::<RunSpec>(asked).unwrap(), spec);
        let earlier = serde_json::json!({
            "command": ["sleep", "1"], "cpu": 1, "picked": "least_interrupted",
            "fifo": 99, "top": 10,
        });
        assert_eq!(serde_json::from_value::<RunSpec>(earlier).unwrap(), spec);
        assert_eq!(serde_json::to_value(&series).unwrap(), seen);
        assert_eq!(serde_json::from_value::<RunSeries>(seen.clone()).unwrap(), series);
        // Files of earlier versions do not have these.
        let mut earlier = seen;
        let fields = earlier.as_object_mut().unwrap();
        fields.retain(|name, _| name != "stopped" && name != "elsewhere");
        let series = RunSeries { stopped: vec![], elsewhere: vec![], ..series };
        assert_eq!(serde_json::to_value(&series).unwrap(), earlier);
        assert_eq!(serde_json::from_value::<RunSeries>(earlier).unwrap(), series);
    }

    /// Check that ends have the codes that shells give them.
    #[test]
    fn codes() {
        assert_eq!([Ended::Exited(7), Ended::Killed(9)].map(Ended::code), [7, 137]);
    }
}
