//! The timed loops allocate nothing and never enter the kernel: measured with an allocator that
//! counts, and with ptrace(2).
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::mem::{MaybeUninit, size_of};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use measure::OnMoment;
use measure::spin::{Ring, spin};
use measure::test_loop::{self, Board, JitterResult, TestLimits};
use measure::work::{Work, prepare};
use units::TscDelta;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Counting;

// SAFETY: every call is forwarded to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's guarantees are forwarded.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller's guarantees are forwarded.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The child's exit codes.
const QUIET: i32 = 0;
const ALLOCATED: i32 = 1;
const IDLE: i32 = 2;
const NOT_TRACED: i32 = 3;

/// The system calls between the two markers, or why they could not be counted.
enum Counted {
    Calls(Vec<u64>),
    Skipped(&'static str),
}

/// Check that there is no system call between two of our own, and no allocation, although the loop
/// records gaps until its ring is full and continues.
#[test]
fn the_loop_is_quiet() {
    let mut ring = Ring::new(1_000);
    let never = AtomicBool::new(false);
    assert_quiet("the_loop_is_quiet", || {
        let length = TscDelta::from_ticks(20_000_000);
        spin(length, TscDelta::default(), OnMoment::stopping(&never), &mut ring);
        ring.overflow().is_some()
    });
}

/// Check the same of the loop of jitter with each workload without system calls, although the last
/// test exceeds the capacity.
#[test]
fn tests_are_quiet() {
    let never = AtomicBool::new(false);
    let (board, length) = (Board::default(), TscDelta::from_ticks(u64::MAX >> 1));
    for workload in ["tif", "memory:1M", "compute"] {
        let mut work = prepare(&workload.parse().unwrap()).unwrap();
        let mut result = JitterResult::with_capacity(2);
        assert_quiet("tests_are_quiet", || {
            let limits = TestLimits { loops: 2, tests: 3, length, above: None };
            let moments = OnMoment::stopping(&never);
            test_loop::run(limits, &mut *work, moments, &board, &mut result);
            result.lost.is_some_and(|lost| lost.tests == 1)
        });
    }
}

/// Check that the system calls of a workload that makes some are counted, so that a count of 0 is
/// meaningful.
#[test]
fn calls_are_seen() {
    let mut work: Box<dyn Work> = prepare(&"syscall".parse().unwrap()).unwrap();
    match traced(&mut || {
        work.once();
        true
    }) {
        Counted::Skipped(why) => println!("skipped: calls_are_seen: {why}"),
        Counted::Calls(calls) => assert_eq!(calls.len(), 5_000 + 2),
    }
}

/// `timed` returns whether it ran as intended.
fn assert_quiet(name: &str, mut timed: impl FnMut() -> bool) {
    match traced(&mut timed) {
        Counted::Skipped(why) => println!("skipped: {name}: {why}"),
        Counted::Calls(calls) => {
            let marker = u64::try_from(libc::SYS_getppid).unwrap();
            assert_eq!(calls, [marker, marker], "system calls in the loop");
        }
    }
}

/// The system calls of a child that runs this between two markers.
fn traced(timed: &mut dyn FnMut() -> bool) -> Counted {
    // SAFETY: the child calls only the loop and async-signal-safe functions, then _exit.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "fork failed");
    if child == 0 {
        let code = between_markers(timed);
        // SAFETY: ends the child without running the parent's destructors.
        unsafe { libc::_exit(code) };
    }
    trace(child)
}

/// The child: requests to be traced, then runs the loop between two markers.
fn between_markers(timed: &mut dyn FnMut() -> bool) -> i32 {
    // SAFETY: PTRACE_TRACEME takes no pointers; raise and getppid take none either.
    unsafe {
        if libc::ptrace(libc::PTRACE_TRACEME, 0, ptr::null_mut::<u8>(), 0) != 0 {
            return NOT_TRACED;
        }
        libc::raise(libc::SIGSTOP);
        libc::syscall(libc::SYS_getppid);
    }
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let came_to_it = timed();
    let after = ALLOCATIONS.load(Ordering::Relaxed);
    // SAFETY: takes no arguments.
    unsafe { libc::syscall(libc::SYS_getppid) };
    match (after == before, came_to_it) {
        (true, true) => QUIET,
        (false, _) => ALLOCATED,
        (true, false) => IDLE,
    }
}

/// The parent: lists every system call that the child enters after its first stop, until it ends.
fn trace(child: libc::pid_t) -> Counted {
    let mut calls = Vec::new();
    let first = wait(child);
    if libc::WIFEXITED(first) {
        return Counted::Skipped("this process may not trace its child");
    }
    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_EXITKILL;
    request(libc::PTRACE_SETOPTIONS, child, ptr::null_mut(), options);
    loop {
        request(libc::PTRACE_SYSCALL, child, ptr::null_mut(), 0);
        let status = wait(child);
        if libc::WIFEXITED(status) {
            assert_eq!(libc::WEXITSTATUS(status), QUIET, "the child's verdict");
            return Counted::Calls(calls);
        }
        assert!(libc::WIFSTOPPED(status), "the child died: {status:#x}");
        if libc::WSTOPSIG(status) == libc::SIGTRAP | 0x80 {
            match entered(child) {
                None => return Counted::Skipped("no PTRACE_GET_SYSCALL_INFO before 5.3"),
                Some(Some(number)) if number != exit_number() => calls.push(number),
                Some(_) => {}
            }
        }
    }
}

fn exit_number() -> u64 {
    u64::try_from(libc::SYS_exit_group).unwrap()
}

/// The number of the call being entered; `Some(None)` at the exit of one.
fn entered(child: libc::pid_t) -> Option<Option<u64>> {
    let mut info = MaybeUninit::<libc::ptrace_syscall_info>::zeroed();
    let size = i32::try_from(size_of::<libc::ptrace_syscall_info>()).unwrap();
    if request(libc::PTRACE_GET_SYSCALL_INFO, child, info.as_mut_ptr().cast(), size) <= 0
    {
        return None;
    }
    // SAFETY: zeroed memory is a valid value, and the kernel filled it.
    let info = unsafe { info.assume_init() };
    // SAFETY: on entry the union holds the `entry` member.
    let number = || unsafe { info.u.entry.nr };
    Some((info.op == libc::PTRACE_SYSCALL_INFO_ENTRY).then(number))
}

fn request(what: libc::c_uint, child: libc::pid_t, data: *mut u8, size: i32) -> i64 {
    // The options are passed as the data, the size of the info as the address.
    let options = what == libc::PTRACE_SETOPTIONS;
    let (address, data): (usize, usize) = if options {
        (0, usize::try_from(size).unwrap())
    } else {
        (usize::try_from(size).unwrap(), data as usize)
    };
    // SAFETY: `child` is our stopped tracee; `data` is null, options, or space for the info of the
    // given size.
    unsafe { libc::ptrace(what, child, address, data) }
}

fn wait(child: libc::pid_t) -> libc::c_int {
    let mut status = 0;
    // SAFETY: `status` outlives the call, which writes it.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(waited, child, "waitpid failed");
    status
}
