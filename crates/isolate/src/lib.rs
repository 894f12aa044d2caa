//! Take hold of a CPU: which ones may be used and why not, stay on one, outrank others, keep
//! everything else off it, and put everything back.
//!
//! What a thread does to itself ends with it. What is changed on the machine is written down
//! first, in a journal on disk ([`Hold`]), and given back at the end; what a killed run left is
//! put back by the next one or by [`restore`].

mod child;
mod choice;
mod claim;
mod error;
mod hold;
mod holder;
mod journal;
mod lock;
mod setting;
mod task;
mod thread;

pub use child::{may_take_turns, take_turns, tether};
pub use choice::{choose, leave_room, watch};
pub use claim::{Claim, claim};
pub use error::{Error, Kind};
pub use hold::{Fate, Hold, Returned, is_changed, restore};
pub use setting::Setting;
pub use task::Task;
pub use thread::{current_cpu, outrank, pin};
