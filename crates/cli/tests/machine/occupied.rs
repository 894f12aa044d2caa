//! CPUs that a real-time task does not leave: refused with that task, and no reason to hang if
//! it starts later.

use std::fs;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use facts::{Facts, Root};
use isolate::Isolation;
use serde_json::Value;

use crate::settings_lock::lock_settings;
use crate::tool::{children, first_cpu, pid, signal, spawn, text, tool_on, turn};

/// The priority of the measuring threads, and of tasks that they do not preempt.
const OWN: &str = "60";
const HIGHER: u8 = 70;
/// Long enough for any error, on a machine whose CPUs are all busy.
const SOON: Duration = Duration::from_secs(60);

/// A real-time task that never sleeps, until it is dropped.
struct RealTime(Child);

impl RealTime {
    fn start(cpu: u32, priority: u8) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", "while :; do :; done"]);
        isolate::tether(&mut shell, None);
        let task = Self(shell.spawn().unwrap());
        // Not by itself: it would be waited for until it has begun, which another task may
        // prevent.
        let parameters = libc::sched_param { sched_priority: priority.into() };
        // SAFETY: `parameters` outlives the call, which only reads it.
        let failed = unsafe {
            libc::sched_setscheduler(
                pid(&task.0),
                libc::SCHED_FIFO,
                &raw const parameters,
            )
        };
        assert_eq!(failed, 0);
        isolate::restrict_thread(task.0.id(), &units::Cpu::new(cpu).into()).unwrap();
        task
    }

    fn name(&self, priority: u8) -> String {
        format!("sh (pid {}, SCHED_FIFO, priority {priority})", self.0.id())
    }
}

impl Drop for RealTime {
    fn drop(&mut self) {
        let _ = self.0.kill();
        // To end, it has to run, which a task of another process may prevent, too.
        let anywhere = isolate::allowed().unwrap();
        let _ = isolate::restrict_thread(self.0.id(), &anywhere);
        let _ = self.0.wait();
    }
}

/// The CPU for the test, which leaves another one to this process; `None` if the test is not
/// possible.
fn cpu(test: &str) -> Option<u32> {
    let facts = Facts::read(&Root::live());
    let allowed = facts.cpus.allowed.get().unwrap();
    let why = match isolate::may_outrank(99) {
        Err(why) => why.to_string(),
        Ok(()) if allowed.len() < 2 => "there is one CPU only".to_owned(),
        Ok(()) => return allowed.iter().last().map(units::Cpu::get),
    };
    println!("skipped: {test}: {why}");
    None
}

/// The output of a command, which must end by itself.
fn ended(child: Child) -> Output {
    let (process, began) = (pid(&child), Instant::now());
    let output = std::thread::spawn(move || child.wait_with_output().unwrap());
    while !output.is_finished() {
        if began.elapsed() > SOON {
            // SAFETY: takes numbers only; the process was not waited for.
            unsafe { libc::kill(process, libc::SIGKILL) };
            panic!("it hangs: {}", text(&output.join().unwrap().stdout));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    output.join().unwrap()
}

/// Check that commands whose threads would never run refuse the CPU with the task that uses it,
/// and that those that preempt it measure.
#[test]
fn real_time_tasks_are_named() {
    let _turn = turn();
    let Some(number) = cpu("real_time_tasks_are_named") else { return };
    let task = RealTime::start(number, 60);
    let cpu = number.to_string();
    for command in [
        &["jitter", "--throttled", "-a", &cpu, "-t", "1", "-l", "1"][..],
        &["noise", "-d", "100ms", "-c", &cpu],
        &["latency", "-d", "100ms", "-c", &cpu],
    ] {
        let ask = |priority| [command, &["--fifo", priority]].concat();
        let output = ended(spawn(&ask(OWN)));
        assert_eq!(output.status.code(), Some(3), "{command:?}");
        let said = text(&output.stderr);
        assert!(said.contains(&task.name(60)), "{said}");
        assert!(said.contains("a priority above 60 (--fifo)"), "{said}");
        let output = ended(spawn(&ask("61")));
        assert_eq!(output.status.code(), Some(0), "{command:?} {}", text(&output.stderr));
    }
}

/// Check the same for ordinary threads, if RT throttling is disabled.
#[test]
fn ordinary_threads_are_refused() {
    let _turn = turn();
    let Some(number) = cpu("ordinary_threads_are_refused") else { return };
    // No test with a journal of its own restores it meanwhile.
    let _settings = lock_settings();
    let isolation = Isolation::unthrottled(&Facts::read(&Root::live())).unwrap();
    if !isolation.refused().is_empty() || isolation.pick().cpu.get() != number {
        println!("skipped: ordinary_threads_are_refused: {:?}", isolation.refused());
        return;
    }
    let task = RealTime::start(number, 1);
    let cpu = number.to_string();
    for command in [
        &["check", "--rest", "100ms", "-d", "100ms", "-c", &cpu][..],
        &["slices", "2", "-d", "100ms", "-c", &cpu],
        &["noise", "-d", "100ms", "-c", &cpu],
        &["latency", "-d", "100ms", "-c", &cpu],
    ] {
        let output = ended(spawn(command));
        assert_eq!(output.status.code(), Some(3), "{command:?}");
        assert!(text(&output.stderr).contains(&task.name(1)), "{}", text(&output.stderr));
    }
}

/// Check that a CPU outside of this process's affinity mask is refused as such, without a wait.
#[test]
fn affinity_is_found_out_without_running_there() {
    let _turn = turn();
    let Some(number) = cpu("affinity_is_found_out_without_running_there") else { return };
    let _task = RealTime::start(number, HIGHER);
    let args = ["latency", "-d", "100ms", "-c", &number.to_string()];
    let mut command = tool_on("0", &args);
    let output = ended(command.stderr(Stdio::piped()).spawn().unwrap());
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("affinity"), "{}", text(&output.stderr));
}

/// The run time of the thread whose name has that prefix, in nanoseconds.
fn has_run(process: u32, name: &str) -> Option<u64> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).ok()?;
    tasks.flatten().find_map(|task| {
        let comm = fs::read_to_string(task.path().join("comm")).ok()?;
        let times = fs::read_to_string(task.path().join("schedstat")).ok()?;
        let ran = times.split_ascii_whitespace().next()?.parse().ok()?;
        comm.starts_with(name).then_some(ran)
    })
}

