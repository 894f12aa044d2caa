//! The processes of `slices`: some spin, others sleep periodically.
//!
//! They are forked from this process, wait at a gate until all exist, and then only do their work:
//! a spinner's loop makes no system call, and reports its progress through memory that it shares
//! with this process. They have no file of this process open, block all signals but `SIGKILL`, and
//! end with the thread that forked them, however that ends (`PR_SET_PDEATHSIG`).
//!
//! They are processes and not threads, as on most machines: a switch between two of them changes
//! the address space, too.

use std::io;
use std::mem::zeroed;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use recording::{Policy, Role};
use rustix::process::{Resource, getrlimit};
use rustix::thread::futex;
use units::{CpuSet, Helped, Nanos};

use crate::Error;
use crate::latency::timers::now;
use crate::threads::memory::Memory;
use crate::threads::thread::block_signals;
use crate::time::timespec::parts;

/// The length of a name with its terminating zero (`TASK_COMM_LEN` in `include/linux/sched.h`).
const NAME: usize = 16;

/// The configuration of one process.
#[derive(Debug, Clone)]
pub(crate) struct WorkerSpec {
    /// Unique; `ps` shows it.
    pub(crate) name: String,
    pub(crate) work: Work,
    /// The allowed CPUs.
    pub(crate) cpus: CpuSet,
    pub(crate) policy: Policy,
    pub(crate) nice: i8,
}

/// What a process does until it is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Uses all CPU time that it gets.
    Spin,
    /// The same, with a call of getrusage(2) after that many passes.
    Ask(u32),
    /// Sleeps that long, then works that long, repeatedly.
    Sleep(Nanos, Nanos),
}

impl Work {
    pub(crate) fn role(self) -> Role {
        match self {
            Self::Spin | Self::Ask(_) => Role::Spinner,
            Self::Sleep(..) => Role::Sleeper,
        }
    }
}

/// The progress of a process, in a cache line of its own, so that none waits for another's.
#[repr(C, align(64))]
struct Line {
    /// Passes of a spinner's loop; wake-ups of a sleeper.
    passes: AtomicU64,
}

/// The gate, and the line of each process.
struct Shared {
    // The mapping that contains the others.
    _memory: Memory,
    gate: *const AtomicU32,
    lines: *const Line,
    count: usize,
}

impl Shared {
    fn new(count: usize) -> io::Result<Self> {
        let memory = Memory::shared((count + 1) * size_of::<Line>())?;
        let first = memory.start();
        // SAFETY: there is space for one line more than there are processes.
        let lines = unsafe { first.add(size_of::<Line>()) };
        Ok(Self { gate: first.cast(), lines: lines.cast(), count, _memory: memory })
    }

    fn gate(&self) -> &AtomicU32 {
        // SAFETY: it is within the mapping, which lives as long as this; zero is a valid value, and
        // no other kind of reference to it exists.
        unsafe { &*self.gate }
    }

    fn line(&self, place: usize) -> &Line {
        let place = place.min(self.count.saturating_sub(1));
        // SAFETY: as for the gate; there are `count` lines, at least one.
        unsafe { &*self.lines.add(place) }
    }

    fn open(&self) {
        self.gate().store(1, Ordering::Release);
        // It fails for an invalid address only.
        let _ = futex::wake(self.gate(), futex::Flags::empty(), u32::MAX >> 1);
    }
}

/// Running processes, all of which are killed when this is dropped.
pub(crate) struct Workers {
    shared: Shared,
    pids: Vec<libc::pid_t>,
}

impl Workers {
    /// Starts them all, with that timer slack; none works before all exist and are configured.
    ///
    /// # Errors
    /// `Kind::System` if so many cannot be started, with the limits that apply; `Kind::Isolate` if
    /// they may not be scheduled so.
    pub(crate) fn start(specs: &[WorkerSpec], slack: Nanos) -> Result<Self, Error> {
        let shared = Shared::new(specs.len());
        let shared =
            shared.map_err(|error| Error::system("failed to share memory", error))?;
        let mut workers = Self { shared, pids: Vec::with_capacity(specs.len()) };
        for (place, spec) in specs.iter().enumerate() {
            let pid = fork(&workers.shared, place, spec, slack)
                .map_err(|error| too_many(place, specs.len(), error))?;
            workers.pids.push(pid);
            prepare(pid, spec)?;
        }
        workers.shared.open();
        Ok(workers)
    }

    /// The PIDs, in the order of the processes.
    pub(crate) fn pids(&self) -> &[libc::pid_t] {
        &self.pids
    }

    /// The progress of one.
    pub(crate) fn passes(&self, place: usize) -> u64 {
        self.shared.line(place).passes.load(Ordering::Relaxed)
    }

