//! A known number of wake-ups is reported under the right names, with the preempted threads and the
//! run time.
//!
//! The expected values are counted by the test's own processes, with their own clocks. All of this
//! needs root and a kernel with BTF; otherwise a test is skipped with a message.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Mutex;
use std::time::Duration;

use blame::WakerWatch;
use facts::{Facts, Root};
use recording::{Body, Doubt, WakersSeries, WakersSpec, WokenThread};
use units::{Cpu, CpuSet, Nanos};

/// Tests that need a CPU for themselves run one at a time.
static CPU: Mutex<()> = Mutex::new(());
const RUN: Nanos = Nanos::from_secs(1);
/// Above everything else on this machine, spinners of other tests included.
const SPINNER: libc::c_int = 60;
const NOTIFIER: libc::c_int = 70;
const PLAYERS: u8 = 70;
/// The notifier's work after each sleep, and the length of a sleep.
const WORK: Nanos = Nanos::from_micros(200);
const SLEEP: Duration = Duration::from_millis(1);

/// One sleep of the notifier, and its work after it.
#[derive(Debug, Clone, Copy)]
struct Turn {
    /// On `CLOCK_MONOTONIC`.
    slept: u64,
    woke: u64,
    done: u64,
    /// Its computing time without interruptions, as far as it noticed them.
    burnt: u64,
    /// Its total CPU time, before and after.
    ran: [u64; 2],
    /// How often it has waited in total, before and after: for its sleep, and sometimes in the
    /// kernel, for memory. A sleep that was over before the thread had left the CPU counts, too:
    /// the kernel wakes it even so.
    waited: [u64; 2],
}

impl Turn {
    const BYTES: usize = 64;

    fn to_bytes(self) -> Vec<u8> {
        let Self { slept, woke, done, burnt, ran, waited } = self;
        let all = [slept, woke, done, burnt, ran[0], ran[1], waited[0], waited[1]];
        all.map(u64::to_le_bytes).concat()
    }

    fn from_bytes(bytes: &[u8]) -> Self {
        let part =
            |at: usize| u64::from_le_bytes(bytes[at * 8..at * 8 + 8].try_into().unwrap());
        let (slept, woke, done) = (part(0), part(1), part(2));
        let (ran, waited) = ([part(4), part(5)], [part(6), part(7)]);
        Self { slept, woke, done, burnt: part(3), ran, waited }
    }
}

/// The voluntary context switches of this thread, by `getrusage(2)`.
fn voluntary_switches() -> u64 {
    // SAFETY: all of its fields are numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: `usage` is valid for the kernel to write.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    u64::try_from(usage.ru_nvcsw).unwrap()
}

fn now(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec for the kernel to write.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).unwrap()
}

/// A process of that name, at that real-time priority on that CPU, until it is dropped.
struct Process {
    child: libc::pid_t,
    log: UnixStream,
}

