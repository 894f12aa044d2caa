//! A thread that is pinned to one CPU, optionally with real-time priority; its affinity, policy and
//! priority are restored afterwards.
//!
//! `sched_setaffinity(2)`, `sched_setattr(2)` (since 3.14), which restores all attributes that
//! `sched_getattr(2)` returned, also the nice value and deadline parameters. Another thread of the
//! process can restore them; for a thread that has ended, nothing is restored.
//!
//! A forked process has a copy of the value, and restores nothing.
//!
//! Changes that others make to the thread in the meantime are not detected, and are overwritten.

use std::io;
use std::mem::{size_of, zeroed};

use rustix::thread::gettid;
use units::{Cpu, CpuSet};

use crate::error::{Error, Kind};
use crate::task::{Stat, Task};
use crate::thread::{affinity_of, mask_of, outrank, pin, set_affinity_of};

/// `SCHED_FLAG_RESET_ON_FORK` in `include/uapi/linux/sched.h`.
const RESET_ON_FORK: u64 = 1;

/// A thread that is pinned until this is dropped.
#[derive(Debug)]
pub struct PinnedThread {
    thread: Task,
    process: u32,
    /// The previous affinity; `None` if it was this CPU only, and so was not changed: that of a
    /// thread in a partition is restored with the partition.
    affinity: Option<CpuSet>,
    /// The previous policy and priority; `None` if they were not changed.
    schedule: Option<Schedule>,
}

impl PinnedThread {
    /// Pins the calling thread to a CPU, with a `SCHED_FIFO` priority if `fifo` is set.
    ///
    /// # Errors
    /// Those of [`pin`] and [`outrank`]; the thread is then unchanged. `Kind::System` if its
    /// current attributes cannot be read.
    pub fn new(cpu: Cpu, fifo: Option<u8>) -> Result<Self, Error> {
        let thread = own().ok_or_else(hidden)?;
        let before = affinity_of(0).map_err(unknown)?;
        let only = before.len() == 1 && before.contains(cpu);
        let schedule = fifo.map(|_| Schedule::of(0)).transpose().map_err(unknown)?;
        let process = std::process::id();
        let mut pinned = Self { thread, process, affinity: None, schedule: None };
        if !only {
            pin(cpu)?;
            pinned.affinity = Some(before);
        }
        if let Some(priority) = fifo {
            // If this fails, dropping `pinned` restores the affinity.
            outrank(priority)?;
            pinned.schedule = schedule;
        }
        Ok(pinned)
    }

    /// Sets a `SCHED_FIFO` priority for the calling thread without pinning it.
    ///
    /// # Errors
    /// Those of [`outrank`]; `Kind::System` if its current attributes cannot be read.
    pub fn raise_priority(fifo: u8) -> Result<Self, Error> {
        let schedule = Schedule::of(0).map_err(unknown)?;
        let (thread, process) = (own().ok_or_else(hidden)?, std::process::id());
        outrank(fifo)?;
        Ok(Self { thread, process, affinity: None, schedule: Some(schedule) })
    }

    /// Whether this is the calling thread.
    pub fn is_own(&self) -> bool {
        // The name may have changed.
        let same =
            |now: &Task| (now.tid, now.started) == (self.thread.tid, self.thread.started);
        own().as_ref().is_some_and(same)
    }

    /// Restores the thread's attributes.
    ///
    /// # Errors
    /// `Kind::System` if the kernel refuses: a CPU is offline, or a privilege was dropped.
    pub fn restore(mut self) -> Result<(), Error> {
        self.restore_attributes()
    }

    fn restore_attributes(&mut self) -> Result<(), Error> {
        let (schedule, affinity) = (self.schedule.take(), self.affinity.take());
        if self.process != std::process::id() || self.thread.check().is_err() {
            return Ok(());
        }
        let tid = self.thread.tid;
        let scheduled = schedule.map_or(Ok(()), |schedule| schedule.set_again(tid));
        let moved = affinity.map_or(Ok(()), |cpus| set_affinity_of(tid, &mask_of(&cpus)));
        match scheduled.and(moved) {
            // The thread has ended in between.
            Err(error) if error.raw_os_error() != Some(libc::ESRCH) => {
                let text = format!("failed to restore the scheduling of {}", self.thread);
                Err(Error::new(Kind::System, text).caused_by(error))
            }
            _ => Ok(()),
        }
    }
}

fn hidden() -> Error {
    Error::new(Kind::System, "/proc does not show this thread")
}

fn unknown(error: io::Error) -> Error {
    Error::new(Kind::System, "failed to read how this thread is scheduled")
        .caused_by(error)
}

impl Drop for PinnedThread {
    fn drop(&mut self) {
        // Errors cannot be reported here; `restore` returns them.
        let _ = self.restore_attributes();
    }
}

/// The calling thread. The ID of a process's first thread is the PID.
pub(crate) fn own() -> Option<Task> {
    let tid = u32::try_from(gettid().as_raw_nonzero().get()).ok()?;
    Stat::of(tid).map(|stat| stat.task)
}

/// The scheduling attributes of a thread.
struct Schedule(libc::sched_attr);

