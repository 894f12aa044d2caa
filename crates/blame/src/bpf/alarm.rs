//! The alarm of the rings: the programs write to a perf event of their CPU at each quarter of a ring,
//! which wakes the reader.
//!
//! Perf wakes it from an interrupt, so that the programs may do this under the scheduler's locks.
//! BPF ring buffers could not be used: until Linux 6.12 their lock sleeps on kernels with the
//! real-time patches. CPUs that come online later have no alarm.

use std::os::fd::BorrowedFd;

use libbpf_rs::{MapHandle, PerfBuffer, PerfBufferBuilder};

/// The perf events of all CPUs.
pub(crate) struct Alarm {
    // Dropped before the map, from which it removes its events.
    events: PerfBuffer<'static>,
    _map: MapHandle,
}

impl Alarm {
    /// Opens the events; `None` if that is not permitted, or if the kernel has none.
    pub(crate) fn open(map: MapHandle) -> Option<Self> {
        let events = PerfBufferBuilder::new(&map).pages(1).build().ok()?;
        Some(Self { events, _map: map })
    }

    /// Becomes readable when a quarter of a ring has been written.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the descriptor stays open as long as the events.
        unsafe { BorrowedFd::borrow_raw(self.events.epoll_fd()) }
    }

    /// Resets it.
    pub(crate) fn reset(&self) {
        // If that fails, it is reset at the next time: the reader is then woken once too often.
        let _ = self.events.consume();
    }
}
