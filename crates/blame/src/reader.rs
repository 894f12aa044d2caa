//! The thread that reads events while something is measured.
//!
//! It outranks what it reads about: events come fastest when CPUs are busiest, and an ordinary
//! thread then waits for its turn while rings are overwritten. So it is a real-time task above all
//! others where that is allowed (CAP_SYS_NICE), else as nice as it may be, and stays off the
//! measured CPUs where there are others. What its rings hold meanwhile is in [`crate::room`].
//!
//! It cannot run while real-time tasks are throttled, nor while a hypervisor has its CPU.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::process::setpriority_process;
use rustix::thread::{CpuSet as Mask, sched_getaffinity, sched_setaffinity};
use units::CpuSet;

use crate::seen::Lane;
use crate::source::EventSource;

/// How often a source's buffers are emptied. Each states what it holds meanwhile.
const PERIOD: Duration = Duration::from_millis(50);
/// The highest priority of `SCHED_FIFO`.
const HIGHEST: libc::c_int = 99;
/// The highest priority of ordinary tasks.
const NICEST: i32 = -20;

/// What was read, and where from.
type Read = (Box<dyn EventSource>, Vec<Lane>);

/// The thread, from its start until its end.
pub(crate) struct Reader {
    is_done: Arc<AtomicBool>,
    thread: Option<JoinHandle<Read>>,
}

impl Reader {
    /// Begins to read events into `lanes` while these CPUs are measured.
    pub(crate) fn begin(
        mut events: Box<dyn EventSource>,
        mut lanes: Vec<Lane>,
        measured: CpuSet,
    ) -> Self {
        let is_done = Arc::new(AtomicBool::new(false));
        let done = Arc::clone(&is_done);
        let thread = thread::spawn(move || {
            leave(&measured);
            outrank();
            while !done.load(Ordering::Relaxed) {
                thread::park_timeout(PERIOD);
                events.read(&mut lanes);
            }
            (events, lanes)
        });
        Self { is_done, thread: Some(thread) }
    }

    /// Ends the thread, and waits for that.
    pub(crate) fn end(mut self) -> Read {
        match self.join() {
            Some(Ok(read)) => read,
            Some(Err(panicked)) => resume_unwind(panicked),
            None => unreachable!("only the end takes the thread"),
        }
    }

    fn join(&mut self) -> Option<thread::Result<Read>> {
        let thread = self.thread.take()?;
        self.is_done.store(true, Ordering::Relaxed);
        thread.thread().unpark();
        Some(thread.join())
    }
}

/// The reader also ends where a measurement fails or panics.
impl Drop for Reader {
    fn drop(&mut self) {
        drop(self.join());
    }
}

/// Takes the calling thread off the measured CPUs, if it may run on any other. Where that fails, it
/// stays: it then reads on one of them, which costs time there and loses nothing.
fn leave(measured: &CpuSet) {
    let Ok(mut mask) = sched_getaffinity(None) else { return };
    for cpu in measured.iter().filter(|cpu| cpu.index() < Mask::MAX_CPU) {
        mask.unset(cpu.index());
    }
    if mask.count() > 0 {
        let _ = sched_setaffinity(None, &mask);
    }
}

/// Lets the calling thread run before all others, as far as that is allowed.
fn outrank() {
    let parameters = libc::sched_param { sched_priority: HIGHEST };
    // SAFETY: `parameters` outlives the call, which only reads it; 0 is the calling thread.
    let result =
        unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    if result != 0 {
        // Of the calling thread only, on Linux. If that is not allowed either, all is as it was.
        let _ = setpriority_process(None, NICEST);
    }
}
