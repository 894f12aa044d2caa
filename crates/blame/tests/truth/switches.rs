//! Context switches of known kind and number are reported, with their tasks and reasons.
//!
//! The expected values are from the tasks: they count their actions, and the kernel counts their
//! switches (`/proc/PID/status`). Most have real-time priorities, so that nothing else on this
//! machine interferes. All of this needs a kernel with BTF.

use std::io::{Read, Write};
use std::ops::RangeInclusive;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use blame::{Kind, SwitchWatch, WakerWatch};
use facts::{Facts, Root};
use recording::{Body, Code, CpuSwitches, Doubt, End, Stretch, Switches, WakersSpec};
use units::{Cpu, CpuSet, Nanos};

use crate::CPU;

/// Emulated guests take many times longer.
const RUN: Duration = Duration::from_millis(300);
/// Long enough for five slices of real-time tasks (`RR_TIMESLICE`, 100 ms); less than a second, of
/// which the kernel reserves a part for ordinary tasks.
const TURNS: Duration = Duration::from_millis(500);
const ROOM: u32 = 1 << 18;
/// Priorities of the spinner, of the task that interrupts it, and of the test.
const LOW: Class = (libc::SCHED_RR, 60);
const LOW_FIFO: Class = (libc::SCHED_FIFO, 60);
const HIGH: Class = (libc::SCHED_FIFO, 70);
/// With a nice value of -20, so that these processes get most of a busy CPU.
const ORDINARY: Class = (libc::SCHED_OTHER, 0);
const TESTER: u8 = 80;

type Class = (libc::c_int, libc::c_int);

/// A number that a process and the test share.
struct Shared(*mut AtomicU64);

impl Shared {
    fn new() -> Self {
        let (write, shared) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping of a page, which replaces no other; it is never unmapped.
        let page = unsafe {
            let flags = shared | libc::MAP_ANONYMOUS;
            libc::mmap(std::ptr::null_mut(), 4096, write, flags, -1, 0)
        };
        assert_ne!(page, libc::MAP_FAILED);
        Self(page.cast())
    }

    fn get(&self) -> &AtomicU64 {
        // SAFETY: the page stays mapped, is aligned, and any bytes make a number.
        unsafe { &*self.0 }
    }
}

/// How often a process left a CPU, involuntarily and voluntarily. Read between two times.
struct Reading {
    before: Nanos,
    left: [u64; 2],
    after: Nanos,
}

/// A process of that name and class on that CPU, until it is dropped. On a machine with one CPU it
/// would starve the loading and removing of programs: so it exists only in between.
struct Process {
    child: libc::pid_t,
    times: Shared,
}

impl Process {
    /// `None` if real-time priorities are not permitted.
    fn start(
        name: &std::ffi::CStr,
        cpu: Cpu,
        class: Class,
        work: fn(&AtomicU64),
    ) -> Option<Self> {
        let (mut log, mut theirs) = UnixStream::pair().unwrap();
        let times = Shared::new();
        // SAFETY: the child computes, sleeps and writes to its own socket, then _exits; it
        // takes no lock that another thread of this process could have held.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let parameters = libc::sched_param { sched_priority: class.1 };
            // SAFETY: `name` ends in a zero; `parameters` outlives the call that reads it;
            // the child dies with the test.
            let refused = unsafe {
                libc::prctl(libc::PR_SET_NAME, name.as_ptr());
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                libc::setpriority(libc::PRIO_PROCESS, 0, -20);
                libc::sched_setscheduler(0, class.0, &raw const parameters)
            };
            let ready = isolate::pin(cpu).is_ok() && refused == 0;
            let _ = theirs.write_all(&[u8::from(ready)]);
            if ready {
                work(times.get());
            }
            // SAFETY: ends the child without running the parent's destructors.
            unsafe { libc::_exit(0) };
        }
        drop(theirs);
        let mut ready = [0];
        log.read_exact(&mut ready).unwrap();
        let process = Self { child, times };
        (ready == [1]).then_some(process)
    }

    fn tid(&self) -> u32 {
        self.child.try_into().unwrap()
    }

    /// The number of its actions.
    fn times(&self) -> u64 {
        self.times.get().load(Ordering::SeqCst)
    }

    /// Waits for one more action.
    fn goes_on(&self) {
        let times = self.times();
        while self.times() == times {
            sleep(Duration::from_millis(1));
        }
    }

    fn read(&self) -> Reading {
        let before = now();
        let status = format!("/proc/{}/status", self.child);
        let status = std::fs::read_to_string(status).unwrap();
        let keys = ["nonvoluntary_ctxt_switches:", "voluntary_ctxt_switches:"];
        let left = keys.map(|key| {
            let line = status.lines().find_map(|line| line.strip_prefix(key));
            line.unwrap().trim().parse().unwrap()
        });
        Reading { before, left, after: now() }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // SAFETY: `child` is our own child, not yet waited for.
        unsafe {
            libc::kill(self.child, libc::SIGKILL);
            libc::waitpid(self.child, std::ptr::null_mut(), 0);
        }
    }
}

