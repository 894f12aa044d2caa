//! The tick of a `nohz_full` CPU, if there is one.

use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use units::Cpu;

use serde_json::Value;

use crate::{alone, cpu, output, text, tool};

/// The CPU whose tick can stop; `None`, with the reason printed, if there is none.
fn nohz_full(test: &str) -> Option<String> {
    let facts = facts::Facts::read(&facts::Root::live());
    let cpu = cpu(test)?;
    let can_stop = isolate::nohz_full(cpu.parse().unwrap(), &facts);
    if let Err(why) = &can_stop {
        println!("skipped: {test}: {}", units::chain(why));
    }
    can_stop.ok().map(|()| cpu)
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

/// The timer interrupts a second of a summary's `proc` or `observed`.
fn timer_hz(seen: &Value) -> f64 {
    seen["timer_hz"].as_f64().unwrap()
}

/// Check that the tick stops, with an unforced and a forced wait, and that hardly any timer
/// interrupt follows.
#[test]
fn the_tick_stops() {
    let Some(cpu) = nohz_full("the_tick_stops") else { return };
    let _alone = alone();
    for how in [&["--observe", "5"][..], &["--forced", "--observe", "2"]] {
        let args = [&["nohz", "test", "-a", &cpu, "--json"], how].concat();
        let told = output(&args);
        assert_eq!(told.status.code(), Some(0), "{how:?}: {}", text(&told.stderr));
        let summary = &json(&told.stdout)["summary"];
        assert_eq!(summary["entered"], true, "{summary}");
        assert_eq!(summary["kept_by"], Value::Array(Vec::new()));
        assert!(timer_hz(&summary["observed"]) < 2.0, "{summary}");
    }
}

/// Check that it stops repeatedly.
#[test]
fn the_tick_stops_often() {
    let Some(cpu) = nohz_full("the_tick_stops_often") else { return };
    let _alone = alone();
    let told = output(&["nohz", "stress", "-a", &cpu, "-n", "20", "--json"]);
    assert_eq!(told.status.code(), Some(0), "{}", text(&told.stdout));
    let summary = &json(&told.stdout)["summary"];
    assert_eq!((&summary["tries"], &summary["failures"]), (&20.into(), &0.into()));
    let wait = |name: &str| summary["wait_ns"][name].as_u64().unwrap();
    assert!(wait("min") <= wait("p50") && wait("p50") <= wait("p99"));
}

/// Check that a POSIX CPU timer prevents the tick from stopping, and is named.
#[test]
fn what_keeps_it_is_named() {
    let Some(cpu) = nohz_full("what_keeps_it_is_named") else { return };
    let _alone = alone();
    for verb in ["test", "stress"] {
        let mut command = tool(&["nohz", verb, "-a", &cpu, "--limit", "500ms", "--json"]);
        // Timers of setitimer(2) outlive execve(2).
        // SAFETY: between fork and exec one async-signal-safe call is made, on its own stack.
        unsafe { command.pre_exec(plant) };
        let told = command.stdout(Stdio::piped()).output().unwrap();
        assert_eq!(told.status.code(), Some(1), "{}", text(&told.stdout));
        let summary = &json(&told.stdout)["summary"];
        let first = &summary["kept_by"][0];
        assert_eq!(first["dependency"], "POSIX_TIMER", "{summary}");
        assert!(first["times"].as_u64().unwrap() > 0);
    }
}

/// Arms a timer that does not expire while this process lives.
fn plant() -> std::io::Result<()> {
    let never = libc::timeval { tv_sec: 100_000, tv_usec: 0 };
    let timer = libc::itimerval { it_interval: never, it_value: never };
    // SAFETY: `timer` outlives the call, which only reads it; the old one is not asked for.
    match unsafe {
        libc::setitimer(libc::ITIMER_PROF, &raw const timer, std::ptr::null_mut())
    } {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error()),
    }
}

/// Check that the cause that starts a stopped tick again is named: a limit on CPU time, and a
/// second task on that CPU.
#[test]
fn what_brings_it_back_is_named() {
    let Some(cpu) = nohz_full("what_brings_it_back_is_named") else { return };
    let _alone = alone();
    let found = came_back(&cpu, |child| limit_cpu_time(child.id()));
    assert_eq!(found["name"], "POSIX_TIMER", "{found}");
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let _end = End(&is_over);
        let found = came_back(&cpu, |_| {
            scope.spawn(|| spin_on(cpu.parse().unwrap(), &is_over));
        });
        assert_eq!(found["name"], "SCHED", "{found}");
    });
}

