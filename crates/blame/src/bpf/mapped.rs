//! Array maps that BPF programs write to, read without a system call.
//!
//! What is read is what the kernel has written until then, and it may write on meanwhile. Cannot
//! see whether an element is whole: who reads must know from elsewhere.

use std::os::fd::AsFd;
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, munmap};

use crate::error::{Error, Kind};

/// An array map, seen from here. Nothing here writes to it.
pub(crate) struct Mapped<T> {
    first: NonNull<T>,
    count: usize,
}

// SAFETY: it is memory that only the kernel writes to; it may be read from any thread.
unsafe impl<T> Send for Mapped<T> {}

impl<T: Copy> Mapped<T> {
    /// So many elements of it.
    pub(crate) fn new(map: &impl AsFd, count: usize) -> Result<Self, Error> {
        let length = count * size_of::<T>();
        // SAFETY: a new mapping, which takes nobody's place. It is never written to.
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
        // A process that is forked would take long to get pages that it never reads.
        // SAFETY: this is the whole mapping; what children have of it changes nothing here.
        unsafe { madvise(memory, length, Advice::LinuxDontFork) }.map_err(failed)?;
        Ok(mapped)
    }

    /// What an element holds now. It may be half of one thing and half of another.
    pub(crate) fn read(&self, place: usize) -> Option<T> {
        if place >= self.count {
            return None;
        }
        // SAFETY: the place is within the mapping, which is aligned to pages; any bytes
        // make a `T` (numbers only). Volatile, since the kernel writes meanwhile.
        Some(unsafe { self.first.add(place).read_volatile() })
    }
}

impl<T> Drop for Mapped<T> {
    fn drop(&mut self) {
        let length = self.count * size_of::<T>();
        // SAFETY: this is the whole mapping, and nothing refers to it any more. It can
        // fail only for an address that is none.
        let _ = unsafe { munmap(self.first.as_ptr().cast(), length) };
    }
}