fn now() -> Nanos {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec for the kernel to write.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    Nanos::from_nanos(u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap())
}

/// Without `spin_loop`: an emulated CPU would yield at this hint.
fn spin(times: &AtomicU64) {
    loop {
        times.fetch_add(1, Ordering::SeqCst);
    }
}

fn nap(times: &AtomicU64) {
    loop {
        sleep(Duration::from_millis(1));
        times.fetch_add(1, Ordering::SeqCst);
    }
}

fn give_way(times: &AtomicU64) {
    loop {
        times.fetch_add(1, Ordering::SeqCst);
        std::thread::yield_now();
    }
}

/// The same, after some ticks without a switch.
fn give_way_late(times: &AtomicU64) {
    loop {
        let until = now() + Nanos::from_millis(15);
        while now() < until {}
        times.fetch_add(1, Ordering::SeqCst);
        std::thread::yield_now();
    }
}

/// The recorded switches, and their period.
struct Recorded {
    switches: Switches,
    doubts: Vec<Doubt>,
    began: Nanos,
}

impl Recorded {
    fn cpu(&self, cpu: Cpu) -> &CpuSwitches {
        self.switches.cpus.iter().find(|kept| kept.cpu == cpu).unwrap()
    }

    fn tid(&self, stretch: &Stretch) -> u32 {
        self.switches.tasks[stretch.task as usize].tid
    }

    /// A task's stretches, with the next task of each; without those at a missed switch.
    fn of(&self, tid: u32) -> Vec<(Stretch, u32)> {
        let all = self.switches.cpus.iter().map(|cpu| &cpu.stretches);
        let pairs = all.flat_map(|all| all.iter().zip(all.iter().skip(1)));
        let pairs = pairs.filter(|(one, next)| one.start_ns + one.ns == next.start_ns);
        let own = pairs.filter(|(stretch, _)| self.tid(stretch) == tid);
        own.map(|(stretch, next)| (*stretch, self.tid(next))).collect()
    }

    /// The ends of a task's stretches of that kind, including those with an unknown beginning.
    fn ends(&self, tid: u32, is_meant: impl Fn(End) -> bool) -> Vec<Nanos> {
        let cpus = || self.switches.cpus.iter();
        let whole = cpus().flat_map(|cpu| &cpu.stretches);
        let whole = whole.map(|one| (one.start_ns + one.ns, one.task, one.end));
        let loose = cpus().flat_map(|cpu| &cpu.loose_ends);
        let all = whole.chain(loose.map(|one| (one.at_ns, one.task, one.end)));
        let is_own = |task: u32| self.switches.tasks[task as usize].tid == tid;
        let own = all.filter(|(_, task, end)| is_own(*task) && is_meant(*end));
        own.map(|(at, ..)| self.began + at).collect()
    }

    /// Check that a task left as often as the kernel counted between two readings, except for
    /// missed switches.
    fn is_counted(&self, ends: &[Nanos], [first, last]: [&Reading; 2], kind: usize) {
        let within = |from: Nanos, to: Nanos| {
            let ends = ends.iter().filter(|end| (from..=to).contains(end));
            u64::try_from(ends.count()).unwrap()
        };
        let counted = last.left[kind] - first.left[kind];
        let least = within(first.after, last.before);
        let most = within(first.before, last.after) + self.is_whole();
        assert!((least..=most).contains(&counted), "{counted}, {least} to {most}");
    }

