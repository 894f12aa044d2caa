//! What a thread does to itself: stay on one CPU, outrank ordinary tasks.
//!
//! `sched_setaffinity(2)`, `sched_setscheduler(2)`. Affinity masks are as long as the
//! CPU's number needs: libc's own type ends at CPU 1023.

pub(crate) mod affinities;
pub(crate) mod capabilities;
pub(crate) mod door;
pub(crate) mod memory;
pub(crate) mod occupied;
pub(crate) mod seat;
pub(crate) mod starved;
pub(crate) mod waiting;

use std::io;
use std::marker::PhantomData;

use units::{Cpu, CpuSet};

use crate::error::{Error, Kind};
use crate::thread::door::Door;

const BITS: usize = u64::BITS as usize;
/// Longer than any kernel's mask: x86 ends at 8192 CPUs (`NR_CPUS_RANGE_END`).
const WORDS_MAX: usize = 256;

/// Lets the calling thread run on one CPU only, and returns once it does.
///
/// # Errors
/// `Kind::Cpuset` where the kernel says that the CPU may not be used at all: it is not
/// in the process's cpuset, or went offline.
pub fn pin(cpu: Cpu) -> Result<(), Error> {
    pin_to(&cpu.into())
}

/// Lets the calling thread run on these CPUs only, and returns once it does.
///
/// # Errors
/// Those of [`pin`], where none of them may be used.
pub(crate) fn pin_to(cpus: &CpuSet) -> Result<(), Error> {
    Place::of(cpus).take().map_err(|error| {
        let text = format!("CPU {cpus} may not be used by this process");
        Error::new(Kind::Cpuset, text).caused_by(error)
    })
}

/// Lets the calling thread run on one CPU only, at that `SCHED_FIFO` priority, if any.
///
/// # Errors
/// Those of [`pin`] and [`outrank`].
pub fn take(cpu: Cpu, fifo: Option<u8>) -> Result<(), Error> {
    // In this order: an ordinary thread would never get there past a real-time one that does not
    // leave the CPU.
    fifo.map_or(Ok(()), outrank)?;
    pin(cpu)
}

/// Some CPUs, made ready to be taken where nothing may be allocated.
pub(crate) struct Place {
    mask: Vec<u64>,
    door: Door,
}

impl Place {
    pub(crate) fn of(cpus: &CpuSet) -> Self {
        Self { mask: mask_of(cpus), door: Door::of(cpus) }
    }

    /// Lets the calling thread run there only, in the CPUs' partition where there is one.
    /// Async-signal-safe.
    pub(crate) fn take(&self) -> io::Result<()> {
        let again = |error| match self.door.enter() {
            true => set_affinity(&self.mask),
            false => Err(error),
        };
        set_affinity(&self.mask).or_else(again)
    }
}

/// Lets a thread of any process run on one CPU only; 0 is the calling thread.
///
/// # Errors
/// As the kernel says it: `EINVAL` for a CPU that may not be used, `ESRCH`, `EPERM`.
pub fn pin_thread(tid: u32, cpu: Cpu) -> io::Result<()> {
    keep_on(tid, &[cpu].into_iter().collect())
}

/// Lets a thread of any process run on these CPUs only; 0 is the calling thread.
///
/// # Errors
/// As the kernel says it: `EINVAL` for CPUs of which none may be used, `ESRCH`, `EPERM`.
pub fn keep_on(tid: u32, cpus: &CpuSet) -> io::Result<()> {
    if cpus.iter().last().is_some_and(|last| last.index() >= WORDS_MAX * BITS) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    set_affinity_of(tid, &mask_of(cpus))
}

/// Makes a thread of any process an ordinary one, of that nice value: `SCHED_BATCH`, or else
/// `SCHED_OTHER`.
///
/// # Errors
/// `Kind::Privilege` where it would become nicer to itself than it may; `Kind::System` where
/// the kernel refuses otherwise.
pub fn as_ordinary(tid: u32, batch: bool, nice: i8) -> Result<(), Error> {
    let policy = if batch { libc::SCHED_BATCH } else { libc::SCHED_OTHER };
    let parameters = libc::sched_param { sched_priority: 0 };
    let who = libc::id_t::from(tid);
    // SAFETY: `parameters` outlives the call, which only reads it; the other takes numbers.
    let failed = unsafe {
        libc::sched_setscheduler(number(tid), policy, &raw const parameters) != 0
            || libc::setpriority(libc::PRIO_PROCESS, who, nice.into()) != 0
    };
    if !failed {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    if matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM)) {
        let text = format!(
            "a nice value of {nice} is not allowed: it needs root, CAP_SYS_NICE, or an \
             RLIMIT_NICE of {} (ulimit -e {0})",
            20 - i16::from(nice)
        );
        return Err(Error::new(Kind::Privilege, text));
    }
    let text = format!("failed to set a nice value of {nice}");
    Err(Error::new(Kind::System, text).caused_by(error))
}

