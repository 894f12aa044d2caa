//! System management interrupts (SMIs), which the kernel does not see: found as gaps without events, and
//! counted.
//!
//! In a guest of QEMU's machine `pc` a write to the port of ACPI's power management command raises one.
//! Elsewhere it would command the firmware; so the tests run only where `NOISEFLOOR_TEST_SMI` says that
//! this is such a guest. The same writes to a port that raises nothing are the comparison. QEMU interrupts
//! the first CPU only, so that the second sign of an SMI, gaps of all CPUs at the same moment, is tested
//! without a guest.

use std::arch::asm;
use std::thread::{Builder, sleep, spawn};
use std::time::Duration;

use blame::{TypicalEdges, Watcher};
use facts::{Facts, Root, smi_event};
use isolate::PerfCounter;
use measure::Control;
use recording::{
    Body, CpuHardware, CpuNoise, CulpritKind, HardwareCounts, Moments, NoiseSeries,
    NoiseSpec, ProcCounts, Recording, Source, Spec, Trigger,
};
use units::{Cpu, Nanos, Span, TscHz};

use crate::CPU;
use crate::injector::now;

/// The port, and a command that no firmware knows; a port of the same kind that raises nothing.
const SMI: u16 = 0xb2;
const NOTHING: u16 = 0x80;
const COMMAND: u8 = 0;
/// The only CPU.
const FIRST: Cpu = Cpu::new(0);
const RUN: Nanos = Nanos::from_millis(500);
/// A train of writes, and the time from one to the next: not a multiple of a fraction of the tick, so that
/// trains begin at all distances from it, wherever the first one is. Otherwise each fourth train or none
/// would have a tick, depending on the build.
const WRITES: u64 = 2_000;
const PERIOD: Nanos = Nanos::from_micros(9_130);
/// Longer than a pass of the loop below.
const THRESHOLD: Nanos = Nanos::from_micros(2);

/// The reason why SMIs are not raised here.
fn refuse() -> Option<&'static str> {
    let is_guest = std::env::var_os("NOISEFLOOR_TEST_SMI").is_some();
    (!is_guest).then_some("no SMIs are raised outside of a guest for that")
}

fn permit(port: u16) {
    // SAFETY: grants this thread a port, which only `write` uses.
    let granted = unsafe { libc::ioperm(port.into(), 1, 1) };
    assert_eq!(granted, 0, "{}", std::io::Error::last_os_error());
}

fn write(port: u16, times: u64) {
    for _ in 0..times {
        // SAFETY: this thread may write to the port; the firmware of this guest ignores the command.
        unsafe { asm!("out dx, al", in("dx") port, in("al") COMMAND) };
    }
}

/// A loop that reads the clock, and periodically writes to the port: for the kernel it runs all the time.
struct Loop {
    began: Nanos,
    elapsed: Nanos,
    gaps: Vec<Span>,
    /// The indices of the gaps in which it wrote.
    trains: Vec<usize>,
}

impl Loop {
    /// Runs it in a thread whose name tells the tracer that it is the loop.
    fn run(port: u16) -> Self {
        let life = move || {
            permit(port);
            // The tracer sees the name when the thread is switched to.
            sleep(Duration::from_millis(1));
            Self::spin(port)
        };
        Builder::new().name(format!("spin/{FIRST}")).spawn(life).unwrap().join().unwrap()
    }

    fn spin(port: u16) -> Self {
        let now = || now(libc::CLOCK_MONOTONIC);
        let (mut gaps, mut trains) =
            (Vec::with_capacity(10_000), Vec::with_capacity(1_000));
        let began = now();
        let (mut last, mut next) = (began, began + PERIOD);
        while last < began + RUN {
            let is_due = last >= next;
            if is_due {
                write(port, WRITES);
                next = next + PERIOD;
            }
            let time = now();
            let length = time.saturating_sub(last);
            if length > THRESHOLD {
                trains.extend(is_due.then_some(gaps.len()));
                gaps.push(Span { start: last.saturating_sub(began), length });
            }
            last = time;
        }
        Self { began, elapsed: last.saturating_sub(began), gaps, trains }
    }

    fn series(&self) -> NoiseSeries {
        let cpu = CpuNoise {
            cpu: FIRST,
            began_ns: Nanos::ZERO,
            elapsed_ns: self.elapsed,
            phases: Vec::new(),
            loop_ns: Nanos::ZERO,
            passes: 0,
            gaps: self.gaps.clone(),
            lost: None,
            blamed: None,
            backwards: 0,
            proc: ProcCounts::default(),
        };
        let ends = [Nanos::ZERO, self.elapsed];
        NoiseSeries {
            clock: "monotonic".to_owned(),
            clock_hz: TscHz::new(1_000_000_000).unwrap(),
            began_raw_ns: Nanos::ZERO,
            monotonic: Some(ends.map(|since| (since, self.began + since))),
            source: None,
            threshold_ns: THRESHOLD,
            cpus: vec![cpu],
        }
    }
}

fn spec() -> NoiseSpec {
    NoiseSpec {
        cpus: FIRST.into(),
        duration_ns: RUN,
        threshold_ns: None,
        fifo: None,
        trigger: Trigger::default(),
        phases: None,
        at_scale: None,
    }
}

