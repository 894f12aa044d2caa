//! What noise costs many ranks that wait for each other: parameters and run times of a simulation.
//!
//! It is not measured: its noise is that of other recordings, whose facts are those of the first one.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use units::{Cause, Nanos};

use crate::blame::CulpritKind;
use crate::tuple::tuple_form;

/// The parameters of `scale`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScaleSpec {
    /// The numbers of ranks, in rising order.
    pub ranks: Vec<u64>,
    /// What ranks do after each step.
    pub pattern: Pattern,
    /// The algorithm of a collective; `None` for other patterns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<Algorithm>,
    /// The CPU time of a rank in each step.
    pub compute_ns: Nanos,
    /// The number of steps; `None`: fewer, the more ranks there are.
    pub steps: Option<u64>,
    /// The size of a message.
    pub message_bytes: u64,
    /// The network.
    pub network: Network,
    /// So many ranks, in order, are on one node, and have the noise of one recording at one time.
    pub ranks_per_node: u64,
    /// The noise that all nodes have at the same time.
    pub coscheduled: Coscheduled,
    /// What random numbers follow from.
    pub seed: u64,
    /// The number of runs with different random numbers.
    pub seeds: u32,
    /// The largest number of sources of noise that are omitted in turn.
    pub sources: u32,
    /// The recordings that the noise is from.
    pub inputs: Vec<ScaleInput>,
}

/// The noise that all nodes have at the same time; each has the rest from a moment of its own on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Coscheduled {
    /// All of it, or none.
    All(bool),
    /// That of these sources.
    Sources(Vec<ScaleSource>),
}

/// A recording whose noise is used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScaleInput {
    /// Its name: that of its file.
    pub name: String,
    /// Its kind: `noise`, `check`, `imported`.
    pub kind: String,
    /// The release of its kernel; `None` if it is not known.
    pub release: Option<String>,
    /// When it was taken.
    pub taken: String,
    /// The number of its CPUs.
    pub cpus: u64,
    /// The time in which gaps were recorded, of all CPUs.
    pub window_ns: Nanos,
    /// The number of these gaps.
    pub gaps: u64,
    /// Their sum.
    pub noise_ns: Nanos,
    /// The longest one; `None` without gaps.
    pub longest_ns: Option<Nanos>,
}

/// The question of `noise` and `check`: what their noise would do to ranks that wait for each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtScaleSpec {
    /// The numbers of ranks.
    pub ranks: Vec<u64>,
    /// The CPU time of a step.
    pub step_ns: Nanos,
}

impl Default for AtScaleSpec {
    /// A thousand and a million ranks, and steps of 1 ms.
    fn default() -> Self {
        Self { ranks: vec![1_000, 1_000_000], step_ns: Nanos::from_millis(1) }
    }
}

/// What ranks do after each step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// A barrier, by dissemination.
    Bsp,
    /// A sum over all ranks that each of them gets.
    Allreduce,
    /// Messages to and from four neighbours in a torus.
    Halo2d,
    /// Messages to and from six neighbours in a torus.
    Halo3d,
    /// Each rank waits for a message of the one before it, computes, and sends one to the next.
    Pipeline,
}

/// The algorithm of a collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    /// In round k, a rank sends to that 2^k after it.
    Dissemination,
    /// In round k, ranks whose numbers differ in bit k exchange messages.
    RecursiveDoubling,
    /// Parts of the message go around twice.
    Ring,
    /// Up a binomial tree, and down again.
    Tree,
}

/// Names on the command line, as in files, with hyphens.
macro_rules! named {
    ($kind:ident: $($variant:ident $name:literal),+) => {
        impl $kind {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Its name.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }
        }

        impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        impl FromStr for $kind {
            type Err = Cause;

            fn from_str(text: &str) -> Result<Self, Cause> {
                let found = Self::ALL.iter().find(|one| one.name() == text).copied();
                let names = [$($name),+].join(", ");
                found.ok_or_else(|| format!("expected one of {names}").into())
            }
        }
    };
}

