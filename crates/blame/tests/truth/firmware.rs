//! System management interrupts (SMIs), which the kernel does not see: found as gaps without events, and
//! limited by the processor's count.
//!
//! In a guest of QEMU's machine `pc` a write to the port of ACPI's power management command raises one,
//! on the first CPU. Elsewhere it would command the firmware; so the test runs only where
//! `NOISEFLOOR_TEST_SMI` says that this is such a guest.

use std::arch::asm;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, sleep, spawn};
use std::time::Duration;

use blame::{TypicalEdges, Watcher};
use facts::{Facts, Root};
use measure::Control;
use recording::{
    Body, CpuNoise, CulpritKind, Firmware, NoiseSeries, NoiseSpec, Recording, Source,
    Spec,
};
use units::{Cpu, Nanos, Span};

use crate::CPU;
use crate::injector::now;

/// The port, and a command that no firmware knows.
const PORT: u16 = 0xb2;
const COMMAND: u8 = 0;
/// The CPU that QEMU interrupts, and another one, which writes.
const INTERRUPTED: Cpu = Cpu::new(0);
const WRITER: Cpu = Cpu::new(1);
/// A train of SMIs every 20 ms.
const TRAIN: Nanos = Nanos::from_millis(1);
const PAUSE: Duration = Duration::from_millis(20);
const RUN: Nanos = Nanos::from_secs(1);

/// Writes to the port; returns when each train was on `CLOCK_MONOTONIC`, and the number of writes.
fn write_trains(stop: &AtomicBool) -> (Vec<Span>, u64) {
    isolate::pin(WRITER).unwrap();
    // SAFETY: grants this thread a port, which is written to below.
    let granted = unsafe { libc::ioperm(PORT.into(), 1, 1) };
    assert_eq!(granted, 0, "{}", std::io::Error::last_os_error());
    let now = || now(libc::CLOCK_MONOTONIC);
    let (mut trains, mut writes) = (Vec::new(), 0);
    while !stop.load(Ordering::Relaxed) {
        sleep(PAUSE);
        let start = now();
        while now() < start + TRAIN {
            // SAFETY: this thread may write to the port; the firmware of this guest ignores the command.
            unsafe { asm!("out dx, al", in("dx") PORT, in("al") COMMAND) };
            writes += 1;
        }
        trains.push(Span { start, length: now().saturating_sub(start) });
    }
    (trains, writes)
}

/// A thread that does so until it is stopped.
struct Trains {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<(Vec<Span>, u64)>,
}

impl Trains {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = stop.clone();
        Self { stop, thread: spawn(move || write_trains(&is_over)) }
    }

    fn stop(self) -> (Vec<Span>, u64) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

/// Noise of the interrupted CPU, with its causes.
fn noise(facts: &Facts) -> Recording {
    let spec = NoiseSpec {
        cpus: INTERRUPTED.into(),
        duration_ns: RUN,
        threshold_ns: None,
        fifo: None,
        stop_above_ns: None,
        phases: None,
    };
    // The counts are those of a machine that is not measured as a guest.
    let control = Control { has_neighbours: true, ..Control::new().unwrap() };
    let watcher = Watcher::open(&spec.cpus, Some(Source::Bpf), facts).unwrap();
    let watching = watcher.begin();
    let spec = Spec::Noise(spec);
    let mut recording =
        measure::run(&spec, facts, &control, &mut measure::ignore).unwrap();
    watching.end().blame_in(&mut recording, false, &TypicalEdges::default());
    recording
}

fn series(recording: &Recording) -> (&NoiseSeries, &CpuNoise) {
    let Body::Noise { series, .. } = &recording.body else {
        unreachable!("asked for noise")
    };
    (series, &series.cpus[0])
}

fn firmware(recording: &Recording) -> Option<Firmware> {
    series(recording).1.blamed.as_ref().unwrap().firmware
}

/// The trains during the loop, and how many of them meet gaps that are wholly without an event, with the
/// time of these gaps.
fn found(recording: &Recording, trains: &[Span]) -> (usize, usize, Nanos) {
    let (series, cpu) = series(recording);
    let blamed = cpu.blamed.as_ref().unwrap();
    let is_eventless = |gap: usize| {
        let mut shares = blamed.shares.iter().filter(|share| share.gap == gap);
        shares
            .all(|share| blamed.culprits[share.culprit].kind == CulpritKind::Unexplained)
    };
    let eventless: Vec<Span> = cpu
        .gaps
        .iter()
        .enumerate()
        .filter(|(gap, _)| is_eventless(*gap))
        .map(|(_, gap)| *gap)
        .collect();
    let (ours, theirs) = series.monotonic.unwrap()[0];
    let since =
        |time: Nanos| (time + ours).get().checked_sub((theirs + cpu.began_ns).get());
    let during = trains.iter().filter_map(|train| {
        let start = Nanos::from_nanos(since(train.start)?);
        let train = Span { start, ..*train };
        (train.end() < cpu.elapsed_ns).then_some(train)
    });
    let during: Vec<Span> = during.collect();
    let in_train = |train: &Span| -> Nanos {
        let gaps = eventless.iter();
        gaps.map(|gap| {
            gap.end().min(train.end()).saturating_sub(gap.start.max(train.start))
        })
        .sum()
    };
    let times: Vec<Nanos> = during.iter().map(in_train).collect();
    let met = times.iter().filter(|time| !time.is_zero()).count();
    (during.len(), met, times.into_iter().sum())
}

/// Check that trains of SMIs are gaps without events, that the count is a bound of their time, if the
/// processor counts them, and that without an SMI none of the unexplained time may be the firmware's.
#[test]
fn trains_of_smis() {
    let _turn = CPU.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if std::env::var_os("NOISEFLOOR_TEST_SMI").is_none() {
        return println!(
            "skipped: trains_of_smis: no SMIs are raised outside of a guest for that"
        );
    }
    let facts = Facts::read(&Root::live());
    let quiet = noise(&facts);
    let trains = Trains::start();
    let disturbed = noise(&facts);
    let (trains, writes) = trains.stop();
    let (during, met, time) = found(&disturbed, &trains);
    println!(
        "{during} trains of {writes} SMIs: {met} meet gaps without events, {} ns",
        time.get()
    );
    assert!(during > 10, "{during} trains");
    assert!(met * 10 >= during * 9, "{met} of {during}");
    match (firmware(&quiet), firmware(&disturbed)) {
        (None, None) => {
            let unknown = &disturbed.hardware.as_ref().unwrap().unknown["smis"];
            println!("not counted: {unknown}");
        }
        (Some(quiet), Some(disturbed)) => {
            println!(
                "counted: {} without trains, {} with them",
                quiet.smis, disturbed.smis
            );
            println!("bound: {} ns", disturbed.unexplained_max_ns.get());
            assert_eq!((quiet.smis, quiet.unexplained_max_ns), (0, Nanos::ZERO));
            assert!((during as u64..=writes).contains(&disturbed.smis), "{disturbed:?}");
            assert!(disturbed.unexplained_max_ns >= time, "{disturbed:?}");
        }
        differing => panic!("{differing:?}"),
    }
}
