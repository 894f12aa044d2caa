//! The processes of `slices`: some spin, others sleep again and again.
//!
//! They are forked from this process, wait at a gate until all are there, and do nothing but
//! their work from then on: a spinner's loop makes no system call, and tells how far it is
//! through memory that it shares with this process. They have no file of this process open, no
//! signal but `SIGKILL` reaches them, and they end with the thread that forked them, however
//! that ends (`PR_SET_PDEATHSIG`).
//!
//! Processes and not threads, for that is what competes on most machines: a switch between two
//! of them changes the address space, too.

use std::io;
use std::mem::zeroed;
use std::ptr;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use recording::{Policy, Role};
use rustix::process::{Resource, getrlimit};
use rustix::thread::futex;
use units::{CpuSet, Helped, Nanos};

use crate::Error;
use crate::latency::alarms::now;
use crate::memory::Memory;
use crate::thread::block_signals;
use crate::timespec::parts;

/// A name's length, its end included (`TASK_COMM_LEN` in `include/linux/sched.h`).
const NAME: usize = 16;

/// What one process is to do.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    /// No other one has it; `ps` shows it.
    pub(crate) name: String,
    pub(crate) work: Work,
    /// Where it may run.
    pub(crate) cpus: CpuSet,
    pub(crate) policy: Policy,
    pub(crate) nice: i8,
}

/// What a process does until it is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Work {
    /// Uses all the time that it gets.
    Spin,
    /// The same, but after so many passes it asks the kernel how much time it has used.
    Ask(u32),
    /// Sleeps that long, then works that long, again and again.
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

/// What a process tells: a cache line of its own, so that none waits for another's.
#[repr(C, align(64))]
struct Line {
    /// Passes of a spinner's loop; times that a sleeper woke up.
    passes: AtomicU64,
}

/// The gate, and everybody's line.
struct Shared {
    // Where the others are.
    _memory: Memory,
    gate: *const AtomicU32,
    lines: *const Line,
    count: usize,
}

impl Shared {
    fn new(count: usize) -> io::Result<Self> {
        let memory = Memory::shared((count + 1) * size_of::<Line>())?;
        let first = memory.start();
        // SAFETY: there is room for one line more than there are processes.
        let lines = unsafe { first.add(size_of::<Line>()) };
        Ok(Self { gate: first.cast(), lines: lines.cast(), count, _memory: memory })
    }

    fn gate(&self) -> &AtomicU32 {
        // SAFETY: it is within the mapping, which is there as long as this is; zero is a
        // valid one, and nobody has another kind of reference to it.
        unsafe { &*self.gate }
    }

    fn line(&self, place: usize) -> &Line {
        let place = place.min(self.count.saturating_sub(1));
        // SAFETY: as for the gate; there are `count` lines, at least one.
        unsafe { &*self.lines.add(place) }
    }

    fn open(&self) {
        self.gate().store(1, Ordering::Release);
        // It fails for a bad address only.
        let _ = futex::wake(self.gate(), futex::Flags::empty(), u32::MAX >> 1);
    }
}

/// Processes that are at work, until this is dropped: all are killed then.
pub(crate) struct Crowd {
    shared: Shared,
    pids: Vec<libc::pid_t>,
}

impl Crowd {
    /// Starts them all; none works before all are there and have what they are to have.
    ///
    /// # Errors
    /// `Kind::System` where there is no room for so many, with the limits that there are;
    /// `Kind::Isolate` where they may not be scheduled so.
    pub(crate) fn start(members: &[Member]) -> Result<Self, Error> {
        let shared = Shared::new(members.len());
        let shared =
            shared.map_err(|error| Error::system("failed to share memory", error))?;
        let mut crowd = Self { shared, pids: Vec::with_capacity(members.len()) };
        for (place, member) in members.iter().enumerate() {
            let pid = fork(&crowd.shared, place, member)
                .map_err(|error| too_many(place, members.len(), error))?;
            crowd.pids.push(pid);
            prepare(pid, member)?;
        }
        crowd.shared.open();
        Ok(crowd)
    }

    /// The processes' numbers, in their order.
    pub(crate) fn pids(&self) -> &[libc::pid_t] {
        &self.pids
    }

    /// How far one is.
    pub(crate) fn passes(&self, place: usize) -> u64 {
        self.shared.line(place).passes.load(Ordering::Relaxed)
    }

    /// Whether all have begun.
    pub(crate) fn is_at_work(&self) -> bool {
        (0..self.pids.len()).all(|place| self.passes(place) > 0)
    }

    /// One that has ended though nobody told it to.
    pub(crate) fn ended(&self) -> Option<usize> {
        self.pids.iter().position(|&pid| has_ended(pid))
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        for &pid in &self.pids {
            // SAFETY: takes numbers only; it was not waited for, so the number is its own.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        for &pid in &self.pids {
            // SAFETY: takes numbers, and no place for the status.
            unsafe { libc::waitpid(pid, ptr::null_mut(), 0) };
        }
    }
}

fn has_ended(pid: libc::pid_t) -> bool {
    // SAFETY: all of it are numbers.
    let mut info: libc::siginfo_t = unsafe { zeroed() };
    let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    let id = libc::id_t::try_from(pid).unwrap_or(0);
    // SAFETY: `info` outlives the call, which fills it; with WNOWAIT nothing is reaped.
    let failed = unsafe { libc::waitid(libc::P_PID, id, &raw mut info, how) };
    // SAFETY: the kernel fills this field, and leaves it zero for one that has not ended.
    failed != 0 || unsafe { info.si_pid() } != 0
}