impl Process {
    /// `None` if real-time priorities are not permitted.
    fn start(
        name: &std::ffi::CStr,
        cpu: Cpu,
        (policy, priority): (libc::c_int, libc::c_int),
        work: fn(UnixStream),
    ) -> Option<Self> {
        let (mut log, mut theirs) = UnixStream::pair().unwrap();
        // SAFETY: the child computes, sleeps and writes to its own socket, then _exits; it
        // takes no lock that another thread of this process could have held.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let parameters = libc::sched_param { sched_priority: priority };
            // SAFETY: `name` ends in a zero; `parameters` outlives the call that reads it;
            // the child dies with the test.
            let refused = unsafe {
                libc::prctl(libc::PR_SET_NAME, name.as_ptr());
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                libc::sched_setscheduler(0, policy, &raw const parameters)
            };
            let ready = isolate::pin(cpu).is_ok() && refused == 0;
            let _ = theirs.write_all(&[u8::from(ready)]);
            if ready {
                work(theirs);
            }
            // SAFETY: ends the child without running the parent's destructors.
            unsafe { libc::_exit(0) };
        }
        drop(theirs);
        let mut ready = [0];
        log.read_exact(&mut ready).unwrap();
        let process = Self { child, log };
        (ready == [1]).then_some(process)
    }

    fn tid(&self) -> u32 {
        self.child.try_into().unwrap()
    }

    /// Ends it; returns its log.
    fn turns(mut self) -> Vec<Turn> {
        self.kill();
        let mut bytes = Vec::new();
        self.log.read_to_end(&mut bytes).unwrap();
        bytes.chunks_exact(Turn::BYTES).map(Turn::from_bytes).collect()
    }

    fn kill(&mut self) {
        if self.child > 0 {
            // SAFETY: `child` is our own child, not yet waited for.
            unsafe {
                libc::kill(self.child, libc::SIGKILL);
                libc::waitpid(self.child, std::ptr::null_mut(), 0);
            }
        }
        self.child = 0;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spin(_log: UnixStream) {
    loop {
        std::hint::spin_loop();
    }
}

/// Sleeps, works and logs it, repeatedly.
fn notify(mut log: UnixStream) {
    // The writer must not wait for the reader.
    let mut room = 4_i32 << 20;
    // SAFETY: `room` has the given length and outlives the call.
    unsafe {
        let fd = std::os::fd::AsRawFd::as_raw_fd(&log);
        let length = libc::socklen_t::try_from(size_of_val(&room)).unwrap();
        let room = (&raw mut room).cast();
        libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, room, length);
    }
    let (mut switches, mut waits) = (voluntary_switches(), 0);
    let mut more = || {
        let now = voluntary_switches();
        now - std::mem::replace(&mut switches, now)
    };
    loop {
        waits += more();
        let (before, waited) = (now(libc::CLOCK_THREAD_CPUTIME_ID), waits);
        let slept = now(libc::CLOCK_MONOTONIC);
        std::thread::sleep(SLEEP);
        waits += more().max(1);
        let woke = now(libc::CLOCK_MONOTONIC);
        let (mut last, mut burnt) = (woke, 0);
        while last < woke + WORK.get() {
            let time = now(libc::CLOCK_MONOTONIC);
            if time - last < 2_000 {
                burnt += time - last;
            }
            last = time;
        }
        let ran = [before, now(libc::CLOCK_THREAD_CPUTIME_ID)];
        waits += more();
        let waited = [waited, waits];
        let done = now(libc::CLOCK_MONOTONIC);
        let turn = Turn { slept, woke, done, burnt, ran, waited };
        if log.write_all(&turn.to_bytes()).is_err() {
            return;
        }
    }
}

/// The counts, and the notifier's log.
struct Recorded {
    series: WakersSeries,
    doubts: Vec<Doubt>,
    notifier: u32,
    spinners: [u32; 2],
    turns: Vec<Turn>,
}

/// The notifier beside two spinners on one CPU.
fn seen(name: &str, spec: impl FnOnce(Cpu, u32) -> WakersSpec) -> Option<Recorded> {
    let _turn = CPU.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let facts = Facts::read(&Root::live());
    let cpu = facts.cpus.allowed.get().unwrap().iter().last().unwrap();
    let turns = (libc::SCHED_RR, SPINNER);
    let started = [c"nf-spinner-a", c"nf-spinner-b"]
        .map(|name| Process::start(name, cpu, turns, spin));
    let notifier =
        Process::start(c"nf-notifier", cpu, (libc::SCHED_FIFO, NOTIFIER), notify);
    let ([Some(a), Some(b)], Some(notifier)) = (started, notifier) else {
        println!("skipped: {name}: real-time priorities are not allowed here");
        return None;
    };
    let (tid, spinners) = (notifier.tid(), [a.tid(), b.tid()]);
    let recording = WakerWatch::start(&spec(cpu, tid), &facts).and_then(|watch| {
        std::thread::sleep(RUN.into());
        watch.end(false)
    });
    drop((a, b));
    let turns = notifier.turns();
    let recording = match recording {
        Ok(recording) => recording,
        Err(why) => {
            println!("skipped: {name}: {}", units::chain(&why));
            return None;
        }
    };
    let doubts = recording.doubts;
    let Body::Wakers { series, .. } = recording.body else {
        unreachable!("asked for it")
    };
    Some(Recorded { series, doubts, notifier: tid, spinners, turns })
}