    /// Check that only switches are missing that the kernel did not trace: each stretch begins at
    /// the end of the one before. Returns the number of exceptions.
    fn is_whole(&self) -> u64 {
        let (known, others): (Vec<&Doubt>, Vec<&Doubt>) = self
            .doubts
            .iter()
            .filter(|doubt| doubt.code != Code::Untraced)
            .partition(|doubt| doubt.text.contains("were not traced"));
        assert!(others.is_empty(), "{others:?}");
        let all = self.switches.cpus.iter().map(|cpu| &cpu.stretches);
        let pairs = all.flat_map(|all| all.iter().zip(all.iter().skip(1)));
        let breaks = pairs.filter(|(one, next)| one.start_ns + one.ns != next.start_ns);
        let breaks = breaks.count();
        assert!(breaks == 0 || !known.is_empty(), "{breaks}");
        u64::try_from(breaks).unwrap()
    }
}

/// The CPU of the test, in which it has the highest priority.
fn turn() -> (MutexGuard<'static, ()>, Facts, Cpu) {
    let turn = CPU.lock().unwrap_or_else(PoisonError::into_inner);
    let facts = Facts::read(&Root::live());
    let cpu = facts.cpus.allowed.get().unwrap().iter().last().unwrap();
    let _ = isolate::outrank(TESTER);
    (turn, facts, cpu)
}

fn no_priorities(name: &str) {
    println!("skipped: {name}: real-time priorities are not allowed here");
}

/// Records switches while `during` runs; prints why it cannot.
fn seen<T>(
    name: &str,
    cpus: &CpuSet,
    facts: &Facts,
    room: u32,
    during: impl FnOnce() -> T,
) -> Option<(T, Recorded)> {
    let watch = match SwitchWatch::start(cpus, room, facts) {
        Ok(watch) => watch,
        Err(why) => {
            println!("skipped: {name}: {}", units::chain(&why));
            return None;
        }
    };
    let began = now();
    let result = during();
    let (switches, doubts) = watch.end(began).unwrap();
    Some((result, Recorded { switches, doubts, began }))
}

fn only(cpu: Cpu) -> CpuSet {
    [cpu].into_iter().collect()
}

/// The actions of two processes.
struct Two {
    seen: Recorded,
    tids: [u32; 2],
    /// From when both existed until they were ended, and the number of actions that they report for
    /// it.
    time: RangeInclusive<Nanos>,
    times: u64,
    /// How often each left, before and after that.
    readings: [[Reading; 2]; 2],
}

impl Two {
    /// Their stretches in that time that were followed by the other one.
    fn turns(&self) -> Vec<Stretch> {
        let [one, other] = self.tids;
        let turns = [(one, other), (other, one)].into_iter().flat_map(|(own, other)| {
            self.seen.of(own).into_iter().filter(move |(_, next)| *next == other)
        });
        let end = |turn: &Stretch| self.seen.began + turn.start_ns + turn.ns;
        turns
            .map(|(turn, _)| turn)
            .filter(|turn| self.time.contains(&end(turn)))
            .collect()
    }

    /// Whether other tasks had the CPU as often as they did, or for more than half of the time.
    fn beside_others(&self) -> bool {
        let cpus = self.seen.switches.cpus.iter();
        let all = cpus.flat_map(|cpu| &cpu.stretches).filter(|turn| {
            self.time.contains(&(self.seen.began + turn.start_ns + turn.ns))
        });
        let (own, of_others): (Vec<&Stretch>, Vec<&Stretch>) =
            all.partition(|turn| self.tids.contains(&self.seen.tid(turn)));
        let time =
            |turns: &[&Stretch]| turns.iter().map(|turn| turn.ns.get()).sum::<u64>();
        !of_others.is_empty()
            && (of_others.len() >= own.len() || time(&of_others) > time(&own))
    }
}

