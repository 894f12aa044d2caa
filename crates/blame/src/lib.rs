//! Who took it: what the kernel did while a loop spun, and which gap was whose.
//!
//! A [`Watcher`] sees the kernel's events while something is measured, and [`Events::blame`]
//! joins them with the gaps that were seen. Nobody is guessed: what no event explains stays
//! unexplained, with its size.
//!
//! A [`WakerWatch`] counts who wakes up, how often, and whom that preempts. A [`SwitchWatch`] keeps
//! every switch between tasks, and why each had to go.

mod attached;
mod bpf;
mod clock;
mod edges;
mod error;
mod events;
mod instance;
mod interruptions;
mod join;
mod layers;
mod leftovers;
mod level;
mod mapped;
mod names;
mod osnoise;
mod owners;
mod reader;
mod refusal;
mod ring;
mod room;
mod seen;
mod skeleton;
mod source;
mod steal;
mod steal_clock;
mod switch_programs;
mod switches;
mod symbols;
mod tally;
mod threads;
mod tick_timers;
mod trace_events;
mod trace_format;
mod trace_page;
mod trace_pairs;
mod tracefs;
mod verdict;
mod wake_programs;
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
