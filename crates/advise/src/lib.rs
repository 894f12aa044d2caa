//! Findings about a machine: rules compare facts and the summary of `check`.
//!
//! A finding is data: its rule with the numbers it is based on, what can be done and when, and the
//! next command to run. `report` renders the sentences. The causes of single gaps are known only
//! if events were traced; `/proc` has totals, from which the rules derive probable causes.
#![forbid(unsafe_code)]

mod against;
mod finding;
mod lasting;
mod rules;
mod steps;

pub use against::{Against, against};
pub use finding::{Action, CpuLoss, Finding, Loss, Rule, TimerShare, When};
pub use lasting::{Lasting, lasting};
pub use rules::findings;
pub use steps::{State, Step, steps};
