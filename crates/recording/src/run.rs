//! A program that was run on CPUs of its own, and what it suffered: what is asked and what is
//! seen.

use serde::{Deserialize, Deserializer, Serialize};
use units::{Cpu, CpuSet, Nanos, Span};

use crate::Words;
use crate::blame::{Blamed, Source};
use crate::noise::Meanwhile;

/// What `run` is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSpec {
    /// What to run.
    pub command: Words,
    /// The CPUs that the program and all that it starts are kept to. Files of earlier versions
    /// have `cpu`, a number.
    #[serde(alias = "cpu", deserialize_with = "one_or_several")]
    pub cpus: CpuSet,
    /// Why it is these.
    pub picked: Picked,
    /// The `SCHED_FIFO` priority of all its threads; `None`: ordinary tasks.
    pub fifo: Option<u8>,
    /// How many of the longest interruptions to tell of.
    pub top: u32,
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

/// Why a CPU was picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Picked {
    /// Somebody asked for it.
    Asked,
    /// Its tick stops while one task runs there.
    NohzFull,
    /// The scheduler keeps others off it.
    Isolated,
    /// It was interrupted least since boot.
    LeastInterrupted,
    /// A reason of a later version.
    #[serde(other)]
    Other,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// By itself, with this code.
    Exited(u8),
    /// By this signal.
    Killed(u8),
}

impl Ended {
    /// What a shell makes of it: the code, or 128 and the signal.
    pub fn code(self) -> u8 {
        match self {
            Self::Exited(code) => code,
            Self::Killed(signal) => signal.saturating_add(128),
        }
    }
}

/// What was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunSeries {
    /// `CLOCK_MONOTONIC` when the program was started.
    pub began_ns: Nanos,
    /// From there until it had ended.
    pub elapsed_ns: Nanos,
    /// How it ended.
    pub ended: Ended,
    /// What `wait4(2)` tells of it and of its children that it waited for.
    pub usage: Usage,
    /// Who saw the events; `None` where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// What the events say; `None` where single ones could not be seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interruptions: Option<Interruptions>,
    /// What `/proc` says happened on its CPUs, all together, in the meantime; `preempted` is of
    /// the whole program.
    pub meanwhile: Meanwhile,
}

/// What a program used, and how often it let go of the CPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Time in its own code.
    pub user_ns: Nanos,
    /// Time in the kernel, on its behalf.
    pub system_ns: Nanos,
    /// How often it waited for something.
    pub voluntary: u64,
    /// How often the CPU was taken from it.
    pub involuntary: u64,
    /// Pages that had to be found for it, without a disk.
    pub minor_faults: u64,
    /// Pages that had to be read for it.
    pub major_faults: u64,
}

/// When the program could have run, and did not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interruptions {
    /// How long its threads had the CPU, or could have had it: with all interruptions.
    pub ready_ns: Nanos,
    /// Each interruption, from the program's start: interrupts while it ran, and others'
    /// turns that began while it could have run on.
    pub gaps: Vec<Span>,
    /// The CPU of each of them; empty where the program had one CPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gap_cpus: Vec<Cpu>,
    /// Who took them.
    pub blamed: Blamed,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the keys and the form of every value: this is what files hold.
    #[test]
    fn contract() {
        let spec = RunSpec {
            command: Words::new(["sleep".into(), "1".into()]),
            cpus: Cpu::new(1).into(),
            picked: Picked::LeastInterrupted,
            fifo: Some(99),
            top: 10,
        };
        let (length, start) = (Nanos::from_micros(4), Nanos::from_millis(1));
        let series = RunSeries {
            began_ns: Nanos::from_secs(70),
            elapsed_ns: Nanos::from_secs(1),
            ended: Ended::Killed(15),
            usage: Usage { user_ns: start, voluntary: 2, ..Usage::default() },
            source: Some(Source::Bpf),
            interruptions: Some(Interruptions {
                ready_ns: Nanos::from_millis(2),
                gaps: vec![Span { start, length }],
                gap_cpus: vec![],
                blamed: Blamed::default(),
            }),
            meanwhile: Meanwhile::default(),
        };
        let asked = serde_json::json!({
            "command": ["sleep", "1"], "cpus": "1", "picked": "least_interrupted",
            "fifo": 99, "top": 10,
        });
        let seen = serde_json::json!({
            "began_ns": 70_000_000_000_u64, "elapsed_ns": 1_000_000_000,
            "ended": {"killed": 15},
            "usage": {"user_ns": 1_000_000, "system_ns": 0, "voluntary": 2,
                "involuntary": 0, "minor_faults": 0, "major_faults": 0},
            "source": "bpf",
            "interruptions": {"ready_ns": 2_000_000, "gaps": [[1_000_000, 4_000]],
                "blamed": {"culprits": [], "shares": [], "events": [], "lost": 0}},
            "meanwhile": {"span_ns": 0, "interrupts": null, "softirqs": null,
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
        assert_eq!(serde_json::from_value::<RunSeries>(seen).unwrap(), series);
    }

    /// Check that ends have the codes that shells give them.
    #[test]
    fn codes() {
        assert_eq!([Ended::Exited(7), Ended::Killed(9)].map(Ended::code), [7, 137]);
    }
}
