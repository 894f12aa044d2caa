//! The thread that reads events while something is measured.
//!
//! It outranks what it reads about: events come fastest when CPUs are busiest, and an ordinary
//! thread then waits for its turn while rings are overwritten. So it is a real-time task above all
//! others where that is allowed (CAP_SYS_NICE), else as nice as it may be, and stays off the
//! measured CPUs where there are others. What its rings hold meanwhile is in [`crate::room`].
//!
//! It cannot run while real-time tasks are throttled, nor while a hypervisor has its CPU.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Thread};
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

/// Keeps on reading while `measure` runs on these CPUs.
pub(crate) fn read_beside<T>(
    events: &mut dyn EventSource,
    lanes: &mut [Lane],
    measured: &CpuSet,
    measure: impl FnOnce() -> T,
) -> T {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let is_done = &done;
        let reader = scope.spawn(move || {
            leave(measured);
            outrank();
            while !is_done.load(Ordering::Relaxed) {
                thread::park_timeout(PERIOD);
                events.read(lanes);
            }
        });
        let _end = End { done: &done, reader: reader.thread() };
        measure()
    })
}

/// Ends the reader, even where what is measured panics.
struct End<'a> {
    done: &'a AtomicBool,
    reader: &'a Thread,
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        self.reader.unpark();
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
