//! Repeating a call allocates nothing, nor does answering a timer: a run with many repeats makes as
//! many allocations as a run with few, except for one that a channel may make when its receiver has
//! to wait.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use facts::{Facts, Root};
use measure::Control;
use recording::Spec;
use recording::{Call, CallsSpec, LatencySpec, Timer, Trigger};
use units::Nanos;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
/// Allocations are those of the whole process: tests run one at a time.
static TURN: Mutex<()> = Mutex::new(());

struct Counting;

// SAFETY: every call is forwarded to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's guarantees are forwarded.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's guarantees are forwarded.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The number of allocations of a run.
fn allocations(spec: &Spec, facts: &Facts) -> u64 {
    let control = Control::new().unwrap();
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    measure::run(spec, facts, &control, &mut measure::ignore).unwrap();
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

/// Check that 990 more repeats of a call do not cause even ten more allocations.
#[test]
fn repeats_allocate_nothing() {
    let _turn = TURN.lock();
    let facts = Facts::read(&Root::live());
    let cpu = facts.cpus.allowed.get().unwrap().first().unwrap();
    let allocations = |call, repeats| {
        let spec =
            Spec::Calls(CallsSpec { cpu, calls: vec![call], repeats, phases: None });
        allocations(&spec, &facts)
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
        // What is allocated once per process is allocated here.
        allocations(call, 10);
        let (few, many) = (allocations(call, 10), allocations(call, 1_000));
        assert!(many.abs_diff(few) < 10, "{call:?}: {few} and {many}");
    }
}

/// Check that 3990 more expiries do not cause as many more allocations: reading the counters of
/// `/proc` makes some hundreds, and not always the same number.
#[test]
fn expiries_allocate_nothing() {
    let _turn = TURN.lock();
    let facts = Facts::read(&Root::live());
    let cpu = facts.cpus.allowed.get().unwrap().first().unwrap();
    for timer in [Timer::ClockNanosleep, Timer::Timerfd] {
        let allocations = |expiries| {
            let interval_ns = Nanos::from_micros(200);
            let duration_ns = interval_ns.saturating_mul(expiries);
            let cpus = [cpu].into_iter().collect();
            let fifo = None;
            let spec = LatencySpec {
                cpus,
                interval_ns,
                duration_ns,
                timer,
                fifo,
                trigger: Trigger::default(),
            };
            allocations(&Spec::Latency(spec), &facts)
        };
        let (few, many) = (allocations(10), allocations(4_000));
        assert!(many.abs_diff(few) < 2_000, "{timer:?}: {few} and {many}");
    }
}