/// Disturbs `nohz test` once the tick of its CPU has stopped; returns the first cause for which
/// the tick then came back.
fn came_back(cpu: &str, disturb: impl FnOnce(&Child)) -> Value {
    let args = [
        "nohz",
        "test",
        "-a",
        cpu,
        "--fifo",
        "0",
        "--limit",
        "2s",
        "--observe",
        "5",
        "--json",
    ];
    let mut child = tool(&args).stdout(Stdio::piped()).spawn().unwrap();
    until_it_stays(&mut child, cpu.parse().unwrap());
    disturb(&child);
    let told = child.wait_with_output().unwrap();
    let summary = json(&told.stdout)["summary"].clone();
    assert_eq!(
        (&summary["entered"], &summary["came_back"]),
        (&true.into(), &true.into())
    );
    let first = &summary["brought_back"]["causes"][0];
    assert_eq!(first["kind"], "dependency", "{summary}");
    first.clone()
}

/// The period of the timer that `what_remains_is_named` arms.
const PERIOD: Duration = Duration::from_millis(500);

/// Check that a timer of another program that was armed on that CPU is named, with the program, once
/// the tick has stopped, and that the causes of all timer interrupts add up.
///
/// If the host uses the guest's CPU for longer than the timer's period, the kernel forwards the timer.
/// The signals of all expiries show how many are missing.
#[test]
fn what_remains_is_named() {
    let Some(cpu) = nohz_full("what_remains_is_named") else { return };
    let _alone = alone();
    let thread = arm_timer(cpu.parse().unwrap());
    let signals = Signals::count(thread);
    let began = Instant::now();
    let (expired, remaining) = expiries(&cpu, thread);
    let periods = began.elapsed().as_millis() / PERIOD.as_millis();
    let sent = signals.counted();
    let missing = u64::try_from(periods).unwrap().saturating_sub(sent);
    let seen = format!("{sent} signals in {periods} periods: {remaining}");
    // Five seconds, in steps of 500 ms.
    assert!((1..=11.min(sent)).contains(&expired), "{seen}");
    assert!(expired + missing >= 9, "{seen}; {:?}", posix_timers());
}

/// Counts the signals that the kernel generates for one thread, also those that it ignores.
struct Signals(PathBuf);

impl Signals {
    /// The tracepoint, in the folder of an instance of tracefs.
    const EVENT: &str = "events/signal/signal_generate";

    fn count(thread: i32) -> Self {
        let instance = PathBuf::from("/sys/kernel/tracing/instances/expiries");
        std::fs::create_dir(&instance).unwrap();
        let event = instance.join(Self::EVENT);
        std::fs::write(event.join("filter"), format!("pid == {thread}")).unwrap();
        std::fs::write(event.join("enable"), "1").unwrap();
        Self(instance)
    }