fn everybody() -> WakersSpec {
    WakersSpec { cpus: None, duration_ns: RUN, top: 20, process: None }
}

impl Recorded {
    fn of(&self, tid: u32) -> Option<&WokenThread> {
        self.series.threads.iter().find(|thread| thread.tid == tid)
    }

    fn notifier(&self) -> &WokenThread {
        self.of(self.notifier).unwrap()
    }

    /// The turns of its log that lie entirely in the counted period.
    fn whole(&self) -> Vec<Turn> {
        let began = self.series.began_ns.get();
        let ended = began + self.series.elapsed_ns.get();
        let is_whole = |turn: &&Turn| turn.slept >= began && turn.done <= ended;
        self.turns.iter().filter(is_whole).copied().collect()
    }

    /// How often it waited, from the first to the last of these turns.
    fn waited(&self) -> u64 {
        let turns = self.whole();
        let (Some(first), Some(last)) = (turns.first(), turns.last()) else { return 0 };
        last.waited[1] - first.waited[0]
    }

    /// Check that it was woken as often as it waited, except for the turns at the two ends.
    fn is_counted(&self) {
        let (waited, found) = (self.waited(), self.notifier().wakeups);
        let turns = self.whole().len() as u64;
        assert!(turns > 200 && waited >= turns, "{waited} in {turns}");
        assert!(found >= waited && found <= waited + 2, "{found} of {waited}");
    }
}

/// Check that a thread that sleeps a millisecond at a time is woken as often as it reports, by
/// interrupts, and that no other thread of the test is above it.
#[test]
fn as_often_as_it_sleeps() {
    let Some(seen) = seen("as_often_as_it_sleeps", |_, _| everybody()) else { return };
    assert_eq!(seen.doubts, []);
    seen.is_counted();
    let notifier = seen.notifier();
    assert_eq!((notifier.name.as_str(), notifier.prio), ("nf-notifier", 29));
    assert_eq!(notifier.pid, seen.notifier);
    let own = [seen.spinners[0], seen.spinners[1], std::process::id()];
    let others = own.iter().filter_map(|tid| seen.of(*tid));
    assert!(others.clone().all(|other| other.wakeups < notifier.wakeups));
    let by: u64 = notifier.woken_by.iter().map(|partner| partner.count).sum();
    assert_eq!(by, notifier.wakeups);
    let interrupts = &notifier.woken_by[0];
    assert_eq!((interrupts.tid, interrupts.name.as_str()), (None, "interrupt"));
    // A wait in the kernel is ended by any thread.
    let slept = seen.whole().len() as u64;
    let timers = slept..=notifier.wakeups - (seen.waited() - slept);
    assert!(timers.contains(&interrupts.count), "{timers:?}: {:?}", notifier.woken_by);
}

/// Check that it preempts the spinners: at each wake-up, unless the kernel had given the CPU to
/// ordinary tasks, or the spinners were switched just then.
#[test]
fn whom_it_preempts() {
    let Some(seen) = seen("whom_it_preempts", |_, _| everybody()) else { return };
    let notifier = seen.notifier();
    let victims: u64 = notifier.victims.iter().map(|partner| partner.count).sum();
    assert_eq!(victims, notifier.preempted);
    let is_spinner = |tid: Option<u32>| tid.is_some_and(|t| seen.spinners.contains(&t));
    let spinners = notifier.victims.iter().filter(|partner| is_spinner(partner.tid));
    let named = spinners.clone().all(|partner| partner.name.starts_with("nf-spinner-"));
    assert!(named, "{:?}", notifier.victims);
    let spinners: u64 = spinners.map(|partner| partner.count).sum();
    let (least, most) = (notifier.wakeups * 8 / 10, notifier.wakeups);
    assert!((least..=most).contains(&spinners), "{spinners} of {most}: {notifier:?}");
}

