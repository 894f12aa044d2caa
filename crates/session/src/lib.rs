//! A session: a measurement and everything that belongs around it, in one order for the command
//! line and for guests.
//!
//! ```text
//! choose, pick ──▶ Plan ──claim──▶ Claimed ──prepare──▶ Prepared ──measure──▶ Recording
//!                                            isolate,              attribute,
//!                                            trace                 restore
//! ```
//!
//! Each step is a value that holds what the steps before it have acquired, and releases it when it
//! is dropped. What happens meanwhile is reported as [`Event`]s to one [`Observer`]. Nothing here
//! prints, parses arguments, or handles signals: who calls handles them before
//! [`Claimed::prepare`], where the first setting is changed.
#![forbid(unsafe_code)]

mod choice;
mod claimed;
mod error;
mod event;
mod isolated;
mod plan;
mod prepared;
mod tracer;

pub use claimed::Claimed;
pub use error::Error;
pub use event::{Event, Observer, Silent};
pub use isolated::{Isolated, restore_left_behind};
pub use plan::{Access, Plan, Trace};
pub use prepared::Prepared;
