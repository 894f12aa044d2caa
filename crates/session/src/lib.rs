//! A session: a measurement with its preparation and cleanup, in one order for the command line and
//! for guests.
//!
//! ```text
//! choose, pick ──▶ Plan ──claim──▶ Claimed ──prepare──▶ Prepared ──measure──▶ Recording
//!                                            isolate,              attribute,
//!                                            trace                 restore
//! ```
//!
//! Each step is a value that holds what the steps before it have acquired, and releases it when it
//! is dropped. [`Event`]s are reported to one [`Observer`]. Nothing here prints, parses arguments,
//! or handles signals: the caller handles them before [`Claimed::prepare`], where the first setting
//! is changed.
//!
//! ```
//! use measure::Control;
//! use recording::Spec;
//! use session::{Plan, Silent};
//!
//! let interval_ns = units::Nanos::from_millis(10);
//! let plan = Plan::choose(None, |cpus, _| {
//!     Spec::Ticks(recording::TicksSpec { cpus, interval_ns, count: Some(1) })
//! })?;
//! let recording = plan.claim(&mut Silent)?.run(&Control::new()?, &mut Silent)?;
//! assert!(matches!(recording.body, recording::Body::Ticks { .. }));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod choice;
mod claimed;
mod error;
mod event;
mod isolated;
mod plan;
mod prepared;
mod tracer;

pub use blame::Threads;
pub use claimed::Claimed;
pub use error::Error;
pub use event::{Event, Observer, Silent};
pub use isolated::{Isolated, restore_left_behind};
pub use plan::{Access, IsolationPlan, Plan, Trace};
pub use prepared::Prepared;
pub use tracer::ReusedTrace;