/// Runs two processes of a class beside each other.
fn two(name: &str, class: Class, run: Duration, work: fn(&AtomicU64)) -> Option<Two> {
    let (_turn, facts, cpu) = turn();
    let during = || {
        let started =
            [c"nf-one", c"nf-other"].map(|name| Process::start(name, cpu, class, work));
        let [Some(one), Some(other)] = started else { return None };
        // Until then they may still sleep.
        one.goes_on();
        other.goes_on();
        let before = [one.read(), other.read()];
        let (first, began) = (one.times() + other.times(), now());
        sleep(run);
        let (ended, last) = (now(), one.times() + other.times());
        let after = [one.read(), other.read()];
        let readings = [before, after];
        Some(([one.tid(), other.tid()], began..=ended, last - first, readings))
    };
    let (done, seen) = seen(name, &only(cpu), &facts, ROOM, during)?;
    let Some((tids, time, times, readings)) = done else {
        no_priorities(name);
        return None;
    };
    seen.is_whole();
    Some(Two { seen, tids, time, times, readings })
}

/// Check that stretches of two tasks that only compute are always ended by ticks.
#[test]
fn spinners() {
    let Some(two) = two("spinners", LOW, TURNS, spin) else { return };
    let turns = two.turns();
    assert!(turns.len() > 2, "{turns:?}");
    assert!(turns.iter().all(|turn| turn.end == End::Tick), "{turns:?}");
}

/// Check the same of ordinary tasks: none of their switches to each other has a wake-up, a yield or
/// a sleep as its reason, and ticks are the reason of some; only a wake-up of another task in
/// between may change that.
#[test]
fn ordinary_spinners() {
    let Some(two) = two("ordinary_spinners", ORDINARY, RUN, spin) else { return };
    let (ticks, others): (Vec<Stretch>, Vec<Stretch>) =
        two.turns().into_iter().partition(|turn| turn.end == End::Tick);
    let not_meant = others.iter().filter(|turn| turn.end != End::Other);
    assert_eq!(not_meant.count(), 0, "{others:?}");
    // However busy the CPU is, each of their switches is recorded.
    let [before, after] = &two.readings;
    for ((tid, first), last) in two.tids.into_iter().zip(before).zip(after) {
        let had_to = two.seen.ends(tid, |end| end != End::Sleep);
        two.seen.is_counted(&had_to, [first, last], 0);
    }
    let few = ticks.len() + others.len() < 10;
    // Other tasks that wake up at each tick, or that have most of the CPU, run between them.
    if few && two.beside_others() {
        return println!("skipped: ordinary_spinners: other tasks interfered");
    }
    assert!(!few, "{ticks:?} {others:?}");
    assert!(!ticks.is_empty(), "{others:?}");
}

/// Check that each switch between two tasks that yield to each other is a yield, as often as they
/// report.
#[test]
fn yielders() {
    let Some(two) = two("yielders", LOW_FIFO, RUN / 8, give_way) else { return };
    let turns = two.turns();
    let others = turns.iter().filter(|turn| turn.end != End::Yield);
    assert_eq!(others.count(), 0, "of {}", turns.len());
    // They continue while they are read.
    let (turns, times) = (u64::try_from(turns.len()).unwrap(), two.times);
    assert!(times > 500 && turns.abs_diff(times) <= times / 100, "{turns} of {times}");
}

/// Check that a yield after a while of computing is one, and not the last tick's switch.
#[test]
fn late_yielders() {
    let Some(two) = two("late_yielders", LOW_FIFO, RUN, give_way_late) else { return };
    let turns = two.turns();
    assert!(turns.len() > 10, "{} of {}", turns.len(), two.times);
    assert!(turns.iter().all(|turn| turn.end == End::Yield), "{turns:?}");
}

