//! Take hold of a CPU: which ones may be used and why not, stay on one, outrank others, keep
//! everything else off it, and put everything back.
//!
//! What a thread does to itself ends with it. What is changed on the machine is written down
//! first, in a journal on disk ([`Lease`]), and given back at the end; what a killed run left is
//! put back by the next one or by [`restore`].

mod affinities;
mod capabilities;
mod change;
mod child;
mod choice;
mod claim;
mod dma_latency;
mod door;
mod error;
mod holder;
mod irqs;
mod isolation;
mod journal;
mod kthreads;
mod lease;
mod lock;
mod memory;
mod numbered;
mod occupied;
mod partition;
mod pick;
mod program;
mod seat;
mod setting;
mod setting_paths;
mod starved;
mod state;
mod supervisor;
mod task;
mod thread;
mod throttling;
mod tick;
mod tick_back;
mod tick_stop;
mod tracepoint;
mod tunables;
mod tuned;
mod tuning;
mod waiting;
mod watchdog;
mod workqueues;

pub use capabilities::{Kept, drop_all_capabilities, drop_capabilities};
pub use child::{may_have, may_outrank, may_take_turns, take_turns, tether};
pub use choice::{choose, leave_room, watch};
pub use claim::{Claim, GuestCpu, Owner, Stranger, claim, claim_guest_cpu};
pub use dma_latency::wake_limit_us;
pub use error::{Error, Kind};
pub use isolation::{Isolation, IsolationOptions};
pub use lease::{Lease, RestoreOutcome, Returned, restore};
pub use lock::{LockWait, on_lock_wait, try_lock};
pub use memory::{Locked, lock_memory};
pub use occupied::refuse_occupied;
pub use pick::{Pick, Reason, others, pick, pick_all};
pub use program::{Ending, Program};
pub use seat::Seat;
pub use setting::Setting;
pub use starved::{Moved, PinnedThreads};
pub use state::{is_privileged, of_root};
pub use task::{Task, described};
pub use thread::{
    Elsewhere, allowed, as_ordinary, current_cpu, highest_priority, keep_on, outrank,
    outrank_thread, pin, pin_thread, take,
};
pub use tick::{Entry, Wait, nohz_cpus, nohz_full, reach_nohz, spin, wait_for_nohz};
pub use tick_back::{SoftirqCount, TickReturn, TimerCount, watch_tick_return};
pub use tick_stop::{Dependency, KeptBy};
pub use tunables::may_tune;
pub use tuned::Tuned;
pub use tuning::Tuning;
pub use waiting::{ThreadPolicy, WaitingThread};
pub use watchdog::{LOOK_EVERY, Starved, Watchdog};
