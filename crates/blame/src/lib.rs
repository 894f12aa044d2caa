//! Who took it: what the kernel did while a loop spun, and which gap was whose.
//!
//! A [`Watcher`] sees the kernel's events while something is measured, and [`Events::blame`]
//! joins them with the gaps that were seen. Nobody is guessed: what no event explains stays
//! unexplained, with its size.
//!
//! A [`WakerWatch`] counts the wake-ups of each thread and the threads they preempt. A [`SwitchWatch`] keeps
//! every switch between tasks, and why each had to go.

mod bpf;
mod clock;
mod edges;
mod error;
mod events;
mod interruptions;
mod join;
mod layers;
mod level;
mod names;
mod reader;
mod room;
mod seen;
mod source;
mod steal;
mod steal_clock;
mod switches;
mod tally;
mod tick_timers;
mod tracefs;
mod wakers;
mod watcher;

pub use error::{Error, Kind};
pub use events::Events;
pub use join::{Joined, join};
pub use source::Threads;
pub use steal::StealBounds;
pub use switches::SwitchWatch;
pub use wakers::WakerWatch;
pub use watcher::{Watcher, Watching};