/// Check that it ran as long as its own clock shows, within 5 %. Time that the hypervisor takes
/// counts as run time here, but not by that clock: it is visible as a pause in its computation.
#[test]
fn how_long_it_runs() {
    let Some(seen) = seen("how_long_it_runs", |_, _| everybody()) else { return };
    let turns = seen.whole();
    let (Some(first), Some(last)) = (turns.first(), turns.last()) else { panic!("none") };
    let ran = last.ran[1] - first.ran[0];
    let burnt: u64 = turns.iter().map(|turn| turn.burnt).sum();
    let took: u64 = turns.iter().map(|turn| turn.done - turn.woke).sum();
    let found = seen.notifier().run_ns.unwrap().get();
    // The turns at the two ends.
    let ends = 2 * (WORK.get() + took - burnt);
    let most = (ran + took - burnt) * 105 / 100 + ends;
    assert!(found * 100 >= burnt * 95 && found <= most, "{burnt} {found} {ran} {most}");
}

/// Check that two threads of a CPU that wait for each other were woken by each other.
#[test]
fn who_wakes() {
    let _turn = CPU.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let facts = Facts::read(&Root::live());
    let cpu = facts.cpus.allowed.get().unwrap().iter().last().unwrap();
    // No other thread runs between them: each waits before the other is served.
    if std::thread::spawn(|| isolate::outrank(PLAYERS).is_err()).join().unwrap() {
        println!("skipped: who_wakes: real-time priorities are not allowed here");
        return;
    }
    let play = |mut ball: UnixStream, serves: bool| {
        isolate::pin(cpu).unwrap();
        isolate::outrank(PLAYERS).unwrap();
        let mut byte = [0];
        for _ in 0..1_000 {
            if serves {
                ball.write_all(&byte).unwrap();
            }
            ball.read_exact(&mut byte).unwrap();
            if !serves {
                ball.write_all(&byte).unwrap();
            }
        }
        // SAFETY: takes no arguments.
        unsafe { libc::gettid() }
    };
    let watch = match WakerWatch::start(&everybody(), &facts) {
        Ok(watch) => watch,
        Err(why) => return println!("skipped: who_wakes: {}", units::chain(&why)),
    };
    let (one, other) = UnixStream::pair().unwrap();
    let tids: [u32; 2] = std::thread::scope(|scope| {
        let players = [(one, true), (other, false)]
            .map(|(ball, serves)| scope.spawn(move || play(ball, serves)));
        players.map(|thread| thread.join().unwrap().try_into().unwrap())
    });
    let Body::Wakers { series, .. } = watch.end(false).unwrap().body else {
        unreachable!("asked for it")
    };
    for (own, other) in [(tids[0], tids[1]), (tids[1], tids[0])] {
        let thread = series.threads.iter().find(|thread| thread.tid == own).unwrap();
        let most = &thread.woken_by[0];
        assert_eq!(most.tid, Some(other), "{thread:?}");
        // The kernel may also wake a reader when there is space to write.
        assert!((900..=2_000).contains(&most.count), "{thread:?}");
    }
}

/// Check that only wake-ups on one CPU are counted if requested, and all of those.
#[test]
fn one_cpu() {
    let only = |cpu: Cpu| -> CpuSet { [cpu].into_iter().collect() };
    let here = |cpu, _| WakersSpec { cpus: Some(only(cpu)), ..everybody() };
    let Some(seen_here) = seen("one_cpu", here) else { return };
    seen_here.is_counted();
    assert!(
        seen_here.notifier().preempted > 0
            && seen_here.notifier().run_ns > Some(Nanos::ZERO)
    );
    let facts = Facts::read(&Root::live());
    let online = facts.cpus.online.get().unwrap();
    let Some(other) = online.first().filter(|_| online.len() > 1) else {
        println!("skipped: one_cpu: there is no other one");
        return;
    };
    let there = |_, _| WakersSpec { cpus: Some(only(other)), ..everybody() };
    let Some(seen_there) = seen("one_cpu", there) else { return };
    assert_eq!(seen_there.of(seen_there.notifier), None);
}

/// Check that only wake-ups of one process are counted if requested, and all of those.
#[test]
fn one_process() {
    let one = |_, pid| WakersSpec { process: Some(pid), ..everybody() };
    let Some(seen) = seen("one_process", one) else { return };
    seen.is_counted();
    let notifier = seen.notifier;
    for thread in &seen.series.threads {
        let by = thread.woken_by.iter().all(|partner| partner.tid == Some(notifier));
        assert!(thread.tid == notifier || by, "{thread:?}");
    }
}
