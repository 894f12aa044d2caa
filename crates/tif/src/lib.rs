//! `libtif`: the seven functions of Intel's Thread Isolation Framework (TIF), for programs
//! written for it, and one that returns the last error.
//!
//! A library of its own, since the names of these functions have no prefix: programs that link
//! `libnoisefloor` have those names for themselves. The comment of each function is its
//! documentation in `tif_helper.h` (`cargo xtask header`).

use std::ffi::{c_char, c_int, c_long};
use std::sync::Mutex;

use facts::{Facts, Root};
use ffi::code::{NF_JOURNAL, NF_PRIVILEGE, NF_SYSTEM};
use ffi::{AtExit, Failure, caught, facts, guard, lock, note, patient_lock};
use isolate::{Isolation, NohzWait};
use units::{Cpu, Nanos};

/// The result of `nohz_wait` if the tick does not stop.
const NOT_ENTERED: c_long = -1;
/// The result of `nohz_wait` if the kernel cannot stop it, or its support is unknown.
const NO_SUPPORT: c_long = -2;

/// The calls of `nohz_enter` by this process, and what they changed.
static ENTERED: Mutex<Entered> =
    Mutex::new(Entered { process: 0, times: 0, isolation: None });

static AT_EXIT: AtExit = AtExit::new(restore);

struct Entered {
    process: u32,
    times: u32,
    isolation: Option<Isolation>,
}

/// Waits until the tick has stopped on the CPU of the calling thread, for at most usecs
/// microseconds; with 0 or less it checks once. If forced is not 0, the thread repeatedly leaves
/// the CPU for a moment and returns, so that the kernel tries again to stop the tick. Returns 0
/// as soon as the tick has stopped, -1 if it did not stop in time, -2 if this kernel does not
/// support it.
#[unsafe(no_mangle)]
pub extern "C" fn nohz_wait(usecs: c_long, forced: c_int) -> c_long {
    let limit = Nanos::from_micros(u64::try_from(usecs).unwrap_or(0));
    let wait = NohzWait { limit, forced: forced != 0, confirmed: false, stop: None };
    let waited = caught(|| {
        let facts = facts();
        let unknown =
            || Failure::new(NF_SYSTEM, "failed to read the number of the current CPU");
        let cpu = isolate::current_cpu().ok_or_else(unknown)?;
        Ok(isolate::reach_nohz(&wait, &isolate::others(cpu, facts), facts)?)
    });
    match waited {
        Ok(true) => 0,
        Ok(false) => NOT_ENTERED,
        Err(failure) => {
            note(&failure.text);
            NO_SUPPORT
        }
    }
}

/// Disables real-time throttling, machine-wide, and the fair server on the CPUs whose tick can
/// stop, until nohz_exit() has been called as often as this function, or the process ends. Call
/// it before threads are pinned to their CPUs. Returns 0, or -1 with errno set.
///
/// Each setting is recorded on disk before it is changed: after SIGKILL it is restored by the
/// next program that uses this library or libnoisefloor, or by `noisefloor restore`.
#[unsafe(no_mangle)]
pub extern "C" fn nohz_enter() -> c_int {
    zero_or_errno(guard(|| {
        AT_EXIT.register()?;
        lock(&ENTERED).enter()?;
        Ok(0)
    }))
}

/// Restores what nohz_enter() changed, once it has been called as often as nohz_enter(). Does
/// nothing if nohz_enter() failed.
#[unsafe(no_mangle)]
pub extern "C" fn nohz_exit() {
    guard(|| {
        // In a signal handler that interrupted nohz_enter() on this thread, the lock is held.
        let Some(mut entered) = patient_lock(&ENTERED) else { return Ok(0) };
        let unused = entered.leave();
        unused.map_or(Ok(Vec::new()), Isolation::end)?;
        Ok(0)
    });
}

/// Sets a thread's policy to SCHED_FIFO with the highest priority; its children get SCHED_OTHER
/// (SCHED_RESET_ON_FORK). pid is the thread ID, 0 for the calling thread. Returns 0, or -1 with
/// errno set.
#[unsafe(no_mangle)]
pub extern "C" fn set_sched_fifo(pid: c_int) -> c_int {
    by_kernel(|| {
        let tid = u32::try_from(pid).map_err(|_| libc::EINVAL)?;
        let outranked = isolate::outrank_thread(tid, isolate::highest_priority());
        outranked.map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))
    })
}