    pub(crate) fn is_at_work(&self) -> bool {
        (0..self.pids.len()).all(|place| self.passes(place) > 0)
    }

    /// One that has ended, though this process did not kill it.
    pub(crate) fn ended(&self) -> Option<usize> {
        self.pids.iter().position(|&pid| has_ended(pid))
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        for &pid in &self.pids {
            // SAFETY: takes numbers only; it was not waited for, so the PID is still its own.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        for &pid in &self.pids {
            // SAFETY: takes numbers, and a null pointer for the status.
            unsafe { libc::waitpid(pid, ptr::null_mut(), 0) };
        }
    }
}

fn has_ended(pid: libc::pid_t) -> bool {
    // SAFETY: all of its fields are numbers.
    let mut info: libc::siginfo_t = unsafe { zeroed() };
    let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    let id = libc::id_t::try_from(pid).unwrap_or(0);
    // SAFETY: `info` outlives the call, which fills it; with WNOWAIT nothing is reaped.
    let failed = unsafe { libc::waitid(libc::P_PID, id, &raw mut info, how) };
    // SAFETY: the kernel fills this field, and leaves it 0 for one that has not ended.
    failed != 0 || unsafe { info.si_pid() } != 0
}

/// Sets the CPUs, the policy and the nice value of a process.
fn prepare(pid: libc::pid_t, spec: &WorkerSpec) -> Result<(), Error> {
    let tid = u32::try_from(pid).unwrap_or(0);
    let failed =
        |why| Error::system(format!("failed to set the CPUs of {}", spec.name), why);
    isolate::restrict_thread(tid, &spec.cpus).map_err(failed)?;
    isolate::set_ordinary(tid, spec.policy == Policy::Batch, spec.nice)?;
    Ok(())
}

/// Forks a process that does that work.
fn fork(
    shared: &Shared,
    place: usize,
    spec: &WorkerSpec,
    slack: Nanos,
) -> io::Result<libc::pid_t> {
    let mut name = [0_u8; NAME];
    for (to, from) in name.iter_mut().take(NAME - 1).zip(spec.name.bytes()) {
        *to = from;
    }
    let parent = libc::pid_t::try_from(std::process::id()).unwrap_or(0);
    // SAFETY: the child makes only system calls and accesses only memory that existed before.
    match unsafe { libc::fork() } {
        0 => live(shared, place, spec.work, slack, &name, parent),
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(pid),
    }
}

/// A process's main function. It must not allocate, lock or print: other threads of its parent do
/// not exist in it, and may have held locks.
fn live(
    shared: &Shared,
    place: usize,
    work: Work,
    slack: Nanos,
    name: &[u8; NAME],
    parent: libc::pid_t,
) -> ! {
    block_signals();
    let slack = libc::c_ulong::try_from(slack.get()).unwrap_or(libc::c_ulong::MAX);
    // SAFETY: numbers, and a name that ends with a zero and outlives the call. On kernels without
    // close_range (before 5.9) files stay open, which is harmless while the parent lives.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::prctl(libc::PR_SET_TIMERSLACK, slack);
        libc::prctl(libc::PR_SET_NAME, name.as_ptr());
        libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0);
        // The parent may have ended before the prctl.
        if libc::getppid() != parent {
            libc::_exit(1);
        }
    }
    while shared.gate().load(Ordering::Acquire) == 0 {
        // The gate is checked, whether it failed or not.
        let _ = futex::wait(shared.gate(), futex::Flags::empty(), 0, None);
    }
    let line = shared.line(place);
    match work {
        Work::Spin => spin(line),
        Work::Ask(passes) => ask(line, passes),
        Work::Sleep(sleep, burst) => sleep_and_work(line, sleep, burst),
    }
}

fn spin(line: &Line) -> ! {
    let mut passes: u64 = 0;
    loop {
        passes = passes.wrapping_add(1);
        line.passes.store(passes, Ordering::Relaxed);
    }
}

fn ask(line: &Line, each: u32) -> ! {
    // SAFETY: all of its fields are numbers.
    let mut usage: libc::rusage = unsafe { zeroed() };
    let mut passes: u64 = 0;
    loop {
        for _ in 0..each {
            passes = passes.wrapping_add(1);
            line.passes.store(passes, Ordering::Relaxed);
        }
        // SAFETY: `usage` outlives the call, which fills it.
        unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    }
}

fn sleep_and_work(line: &Line, sleep: Nanos, burst: Nanos) -> ! {
    let (tv_sec, tv_nsec) = parts(sleep);
    let length = libc::timespec { tv_sec, tv_nsec };
    let mut passes: u64 = 0;
    loop {
        // SAFETY: `length` outlives the call, which only reads it; the remaining time is not
        // requested.
        unsafe { libc::nanosleep(&raw const length, ptr::null_mut()) };
        passes = passes.wrapping_add(1);
        line.passes.store(passes, Ordering::Relaxed);
        if !burst.is_zero() {
            let until = now() + burst;
            while now() < until {}
        }
    }
}

