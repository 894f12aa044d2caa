//! Anonymous memory straight from the kernel: its pages are nobody else's, and what is
//! asked for them (`madvise(2)`) touches no allocator.

use std::{io, ptr, slice};

/// A mapping of its own; given back when dropped.
#[derive(Debug)]
pub(crate) struct Memory {
    at: *mut u8,
    bytes: usize,
}

impl Memory {
    /// A fresh mapping; none of its pages is there before it is touched.
    pub(crate) fn new(bytes: usize) -> io::Result<Self> {
        Self::mapped(bytes, libc::MAP_PRIVATE)
    }

    /// A fresh mapping that processes which are forked share with this one: what any of them
    /// writes, all see.
    pub(crate) fn shared(bytes: usize) -> io::Result<Self> {
        Self::mapped(bytes, libc::MAP_SHARED)
    }

    fn mapped(bytes: usize, sharing: libc::c_int) -> io::Result<Self> {
        let (access, kind) =
            (libc::PROT_READ | libc::PROT_WRITE, sharing | libc::MAP_ANONYMOUS);
        // SAFETY: the kernel chooses the place, so no memory in use is replaced.
        let at = unsafe { libc::mmap(ptr::null_mut(), bytes, access, kind, -1, 0) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { at: at.cast(), bytes })
    }

    /// Keeps it out of children: a fork neither copies nor shares it.
    pub(crate) fn keep_from_children(&self) -> io::Result<()> {
        self.advise(libc::MADV_DONTFORK)
    }

    /// Asks for it to be given page by page. A kernel without transparent huge pages
    /// refuses, and gives no others.
    pub(crate) fn keep_pages_small(&self) {
        let _ = self.advise(libc::MADV_NOHUGEPAGE);
    }

    fn advise(&self, advice: libc::c_int) -> io::Result<()> {
        // SAFETY: the mapping is ours, and neither advice given here changes what is in it.
        let failed = unsafe { libc::madvise(self.at.cast(), self.bytes, advice) };
        if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Writes one byte, that many bytes from the beginning; nothing beyond the end.
    #[inline(always)]
    pub(crate) fn touch(&mut self, offset: usize) {
        if offset < self.bytes {
            // SAFETY: the byte is in the mapping, which is writable and ours alone.
            unsafe { self.at.add(offset).write_volatile(1) };
        }
    }

    /// All of it as values, each of them written, so that every page is there.
    pub(crate) fn filled<T: Copy>(&mut self, value: T) -> &mut [T] {
        let (values, count) = (self.at.cast::<T>(), self.bytes / size_of::<T>());
        for place in 0..count {
            // SAFETY: `count` values fit; a page begins where any value of this room may.
            unsafe { values.add(place).write(value) };
        }
        // SAFETY: all of them were just written, and the mapping is borrowed with them.
        unsafe { slice::from_raw_parts_mut(values, count) }
    }

    /// The beginning: a page's.
    pub(crate) fn start(&self) -> *mut u8 {
        self.at
    }

    /// All of it as numbers; those that were never written are zero.
    #[inline(always)]
    pub(crate) fn numbers(&mut self) -> &mut [u32] {
        let count = self.bytes / size_of::<u32>();
        // SAFETY: `count` numbers fit, a page begins where one may, any bytes are numbers,
        // and the mapping is borrowed with them.
        unsafe { slice::from_raw_parts_mut(self.at.cast(), count) }
    }
}

/// How many bytes of memory the machine has; `None` where the kernel does not tell.
pub(crate) fn whole() -> Option<u64> {
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

    /// Check that the values are all there, and that touching beyond the end does nothing.
    #[test]
    fn filled_and_touched() {
        let mut memory = Memory::new(4096).unwrap();
        memory.keep_from_children().unwrap();
        assert_eq!(memory.filled(7_u64), [7; 512]);
        memory.touch(8);
        memory.touch(4096);
        assert_eq!(memory.filled(0_u8).len(), 4096);
    }

    /// Check that memory that cannot be had is refused.
    #[test]
    fn too_much() {
        assert!(Memory::new(usize::MAX / 2).is_err());
    }
}