/// Gives a process its name's work, its CPUs and its place among others.
fn prepare(pid: libc::pid_t, member: &Member) -> Result<(), Error> {
    let tid = u32::try_from(pid).unwrap_or(0);
    let failed =
        |why| Error::system(format!("failed to set the CPUs of {}", member.name), why);
    isolate::restrict_thread(tid, &member.cpus).map_err(failed)?;
    isolate::set_ordinary(tid, member.policy == Policy::Batch, member.nice)?;
    Ok(())
}

/// A copy of this process that does that work.
fn fork(shared: &Shared, place: usize, member: &Member) -> io::Result<libc::pid_t> {
    let mut name = [0_u8; NAME];
    for (to, from) in name.iter_mut().take(NAME - 1).zip(member.name.bytes()) {
        *to = from;
    }
    let parent = libc::pid_t::try_from(std::process::id()).unwrap_or(0);
    // SAFETY: the child makes only system calls and touches only what was made before.
    match unsafe { libc::fork() } {
        0 => live(shared, place, member.work, &name, parent),
        -1 => Err(io::Error::last_os_error()),
        pid => Ok(pid),
    }
}

/// A process's whole life. Other threads of its parent are not there any more, whatever they
/// held: so nothing here allocates, locks or prints.
fn live(
    shared: &Shared,
    place: usize,
    work: Work,
    name: &[u8; NAME],
    parent: libc::pid_t,
) -> ! {
    block_signals();
    // SAFETY: numbers, and a name that ends with a zero and outlives the call. Where a kernel
    // lacks close_range (before 5.9) files stay open, which is no harm while the parent lives.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::prctl(libc::PR_SET_NAME, name.as_ptr());
        libc::syscall(libc::SYS_close_range, 0, u32::MAX, 0);
        // The parent may have ended before it could be tied to.
        if libc::getppid() != parent {
            libc::_exit(1);
        }
    }
    while shared.gate().load(Ordering::Acquire) == 0 {
        // Whatever comes of it, the gate is looked at.
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
    // SAFETY: all of it are numbers.
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
        // SAFETY: `length` outlives the call, which only reads it; what is left is not told.
        unsafe { libc::nanosleep(&raw const length, ptr::null_mut()) };
        passes = passes.wrapping_add(1);
        line.passes.store(passes, Ordering::Relaxed);
        if !burst.is_zero() {
            let until = now() + burst;
            while now() < until {}
        }
    }
}

/// Why no more processes could be started, with what bounds them (`fork(2)`, EAGAIN).
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

    fn members(works: &[Work]) -> Vec<Member> {
        let facts = facts::Facts::read(&facts::Root::live());
        let cpus = facts.cpus.allowed.get().unwrap().clone();
        let member = |(place, &work): (usize, &Work)| Member {
            name: format!("crowd/{place}"),
            work,
            cpus: cpus.clone(),
            policy: Policy::Batch,
            nice: 1,
        };
        works.iter().enumerate().map(member).collect()
    }

    fn wait_for(what: &str, is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while !is_so() {
            assert!(Instant::now() < deadline, "{what}");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Check that processes have their names, policy and nice value, work, and are gone
    /// afterwards.
    #[test]
    fn they_work_and_go() {
        let sleep = Work::Sleep(Nanos::from_micros(100), Nanos::from_micros(10));
        let crowd = Crowd::start(&members(&[Work::Spin, sleep])).unwrap();
        wait_for("work", || crowd.is_at_work());
        let pids = crowd.pids().to_vec();
        for (place, pid) in pids.iter().enumerate() {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
            assert!(stat.contains(&format!("(crowd/{place})")), "{stat}");
            let words: Vec<&str> = stat.rsplit(')').next().unwrap().split(' ').collect();
            // The nice value is the 19th word of stat(5), the policy the 41st.
            assert_eq!((words[17], words[39]), ("1", "3"), "{stat}");
            let open = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().count();
            assert_eq!(open, 0);
        }
        assert_eq!(crowd.ended(), None);
        drop(crowd);
        for pid in pids {
            assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
        }
    }

    /// Check that one that was killed by somebody is noticed.
    #[test]
    fn one_that_is_gone() {
        let crowd = Crowd::start(&members(&[Work::Spin, Work::Spin])).unwrap();
        // SAFETY: takes numbers only.
        unsafe { libc::kill(crowd.pids()[1], libc::SIGKILL) };
        wait_for("end", || crowd.ended() == Some(1));
    }

    /// Check that processes end with the thread that started them.
    #[test]
    fn they_end_with_their_thread() {
        let start = || {
            let crowd = Crowd::start(&members(&[Work::Spin])).unwrap();
            let pid = crowd.pids()[0];
            // Before it has begun it is not tied to the thread, only to the process.
            wait_for("work", || crowd.is_at_work());
            std::mem::forget(crowd);
            pid
        };
        let pid = std::thread::spawn(start).join().unwrap();
        wait_for("end", || has_ended(pid));
    }

    /// Check that a limit that is too low is told, with the limit, and that nobody is left.
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
