//! A thread's seat: one CPU to itself, before ordinary tasks, until it gets up; it then has
//! the affinity, policy and priority that it had.
//!
//! `sched_setaffinity(2)`, `sched_setattr(2)` (since 3.14), which takes back whatever
//! `sched_getattr(2)` told: ordinary tasks' nice value and deadlines, too. A thread may be let
//! go by another one of its process; one that has ended has nothing to be given back.
//!
//! A process that was forked has a copy of the seat, and gives nothing back.
//!
//! Cannot see what somebody else does to the thread meanwhile: it is undone.

use std::io;
use std::mem::{size_of, zeroed};

use rustix::thread::gettid;
use units::{Cpu, CpuSet};

use crate::error::{Error, Kind};
use crate::task::{Stat, Task};
use crate::thread::{affinity_of, mask_of, outrank, pin, set_affinity_of};

/// `SCHED_FLAG_RESET_ON_FORK` in `include/uapi/linux/sched.h`.
const RESET_ON_FORK: u64 = 1;

/// A thread that has its CPU, until this is dropped.
#[derive(Debug)]
pub struct Seat {
    thread: Task,
    process: u32,
    /// Where it might run; `None` where it might run on this CPU only, so that nothing was
    /// changed: a partition's threads are given back by the partition.
    affinity: Option<CpuSet>,
    /// How it was scheduled; `None` where that was left as it was.
    schedule: Option<Schedule>,
}

impl Seat {
    /// Takes a CPU for the calling thread, and that `SCHED_FIFO` priority where there is one.
    ///
    /// # Errors
    /// Those of [`pin`] and [`outrank`]; the thread is then as it was. `Kind::System` where
    /// the kernel does not say how it was.
    pub fn take(cpu: Cpu, fifo: Option<u8>) -> Result<Self, Error> {
        let thread = own().ok_or_else(hidden)?;
        let before = affinity_of(0).map_err(unknown)?;
        let only = before.len() == 1 && before.contains(cpu);
        let schedule = fifo.map(|_| Schedule::of(0)).transpose().map_err(unknown)?;
        let process = std::process::id();
        let mut seat = Self { thread, process, affinity: None, schedule: None };
        if !only {
            pin(cpu)?;
            seat.affinity = Some(before);
        }
        if let Some(priority) = fifo {
            // Where this fails, the seat is dropped, and so the affinity given back.
            outrank(priority)?;
            seat.schedule = schedule;
        }
        Ok(seat)
    }

    /// Takes that `SCHED_FIFO` priority for the calling thread, on whichever CPU it is.
    ///
    /// # Errors
    /// Those of [`outrank`]; `Kind::System` where the kernel does not say how it was.
    pub fn above(fifo: u8) -> Result<Self, Error> {
        let schedule = Schedule::of(0).map_err(unknown)?;
        let (thread, process) = (own().ok_or_else(hidden)?, std::process::id());
        outrank(fifo)?;
        Ok(Self { thread, process, affinity: None, schedule: Some(schedule) })
    }

    /// Whether the calling thread has this seat.
    pub fn is_own(&self) -> bool {
        // A name may change.
        let same =
            |now: &Task| (now.tid, now.started) == (self.thread.tid, self.thread.started);
        own().as_ref().is_some_and(same)
    }

    /// Gives the thread back what it had.
    ///
    /// # Errors
    /// `Kind::System` where the kernel refuses: a CPU is gone, a privilege was given up.
    pub fn leave(mut self) -> Result<(), Error> {
        self.give_back()
    }

    fn give_back(&mut self) -> Result<(), Error> {
        let (schedule, affinity) = (self.schedule.take(), self.affinity.take());
        if self.process != std::process::id() || self.thread.check().is_err() {
            return Ok(());
        }
        let tid = self.thread.tid;
        let scheduled = schedule.map_or(Ok(()), |schedule| schedule.give(tid));
        let moved = affinity.map_or(Ok(()), |cpus| set_affinity_of(tid, &mask_of(&cpus)));
        match scheduled.and(moved) {
            // It ended in between.
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

impl Drop for Seat {
    fn drop(&mut self) {
        // There is nobody to tell; who wants to know calls `leave`.
        let _ = self.give_back();
    }
}

/// The calling thread. A process has its first thread's number, others have their own.
pub(crate) fn own() -> Option<Task> {
    let tid = u32::try_from(gettid().as_raw_nonzero().get()).ok()?;
    Stat::of(tid).map(|stat| stat.task)
}

/// How a thread is scheduled.
struct Schedule(libc::sched_attr);

impl std::fmt::Debug for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(told) = self;
        write!(f, "policy {} priority {}", told.sched_policy, told.sched_priority)
    }
}

impl Schedule {
    /// What the kernel says of a thread; 0 is the calling one.
    fn of(tid: u32) -> io::Result<Self> {
        // SAFETY: all of it are numbers.
        let mut told: libc::sched_attr = unsafe { zeroed() };
        let (size, none) = (size_of::<libc::sched_attr>(), 0);
        // SAFETY: the kernel writes at most `size` bytes to `told`.
        let failed = unsafe {
            libc::syscall(libc::SYS_sched_getattr, tid, &raw mut told, size, none)
        };
        if failed == 0 { Ok(Self(told)) } else { Err(io::Error::last_os_error()) }
    }

