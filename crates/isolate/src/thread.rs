//! Attributes of threads: affinity, scheduling policy and priority.
//!
//! `sched_setaffinity(2)`, `sched_setscheduler(2)`. Affinity masks are as long as the highest CPU
//! requires: libc's type ends at CPU 1023.

pub(crate) mod affinities;
pub(crate) mod capabilities;
pub(crate) mod memory;
pub(crate) mod occupied;
pub(crate) mod partition_entry;
pub(crate) mod pinned;
pub(crate) mod starved;
pub(crate) mod waiting;

use std::io;
use std::marker::PhantomData;

use units::{Cpu, CpuSet};

use crate::error::{Error, Kind};
use crate::thread::partition_entry::PartitionEntry;

const BITS: usize = u64::BITS as usize;
/// Longer than any kernel's mask: x86 supports up to 8192 CPUs (`NR_CPUS_RANGE_END`).
pub(crate) const MASK_WORDS: usize = 256;

/// Restricts the calling thread to one CPU, and returns when it runs there.
///
/// # Errors
/// `Kind::Cpuset` if the kernel does not allow the CPU: it is not in the process's cpuset, or is
/// offline.
pub fn pin(cpu: Cpu) -> Result<(), Error> {
    pin_to(&cpu.into())
}

/// Restricts the calling thread to these CPUs, and returns when it runs on one of them.
///
/// # Errors
/// Those of [`pin`], if none of the CPUs is allowed.
pub(crate) fn pin_to(cpus: &CpuSet) -> Result<(), Error> {
    PreparedAffinity::of(cpus).apply().map_err(|error| {
        let text = format!("CPU {cpus} may not be used by this process");
        Error::new(Kind::Cpuset, text).caused_by(error)
    })
}

/// Sets a `SCHED_FIFO` priority, if any, and restricts the calling thread to one CPU.
///
/// # Errors
/// Those of [`pin`] and [`outrank`].
pub fn pin_with_priority(cpu: Cpu, fifo: Option<u8>) -> Result<(), Error> {
    // In this order: an ordinary thread would not run on a CPU that is occupied by a real-time
    // task, and so its migration might never complete.
    fifo.map_or(Ok(()), outrank)?;
    pin(cpu)
}

/// A target set of CPUs, prepared so that applying it does not allocate.
pub(crate) struct PreparedAffinity {
    mask: Vec<u64>,
    partition: PartitionEntry,
}

impl PreparedAffinity {
    pub(crate) fn of(cpus: &CpuSet) -> Self {
        Self { mask: mask_of(cpus), partition: PartitionEntry::of(cpus) }
    }

    /// Restricts the calling thread to the CPUs, and moves it into their partition if there is
    /// one. Async-signal-safe.
    pub(crate) fn apply(&self) -> io::Result<()> {
        let again = |error| match self.partition.enter() {
            true => set_affinity(&self.mask),
            false => Err(error),
        };
        set_affinity(&self.mask).or_else(again)
    }
}