/// The affinity mask of one CPU.
pub(crate) fn mask(cpu: Cpu) -> Vec<u64> {
    mask_of(&[cpu].into_iter().collect())
}

/// The affinity mask of these CPUs.
pub(crate) fn mask_of(cpus: &CpuSet) -> Vec<u64> {
    let words = cpus.iter().last().map_or(0, |last| last.index() / BITS + 1);
    let mut mask = vec![0; words];
    for cpu in cpus.iter() {
        mask[cpu.index() / BITS] |= 1 << (cpu.index() % BITS);
    }
    mask
}

pub(crate) fn set_affinity(mask: &[u64]) -> io::Result<()> {
    set_affinity_of(0, mask)
}

/// Lets a thread run on these CPUs only; 0 is the calling thread.
pub(crate) fn set_affinity_of(tid: u32, mask: &[u64]) -> io::Result<()> {
    let (length, place) = (size_of_val(mask), mask.as_ptr().cast());
    // SAFETY: `mask` is as long as is said and outlives the call, which only reads it.
    let failed = unsafe { libc::sched_setaffinity(number(tid), length, place) };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A thread's number as system calls want it; none is as large as the one for "too large".
fn number(tid: u32) -> libc::pid_t {
    libc::pid_t::try_from(tid).unwrap_or(libc::pid_t::MAX)
}

/// The CPUs that the calling thread may run on.
///
/// # Errors
/// `Kind::System` in the kernel's words.
pub fn allowed() -> Result<CpuSet, Error> {
    affinity_of(0).map_err(|error| {
        Error::new(Kind::System, "the CPUs of this thread are not known").caused_by(error)
    })
}

/// The CPUs that a thread may run on; 0 is the calling thread.
pub(crate) fn affinity_of(tid: u32) -> io::Result<CpuSet> {
    // The kernel refuses a mask that is shorter than its own.
    let mut mask = vec![0_u64; WORDS_MAX];
    let (length, place) = (size_of_val(mask.as_slice()), mask.as_mut_ptr().cast());
    // SAFETY: the kernel writes at most `length` bytes to `mask`.
    let failed = unsafe { libc::sched_getaffinity(number(tid), length, place) };
    if failed != 0 {
        return Err(io::Error::last_os_error());
    }
    let is_set = |cpu: &u32| {
        let at = *cpu as usize;
        mask[at / BITS] >> (at % BITS) & 1 == 1
    };
    let words = mask.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1);
    let all = 0..u32::try_from(words * BITS).unwrap_or(0);
    Ok(all.filter(is_set).map(Cpu::new).collect())
}

/// Keeps the calling thread off some CPUs until it is dropped, where it may run anywhere
/// else: so a thread that only waits and tells never comes between one that measures.
#[derive(Debug)]
pub struct Elsewhere {
    before: Option<CpuSet>,
    // It is the thread's own affinity that is given back.
    _own: PhantomData<*const ()>,
}

impl Elsewhere {
    /// Leaves the CPUs. Where that cannot be, the thread may still run where it might.
    pub fn than(cpus: impl Into<CpuSet>) -> Self {
        let cpus = cpus.into();
        let before = affinity_of(0).ok().filter(|before| {
            let rest = before.without(&cpus);
            rest != *before && !rest.is_empty() && set_affinity(&mask_of(&rest)).is_ok()
        });
        Self { before, _own: PhantomData }
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        // CPUs that are gone by now make it fail; the thread is then where it can be.
        let _ = self.before.as_ref().map(|before| set_affinity(&mask_of(before)));
    }
}

