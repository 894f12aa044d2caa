//! The thread that reads events during a measurement.
//!
//! It sleeps until a quarter of a buffer is unread (the source's alarms), and wakes up without one
//! after the source's period: each wake-up takes time from the measured CPUs, if there are no
//! others. Most of a short measurement's events are read when it is over.
//!
//! It has a higher priority than the threads in its events: they come fastest when CPUs are
//! busiest, and an ordinary thread would then wait while rings are overwritten. So it is a
//! real-time task of the highest priority if permitted (CAP_SYS_NICE), else with the lowest
//! permitted nice value, and stays off the measured CPUs if there are others. The capacity of its
//! rings is in [`crate::ring_sizes`].
//!
//! It cannot run while real-time tasks are throttled, nor while a hypervisor has its CPU.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::process::setpriority_process;
use rustix::thread::{CpuSet as Mask, sched_getaffinity, sched_setaffinity};
use units::CpuSet;

use crate::feedback::Feedback;
use crate::records::Lane;
use crate::source::EventSource;

/// The highest priority of `SCHED_FIFO`.
const HIGHEST: libc::c_int = 99;
/// The nice value of the highest priority of ordinary tasks.
const NICEST: i32 = -20;

/// The shortest time between two readings: an alarm that cannot be reset, as of a CPU that went
/// offline, must not keep a real-time task running.
const SHORTEST: Duration = Duration::from_millis(1);

/// The source, and the events that were read.
type Read = (Box<dyn EventSource>, Vec<Lane>);

/// What ends the thread: it becomes readable.
pub(crate) struct End(Arc<OwnedFd>);

impl End {
    /// # Errors
    /// There are too many open files.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?)))
    }
}

/// The thread, from its start until its end.
pub(crate) struct Reader {
    end: Arc<OwnedFd>,
    thread: Option<JoinHandle<Read>>,
}

impl Reader {
    /// Starts to read events into `lanes` while these CPUs are measured, with feedback from the
    /// measurement or without.
    pub(crate) fn begin(
        mut events: Box<dyn EventSource>,
        mut lanes: Vec<Lane>,
        measured: CpuSet,
        End(end): End,
        mut feedback: Option<Feedback>,
    ) -> Self {
        let is_over = Arc::clone(&end);
        let thread = thread::spawn(move || {
            leave(&measured);
            outrank();
            loop {
                events.read(&mut lanes);
                if let Some(feedback) = &mut feedback {
                    feedback.after_reading(&mut lanes);
                }
                thread::sleep(SHORTEST);
                let at_most = feedback.as_ref().and_then(Feedback::period);
                if is_ended(&*events, &is_over, at_most) {
                    break;
                }
            }
            (events, lanes)
        });
        Self { end, thread: Some(thread) }
    }

    /// Ends the thread, and waits for it. Its last events have not been read.
    pub(crate) fn end(mut self) -> Read {
        match self.join() {
            Some(Ok(read)) => read,
            Some(Err(panicked)) => resume_unwind(panicked),
            None => unreachable!("only the end takes the thread"),
        }
    }

    fn join(&mut self) -> Option<thread::Result<Read>> {
        let thread = self.thread.take()?;
        // It can only fail if the counter is full, and then it is readable.
        let _ = rustix::io::write(&self.end, &1_u64.to_ne_bytes());
        Some(thread.join())
    }
}

/// The reader also ends if a measurement fails or panics.
impl Drop for Reader {
    fn drop(&mut self) {
        drop(self.join());
    }
}

/// Sleeps until an alarm, the end of the period, a signal, or the end of the thread; whether it was
/// the latter.
fn is_ended(events: &dyn EventSource, end: &OwnedFd, at_most: Option<Duration>) -> bool {
    let period = at_most.into_iter().fold(events.period(), Duration::min);
    let period = Timespec::try_from(period).ok();
    let mut awaited = vec![PollFd::from_borrowed_fd(end.as_fd(), PollFlags::IN)];
    let alarms = events.alarms().into_iter();
    awaited.extend(alarms.map(|alarm| PollFd::from_borrowed_fd(alarm, PollFlags::IN)));
    let is_woken = poll(&mut awaited, period.as_ref()).is_ok_and(|ready| ready > 0);
    is_woken && awaited.first().is_some_and(|end| !end.revents().is_empty())
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