/// Restricts a thread of any process to these CPUs; 0 is the calling thread.
///
/// # Errors
/// The kernel's error: `EINVAL` if none of the CPUs is allowed, `ESRCH`, `EPERM`.
pub fn restrict_thread(tid: u32, cpus: &CpuSet) -> io::Result<()> {
    if cpus.iter().last().is_some_and(|last| last.index() >= MASK_WORDS * BITS) {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    set_affinity_of(tid, &mask_of(cpus))
}

/// Sets a thread of any process to `SCHED_BATCH` or `SCHED_OTHER` and a nice value; 0 is the
/// calling thread.
///
/// # Errors
/// `Kind::Privilege` if `RLIMIT_NICE` does not allow the nice value; `Kind::System` for any other
/// error.
pub fn set_ordinary(tid: u32, batch: bool, nice: i8) -> Result<(), Error> {
    let policy = if batch { libc::SCHED_BATCH } else { libc::SCHED_OTHER };
    let parameters = libc::sched_param { sched_priority: 0 };
    let id = libc::id_t::from(tid);
    // SAFETY: `parameters` outlives the call, which only reads it; setpriority takes numbers only.
    let failed = unsafe {
        libc::sched_setscheduler(number(tid), policy, &raw const parameters) != 0
            || libc::setpriority(libc::PRIO_PROCESS, id, nice.into()) != 0
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

/// Restricts a thread to the CPUs of a mask; 0 is the calling thread.
pub(crate) fn set_affinity_of(tid: u32, mask: &[u64]) -> io::Result<()> {
    let (length, pointer) = (size_of_val(mask), mask.as_ptr().cast());
    // SAFETY: the length is that of `mask`, which outlives the call and is only read.
    let failed = unsafe { libc::sched_setaffinity(number(tid), length, pointer) };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A thread ID as system calls take it; values that are too large become one that does not exist.
fn number(tid: u32) -> libc::pid_t {
    libc::pid_t::try_from(tid).unwrap_or(libc::pid_t::MAX)
}

/// The CPUs that the calling thread may run on.
///
/// # Errors
/// `Kind::System` with the kernel's error.
pub fn allowed() -> Result<CpuSet, Error> {
    affinity_of(0).map_err(|error| {
        Error::new(Kind::System, "the CPUs of this thread are not known").caused_by(error)
    })
}

/// The CPUs that a thread may run on; 0 is the calling thread.
pub(crate) fn affinity_of(tid: u32) -> io::Result<CpuSet> {
    let mut mask = [0; MASK_WORDS];
    if !affinity_into(number(tid), &mut mask) {
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

/// Writes the affinity mask of a thread, unless the kernel refuses; returns whether it did.
/// Async-signal-safe.
pub(crate) fn affinity_into(tid: libc::pid_t, mask: &mut [u64; MASK_WORDS]) -> bool {
    // The kernel rejects a mask that is shorter than its own.
    let (length, pointer) = (size_of_val(mask), mask.as_mut_ptr().cast());
    // SAFETY: the kernel writes at most `length` bytes to `mask`.
    unsafe { libc::sched_getaffinity(tid, length, pointer) == 0 }
}

/// Restricts the calling thread to other CPUs until this is dropped, so that a thread that waits
/// and reports does not preempt one that measures.
#[derive(Debug)]
pub struct AvoidedCpus {
    before: Option<CpuSet>,
    // Not `Send`: the affinity is restored for the calling thread.
    _own: PhantomData<*const ()>,
}

impl AvoidedCpus {
    /// Leaves the CPUs. If there is no other CPU, the affinity remains unchanged.
    pub fn new(cpus: impl Into<CpuSet>) -> Self {
        let cpus = cpus.into();
        let before = affinity_of(0).ok().filter(|before| {
            let rest = before.without(&cpus);
            rest != *before && !rest.is_empty() && set_affinity(&mask_of(&rest)).is_ok()
        });
        Self { before, _own: PhantomData }
    }
}

impl Drop for AvoidedCpus {
    fn drop(&mut self) {
        // Fails if the CPUs are offline by now; the kernel then has chosen others.
        let _ = self.before.as_ref().map(|before| set_affinity(&mask_of(before)));
    }
}

/// Sets `SCHED_FIFO` with this priority (1 to 99) for the calling thread: only interrupts and
/// tasks of higher priority preempt it. Its child threads are ordinary (reset on fork).
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

/// Sets `SCHED_FIFO` for a thread of any process, as [`outrank`]; 0 is the calling thread.
///
/// # Errors
/// The kernel's error: `EPERM` without the privilege, `ESRCH`, `EINVAL`.
pub fn outrank_thread(tid: u32, priority: u8) -> io::Result<()> {
    set_policy(tid, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, priority)
}

pub(crate) fn set_fifo(priority: u8) -> io::Result<()> {
    outrank_thread(0, priority)
}

/// Sets `SCHED_FIFO` for the calling thread and for its future children.
pub(crate) fn set_inherited_fifo(priority: u8) -> io::Result<()> {
    set_policy(0, libc::SCHED_FIFO, priority)
}

/// Sets the policy and priority of a thread of any process; 0 is the calling thread.
pub(crate) fn set_policy(tid: u32, policy: libc::c_int, priority: u8) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: i32::from(priority) };
    // SAFETY: `parameters` outlives the call, which only reads it.
    let failed =
        unsafe { libc::sched_setscheduler(number(tid), policy, &raw const parameters) };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The CPU on which the calling thread runs at this moment.
pub fn current_cpu() -> Option<Cpu> {
    // SAFETY: takes no arguments and accesses no memory of this process.
    let cpu = unsafe { libc::sched_getcpu() };
    u32::try_from(cpu).ok().map(Cpu::new)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a pinned thread runs on its CPU, for each allowed CPU.
    #[test]
    fn pinned_threads_stay() {
        let facts = facts::Facts::read(&facts::Root::live());
        for cpu in facts.cpus.allowed.get().unwrap().iter() {
            let result = std::thread::spawn(move || pin(cpu).map(|()| current_cpu()));
            assert_eq!(result.join().unwrap().unwrap(), Some(cpu));
        }
    }

    /// Check that a thread leaves a CPU until the value is dropped, and stays on its only CPU.
    #[test]
    fn avoided_cpus() {
        let facts = facts::Facts::read(&facts::Root::live());
        let cpus = facts.cpus.allowed.get().unwrap().clone();
        let result = std::thread::spawn(move || {
            let (cpu, before) = (cpus.first().unwrap(), affinity_of(0).unwrap());
            let avoided = AvoidedCpus::new(cpu);
            let during = affinity_of(0).unwrap();
            drop(avoided);
            assert_eq!(affinity_of(0).unwrap(), before);
            pin(cpu).unwrap();
            drop(AvoidedCpus::new(cpu));
            assert_eq!(current_cpu(), Some(cpu));
            (cpus.len() > 1, during != before)
        });
        let (has_others, has_left) = result.join().unwrap();
        assert_eq!(has_others, has_left);
    }

    /// Check that a CPU beyond any machine's is rejected, not truncated to 1024.
    #[test]
    fn no_such_cpu() {
        let refused = std::thread::spawn(|| pin(Cpu::new(60_000))).join().unwrap();
        assert_eq!(refused.unwrap_err().kind(), Kind::Cpuset);
    }

    /// Check that priorities outside 1 to 99 are rejected for every user.
    #[test]
    fn invalid_priorities() {
        let refused = std::thread::spawn(|| outrank(100)).join().unwrap();
        assert!(refused.is_err());
    }
}
