//! Array maps of BPF programs, read without a system call.
//!
//! A read returns what the kernel has written so far, and it may continue to write. Cannot see
//! whether an element is complete: the reader must know that from elsewhere.

use std::os::fd::AsFd;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

use crate::error::{Error, Kind};

/// A mapped array map, which is only read.
pub(crate) struct Mapped<T> {
    first: NonNull<T>,
    count: usize,
}

// SAFETY: it is memory that only the kernel writes to; it may be read from any thread.
unsafe impl<T> Send for Mapped<T> {}

impl<T: Copy> Mapped<T> {
    /// Maps that many elements.
    pub(crate) fn new(map: &impl AsFd, count: usize) -> Result<Self, Error> {
        let length = count * size_of::<T>();
        // SAFETY: a new mapping, which replaces no other. It is never written to.
        let memory = unsafe {
            mmap(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ,
                MapFlags::SHARED,
                map.as_fd(),
                0,
            )
        };
        let failed = |error| {
            Error::new(Kind::System, "failed to map the eBPF programs' data")
                .caused_by(error)
        };
        let memory = memory.map_err(failed)?;
        let first = NonNull::new(memory.cast::<T>());
        let first = first.ok_or_else(|| failed(rustix::io::Errno::NOMEM))?;
        let mapped = Self { first, count };
        // Excluded from forked processes, which never read it, to save the time for its page
        // tables.
        // SAFETY: this is the whole mapping; a child's view of it changes nothing here.
        unsafe { madvise(memory, length, Advice::LinuxDontFork) }.map_err(failed)?;
        Ok(mapped)
    }

    /// The current value of an element. It may be half old and half new.
    pub(crate) fn read(&self, place: usize) -> Option<T> {
        if place >= self.count {
            return None;
        }
        // SAFETY: the index is within the mapping, which is aligned to pages; any bytes make a `T`
        // (numbers only). Volatile, since the kernel writes concurrently.
        Some(unsafe { self.first.add(place).read_volatile() })
    }
}

impl<T> Drop for Mapped<T> {
    fn drop(&mut self) {
        let length = self.count * size_of::<T>();
        // SAFETY: this is the whole mapping, and nothing refers to it any more. It can only fail
        // for an invalid address.
        let _ = unsafe { munmap(self.first.as_ptr().cast(), length) };
    }
}