impl std::fmt::Debug for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(attributes) = self;
        write!(
            f,
            "policy {} priority {}",
            attributes.sched_policy, attributes.sched_priority
        )
    }
}

impl Schedule {
    /// Reads the attributes of a thread; 0 is the calling thread.
    fn of(tid: u32) -> io::Result<Self> {
        // SAFETY: all fields are numbers.
        let mut attributes: libc::sched_attr = unsafe { zeroed() };
        let (size, none) = (size_of::<libc::sched_attr>(), 0);
        // SAFETY: the kernel writes at most `size` bytes to `attributes`.
        let failed = unsafe {
            libc::syscall(libc::SYS_sched_getattr, tid, &raw mut attributes, size, none)
        };
        if failed == 0 { Ok(Self(attributes)) } else { Err(io::Error::last_os_error()) }
    }

    /// Sets the attributes of a thread.
    fn set_again(mut self, tid: u32) -> io::Result<()> {
        match self.set(tid) {
            // Without privileges, a thread cannot clear the reset-on-fork flag.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.0.sched_flags |= RESET_ON_FORK;
                self.set(tid)
            }
            done => done,
        }
    }

    fn set(&self, tid: u32) -> io::Result<()> {
        let Self(attributes) = self;
        let none = 0;
        // SAFETY: `attributes` has its size, outlives the call, and is only read.
        let failed = unsafe {
            libc::syscall(libc::SYS_sched_setattr, tid, &raw const *attributes, none)
        };
        if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::current_cpu;

    /// The attributes of the calling thread from other sources: `sched_getscheduler(2)`, the nice
    /// value of `getpriority(2)`, and the kernel's list of its CPUs.
    fn attributes() -> (i32, i32, String) {
        // SAFETY: both take numbers only.
        let (policy, nice) = unsafe {
            (libc::sched_getscheduler(0), libc::getpriority(libc::PRIO_PROCESS, 0))
        };
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let list =
            status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        (policy, nice, list.unwrap().trim().to_owned())
    }

    /// Runs a function in a thread with a nice value, so that a wrong nice value is detected.
    fn on_a_nice_thread<T: Send>(life: impl FnOnce() -> T + Send) -> T {
        let nicer = || {
            // SAFETY: takes numbers only.
            assert_eq!(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 7) }, 0);
            life()
        };
        std::thread::scope(|scope| scope.spawn(nicer).join().unwrap())
    }

    fn last_cpu() -> Cpu {
        affinity_of(0).unwrap().iter().last().unwrap()
    }

    /// Check that a thread is pinned, and that its attributes are restored.
    #[test]
    fn attributes_are_restored() {
        on_a_nice_thread(|| {
            let (before, cpu) = (attributes(), last_cpu());
            let pinned = PinnedThread::new(cpu, None).unwrap();
            assert!(pinned.is_own());
            assert_eq!((current_cpu(), attributes().2), (Some(cpu), cpu.to_string()));
            pinned.restore().unwrap();
            assert_eq!(attributes(), before);
        });
    }

    /// Check that a real-time thread becomes an ordinary one with its previous nice value.
    #[test]
    fn ordinary_again() {
        if let Err(why) = crate::may_order_threads() {
            println!("skipped: ordinary_again: {why}");
            return;
        }
        on_a_nice_thread(|| {
            let before = attributes();
            let pinned = PinnedThread::new(last_cpu(), Some(1)).unwrap();
            assert_eq!(attributes().0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK);
            drop(pinned);
            assert_eq!(attributes(), before);
        });
    }

    /// Check that an error leaves the thread unchanged.
    #[test]
    fn refusals_change_nothing() {
        on_a_nice_thread(|| {
            let before = attributes();
            assert!(PinnedThread::new(last_cpu(), Some(100)).is_err());
            assert_eq!(
                PinnedThread::new(Cpu::new(60_000), None).unwrap_err().kind(),
                Kind::Cpuset
            );
            assert_eq!(attributes(), before);
        });
    }

    /// Check that a forked process does not change its parent's thread.
    #[test]
    fn forks_restore_nothing() {
        on_a_nice_thread(|| {
            let cpu = last_cpu();
            let mut pinned = PinnedThread::new(cpu, None).unwrap();
            pinned.process = 0;
            drop(pinned);
            assert_eq!(attributes().2, cpu.to_string());
        });
    }

    /// Check that another thread can restore the attributes, and that a thread that has ended is no
    /// error.
    #[test]
    fn restored_by_another_thread() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let (end, is_ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            let before = attributes();
            sender.send(PinnedThread::new(last_cpu(), None).unwrap()).unwrap();
            is_ended.recv().unwrap();
            (before, attributes())
        });
        let pinned: PinnedThread = receiver.recv().unwrap();
        assert!(!pinned.is_own());
        pinned.restore().unwrap();
        end.send(()).unwrap();
        let (before, after) = thread.join().unwrap();
        assert_eq!(before, after);

        let ended = std::thread::spawn(|| PinnedThread::new(last_cpu(), None).unwrap());
        ended.join().unwrap().restore().unwrap();
    }
}
