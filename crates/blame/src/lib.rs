//! Attribution: what the kernel did while a loop ran, and which event caused which gap.
//!
//! A [`Watcher`] records the kernel's events during a measurement, and [`Events::blame`] attributes
//! the measured gaps to them. Nothing is guessed: time that no event explains stays unexplained,
//! with its length.
//!
//! A [`WakerWatch`] counts the wake-ups of each thread and the threads they preempt. A
//! [`SwitchWatch`] records every context switch, with its reason. A [`ProgramWatch`] adds up what the
//! threads of a running program wait for, a [`MachineWatch`] what uses each CPU.

mod bpf;
mod clock;
mod error;
mod events;
mod feedback;
mod interruptions;
mod join;
mod late_wakeups;
mod level;
mod life;
mod machine_watch;
mod moments;
mod names;
mod program_watch;
mod reader;
mod records;
mod ring_sizes;
mod slow_loops;
mod source;
mod steal_clock;
mod switches;
mod tally;
mod tick_timers;
mod tracefs;
mod wakers;
mod watcher;

pub use error::{Error, Kind};
pub use events::Events;
pub use feedback::Feedback;
pub use join::edges::TypicalEdges;
pub use join::steal::StealBounds;
pub use join::{Joined, join};
pub use machine_watch::MachineWatch;
pub use program_watch::ProgramWatch;
pub use source::Threads;
pub use switches::SwitchWatch;
pub use wakers::WakerWatch;
pub use watcher::{Watcher, Watching};
