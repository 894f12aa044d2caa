//! Private anonymous memory from mmap(2): advice about its pages (`madvise(2)`) does not affect the
//! allocator's memory.

use std::{io, ptr, slice};

/// A mapping, unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Memory {
    at: *mut u8,
    bytes: usize,
}

impl Memory {
    /// A new mapping; its pages are allocated when they are touched.
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        Self::mapped(bytes, libc::MAP_PRIVATE)
    }

    /// A new mapping that forked processes share with this one.
    pub(crate) fn shared(bytes: usize) -> io::Result<Self> {
        Self::mapped(bytes, libc::MAP_SHARED)
    }

    fn mapped(bytes: usize, sharing: libc::c_int) -> io::Result<Self> {
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, sharing | libc::MAP_ANONYMOUS);
        // SAFETY: the kernel chooses the address, so no memory in use is replaced.
        let at = unsafe { libc::mmap(ptr::null_mut(), bytes, access, kind, -1, 0) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { at: at.cast(), bytes })
    }

    /// Excludes it from children: a fork neither copies nor shares it.
    pub(crate) fn exclude_from_children(&self) -> io::Result<()> {
        self.advise(libc::MADV_DONTFORK)
    }

    /// Requests small pages. A kernel without transparent huge pages refuses, and has no others.
    pub(crate) fn use_small_pages(&self) {
        let _ = self.advise(libc::MADV_NOHUGEPAGE);
    }

    fn advise(&self, advice: libc::c_int) -> io::Result<()> {
        // SAFETY: the mapping is ours, and neither advice used here changes its contents.
        let failed = unsafe { libc::madvise(self.at.cast(), self.bytes, advice) };
        if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Writes one byte at an offset; nothing beyond the end.
    #[inline(always)]
    pub(crate) fn touch(&mut self, offset: usize) {
        if offset < self.bytes {
            // SAFETY: the byte is in the mapping, which is writable and ours alone.
            unsafe { self.at.add(offset).write_volatile(1) };
        }
    }

    /// All of it as values, each of them written, so that every page is allocated.
    pub(crate) fn filled<T: Copy>(&mut self, value: T) -> &mut [T] {
        let (values, count) = (self.at.cast::<T>(), self.bytes / size_of::<T>());
        for place in 0..count {
            // SAFETY: `count` values fit; a page's alignment suffices for any value used here.
            unsafe { values.add(place).write(value) };
        }
        // SAFETY: all of them were just written, and the mapping is borrowed with them.
        unsafe { slice::from_raw_parts_mut(values, count) }
    }

    /// The beginning, aligned to a page.
    pub(crate) fn start(&self) -> *mut u8 {
        self.at
    }

    /// All of it as numbers; those that were never written are 0.
    #[inline(always)]
    pub(crate) fn numbers(&mut self) -> &mut [u32] {
        let count = self.bytes / size_of::<u32>();
        // SAFETY: `count` numbers fit, a page's alignment suffices, any bytes are numbers, and the
        // mapping is borrowed with them.
        unsafe { slice::from_raw_parts_mut(self.at.cast(), count) }
    }
}

/// The machine's memory in bytes; `None` if the kernel does not report it.
pub(crate) fn total_bytes() -> Option<u64> {
    // SAFETY: takes no pointers.
    let of = |name| u64::try_from(unsafe { libc::sysconf(name) }).ok();
    of(libc::_SC_PHYS_PAGES)?.checked_mul(of(libc::_SC_PAGESIZE)?)
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing borrows it any more.
        unsafe { libc::munmap(self.at.cast(), self.bytes) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that all values are written, and that touching beyond the end does nothing.
    #[test]
    fn filled_and_touched() {
        let mut memory = Memory::new(4096).unwrap();
        memory.exclude_from_children().unwrap();
        assert_eq!(memory.filled(7_u64), [7; 512]);
        memory.touch(8);
        memory.touch(4096);
        assert_eq!(memory.filled(0_u8).len(), 4096);
    }

    /// Check that memory that is not available is refused.
    #[test]
    fn too_much() {
        assert!(Memory::new(usize::MAX / 2).is_err());
    }
}