    fn counted(&self) -> u64 {
        let trace = std::fs::read_to_string(self.0.join("trace")).unwrap();
        trace.lines().filter(|line| line.contains("signal_generate:")).count() as u64
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // Not a second panic, if the test failed.
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// How often a timer interrupt of `nohz test` was due to the timer of that thread; and all that remained.
fn expiries(cpu: &str, thread: i32) -> (u64, Value) {
    let args = ["nohz", "test", "-a", cpu, "--fifo", "0", "--observe", "3", "--json"];
    let told = output(&args);
    assert_eq!(told.status.code(), Some(0), "{}", text(&told.stderr));
    let remaining = json(&told.stdout)["summary"]["remaining"].take();
    let causes = remaining["causes"].as_array().unwrap();
    let count = |cause: &Value| cause["count"].as_u64().unwrap();
    let is_timer = |timer: &Value| {
        timer["function"] == "posix_timer_fn"
            && timer["reason"]["thread"]["tid"] == thread
    };
    let has_timer =
        |cause: &&Value| cause["timers"].as_array().unwrap().iter().any(is_timer);
    let explained: u64 = causes.iter().map(count).sum();
    let unexplained = remaining["unexplained"].as_u64().unwrap();
    assert_eq!(remaining["count"], explained + unexplained, "{remaining}");
    let expired = causes.iter().filter(has_timer).map(count).sum();
    (expired, remaining)
}

/// The lines of `/proc/timer_list` with a timer of a program, each with that of its CPU.
fn posix_timers() -> Vec<[String; 2]> {
    let list = std::fs::read_to_string(facts::TimerList::FILE).unwrap();
    let mut cpu = "";
    let mut timers = Vec::new();
    for line in list.lines() {
        if line.starts_with("cpu:") {
            cpu = line;
        } else if line.contains("posix_timer_fn") {
            timers.push([cpu, line].map(str::to_owned));
        }
    }
    timers
}

/// Arms a timer on that CPU that sends a thread an ignored signal in each period: the kernel restarts it where
/// it expires. Timers that are armed on a `nohz_full` CPU are otherwise moved to housekeeping CPUs. Returns the
/// thread, which only sleeps: if the signal is blocked when the timer expires, as it is in a thread that starts
/// a program (posix_spawn(3)), the signal is queued, and the thread that discards it restarts the timer elsewhere.
fn arm_timer(cpu: Cpu) -> i32 {
    let every = libc::timespec { tv_sec: 0, tv_nsec: PERIOD.subsec_nanos().into() };
    let times = libc::itimerspec { it_interval: every, it_value: every };
    let migrate = |value| std::fs::write("/proc/sys/kernel/timer_migration", value);
    let (sender, armed) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        isolate::pin(cpu).unwrap();
        migrate("0").unwrap();
        // SAFETY: a zeroed `sigevent` is valid; the pointers are valid during the calls.
        let (result, thread) = unsafe {
            libc::signal(libc::SIGUSR2, libc::SIG_IGN);
            let thread = libc::gettid();
            let mut event: libc::sigevent = std::mem::zeroed();
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = libc::SIGUSR2;
            event.sigev_notify_thread_id = thread;
            let mut timer = std::mem::zeroed();
            libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer);
            let result =
                libc::timer_settime(timer, 0, &raw const times, std::ptr::null_mut());
            (result, thread)
        };
        let error = std::io::Error::last_os_error();
        migrate("1").unwrap();
        assert_eq!(result, 0, "{error}");
        sender.send(thread).unwrap();
        loop {
            std::thread::park();
        }
    });
    armed.recv().unwrap()
}

/// Waits until the tick of that CPU has been stopped while the measuring thread there used half
/// a second in user space: the confirmation that it has stopped takes five ticks, so the
/// observation has begun.
fn until_it_stays(child: &mut Child, cpu: Cpu) {
    let mut since = None;
    loop {
        assert_eq!(child.try_wait().unwrap(), None, "ended before its tick had stopped");
        let list = std::fs::read_to_string(facts::TimerList::FILE).unwrap();
        let stopped =
            facts::TimerList::tick_stopped(list.as_bytes(), cpu) == Ok(Some(true));
        let used = user_time(child.id()).filter(|_| stopped);
        since = used.map(|used| since.unwrap_or(used));
        if used.zip(since).is_some_and(|(used, since)| used >= since + 50) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The user time of the thread `nohz` of a process, in hundredths of a second.
fn user_time(process: u32) -> Option<u64> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).ok()?.flatten();
    let mut stats =
        tasks.filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok());
    let stat = stats.find(|stat| stat.contains(" (nohz) "))?;
    stat.rsplit_once(") ")?.1.split_whitespace().nth(11)?.parse().ok()
}

/// Gives a process a limit on CPU time that it will not reach, for which the kernel arms a
/// timer.
fn limit_cpu_time(process: u32) {
    let limit = libc::rlimit { rlim_cur: 100_000, rlim_max: 100_000 };
    let process = libc::pid_t::try_from(process).unwrap();
    // SAFETY: `limit` outlives the call, which only reads it; the old one is not asked for.
    let set = unsafe {
        libc::prlimit(process, libc::RLIMIT_CPU, &raw const limit, std::ptr::null_mut())
    };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}

/// Ends a spinning thread, also if the test fails.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Spins on that CPU, as an ordinary task, until the flag ends it.
fn spin_on(cpu: Cpu, is_over: &AtomicBool) {
    isolate::pin(cpu).unwrap();
    while !is_over.load(Ordering::Relaxed) {
        std::hint::spin_loop();
    }
}

/// Check that a CPU that is not `nohz_full` is refused, with the boot parameters that would
/// make it so.
#[test]
fn what_would_help_is_told() {
    let Some(cpu) = cpu("what_would_help_is_told") else { return };
    let facts = facts::Facts::read(&facts::Root::live());
    let other =
        if isolate::nohz_full(cpu.parse().unwrap(), &facts).is_ok() { "0" } else { &cpu };
    for verb in ["test", "stress"] {
        let told = output(&["nohz", verb, "-a", other]);
        let why = text(&told.stderr);
        assert_eq!(told.status.code(), Some(3), "{why}");
        assert!(why.contains("nohz_full="), "{why}");
    }
}