/// A recording whose loop wrote to the port, with its causes; and which of its gaps are trains.
fn trains(port: u16, facts: &Facts) -> (Recording, Vec<usize>) {
    let counter = smi_event(&Root::live()).ok();
    let counter =
        counter.map(|event| PerfCounter::open(event.pmu, event.config, FIRST).unwrap());
    let watching =
        Watcher::open(&FIRST.into(), Some(Source::Bpf), facts).unwrap().begin();
    let ran = Loop::run(port);
    let events = watching.end();
    let smis = counter.map(|counter| counter.read().unwrap());
    let cpu = CpuHardware {
        cpu: FIRST,
        smis,
        throttled: None,
        frequency: None,
        machine_checks: None,
        machine_check_polls: None,
    };
    let mut recording = Recording {
        taken: String::new(),
        tool: String::new(),
        facts: facts.clone(),
        body: Body::Noise { spec: spec(), series: ran.series() },
        doubts: Vec::new(),
        moments: Moments::default(),
        hardware: Some(HardwareCounts { cpus: vec![cpu], ..HardwareCounts::default() }),
        repeat: None,
    };
    events.blame_in(&mut recording, false, &TypicalEdges::default());
    (recording, ran.trains)
}

fn noise(recording: &Recording) -> &CpuNoise {
    let Body::Noise { series, .. } = &recording.body else {
        unreachable!("asked for noise")
    };
    &series.cpus[0]
}

/// The lengths of those of these gaps that are unexplained as a whole, in rising order.
fn eventless(cpu: &CpuNoise, gaps: &[usize]) -> Vec<Nanos> {
    let blamed = cpu.blamed.as_ref().unwrap();
    let is_whole = |gap: usize| {
        let mut shares = blamed.shares.iter().filter(|share| share.gap == gap);
        shares
            .all(|share| blamed.culprits[share.culprit].kind == CulpritKind::Unexplained)
    };
    let whole =
        gaps.iter().filter(|gap| is_whole(**gap)).map(|gap| cpu.gaps[*gap].length);
    let mut whole: Vec<Nanos> = whole.collect();
    whole.sort_unstable();
    whole
}

/// Check that trains of SMIs are gaps without events, several times as long as the same writes to another
/// port; that each SMI is counted, if the processor counts them; and what that proves.
#[test]
fn trains_of_smis() {
    let _turn = CPU.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(why) = refuse() {
        return println!("skipped: trains_of_smis: {why}");
    }
    let facts = Facts::read(&Root::live());
    let [(quiet, writes), (disturbed, trains)] =
        [NOTHING, SMI].map(|port| trains(port, &facts));
    let [written, found] = [(&quiet, &writes), (&disturbed, &trains)]
        .map(|(recording, gaps)| eventless(noise(recording), gaps));
    println!("{} trains of {WRITES} SMIs, {} without events", trains.len(), found.len());
    assert!(trains.len() > 20 && found.len() * 10 >= trains.len() * 8);
    let typical = |lengths: &[Nanos]| lengths[lengths.len() / 2];
    let [write, smi] = [typical(&written), typical(&found)].map(Nanos::get);
    println!("a train takes {smi} ns, the same writes to another port {write} ns");
    assert!(smi > 5 * write);
    let firmware = |recording| noise(recording).blamed.as_ref().unwrap().firmware;
    let (Some(none), Some(some)) = (firmware(&quiet), firmware(&disturbed)) else {
        let why = facts.hardware.smi_event.value().unwrap_err();
        return println!("not counted: {why}");
    };
    println!("counted: {} without SMIs, {} with them", none.smis, some.smis);
    assert_eq!((none.smis, none.unexplained_max_ns), (0, Nanos::ZERO));
    assert_eq!(some.smis, trains.len() as u64 * WRITES);
    assert!(some.unexplained_max_ns >= found.into_iter().sum());
}

/// Check that the SMIs during a measurement are in its recording: all, and no others.
#[test]
fn smis_of_a_measurement() {
    let _turn = CPU.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(why) = refuse() {
        return println!("skipped: smis_of_a_measurement: {why}");
    }
    let facts = Facts::read(&Root::live());
    let counted = [NOTHING, SMI].map(|port| {
        // These counts are read where there is more than the measurement.
        let control = Control { has_neighbours: true, ..Control::new().unwrap() };
        let writer = spawn(move || {
            permit(port);
            sleep(Duration::from(RUN) / 2);
            write(port, WRITES);
        });
        let spec = Spec::Noise(spec());
        let recording = measure::run(&spec, &facts, &control, &mut measure::ignore);
        writer.join().unwrap();
        let counts = recording.unwrap().hardware.unwrap();
        (counts.cpus[0].smis, counts.unknown.get("smis").map(ToString::to_string))
    });
    println!("{counted:?}");
    match facts.hardware.smi_event.value() {
        Ok(_) => assert_eq!(counted, [(Some(0), None), (Some(WRITES), None)]),
        Err(_) => {
            assert!(counted.iter().all(|(smis, why)| smis.is_none() && why.is_some()))
        }
    }
}
