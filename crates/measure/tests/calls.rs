//! System calls on this machine: each has its times, and leaves no child or thread behind.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::fs;
use std::time::{Duration, Instant};

use facts::{Facts, Root};
use measure::{Control, Error, Kind};
use recording::Spec;
use recording::{Body, Call, CallsSeries, CallsSpec, Code, Recording};
use units::Nanos;

const UNPRIVILEGED: [Call; 7] = [
    Call::Getpid,
    Call::ClockGettime,
    Call::Futex,
    Call::Pipe,
    Call::PageFault,
    Call::Fork,
    Call::Timer,
];

fn run(calls: &[Call]) -> Result<Recording, Error> {
    run_under(&Control::new().unwrap(), calls)
}

fn run_under(control: &Control, calls: &[Call]) -> Result<Recording, Error> {
    let facts = Facts::read(&Root::live());
    let cpu = facts.cpus.allowed.get().unwrap().first().unwrap();
    let spec = CallsSpec { cpu, calls: calls.to_vec(), repeats: 50, phases: None };
    measure::run(&Spec::Calls(spec), &facts, control, &mut measure::ignore)
}

fn series(recording: Recording) -> CallsSeries {
    let Body::Calls { series, .. } = recording.body else { panic!("another kind") };
    series
}

fn assert_fifty_steps(calls: &[Call], series: &CallsSeries) {
    let seen: Vec<Call> = series.calls.iter().map(|times| times.call).collect();
    assert_eq!(seen, calls);
    for times in &series.calls {
        assert_eq!(times.step_ns.len(), 50, "{:?}", times.call);
        let longer = times.step_ns.iter().filter(|step| **step > Nanos::ZERO);
        assert_eq!(longer.count(), 50, "{:?}", times.call);
    }
}

/// The threads of this process that a measurement of calls started.
fn threads() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| {
        // A thread may end between the listing and the reading.
        fs::read_to_string(task.ok()?.path().join("comm")).ok()
    });
    names.filter(|name| ["calls", "calls/partner"].contains(&name.trim_end())).count()
}

/// Check that every call that needs no privilege gives a positive time for each repeat,
/// and that neither child nor thread is left.
#[test]
fn every_repeat_has_a_time() {
    let recording = run(&UNPRIVILEGED).unwrap();
    assert_fifty_steps(&UNPRIVILEGED, &series(recording));
    // SAFETY: waits for any child, and requests no status.
    let child = unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) };
    let why = std::io::Error::last_os_error().raw_os_error();
    assert_eq!((child, why), (-1, Some(libc::ECHILD)), "a child is left");
    // A joined thread may be listed for a moment more, as may those of other tests.
    let begin = Instant::now();
    while threads() > 0 {
        assert!(begin.elapsed() < Duration::from_secs(60), "a thread is left");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Check that a switch has times with the privilege for SCHED_FIFO, and else names what it needs.
#[test]
fn switches_need_fifo() {
    let privileged = std::thread::spawn(|| isolate::outrank(1).is_ok()).join().unwrap();
    match run(&[Call::Switch]) {
        Ok(recording) => assert_fifty_steps(&[Call::Switch], &series(recording)),
        Err(error) if error.kind() == Kind::Isolate(isolate::Kind::Unsafe) => {
            println!("skipped: switches_need_fifo: {error}");
        }
        Err(error) => {
            assert!(!privileged, "{error}");
            assert_eq!(error.kind(), Kind::Isolate(isolate::Kind::Privilege));
            assert!(units::chain(&error).contains("CAP_SYS_NICE"), "{error}");
        }
    }
}

/// Check that a run that is ended early has the calls until then, with a doubt.
#[test]
fn ended_early() {
    let control = Control::new().unwrap();
    control.stop.flag().store(true, std::sync::atomic::Ordering::Relaxed);
    let recording = run_under(&control, &UNPRIVILEGED).unwrap();
    assert!(recording.doubts.iter().any(|doubt| doubt.code == Code::Interrupted));
    assert_eq!(series(recording).calls, []);
}
