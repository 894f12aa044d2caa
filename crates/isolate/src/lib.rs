//! Take hold of a CPU: which ones may be used and why not, stay on one, outrank others.
//!
//! What is done here is done to the calling thread, or to a process that it starts, and
//! ends with it; nothing on the machine changes.

mod child;
mod choice;
mod claim;
mod error;
mod thread;

pub use child::{may_take_turns, take_turns, tether};
pub use choice::{choose, leave_room, watch};
pub use claim::{Claim, claim};
pub use error::{Error, Kind};
pub use thread::{current_cpu, outrank, pin};
