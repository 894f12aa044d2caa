//! Reserves and isolates CPUs: selects them, pins threads, sets real-time priorities, moves other
//! work off the CPUs, and restores all settings.
//!
//! Changes to a thread's own attributes end with the thread. Changes to machine-wide settings are
//! recorded in a journal on disk ([`Lease`]) first, and restored at the end; those of a killed run
//! are restored by the next run or by [`restore`].

mod cpus;
mod error;
mod isolation;
mod lock;
mod numeric_entries;
mod perf_event;
mod program;
mod resident;
mod settings;
mod task;
mod thread;
mod tick;
mod tuning;

pub use cpus::choice::{choose, choose_online, require_ordinary_share};
pub use cpus::claim::{Claim, ForeignClaim, GuestCpu, Owner, claim, claim_guest_cpu};
pub use cpus::pair::{CpuPair, Nearness, pick_pair};
pub use cpus::pick::{Pick, Reason, others, pick, pick_all};
pub use error::{Error, Kind};
pub use isolation::dma_latency::wake_limit_us;
pub use isolation::{Isolation, IsolationOptions};
pub use lock::{LockWait, on_lock_wait, try_lock, try_lock_folder};
pub use perf_event::PerfCounter;
pub use program::child::{
    may_have, may_order_threads, may_outrank, order_threads, take_stdin, tether,
};
pub use program::gate::Gate;
pub use program::watchdog::{CHECK_INTERVAL, Starved, Watchdog};
pub use program::{Ending, Program, receive_interrupts};
pub use resident::release_memory;
pub use settings::lease::Lease;
pub use settings::restoration::{RestoreOutcome, RestoredSetting, restore, unrestored};
pub use settings::setting::Setting;
pub use settings::state::{is_privileged, root_state_path};
pub use task::{Task, describe_process};
pub use thread::capabilities::{Retain, drop_all_capabilities, drop_capabilities};
pub use thread::memory::{LockedMemory, lock_memory};
pub use thread::occupied::refuse_occupied;
pub use thread::pinned::PinnedThread;
pub use thread::starved::{MovedThread, StarvedThreads};
pub use thread::waiting::{ThreadPolicy, WaitingThread};
pub use thread::{
    AvoidedCpus, allowed, current_cpu, highest_priority, outrank, outrank_thread, pin,
    pin_with_priority, restrict_thread, set_ordinary,
};
pub use tick::stop::{Dependency, KeptBy};
pub use tick::timers::{ExpiredTimer, TimerInterrupts, TimerReason};
pub use tick::trace::{SoftirqCount, TickTrace, TimerCount, trace_tick};
pub use tick::{
    NohzOutcome, NohzWait, nohz_cpus, nohz_full, reach_nohz, spin, wait_for_nohz,
};
pub use tuning::Tuning;
pub use tuning::lease::TuningLease;
pub use tuning::tunables::{may_tune, path_before_5_13};