/// Check that a task that sleeps a millisecond at a time preempts the computing one, each time, by
/// its name; that its own stretches end with a sleep; and that both have as many switches as the
/// kernel counts.
#[test]
fn a_sleeper() {
    let (_turn, facts, cpu) = turn();
    let during = || {
        let spinner = Process::start(c"nf-spin", cpu, LOW, spin)?;
        let sleeper = Process::start(c"nf-sleep", cpu, HIGH, nap)?;
        let first = [spinner.read(), sleeper.read()];
        sleep(RUN);
        Some(([spinner.tid(), sleeper.tid()], first, [spinner.read(), sleeper.read()]))
    };
    let seen = seen("a_sleeper", &only(cpu), &facts, ROOM, during);
    let Some((done, seen)) = seen else { return };
    let Some(([spinner, sleeper], first, last)) = done else {
        return no_priorities("a_sleeper");
    };
    // Before it had its priority it had to wait.
    let since = first[1].after.saturating_sub(seen.began);
    let mut woken = seen.of(spinner);
    woken.retain(|(turn, next)| *next == sleeper && turn.start_ns > since);
    assert!(woken.len() > 100, "{}", woken.len());
    let mut others = woken.clone();
    others.retain(|(turn, _)| turn.end != End::Wakeup);
    assert_eq!(others, [], "of {}", woken.len());
    let task = seen.switches.tasks.iter().find(|task| task.tid == sleeper);
    assert_eq!(task.unwrap().name, "nf-sleep");
    let had_to = seen.ends(spinner, |end| end != End::Sleep);
    seen.is_counted(&had_to, [&first[0], &last[0]], 0);
    let slept = seen.ends(sleeper, |end| end == End::Sleep);
    seen.is_counted(&slept, [&first[1], &last[1]], 1);
}

/// Check that each switch of a computing task that is moved from CPU to CPU has that reason.
#[test]
fn moved() {
    const MOVES: usize = 20;
    let (_turn, facts, cpu) = turn();
    let allowed = facts.cpus.allowed.get().unwrap();
    let Some(other) = allowed.first().filter(|first| *first != cpu) else {
        return println!("skipped: moved: there is one CPU");
    };
    let both: CpuSet = [cpu, other].into_iter().collect();
    let moves = move || {
        isolate::outrank(TESTER).ok()?;
        let spinner = Process::start(c"nf-spin", cpu, LOW, spin)?;
        // Before it was pinned it may have been moved by others.
        let pinned = now();
        for to in [other, cpu].into_iter().cycle().take(MOVES) {
            // The test runs on its destination, not on its origin.
            isolate::pin(to).unwrap();
            sleep(Duration::from_millis(5));
            isolate::restrict_thread(spinner.tid(), &to.into()).unwrap();
            // Else it may leave a CPU on which it never ran: the hypervisor can take a CPU that
            // long.
            spinner.goes_on();
        }
        Some((spinner.tid(), pinned))
    };
    let during = || std::thread::spawn(moves).join().unwrap();
    let Some((done, seen)) = seen("moved", &both, &facts, ROOM, during) else { return };
    let Some((tid, pinned)) = done else { return no_priorities("moved") };
    let breaks = usize::try_from(seen.is_whole()).unwrap();
    let cpus = seen.switches.cpus.iter();
    let turns = cpus.flat_map(|kept| kept.stretches.iter().map(|turn| (kept.cpu, *turn)));
    let mut turns: Vec<_> = turns.filter(|(_, turn)| seen.tid(turn) == tid).collect();
    turns.sort_by_key(|(_, turn)| turn.start_ns);
    turns.retain(|(_, turn)| seen.began + turn.start_ns + turn.ns > pinned);
    let pairs = turns.iter().zip(&turns[1..]);
    let moved: Vec<_> = pairs.filter(|(one, next)| one.0 != next.0).collect();
    let others = moved.iter().filter(|(one, _)| one.1.end != End::Other);
    assert_eq!(others.count(), 0, "{moved:?}");
    // With each missed stretch, it moved there and back.
    assert!((MOVES - 2 * breaks..=MOVES).contains(&moved.len()), "{moved:?}");
}

