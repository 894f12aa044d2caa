//! Take hold of a CPU: which ones may be used and why not, stay on one, outrank others, keep
//! everything else off it, and put everything back.
//!
//! What a thread does to itself ends with it. What is changed on the machine is written down
//! first, in a journal on disk ([`Lease`]), and given back at the end; what a killed run left is
//! put back by the next one or by [`restore`].

mod cpus;
mod error;
mod isolation;
mod lock;
mod numbered;
mod program;
mod settings;
mod task;
mod thread;
mod tick;
mod tuning;

pub use cpus::choice::{choose, leave_room, watch};
pub use cpus::claim::{Claim, GuestCpu, Owner, Stranger, claim, claim_guest_cpu};
pub use cpus::pick::{Pick, Reason, others, pick, pick_all};
pub use error::{Error, Kind};
pub use isolation::dma_latency::wake_limit_us;
pub use isolation::{Isolation, IsolationOptions};
pub use lock::{LockWait, on_lock_wait, try_lock};
pub use program::child::{may_have, may_outrank, may_take_turns, take_turns, tether};
pub use program::watchdog::{LOOK_EVERY, Starved, Watchdog};
pub use program::{Ending, Program};
pub use settings::lease::{Lease, RestoreOutcome, Returned, restore};
pub use settings::setting::Setting;
pub use settings::state::{is_privileged, of_root};
pub use task::{Task, described};
pub use thread::capabilities::{Kept, drop_all_capabilities, drop_capabilities};
pub use thread::memory::{Locked, lock_memory};
pub use thread::occupied::refuse_occupied;
pub use thread::seat::Seat;
pub use thread::starved::{Moved, PinnedThreads};
pub use thread::waiting::{ThreadPolicy, WaitingThread};
pub use thread::{
    Elsewhere, allowed, as_ordinary, current_cpu, highest_priority, keep_on, outrank,
    outrank_thread, pin, pin_thread, take,
};
pub use tick::back::{SoftirqCount, TickReturn, TimerCount, watch_tick_return};
pub use tick::stop::{Dependency, KeptBy};
pub use tick::{Entry, Wait, nohz_cpus, nohz_full, reach_nohz, spin, wait_for_nohz};
pub use tuning::Tuning;
pub use tuning::tunables::may_tune;
pub use tuning::tuned::Tuned;
