//! Making a call over and over allocates nothing: a run of many repeats asks the
//! allocator as often as a run of few, but for the once that a channel may when its
//! receiver has to wait.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use facts::{Facts, Root};
use measure::{Silent, Spec};
use recording::{Call, CallsSpec};

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: every call is handed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's promises are handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are handed on.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Check that 990 more repeats of a call do not take even ten more allocations.
#[test]
fn repeats_allocate_nothing() {
    let facts = Facts::read(&Root::live());
    let cpu = facts.cpus.allowed.get().unwrap().first().unwrap();
    let mut watch = Silent::new().unwrap();
    let mut allocations = |call, repeats| {
        let spec = Spec::Calls(CallsSpec { cpu, calls: vec![call], repeats });
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        measure::run(&spec, &facts, &mut watch).unwrap();
        ALLOCATIONS.load(Ordering::Relaxed) - before
    };
    for call in [
        Call::Getpid,
        Call::ClockGettime,
        Call::Futex,
        Call::Pipe,
        Call::PageFault,
        Call::Fork,
        Call::Timer,
    ] {
        // What is set up once in a process is set up here.
        allocations(call, 10);
        let (few, many) = (allocations(call, 10), allocations(call, 1_000));
        assert!(many.abs_diff(few) < 10, "{call:?}: {few} and {many}");
    }
}