/// The error if no more processes could be started, with the limits that apply (`fork(2)`, EAGAIN).
fn too_many(started: usize, asked: usize, error: io::Error) -> Error {
    let text = format!("only {started} of {asked} processes could be started");
    if error.raw_os_error() == Some(libc::EAGAIN) {
        let limits = [
            ("ulimit -u", process_limit()),
            ("kernel.threads-max", first_line("/proc/sys/kernel/threads-max")),
            ("kernel.pid_max", first_line("/proc/sys/kernel/pid_max")),
            ("pids.max of the control group", group_limit()),
        ];
        let limits = limits
            .into_iter()
            .filter_map(|(name, limit)| limit.map(|limit| format!("{name} is {limit}")));
        let limits: Vec<String> = limits.collect();
        return Error::system(text, Helped::new(error, limits.join(", ")));
    }
    Error::system(text, error)
}

fn process_limit() -> Option<String> {
    getrlimit(Resource::Nproc).current.map(|limit| limit.to_string())
}

fn first_line(file: &str) -> Option<String> {
    let text = std::fs::read_to_string(file).ok()?;
    text.lines().next().map(str::to_owned)
}

fn group_limit() -> Option<String> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    first_line(&format!("/sys/fs/cgroup{group}/pids.max"))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    const SLACK: Nanos = Nanos::from_micros(70);

    fn specs(works: &[Work]) -> Vec<WorkerSpec> {
        let facts = facts::Facts::read(&facts::Root::live());
        let cpus = facts.cpus.allowed.get().unwrap().clone();
        let spec = |(place, &work): (usize, &Work)| WorkerSpec {
            name: format!("crowd/{place}"),
            work,
            cpus: cpus.clone(),
            policy: Policy::Batch,
            nice: 1,
        };
        works.iter().enumerate().map(spec).collect()
    }

    fn wait_for(what: &str, is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !is_so() {
            assert!(Instant::now() < deadline, "{what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Check the names, policy, nice value, timer slack and work of processes, and that none exists afterwards.
    #[test]
    fn they_work_and_go() {
        let sleep = Work::Sleep(Nanos::from_micros(100), Nanos::from_micros(10));
        let workers = Workers::start(&specs(&[Work::Spin, sleep]), SLACK).unwrap();
        wait_for("work", || workers.is_at_work());
        let pids = workers.pids().to_vec();
        for (place, pid) in pids.iter().enumerate() {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
            assert!(stat.contains(&format!("(crowd/{place})")), "{stat}");
            let words: Vec<&str> = stat.rsplit(')').next().unwrap().split(' ').collect();
            // The nice value is the 19th word of stat(5), the policy the 41st.
            assert_eq!((words[17], words[39]), ("1", "3"), "{stat}");
            let slack = std::fs::read_to_string(format!("/proc/{pid}/timerslack_ns"));
            match slack {
                Ok(slack) => assert_eq!(slack.trim(), "70000"),
                Err(why) => println!("skipped: the timer slack: {why}"),
            }
            let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
            assert_eq!(open, 0);
        }
        assert_eq!(workers.ended(), None);
        drop(workers);
        for pid in pids {
            assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
        }
    }

    /// Check that a process killed by another one is noticed.
    #[test]
    fn one_that_is_gone() {
        let workers = Workers::start(&specs(&[Work::Spin, Work::Spin]), SLACK).unwrap();
        // SAFETY: takes numbers only.
        unsafe { libc::kill(workers.pids()[1], libc::SIGKILL) };
        wait_for("end", || workers.ended() == Some(1));
    }

    /// Check that processes end with the thread that started them.
    #[test]
    fn they_end_with_their_thread() {
        let start = || {
            let workers = Workers::start(&specs(&[Work::Spin]), SLACK).unwrap();
            let pid = workers.pids()[0];
            // Before it has begun it is tied only to the process, not to the thread.
            wait_for("work", || workers.is_at_work());
            std::mem::forget(workers);
            pid
        };
        let pid = std::thread::spawn(start).join().unwrap();
        wait_for("end", || has_ended(pid));
    }

    /// Check that the error for too many processes names the limits.
    #[test]
    fn too_many_are_told() {
        let error = io::Error::from_raw_os_error(libc::EAGAIN);
        let text = units::chain(&too_many(7, 1_000, error));
        assert!(
            text.contains("only 7 of 1000") && text.contains("threads-max"),
            "{text}"
        );
        let text =
            units::chain(&too_many(7, 9, io::Error::from_raw_os_error(libc::ENOMEM)));
        assert!(!text.contains("threads-max"), "{text}");
    }
}
