//! Array maps of BPF programs, read without a system call.
//!
//! A read returns what the kernel has written so far, and it may continue to write. Cannot see
//! whether an element is complete: the reader must know that from elsewhere.
//!
//! The kernel enters all pages of a mapped array into the page table at once, and counts them as
//! this process's memory. So only the parts that are read are mapped, each at its first read. They
//! stay mapped: to unmap them would interrupt the CPUs on which this process's threads run. The
//! kernel's memory for the array is not affected.

use std::cell::Cell;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous, munmap};

use crate::error::{Error, Kind};

/// The size of a part: a multiple of every page size (4 to 64 KiB).
const PART: usize = 64 << 10;

/// A mapped array map, which is only read.
pub(crate) struct Mapped<T> {
    map: OwnedFd,
    first: NonNull<T>,
    count: usize,
    /// Whether each part is mapped.
    parts: Vec<Cell<bool>>,
}

// SAFETY: it is memory that only the kernel writes to; it may be read from any thread.
unsafe impl<T> Send for Mapped<T> {}

impl<T: Copy> Mapped<T> {
    /// Reserves addresses for that many elements.
    pub(crate) fn new(map: &impl AsFd, count: usize) -> Result<Self, Error> {
        let length = count * size_of::<T>();
        let (flags, none) = (MapFlags::PRIVATE | MapFlags::NORESERVE, ProtFlags::empty());
        // SAFETY: a new mapping, which replaces no other, and cannot be accessed.
        let memory = unsafe { mmap_anonymous(std::ptr::null_mut(), length, none, flags) };
        let failed = |error: std::io::Error| {
            Error::new(Kind::System, "failed to map the eBPF programs' data")
                .caused_by(error)
        };
        let memory = memory.map_err(|error| failed(error.into()))?;
        let first = NonNull::new(memory.cast::<T>());
        let first = first.ok_or_else(|| failed(rustix::io::Errno::NOMEM.into()))?;
        let map = map.as_fd().try_clone_to_owned().map_err(failed)?;
        let parts = vec![Cell::new(false); length.div_ceil(PART)];
        Ok(Self { map, first, count, parts })
    }

    /// The current value of an element. It may be half old and half new. `None` if there is no such
    /// element, or if it cannot be mapped.
    pub(crate) fn read(&self, place: usize) -> Option<T> {
        if place >= self.count {
            return None;
        }
        let begin = place * size_of::<T>();
        for part in begin / PART..=(begin + size_of::<T>() - 1) / PART {
            if !self.parts.get(part)?.get() {
                self.map_part(part)?;
            }
        }
        // SAFETY: the index is within the mapping, which is aligned to pages, and its parts are
        // mapped; any bytes make a `T` (numbers only). Volatile, since the kernel writes
        // concurrently.
        Some(unsafe { self.first.add(place).read_volatile() })
    }

    fn map_part(&self, part: usize) -> Option<()> {
        let offset = part * PART;
        let length = (self.count * size_of::<T>() - offset).min(PART);
        let (flags, read) = (MapFlags::SHARED | MapFlags::FIXED, ProtFlags::READ);
        let start = self.first.as_ptr().cast::<u8>().wrapping_add(offset).cast();
        // SAFETY: it replaces a part of the own reservation, to which nothing refers: no element in
        // it has been read. It is never written to.
        let memory = unsafe {
            mmap(start, length, read, flags, &self.map, u64::try_from(offset).ok()?)
        };
        let memory = memory.ok()?;
        // Excluded from forked processes, which never read it, to save the time for its page
        // tables. Nothing else depends on it.
        // SAFETY: this is what was mapped; a child's view of it changes nothing here.
        let _ = unsafe { madvise(memory, length, Advice::LinuxDontFork) };
        self.parts.get(part)?.set(true);
        Some(())
    }
}

impl<T> Drop for Mapped<T> {
    fn drop(&mut self) {
        let length = self.count * size_of::<T>();
        // SAFETY: this is the whole reservation, and nothing refers to it any more. It can only
        // fail for an invalid address.
        let _ = unsafe { munmap(self.first.as_ptr().cast(), length) };
    }
}