/// Check that a CPU's stretches cover all of the time, except for the one that was active when the
/// recording began, and the one at its end.
#[test]
fn all_of_the_time() {
    let (_turn, facts, cpu) = turn();
    let during = || {
        let spinner = Process::start(c"nf-spin", cpu, LOW, spin)?;
        let sleeper = Process::start(c"nf-sleep", cpu, HIGH, nap)?;
        let began = now();
        sleep(RUN);
        Some((began, now(), [spinner.tid(), sleeper.tid()]))
    };
    let seen = seen("all_of_the_time", &only(cpu), &facts, ROOM, during);
    let Some((done, seen)) = seen else { return };
    let Some((began, ended, tids)) = done else {
        return no_priorities("all_of_the_time");
    };
    let breaks = seen.is_whole();
    let stretches = &seen.cpu(cpu).stretches;
    let total: u64 = stretches.iter().map(|stretch| stretch.ns.get()).sum();
    let (first, last) = (stretches.first().unwrap(), stretches.last().unwrap());
    let missing = (last.start_ns + last.ns).get() - first.start_ns.get() - total;
    assert!(breaks > 0 || missing == 0, "{missing}");
    let own = stretches.iter().filter(|turn| tids.contains(&seen.tid(turn)));
    let own: u64 = own.map(|turn| turn.ns.get()).sum();
    let ran = ended.saturating_sub(began).get();
    assert!(own * 2 >= ran && total >= ran - missing, "{own}, {total} of {ran}");
}

/// Check that switches beyond the capacity are counted and reported, and earlier ones are recorded.
#[test]
fn full() {
    const FEW: u32 = 100;
    let (_turn, facts, cpu) = turn();
    let during = || {
        let started = [c"nf-one", c"nf-other"]
            .map(|name| Process::start(name, cpu, LOW_FIFO, give_way));
        let [Some(one), Some(other)] = started else { return None };
        let left = || one.read().left[0] + other.read().left[0];
        let first = left();
        sleep(RUN / 8);
        Some(left() - first)
    };
    let seen = seen("full", &only(cpu), &facts, FEW, during);
    let Some((done, seen)) = seen else { return };
    let Some(left) = done else { return no_priorities("full") };
    let kept = seen.cpu(cpu);
    // The beginning of the first one is unknown.
    assert!(kept.stretches.len() < FEW as usize, "{}", kept.stretches.len());
    assert!(left > 2 * u64::from(FEW), "{left}");
    assert!(kept.lost + u64::from(FEW) >= left, "{} of {left}", kept.lost);
    let doubt = seen.doubts.iter().find(|doubt| doubt.text.contains("was full")).unwrap();
    assert!(doubt.code == Code::EventsLost, "{doubt}");
    assert!(doubt.text.contains(&kept.lost.to_string()), "{doubt}");
}

/// Check that a capacity of 0 is refused, and one that is too large.
#[test]
fn no_room() {
    let facts = Facts::read(&Root::live());
    let both: CpuSet = "0,1".parse().unwrap();
    for room in [0, u32::MAX] {
        let Err(refused) = SwitchWatch::start(&both, room, &facts) else {
            panic!("{room}")
        };
        if [Kind::Privilege, Kind::Missing].contains(&refused.kind()) {
            return println!("skipped: no_room: {refused}");
        }
        assert_eq!(refused.kind(), Kind::Spec, "{refused}");
    }
}

/// Check that wake-ups can be counted at the same time, and that both agree.
#[test]
fn beside_wakers() {
    let (_turn, facts, cpu) = turn();
    let spec = WakersSpec { cpus: None, duration_ns: RUN.into(), top: 20, process: None };
    let during = || {
        let sleeper = Process::start(c"nf-sleep", cpu, HIGH, nap)?;
        let wakers = WakerWatch::start(&spec, &facts).unwrap();
        sleep(RUN);
        Some((sleeper.tid(), wakers.end(false).unwrap()))
    };
    let seen = seen("beside_wakers", &only(cpu), &facts, ROOM, during);
    let Some((done, seen)) = seen else { return };
    let Some((tid, recording)) = done else { return no_priorities("beside_wakers") };
    seen.is_whole();
    let Body::Wakers { series, .. } = recording.body else {
        unreachable!("asked for it")
    };
    let own = series.threads.iter().find(|thread| thread.tid == tid).unwrap();
    let slept = seen.ends(tid, |end| end == End::Sleep).len();
    let slept = u64::try_from(slept).unwrap();
    // It continues to sleep while the other programs are loaded and read.
    assert!(own.wakeups > 100 && slept + 1 >= own.wakeups, "{slept} of {}", own.wakeups);
}
