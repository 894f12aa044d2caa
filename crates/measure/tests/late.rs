//! Late threads on this machine: every expiry is answered, with its delay.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use facts::{Facts, Root};
use measure::Control;
use recording::Spec;
use recording::{
    Body, Code, CpuLatency, LatencySeries, LatencySpec, Recording, Timer, Trigger,
};
use units::{Cpu, Nanos};

const INTERVAL: Nanos = Nanos::from_millis(1);
const TIMERS: [Timer; 2] = [Timer::ClockNanosleep, Timer::Timerfd];

fn last_cpu(facts: &Facts) -> Cpu {
    facts.cpus.allowed.get().unwrap().iter().last().unwrap()
}

fn spec(cpu: Cpu, timer: Timer, millis: u64) -> LatencySpec {
    LatencySpec {
        cpus: [cpu].into_iter().collect(),
        interval_ns: INTERVAL,
        duration_ns: Nanos::from_millis(millis),
        timer,
        fifo: None,
        trigger: Trigger::default(),
    }
}

fn series(recording: Recording) -> LatencySeries {
    let Body::Latency { series, .. } = recording.body else { panic!("another kind") };
    series
}

fn samples(cpu: &CpuLatency) -> u64 {
    cpu.wakeups.iter().map(|wakeup| wakeup.expiries).sum()
}

/// `CLOCK_MONOTONIC`.
fn now() -> Nanos {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    Nanos::from_secs(time.tv_sec.try_into().unwrap())
        + Nanos::from_nanos(time.tv_nsec.try_into().unwrap())
}

/// Check that each CPU answers as many expiries as intervals fit, with either timer, none of them
/// after an end that the thread did not see.
#[test]
fn every_expiry_has_a_sample() {
    let facts = Facts::read(&Root::live());
    let cpus = facts.cpus.allowed.get().unwrap().clone();
    for timer in TIMERS {
        let spec = LatencySpec { cpus: cpus.clone(), ..spec(Cpu::new(0), timer, 200) };
        let recording = measure::run(
            &Spec::Latency(spec),
            &facts,
            &Control::new().unwrap(),
            &mut measure::ignore,
        );
        let end = now();
        let series = series(recording.unwrap());
        assert_eq!(series.cpus.iter().map(|seen| seen.cpu).collect::<Vec<_>>(), {
            cpus.iter().collect::<Vec<_>>()
        });
        for seen in &series.cpus {
            assert_eq!((samples(seen), seen.lost), (200, None));
            let last = seen.wakeups.last().unwrap();
            let due = INTERVAL.saturating_mul(200 - last.expiries);
            let answered = series.began_ns + seen.first_ns + due + last.late_ns;
            assert!(answered <= end, "{answered:?} {end:?}");
            let enough = |wakeup: &&recording::Wakeup| {
                wakeup.late_ns >= INTERVAL.saturating_mul(wakeup.expiries - 1)
            };
            assert_eq!(seen.wakeups.iter().find(|wakeup| !enough(wakeup)), None);
            let has_slack = timer == Timer::ClockNanosleep;
            assert_eq!(!seen.slack_ns.is_zero(), has_slack, "{timer:?}");
        }
    }
}

/// Preempts ordinary threads for 20 ms, repeatedly until it is stopped; returns the periods.
fn take_away(
    cpu: Cpu,
    ended: &AtomicBool,
) -> Result<Vec<(Nanos, Nanos)>, isolate::Error> {
    isolate::pin(cpu)?;
    isolate::outrank(50)?;
    let mut taken = Vec::new();
    while !ended.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(80));
        let begin = now();
        while now() < begin + Nanos::from_millis(20) {}
        taken.push((begin, now()));
    }
    Ok(taken)
}

/// Check that an ordinary thread that a real-time thread preempts for 20 ms has twenty late
/// samples: each expiry in that period is answered at its end, and not before.
#[test]
fn twenty_late_samples() {
    let facts = Facts::read(&Root::live());
    let cpu = last_cpu(&facts);
    for timer in TIMERS {
        let ended = AtomicBool::new(false);
        let spec = Spec::Latency(spec(cpu, timer, 600));
        let (recording, taken) = thread::scope(|scope| {
            let thief = scope.spawn(|| take_away(cpu, &ended));
            let recording = measure::run(
                &spec,
                &facts,
                &Control::new().unwrap(),
                &mut measure::ignore,
            );
            ended.store(true, Ordering::Relaxed);
            (recording.unwrap(), thief.join().unwrap())
        });
        let taken = match taken {
            Ok(taken) => taken,
            Err(why) => {
                println!("skipped: twenty_late_samples: {}", units::chain(&why));
                return;
            }
        };
        let series = series(recording);
        let late = lates(&series);
        let (first, last) = (late.first().unwrap().0, late.last().unwrap().0);
        let inside = |(begin, end): &&(Nanos, Nanos)| *begin > first && *end < last;
        let taken: Vec<_> = taken.iter().filter(inside).collect();
        assert!(!taken.is_empty(), "no preemption in the run");
        for &&(begin, end) in &taken {
            let of = |(due, _): &&(Nanos, Nanos)| *due > begin && *due < end;
            let during: Vec<_> = late.iter().filter(of).collect();
            assert!(during.len() >= 19, "{timer:?}: {}", during.len());
            for &&(due, late) in &during {
                assert!(due + late >= end, "{timer:?}: {due:?} {late:?} {end:?}");
            }
        }
    }
}

/// Each expiry, and its delay.
fn lates(series: &LatencySeries) -> Vec<(Nanos, Nanos)> {
    let seen = &series.cpus[0];
    let mut due = series.began_ns + seen.first_ns;
    let mut lates = Vec::new();
    for wakeup in &seen.wakeups {
        for number in 0..wakeup.expiries {
            let later = INTERVAL.saturating_mul(number);
            lates.push((due + later, wakeup.late_ns.saturating_sub(later)));
        }
        due = due + INTERVAL.saturating_mul(wakeup.expiries);
    }
    lates
}

/// Check that real-time threads have no slack, if they are permitted.
#[test]
fn real_time_has_no_slack() {
    let facts = Facts::read(&Root::live());
    let cpu = last_cpu(&facts);
    let spec = LatencySpec { fifo: Some(2), ..spec(cpu, Timer::ClockNanosleep, 20) };
    match measure::run(
        &Spec::Latency(spec),
        &facts,
        &Control::new().unwrap(),
        &mut measure::ignore,
    ) {
        Ok(recording) => {
            let series = series(recording);
            assert_eq!(series.cpus[0].slack_ns, Nanos::ZERO);
            assert_eq!(samples(&series.cpus[0]), 20);
        }
        Err(why) => println!("skipped: real_time_has_no_slack: {}", units::chain(&why)),
    }
}

/// Check that a run that is ended early has the samples until then, with a doubt.
#[test]
fn ended_early() {
    let facts = Facts::read(&Root::live());
    let control = Control::new().unwrap();
    control.stop.flag().store(true, Ordering::Relaxed);
    let spec = Spec::Latency(spec(last_cpu(&facts), Timer::Timerfd, 3_600_000));
    let recording = measure::run(&spec, &facts, &control, &mut measure::ignore).unwrap();
    assert!(recording.doubts.iter().any(|doubt| doubt.code == Code::Interrupted));
    assert_eq!(series(recording).cpus[0].wakeups.len(), 1);
}
