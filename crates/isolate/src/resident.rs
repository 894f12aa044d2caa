//! Releasing memory that this process needed at its start only.
//!
//! Pages of the program and of its libraries are dropped from this process, not from the page cache: those that
//! are used again are mapped again. `/proc/self/smaps` (`proc_pid_smaps(5)`) shows which mappings are unchanged
//! copies of a file; without it nothing is dropped. Of the main thread's stack, what is below its current end is
//! dropped if this is that thread: parsing a command line needs much more than waiting. Freed memory of the allocator goes back to the kernel with
//! `malloc_trim(3)`, which the GNU C library has.

use facts::Root;
use rustix::mm::{Advice, madvise};

/// The mappings of this process, with their numbers.
const SMAPS: &str = "/proc/self/smaps";

/// Releases what it can.
pub fn release_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it frees only what is not in use, and takes the locks of the allocator.
    unsafe {
        libc::malloc_trim(0);
    }
    let smaps = Root::live().text(SMAPS).unwrap_or_default();
    if let Some(Mapping { start, length }) = stack(&smaps).and_then(unused) {
        let start = std::ptr::without_provenance_mut(start);
        // SAFETY: it is below the stack pointer of the thread to which this stack belongs, by more than the
        // functions called here and a signal handler need: nothing in it is in use.
        let _ = unsafe { madvise(start, length, Advice::LinuxDontNeed) };
    }
    for Mapping { start, length } in unchanged(&smaps) {
        let start = std::ptr::without_provenance_mut(start);
        // SAFETY: these pages have the content of their file and cannot be written to: they are read from it
        // again when they are needed. An error leaves them as they are.
        let _ = unsafe { madvise(start, length, Advice::LinuxDontNeed) };
    }
}

/// How much is not released below the current end of the stack.
const RED_ZONE: usize = 64 << 10;

/// The part of the main thread's stack that is not in use; `None` if this is another thread, or there is none.
fn unused(stack: Mapping) -> Option<Mapping> {
    let here = 0_u8;
    let here = std::ptr::from_ref(&here).addr();
    let used = here.checked_sub(RED_ZONE)? & !(RED_ZONE - 1);
    let length = used.checked_sub(stack.start).filter(|length| *length < stack.length)?;
    Some(Mapping { length, ..stack })
}

/// The main thread's stack.
fn stack(smaps: &str) -> Option<Mapping> {
    let line = smaps.lines().find(|line| line.ends_with(" [stack]"))?;
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    let [start, end] = [start, end].map(|text| usize::from_str_radix(text, 16).ok());
    Some(Mapping { start: start?, length: end?.checked_sub(start?)? })
}

/// A part of the address space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mapping {
    start: usize,
    length: usize,
}

/// The private mappings of files that cannot be written to, and of which no page is a changed copy, as those
/// with relocated addresses are.
fn unchanged(smaps: &str) -> Vec<Mapping> {
    let mut found = Vec::new();
    let mut current = None;
    for line in smaps.lines() {
        if let Some(mapping) = of_file(line) {
            current = mapping;
        } else if let Some(number) = line.strip_prefix("Anonymous:") {
            found.extend(current.take().filter(|_| number.trim() == "0 kB"));
        }
    }
    found
}

/// A line with addresses: `None` for another one, `Some(None)` if it is of no such mapping.
fn of_file(line: &str) -> Option<Option<Mapping>> {
    let mut words = line.split_ascii_whitespace();
    let (start, end) = words.next()?.split_once('-')?;
    let [start, end] = [start, end].map(|text| usize::from_str_radix(text, 16).ok());
    let (start, length) = (start?, end?.checked_sub(start?)?);
    let is_fixed = matches!(words.next()?, "r-xp" | "r--p");
    let has_file = words.nth(3).is_some_and(|path| path.starts_with('/'));
    Some((is_fixed && has_file).then_some(Mapping { start, length }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
1000-3000 r--p 00000000 fe:00 9 /usr/bin/a b
Rss:                   8 kB
Anonymous:             0 kB
3000-4000 r-xp 00002000 fe:00 9 /usr/bin/a b
Anonymous:             0 kB
4000-5000 r--p 00003000 fe:00 9 /usr/bin/a b
Anonymous:             4 kB
5000-6000 rw-p 00004000 fe:00 9 /usr/bin/a b
Anonymous:             0 kB
6000-7000 r--p 00000000 00:00 0 [vvar]
Anonymous:             0 kB
7000-8000 r--s 00000000 fe:00 9 /usr/bin/shared
Anonymous:             0 kB
8000-9000 r--p 00000000 00:00 0
Anonymous:             0 kB
9000-a000 r-xp 00000000 fe:00 9 /usr/lib/x
";

    /// Check that only unchanged copies of files are released, and nothing of a truncated line.
    #[test]
    fn only_unchanged() {
        let found = unchanged(SMAPS);
        let places: Vec<usize> = found.iter().map(|mapping| mapping.start).collect();
        assert_eq!(places, [0x1000, 0x3000]);
        assert_eq!(found[0].length, 0x2000);
        assert_eq!(unchanged("5000-4000 r-xp 0 0 0 /a\nAnonymous: 0 kB\n"), []);
    }

    /// Check that only the stack of the thread that asks is released, and not what it uses.
    #[test]
    fn stacks() {
        let line =
            "7ffc28a40000-7ffc28aac000 rw-p 00000000 00:00 0                [stack]\n";
        let found = stack(line).unwrap();
        assert_eq!((found.start, found.length), (0x7ffc_28a4_0000, 0x6_c000));
        // A test's thread has another stack.
        assert_eq!(unused(found), None);
        let here = std::ptr::from_ref(&found).addr();
        let around = Mapping { start: (here - (1 << 20)) & !4095, length: 2 << 20 };
        let free = unused(around).unwrap();
        assert!(free.length > 0 && free.start + free.length + RED_ZONE <= here + 4096);
    }

    /// Check that the program goes on after that, with less memory.
    #[test]
    fn goes_on() {
        let resident = || {
            let text = std::fs::read_to_string("/proc/self/status").unwrap();
            let line = text.lines().find_map(|line| line.strip_prefix("RssFile:"));
            line.unwrap().trim().trim_end_matches(" kB").parse::<u64>().unwrap()
        };
        let before = resident();
        release_memory();
        let after = resident();
        assert!(after < before, "{before} kB, {after} kB");
        assert_eq!(format!("{:.3}", 1.0_f64.exp()), "2.718");
    }
}
