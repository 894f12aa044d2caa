//! The thread that reads events during a measurement.
//!
//! It has a higher priority than the threads in its events: they come fastest when CPUs are
//! busiest, and an ordinary thread would then wait while rings are overwritten. So it is a
//! real-time task of the highest priority if permitted (CAP_SYS_NICE), else with the lowest
//! permitted nice value, and stays off the measured CPUs if there are others. The capacity of its
//! rings is in [`crate::ring_sizes`].
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

use crate::records::Lane;
use crate::source::EventSource;

/// The interval in which a source's buffers are read. Each documents how much they hold.
const PERIOD: Duration = Duration::from_millis(50);
/// The highest priority of `SCHED_FIFO`.
const HIGHEST: libc::c_int = 99;
/// The nice value of the highest priority of ordinary tasks.
const NICEST: i32 = -20;

/// The source, and the events that were read.
type Read = (Box<dyn EventSource>, Vec<Lane>);

/// The thread, from its start until its end.
pub(crate) struct Reader {
    is_done: Arc<AtomicBool>,
    thread: Option<JoinHandle<Read>>,
}

impl Reader {
    /// Starts to read events into `lanes` while these CPUs are measured.
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

    /// Ends the thread, and waits for it.
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

/// The reader also ends if a measurement fails or panics.
impl Drop for Reader {
    fn drop(&mut self) {
        drop(self.join());
    }
}

/// Moves the calling thread off the measured CPUs, if any other is allowed. If that fails, it
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

/// Raises the calling thread's priority as far as permitted.
fn outrank() {
    let parameters = libc::sched_param { sched_priority: HIGHEST };
    // SAFETY: `parameters` outlives the call, which only reads it; 0 is the calling thread.
    let result =
        unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    if result != 0 {
        // On Linux, of the calling thread only. If that is not permitted either, the priority is
        // unchanged.
        let _ = setpriority_process(None, NICEST);
    }
}
