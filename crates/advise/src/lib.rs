//! Findings about a machine: rules compare facts and the summary of `check`.
//!
//! A finding is data: its rule with the numbers it is based on, what can be done and when, and the
//! next command to run. `report` renders the sentences. The causes of single gaps are known only
//! if events were traced; `/proc` has totals, from which the rules derive probable causes.
#![forbid(unsafe_code)]

mod advice;
mod against;
mod emit;
mod finding;
mod findings;
mod isolation_plan;
mod lasting;
mod machine;
mod proof;
mod proven_advice;
mod rule;
mod steps;
mod tables;
mod verify;

pub use advice::goals::{Contradiction, Goals};
pub use advice::{Advice, AdviceItem, Holds, RuleText, Undecided, general_action};
pub use against::{Against, against};
pub use emit::manifest::{Entry, Manifest};
pub use emit::{Emitted, EmittedFile, Format, LeftOut, MANIFEST, Origin, emit};
pub use finding::{CpuLoss, Finding, FindingRule, Loss, TimerShare, When};
pub use findings::findings;
pub use isolation_plan::{
    Choice, Impossible, IsolationPlan, NearDevice, NotPossible, PlanLine, Rejected,
    State as LineState, Subject, When as LineTime, WhyNot,
};
pub use lasting::{Lasting, boot_commands, lasting};
pub use machine::Machine;
pub use machine::losses::{LargestPart, Losses, Taken};
pub use proof::method::{Method, TICKS_INSTRUCTIONS};
pub use proof::plan::{Batch, ProofPlan, rounds};
pub use proof::{Barrier, Effect, MeasuredDifference, ProofOutcome, Proven};
pub use rule::condition::{Answer, Condition};
pub use rule::kernels::{Kernels, Version};
pub use rule::noise_source::NoiseSource;
pub use rule::{Change, Goal, Importance, Kind, Proof, Rule, Table};
pub use steps::{State, Step, steps};
pub use tables::tables;
pub use verify::{Read, State as SettingState, Verified, verify};