/// Waits for a condition.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < SOON, "not so: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Check that the first signal ends a measurement if a task has taken the CPU of its thread
/// since shortly after the beginning, with the result so far, and that the task is named: not
/// one of a lower priority, which waits for that CPU, too.
#[test]
fn signals_end_starved_measurements() {
    let _turn = turn();
    let Some(number) = cpu("signals_end_starved_measurements") else { return };
    let (cpu, _waits) = (number.to_string(), RealTime::start(number, 1));
    for (thread, command) in [
        (
            "jitter",
            &["jitter", "-q", "--throttled", "-a", &cpu, "-d", "60", "-l", "9"][..],
        ),
        ("spin/", &["noise", "-d", "1h", "-c", &cpu]),
        ("late/", &["latency", "-d", "1h", "-c", &cpu]),
    ] {
        let child = spawn(&[command, &["--fifo", OWN, "--json"]].concat());
        let process = child.id();
        // A thread that sleeps runs little.
        let enough = if thread == "late/" { 1_000_000 } else { 100_000_000 };
        until("the thread runs", || {
            has_run(process, thread).is_some_and(|ran| ran > enough)
        });
        let task = RealTime::start(number, HIGHER);
        until("the thread does not run", || {
            let before = has_run(process, thread);
            std::thread::sleep(Duration::from_millis(400));
            has_run(process, thread) == before
        });
        signal(&child, libc::SIGTERM);
        let output = ended(child);
        assert_eq!(output.status.code(), Some(4), "{thread} {}", text(&output.stderr));
        let object: Value = serde_json::from_slice(&output.stdout).unwrap();
        let doubts = object["doubts"].as_array().unwrap();
        let starved = doubts.iter().find(|doubt| doubt["code"] == "starved");
        let said = starved.map_or("", |doubt| doubt["text"].as_str().unwrap());
        assert!(said.contains(&task.name(HIGHER)), "{doubts:?}");
        assert!(!doubts.iter().any(|doubt| doubt["code"] == "migrated"), "{doubts:?}");
    }
}

/// Check that a measurement ends with its time, too, without a signal.
#[test]
fn starved_measurements_end_in_time() {
    let _turn = turn();
    let Some(number) = cpu("starved_measurements_end_in_time") else { return };
    let cpu = number.to_string();
    let began = Instant::now();
    let child = spawn(&["noise", "-d", "4", "-c", &cpu, "--fifo", OWN, "--json"]);
    until("the thread runs", || {
        has_run(child.id(), "spin/").is_some_and(|ran| ran > 100_000_000)
    });
    let _task = RealTime::start(number, HIGHER);
    let is_in_time = began.elapsed() < Duration::from_secs(3);
    let output = ended(child);
    if !is_in_time {
        println!("skipped: starved_measurements_end_in_time: the machine is too busy");
        return;
    }
    assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("\"starved\""), "{}", text(&output.stdout));
}

/// Check that `slices` ends with a signal and in time if a real-time task takes the CPU of the
/// reading thread, on the only CPU that is not measured.
#[test]
fn threads_that_read_are_moved() {
    let _turn = turn();
    let Some(number) = cpu("threads_that_read_are_moved") else { return };
    let (first, last) = (first_cpu(), number.to_string());
    let task = RealTime::start(number, HIGHER);
    for (duration, is_signalled) in [("1h", true), ("100ms", false)] {
        let args = ["slices", "2", "--json", "-c", &first, "-d", duration];
        let mut command = tool_on(&format!("{first},{last}"), &args);
        let child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        if is_signalled {
            until("the processes run", || {
                let running = |&pid: &u32| {
                    has_run(pid, "spin/").is_some_and(|ran| ran > 100_000_000)
                };
                children(child.id()).iter().filter(|pid| running(pid)).count() == 2
            });
            signal(&child, libc::SIGTERM);
        }
        let output = ended(child);
        assert_eq!(output.status.code(), Some(4), "{}", text(&output.stderr));
        let object: Value = serde_json::from_slice(&output.stdout).unwrap();
        let said = object["doubts"].to_string();
        assert!(said.contains(&task.name(HIGHER)), "{said}");
    }
}
