//! The calls that one thread makes alone.
//!
//! Each is made as a program would, with as little code around it as possible: system calls
//! directly, not through wrappers that may answer without the kernel.
//!
//! # Caveats
//! The cost of a fork depends on the process's mappings; the readings are excluded from the child, and
//! free memory of the allocator is released before.
//! A timer expires on time only with high-resolution timers; else at the next tick.

use std::{io, ptr};

use recording::Call;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec,
    timerfd_create, timerfd_settime,
};
use units::Cpu;

use crate::calls::repeats::{Repeats, failed};
use crate::threads::memory::Memory;
use crate::{Error, calls::partners};

/// Repeats the call, on the CPU that the thread is pinned to.
pub(crate) fn make(call: Call, cpu: Cpu, repeats: &mut Repeats<'_>) -> Result<(), Error> {
    match call {
        Call::Getpid => repeats.run("getpid(2)", getpid),
        Call::ClockGettime => repeats.run("clock_gettime(2)", clock_gettime),
        Call::Futex => partners::futex(cpu, repeats),
        Call::Pipe => partners::pipe(cpu, repeats),
        Call::Switch => partners::switch(cpu, repeats),
        Call::PageFault => page_fault(repeats),
        Call::Fork => {
            release_free_memory();
            repeats.run("fork(2)", fork)
        }
        Call::Timer => timer(repeats),
    }
}

#[inline(always)]
fn getpid() -> io::Result<()> {
    // SAFETY: takes no arguments and cannot fail.
    unsafe { libc::syscall(libc::SYS_getpid) };
    Ok(())
}

#[inline(always)]
fn clock_gettime() -> io::Result<()> {
    // The size of a 64-bit kernel's timespec; a 32-bit one writes less.
    let mut time = [0_u64; 2];
    let (number, clock) = (libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC);
    // SAFETY: `time` is room for the kernel's timespec and outlives the call.
    succeeded(unsafe { libc::syscall(number, clock, time.as_mut_ptr()) })
}

fn page_fault(repeats: &mut Repeats<'_>) -> Result<(), Error> {
    // SAFETY: takes no pointers.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) });
    let page = page.unwrap_or(4096);
    let memory = Memory::new(page.saturating_mul(repeats.calls()));
    let mut memory = memory.map_err(|error| failed("mmap(2)", error))?;
    memory.use_small_pages();
    let mut next = 0;
    repeats.run("touching a page", || {
        memory.touch(next);
        next += page;
        Ok(())
    })
}

/// Returns the memory that the allocator holds without use to the kernel. A fork copies it, and how much
/// it is depends on what was read before: the kernel's messages, for example.
fn release_free_memory() {
    #[cfg(target_env = "gnu")]
    // SAFETY: takes no pointers, and leaves memory in use as it is.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[inline(always)]
fn fork() -> io::Result<()> {
    // SAFETY: the child calls nothing but _exit, which may be called in the child of a
    // process of many threads.
    match unsafe { libc::fork() } {
        0 => {
            // SAFETY: ends the child at once, without running the parent's destructors.
            unsafe { libc::_exit(0) }
        }
        child if child > 0 => {
            // SAFETY: the child is ours; its status is not needed.
            succeeded(unsafe { libc::waitpid(child, ptr::null_mut(), 0) }.into())
        }
        _ => Err(io::Error::last_os_error()),
    }
}

/// The distance of a timer's expiry: long enough for the thread to sleep until then on slow
/// processors and audited kernels too. A timer that expires before the read costs half.
const AHEAD_NS: i64 = 100_000;

fn timer(repeats: &mut Repeats<'_>) -> Result<(), Error> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC);
    let timer = timer.map_err(|error| failed("timerfd_create(2)", error.into()))?;
    let soon = Itimerspec {
        it_interval: Timespec::default(),
        it_value: Timespec { tv_sec: 0, tv_nsec: AHEAD_NS },
    };
    repeats.run("timerfd_settime(2)", || {
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &soon)?;
        rustix::io::read(&timer, &mut [0; 8])?;
        Ok(())
    })
}

/// The error of a call that returned -1.
#[inline(always)]
fn succeeded(answer: libc::c_long) -> io::Result<()> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