    /// Lets a thread be scheduled so again.
    fn give(mut self, tid: u32) -> io::Result<()> {
        match self.set(tid) {
            // Without privileges a thread keeps it that its children are ordinary.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.0.sched_flags |= RESET_ON_FORK;
                self.set(tid)
            }
            done => done,
        }
    }

    fn set(&self, tid: u32) -> io::Result<()> {
        let Self(told) = self;
        let none = 0;
        // SAFETY: `told` is as long as it says, outlives the call, and is only read.
        let failed = unsafe {
            libc::syscall(libc::SYS_sched_setattr, tid, &raw const *told, none)
        };
        if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::current_cpu;

    /// What a second way of asking says of the calling thread: `sched_getscheduler(2)`, the
    /// nice value of `getpriority(2)`, and the kernel's own list of its CPUs.
    fn asked() -> (i32, i32, String) {
        // SAFETY: both take numbers only.
        let (policy, nice) = unsafe {
            (libc::sched_getscheduler(0), libc::getpriority(libc::PRIO_PROCESS, 0))
        };
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let list =
            status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        (policy, nice, list.unwrap().trim().to_owned())
    }

    /// A thread of its own that is nicer than others, so that there is something to lose.
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

    /// Check that a thread is where it sat down, and has what it had when it gets up.
    #[test]
    fn as_it_was() {
        on_a_nice_thread(|| {
            let (before, cpu) = (asked(), last_cpu());
            let seat = Seat::take(cpu, None).unwrap();
            assert!(seat.is_own());
            assert_eq!((current_cpu(), asked().2), (Some(cpu), cpu.to_string()));
            seat.leave().unwrap();
            assert_eq!(asked(), before);
        });
    }

    /// Check that a thread that outranked others is ordinary again, and as nice as before.
    #[test]
    fn ordinary_again() {
        if let Err(why) = crate::may_take_turns() {
            println!("skipped: ordinary_again: {why}");
            return;
        }
        on_a_nice_thread(|| {
            let before = asked();
            let seat = Seat::take(last_cpu(), Some(1)).unwrap();
            assert_eq!(asked().0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK);
            drop(seat);
            assert_eq!(asked(), before);
        });
    }

    /// Check that what is refused leaves the thread as it was.
    #[test]
    fn refusals_change_nothing() {
        on_a_nice_thread(|| {
            let before = asked();
            assert!(Seat::take(last_cpu(), Some(100)).is_err());
            assert_eq!(
                Seat::take(Cpu::new(60_000), None).unwrap_err().kind(),
                Kind::Cpuset
            );
            assert_eq!(asked(), before);
        });
    }

    /// Check that a process that was forked leaves its parent's thread where it is.
    #[test]
    fn forks_give_nothing_back() {
        on_a_nice_thread(|| {
            let cpu = last_cpu();
            let mut seat = Seat::take(cpu, None).unwrap();
            seat.process = 0;
            drop(seat);
            assert_eq!(asked().2, cpu.to_string());
        });
    }

    /// Check that another thread may let one go, and that one that has ended is no failure.
    #[test]
    fn let_go_by_another() {
        let (tell, told) = std::sync::mpsc::channel();
        let (go, gone) = std::sync::mpsc::channel::<()>();
        let sitter = std::thread::spawn(move || {
            let before = asked();
            tell.send(Seat::take(last_cpu(), None).unwrap()).unwrap();
            gone.recv().unwrap();
            (before, asked())
        });
        let seat: Seat = told.recv().unwrap();
        assert!(!seat.is_own());
        seat.leave().unwrap();
        go.send(()).unwrap();
        let (before, after) = sitter.join().unwrap();
        assert_eq!(before, after);

        let ended = std::thread::spawn(|| Seat::take(last_cpu(), None).unwrap());
        ended.join().unwrap().leave().unwrap();
    }
}