named!(Pattern: Bsp "bsp", Allreduce "allreduce", Halo2d "halo2d", Halo3d "halo3d", Pipeline "pipeline");
named!(Algorithm: Dissemination "dissemination", RecursiveDoubling "recursive-doubling", Ring "ring",
    Tree "tree");

/// A network, by the parameters of the model LogGOPS (T. Hoefler, T. Schneider, A. Lumsdaine: LogGOPSim.
/// HPDC 2010).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// L: how long the first byte of a message is under way.
    pub latency_ns: Nanos,
    /// o: the CPU time of sending and of receiving a message.
    pub overhead_ns: Nanos,
    /// g: the time from the beginning of one message to that of the next.
    pub gap_ns: Nanos,
    /// G: how long each further byte takes in the network.
    pub byte_gap_ns: Nanos,
    /// O: the CPU time of each further byte.
    pub byte_overhead_ns: Nanos,
    /// S: the sender of a larger message waits until it is received.
    pub eager_bytes: u64,
}

impl Default for Network {
    /// The values of LogGOPSim: those of a cluster of 2010.
    fn default() -> Self {
        Self {
            latency_ns: Nanos::from_nanos(2_500),
            overhead_ns: Nanos::from_nanos(1_500),
            gap_ns: Nanos::from_nanos(1_000),
            byte_gap_ns: Nanos::from_nanos(6),
            byte_overhead_ns: Nanos::ZERO,
            eager_bytes: 65_535,
        }
    }
}

/// The run times.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScaleSeries {
    /// The sources of noise that were omitted in turn, those with most time first.
    pub sources: Vec<ScaleSource>,
    /// By how much one step without communication takes longer, begun at a random time on a random CPU: in
    /// rising order.
    pub delays: Vec<StepDelay>,
    /// The runs, by the number of ranks.
    pub counts: Vec<ScaleCount>,
}

/// A source of noise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScaleSource {
    /// The kind of event.
    pub kind: CulpritKind,
    /// The name of the program, the kernel thread without its number, or the event.
    pub name: String,
    /// The time that all CPUs lost to it.
    pub noise_ns: Nanos,
}

/// How many of all moments a step has that delay from. Written as the pair `[delay_ns, starts_ns]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(Nanos, Nanos)", into = "(Nanos, Nanos)")]
pub struct StepDelay {
    /// The delay.
    pub delay_ns: Nanos,
    /// The time of all CPUs from whose moments on a step has it.
    pub starts_ns: Nanos,
}

tuple_form!(StepDelay { delay_ns: Nanos, starts_ns: Nanos });

/// The runs of one number of ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScaleCount {
    /// The number of ranks.
    pub ranks: u64,
    /// The number of steps.
    pub steps: u64,
    /// The number of computations, sends, receives and messages of a run.
    pub events: u64,
    /// The run time without noise.
    pub base_ns: Nanos,
    /// The run times with noise.
    pub runs: Vec<ScaleRuns>,
}

/// The run times with one set of sources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScaleRuns {
    /// The number of the omitted source; `None`: all sources.
    pub omitted: Option<usize>,
    /// One run time for each seed, in the same order for all sets.
    pub run_ns: Vec<Nanos>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a recording says `true` or `false`, as before there were single sources, or lists them.
    #[test]
    fn coscheduled_in_files() {
        let daemon = ScaleSource {
            kind: CulpritKind::Thread,
            name: "daemon".to_owned(),
            noise_ns: Nanos::from_nanos(5),
        };
        let list =
            serde_json::json!([{ "kind": "thread", "name": "daemon", "noise_ns": 5 }]);
        for (coscheduled, expected) in [
            (Coscheduled::All(false), false.into()),
            (Coscheduled::All(true), true.into()),
            (Coscheduled::Sources(vec![daemon]), list),
        ] {
            assert_eq!(serde_json::to_value(&coscheduled).unwrap(), expected);
            let read: Coscheduled = serde_json::from_value(expected).unwrap();
            assert_eq!(read, coscheduled);
        }
    }
}