/// Gives the calling thread `SCHED_FIFO` at that priority (1 to 99): only interrupts and
/// higher real-time tasks take the CPU from it. Threads it starts are ordinary again.
///
/// # Errors
/// `Kind::Privilege` without `CAP_SYS_NICE` or a sufficient `RLIMIT_RTPRIO`.
pub fn outrank(priority: u8) -> Result<(), Error> {
    let Err(error) = set_fifo(priority) else { return Ok(()) };
    if error.kind() == io::ErrorKind::PermissionDenied {
        let text = format!(
            "SCHED_FIFO priority {priority} is not allowed: it needs root, CAP_SYS_NICE, or \
             an RLIMIT_RTPRIO of {priority} (ulimit -r {priority})"
        );
        return Err(Error::new(Kind::Privilege, text));
    }
    let text = format!("failed to set SCHED_FIFO priority {priority}");
    Err(Error::new(Kind::System, text).caused_by(error))
}

/// The highest priority of `SCHED_FIFO`.
pub fn highest_priority() -> u8 {
    // SAFETY: takes a number only.
    let highest = unsafe { libc::sched_get_priority_max(libc::SCHED_FIFO) };
    u8::try_from(highest).unwrap_or(99)
}

/// Gives a thread of any process `SCHED_FIFO`, as [`outrank`]; 0 is the calling thread.
///
/// # Errors
/// As the kernel says it: `EPERM` without the privilege, `ESRCH`, `EINVAL`.
pub fn outrank_thread(tid: u32, priority: u8) -> io::Result<()> {
    set_policy(tid, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, priority)
}

pub(crate) fn set_fifo(priority: u8) -> io::Result<()> {
    outrank_thread(0, priority)
}

/// Gives the calling thread `SCHED_FIFO`, and all that it starts, too.
pub(crate) fn set_inherited_fifo(priority: u8) -> io::Result<()> {
    set_policy(0, libc::SCHED_FIFO, priority)
}

/// Gives a thread of any process a policy and a priority; 0 is the calling thread.
pub(crate) fn set_policy(tid: u32, policy: libc::c_int, priority: u8) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: i32::from(priority) };
    // SAFETY: `parameters` outlives the call, which only reads it.
    let failed =
        unsafe { libc::sched_setscheduler(number(tid), policy, &raw const parameters) };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The CPU the calling thread is on at this moment.
pub fn current_cpu() -> Option<Cpu> {
    // SAFETY: takes no arguments and touches no memory of ours.
    let cpu = unsafe { libc::sched_getcpu() };
    u32::try_from(cpu).ok().map(Cpu::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a pinned thread is where it was pinned, for every CPU it may have.
    #[test]
    fn pinned_threads_stay() {
        let facts = facts::Facts::read(&facts::Root::live());
        for cpu in facts.cpus.allowed.get().unwrap().iter() {
            let seen = std::thread::spawn(move || pin(cpu).map(|()| current_cpu()));
            assert_eq!(seen.join().unwrap().unwrap(), Some(cpu));
        }
    }

    /// Check that a thread leaves a CPU only for as long as it is told to, and stays on the
    /// only one that it has.
    #[test]
    fn elsewhere_for_a_while() {
        let facts = facts::Facts::read(&facts::Root::live());
        let cpus = facts.cpus.allowed.get().unwrap().clone();
        let seen = std::thread::spawn(move || {
            let (cpu, before) = (cpus.first().unwrap(), affinity_of(0).unwrap());
            let away = Elsewhere::than(cpu);
            let left = affinity_of(0).unwrap();
            drop(away);
            assert_eq!(affinity_of(0).unwrap(), before);
            pin(cpu).unwrap();
            drop(Elsewhere::than(cpu));
            assert_eq!(current_cpu(), Some(cpu));
            (cpus.len() > 1, left != before)
        });
        let (has_others, has_left) = seen.join().unwrap();
        assert_eq!(has_others, has_left);
    }

    /// Check that a CPU far beyond any machine's is refused, not cut to 1024.
    #[test]
    fn no_such_cpu() {
        let refused = std::thread::spawn(|| pin(Cpu::new(60_000))).join().unwrap();
        assert_eq!(refused.unwrap_err().kind(), Kind::Cpuset);
    }

    /// Check that priorities outside 1 to 99 are refused whatever the privileges.
    #[test]
    fn absurd_priorities() {
        let refused = std::thread::spawn(|| outrank(100)).join().unwrap();
        assert!(refused.is_err());
    }
}