/// Sets a thread's CPU affinity to one CPU. pid is the thread ID, 0 for the calling thread.
/// Returns 0, or -1 with errno set.
#[unsafe(no_mangle)]
pub extern "C" fn set_cpu_affinity(cpu: c_int, pid: c_int) -> c_int {
    by_kernel(|| {
        let tid = u32::try_from(pid).map_err(|_| libc::ESRCH)?;
        let cpu = u32::try_from(cpu).map_err(|_| libc::EINVAL)?;
        let pinned = isolate::restrict_thread(tid, &Cpu::new(cpu).into());
        pinned.map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))
    })
}

/// Returns the first CPU, other than CPU 0, whose tick can stop (nohz_full=), or -1 if there is
/// none.
#[unsafe(no_mangle)]
pub extern "C" fn get_nohz_full_cpu() -> c_int {
    let first = caught(|| Ok(isolate::nohz_cpus(facts()).first()));
    first.ok().flatten().and_then(|cpu| c_int::try_from(cpu.get()).ok()).unwrap_or(-1)
}

/// Returns 1 if the tick of that CPU can stop (nohz_full=) and it is not CPU 0, else 0.
#[unsafe(no_mangle)]
pub extern "C" fn is_nohz_cpu(cpu: c_int) -> c_int {
    let number = u32::try_from(cpu);
    let is = caught(|| {
        Ok(number.is_ok_and(|cpu| isolate::nohz_cpus(facts()).contains(Cpu::new(cpu))))
    });
    c_int::from(is == Ok(true))
}

/// Why the last failed call of nohz_wait(), nohz_enter() or nohz_exit() on this thread failed, and
/// what would help; empty if none has failed. The text is valid until the next failure. TIF has no
/// such function.
#[unsafe(no_mangle)]
pub extern "C" fn tif_last_error() -> *const c_char {
    ffi::last_error()
}

/// Restores settings at the end of the process. Failed settings remain in the journal.
extern "C" fn restore() {
    let _ = caught(|| {
        drop(patient_lock(&ENTERED).and_then(|mut entered| entered.isolation.take()));
        Ok(())
    });
}

impl Entered {
    fn enter(&mut self) -> Result<(), Failure> {
        let process = std::process::id();
        if self.process != process {
            // After fork(2), these are the settings of the parent.
            *self = Self { process, times: 0, isolation: None };
        }
        if self.times == 0 {
            self.isolation = Some(begin()?);
        }
        self.times += 1;
        Ok(())
    }

    /// The isolation, once it is no longer used.
    fn leave(&mut self) -> Option<Isolation> {
        if self.process != std::process::id() {
            return None;
        }
        self.times = self.times.saturating_sub(1);
        if self.times == 0 { self.isolation.take() } else { None }
    }
}

/// Where only a part of it is refused, the reason is the last error.
fn begin() -> Result<Isolation, Failure> {
    let isolation = Isolation::unthrottled(&Facts::read(&Root::live()))?;
    match (isolation.done(), isolation.refused()) {
        (0, [why, ..]) => Err(why.into()),
        (_, [why, ..]) => {
            note(units::chain(why));
            Ok(isolation)
        }
        (_, []) => Ok(isolation),
    }
}

/// The return value for a code of [`guard`]: 0, or -1 with errno set.
fn zero_or_errno(code: c_int) -> c_int {
    match code {
        0 => return 0,
        NF_PRIVILEGE => set_errno(libc::EPERM),
        NF_JOURNAL | NF_SYSTEM => set_errno(libc::EIO),
        _ => set_errno(libc::ENOTSUP),
    }
    -1
}

fn by_kernel(work: impl FnOnce() -> Result<(), c_int>) -> c_int {
    let done = caught(|| Ok(work())).unwrap_or(Err(libc::EIO));
    match done {
        Ok(()) => 0,
        Err(errno) => {
            set_errno(errno);
            -1
        }
    }
}

fn set_errno(number: c_int) {
    // SAFETY: the pointer is to this thread's own errno and always valid.
    unsafe { *libc::__errno_location() = number };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    /// Check that a code becomes 0, or -1 and the errno of its kind.
    #[test]
    fn errors_have_an_errno() {
        assert_eq!(zero_or_errno(0), 0);
        for (code, errno) in [
            (NF_PRIVILEGE, libc::EPERM),
            (NF_JOURNAL, libc::EIO),
            (NF_SYSTEM, libc::EIO),
            (ffi::code::NF_UNSUPPORTED, libc::ENOTSUP),
            (ffi::code::NF_UNSAFE, libc::ENOTSUP),
        ] {
            assert_eq!(zero_or_errno(code), -1);
            assert_eq!(io::Error::last_os_error().raw_os_error(), Some(errno), "{code}");
        }
    }
}
