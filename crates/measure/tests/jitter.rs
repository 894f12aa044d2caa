//! Jitter on this machine: every workload runs as often as requested, and events are handled on
//! another CPU.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

use std::sync::atomic::Ordering;

use facts::{Facts, Root};
use measure::{Control, Notice, Stop};
use recording::Spec;
use recording::{
    Body, Code, JitterPlan, JitterSeries, JitterSoFar, JitterSpec, Recording,
};
use units::{Cpu, CpuSet, LengthUnit, Nanos, TscDelta};

/// Records what is reported.
struct NoticeLog {
    stop: Stop,
    /// Requests the stop as soon as the tests begin.
    stops: bool,
    plans: Vec<JitterPlan>,
    last: Option<JitterSoFar>,
    cpus: CpuSet,
}

impl NoticeLog {
    fn new(stops: bool) -> Self {
        let stop = Stop::new().unwrap();
        Self { stop, stops, plans: Vec::new(), last: None, cpus: CpuSet::empty() }
    }
}

impl NoticeLog {
    fn note(&mut self, notice: Notice<'_>) {
        match notice {
            Notice::Plan(plan) => {
                self.plans.push(*plan);
                self.stop.flag().store(self.stops, Ordering::Relaxed);
            }
            Notice::Jitter { so_far, .. } => {
                assert!(self.last.is_none_or(|last| last.tests < so_far.tests));
                self.last = Some(*so_far);
                self.cpus = self.cpus.iter().chain(isolate::current_cpu()).collect();
            }
            Notice::Progress { .. }
            | Notice::Doubt(_)
            | Notice::Ticks(_)
            | Notice::NeverReturns(_) => {}
        }
    }
}

fn measured(spec: JitterSpec, log: &mut NoticeLog) -> Result<Recording, measure::Error> {
    let (stop, period) = (log.stop.clone(), Some(Nanos::from_millis(1)));
    let control = Control { stop, period, ..Control::new().unwrap() };
    measure::run(
        &Spec::Jitter(spec),
        &Facts::read(&Root::live()),
        &control,
        &mut |notice| log.note(notice),
    )
}

fn allowed() -> CpuSet {
    Facts::read(&Root::live()).cpus.allowed.get().unwrap().clone()
}

fn spec(workload: &str) -> JitterSpec {
    JitterSpec {
        cpu: allowed().first().unwrap(),
        workload: workload.parse().unwrap(),
        tests: Some(3),
        loops: Some(2),
        duration_ns: None,
        unit: LengthUnit::Ns,
        fifo: None,
        trigger: recording::Trigger::default(),
    }
}

fn run(spec: JitterSpec, log: &mut NoticeLog) -> (Recording, JitterSeries) {
    let recording = measured(spec, log).unwrap();
    let Body::Jitter { series, .. } = recording.body.clone() else { panic!() };
    (recording, series)
}

/// Check that each workload takes time in each of its loops, that the last event equals the
/// recording, and that events are handled on another CPU, with the affinity restored afterwards.
#[test]
fn workloads_take_time() {
    for workload in ["tif", "memory:256K", "compute", "syscall"] {
        let (spec, mut log) = (spec(workload), NoticeLog::new(false));
        let (_, series) = run(spec.clone(), &mut log);
        assert_eq!(series.tests.len(), 3, "{workload}");
        for test in &series.tests {
            // No CPU makes 5,000 steps of any workload in a microsecond.
            assert!(series.clock_hz.span(test.fastest) > Nanos::from_micros(1));
            assert_eq!(test.sum, test.fastest.saturating_add(test.slowest));
        }
        assert_eq!(log.plans, [series.plan]);
        let (last, jitters) =
            (log.last.unwrap(), series.tests.iter().map(|t| t.jitter()));
        assert_eq!(last.tests, 3);
        let sum = jitters.fold(TscDelta::default(), TscDelta::saturating_add);
        assert_eq!((last.sum, last.last), (sum, series.tests[2].jitter()));
        if allowed().len() > 1 {
            assert!(!log.cpus.contains(spec.cpu), "events on {}", log.cpus);
        }
    }
    let all: CpuSet = allowed();
    assert_eq!(Facts::read(&Root::live()).cpus.allowed.get(), Some(&all));
}

/// Check that the stop request ends a run of an hour, after at least one loop, and that what was
/// measured until then is reported, with a doubt.
#[test]
fn stops_when_told() {
    let hour = Some(Nanos::from_secs(3600));
    let asked = JitterSpec { tests: None, duration_ns: hour, ..spec("compute") };
    let (recording, series) = run(asked, &mut NoticeLog::new(true));
    assert!(series.tests.is_empty());
    assert_eq!(series.unfinished.map(|test| test.loops), Some(1));
    let codes: Vec<Code> = recording.doubts.iter().map(|doubt| doubt.code).collect();
    assert!(codes.contains(&Code::Interrupted), "{codes:?}");
    assert!(codes.contains(&Code::NothingMeasured), "{codes:?}");
}

/// Check that the duration ends a run, and that the CPU is the requested one.
#[test]
fn ends_with_its_time() {
    let cpu = allowed().iter().last().unwrap();
    let duration_ns = Some(Nanos::from_millis(30));
    let asked = JitterSpec { cpu, tests: None, duration_ns, ..spec("compute") };
    let (recording, series) = run(asked, &mut NoticeLog::new(false));
    assert!(series.elapsed_ns >= Nanos::from_millis(29), "{:?}", series.elapsed_ns);
    let moved = recording.doubts.iter().any(|doubt| doubt.code == Code::Migrated);
    assert!(!moved, "{:?}", recording.doubts);
}

/// Check that a CPU, a library and a size that are not available are refused as such.
#[test]
fn refusals() {
    let kind = |spec| measured(spec, &mut NoticeLog::new(false)).unwrap_err().kind();
    let absent = JitterSpec { cpu: Cpu::new(60_000), ..spec("tif") };
    assert_eq!(kind(absent), measure::Kind::Isolate(isolate::Kind::Cpuset));
    assert_eq!(kind(spec("exec:/nothing/here.so")), measure::Kind::Spec);
    assert_eq!(kind(spec("memory:4000000G")), measure::Kind::System);
}
