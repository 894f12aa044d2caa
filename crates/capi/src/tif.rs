//! The seven functions of Intel's Thread Isolation Framework, for programs written for it.

use std::ffi::{c_int, c_long};
use std::sync::Mutex;

use facts::{Facts, Root};
use isolate::{Isolation, Wait};
use units::{Cpu, Nanos};

use crate::at_exit;
use crate::code::{Failure, NF_JOURNAL, NF_PRIVILEGE, NF_SYSTEM};
use crate::gaps::facts;
use crate::guard::{caught, guard, note};
use crate::handle::{lock, patient_lock};

/// What nohz_wait returns where the tick goes on.
const NOT_ENTERED: c_long = -1;
/// What nohz_wait returns where the kernel cannot stop it, or does not say.
const NO_SUPPORT: c_long = -2;

/// This process's real-time threads have all the time of their CPUs.
static ENTERED: Mutex<Entered> =
    Mutex::new(Entered { process: 0, times: 0, isolation: None });

struct Entered {
    process: u32,
    times: u32,
    isolation: Option<Isolation>,
}

/// Waits until the tick has stopped on the calling thread's CPU, at most usecs microseconds; with
/// 0 or less it looks once. If forced is not 0, the thread leaves the CPU now and then and comes
/// back, so that the kernel tries again. Returns 0 as soon as the tick has stopped, -1 where it
/// has not in time, -2 where this kernel does not support it.
#[unsafe(no_mangle)]
pub extern "C" fn nohz_wait(usecs: c_long, forced: c_int) -> c_long {
    let limit = Nanos::from_micros(u64::try_from(usecs).unwrap_or(0));
    let wait = Wait { limit, forced: forced != 0, confirmed: false, stop: None };
    let waited = caught(|| {
        let facts = facts();
        let unknown =
            || Failure::new(NF_SYSTEM, "the kernel does not say which CPU this is");
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

/// Lets real-time threads have all the time of the CPUs whose tick can stop, for all programs,
/// until nohz_exit() was called as often as this, or the process ends. Call it before threads
/// take their CPUs. Returns 0, or -1 with errno set.
///
/// The setting is written down on disk before it is changed: after SIGKILL it is put back by
/// the next program that uses this library, or by `noisefloor restore`.
#[unsafe(no_mangle)]
pub extern "C" fn nohz_enter() -> c_int {
    zero_or_errno(guard(|| {
        at_exit::register()?;
        let mut entered = lock(&ENTERED);
        entered.enter()?;
        Ok(0)
    }))
}

/// Puts back what nohz_enter() found, when it was called as often. Does nothing where
/// nohz_enter() has failed.
#[unsafe(no_mangle)]
pub extern "C" fn nohz_exit() {
    guard(|| {
        // A signal handler may have come in between nohz_enter() on this very thread.
        let Some(mut entered) = patient_lock(&ENTERED) else { return Ok(0) };
        let gone = entered.leave();
        gone.map_or(Ok(Vec::new()), Isolation::end)?;
        Ok(0)
    });
}

/// Gives a thread SCHED_FIFO at the highest priority; what it starts is ordinary. pid is the
/// thread's number, 0 for the calling one. Returns 0, or -1 with errno set.
#[unsafe(no_mangle)]
pub extern "C" fn set_sched_fifo(pid: c_int) -> c_int {
    by_kernel(|| {
        let tid = u32::try_from(pid).map_err(|_| libc::EINVAL)?;
        let outranked = isolate::outrank_thread(tid, isolate::highest_priority());
        outranked.map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))
    })
}

/// Lets a thread run on that CPU only. pid is the thread's number, 0 for the calling one. Returns
/// 0, or -1 with errno set.
#[unsafe(no_mangle)]
pub extern "C" fn set_cpu_affinity(cpu: c_int, pid: c_int) -> c_int {
    by_kernel(|| {
        let tid = u32::try_from(pid).map_err(|_| libc::ESRCH)?;
        let cpu = u32::try_from(cpu).map_err(|_| libc::EINVAL)?;
        let pinned = isolate::pin_thread(tid, Cpu::new(cpu));
        pinned.map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))
    })
}

/// The first CPU but CPU 0 whose tick can stop (nohz_full=), or -1 where there is none.
#[unsafe(no_mangle)]
pub extern "C" fn get_nohz_full_cpu() -> c_int {
    let first = caught(|| Ok(isolate::nohz_cpus(facts()).first()));
    first.ok().flatten().and_then(|cpu| c_int::try_from(cpu.get()).ok()).unwrap_or(-1)
}

/// 1 if the tick of that CPU can stop (nohz_full=) and it is not CPU 0, else 0.
#[unsafe(no_mangle)]
pub extern "C" fn is_nohz_cpu(cpu: c_int) -> c_int {
    let number = u32::try_from(cpu);
    let is = caught(|| {
        Ok(number.is_ok_and(|cpu| isolate::nohz_cpus(facts()).contains(Cpu::new(cpu))))
    });
    c_int::from(is == Ok(true))
}

/// What is left at the process's end.
pub(crate) fn end() {
    if let Some(mut entered) = patient_lock(&ENTERED) {
        drop(entered.isolation.take());
    }
}

impl Entered {
    fn enter(&mut self) -> Result<(), Failure> {
        let process = std::process::id();
        if self.process != process {
            // What a process that was forked finds here is its parent's.
            *self = Self { process, times: 0, isolation: None };
        }
        if self.times == 0 {
            self.isolation = Some(begin()?);
        }
        self.times += 1;
        Ok(())
    }

    /// What is not needed any more.
    fn leave(&mut self) -> Option<Isolation> {
        if self.process != std::process::id() {
            return None;
        }
        self.times = self.times.saturating_sub(1);
        if self.times == 0 { self.isolation.take() } else { None }
    }
}

/// Where a part of it is refused, that is what `nf_last_error` says.
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

/// A code as these functions return it.
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
    // SAFETY: this thread's own errno, which is always there.
    unsafe { *libc::__errno_location() = number };
}
