//! Jitter: one pinned thread repeats a workload; the jitter of a test is the time of its slowest
//! loop minus that of its fastest.
//!
//! The measuring thread neither sleeps nor prints from the first test to the last. Another thread,
//! on another CPU if there is one, periodically reads its progress.
//!
//! Cannot see: what slowed a loop down, and what slows all of them alike.

pub(crate) mod library;
pub mod test_loop;
pub mod work;
pub(crate) mod worker;

use std::sync::mpsc::{Receiver, channel};
use std::thread::scope;

use facts::Facts;
use isolate::Retain;
use recording::{
    Code, Doubt, JitterPlan, JitterSeries, JitterSpec, LoopTimes, ProcCounts, Trigger,
    Workload,
};
use units::{Cpu, CpuSet, Nanos, Tsc, TscDelta, TscHz};

use crate::clock::Clock;
use crate::control::moments::{OnMoment, check_trigger};
use crate::control::observer::{Control, Notice, Watch};
use crate::control::stop::Stop;
use crate::jitter::test_loop::{Board, JitterResult, TestLimits, run as run_tests};
use crate::jitter::work::{Work, prepare};
use crate::jitter::worker::Worker;
use crate::nohz::stop_tick;
use crate::proc_counters::{ProcCounters, ThreadTime};
use crate::threads::thread::{block_signals, died, start};
use crate::time::counter;
use crate::time::mark;
use crate::{Error, Kind, check_length, check_priority, doubts};

/// The default duration.
const DURATION: Nanos = Nanos::from_secs(20);
/// That many tests determine their p99.
const ENOUGH: u64 = 100;
/// The number of tests planned for that time: more than needed, as interruptions lengthen them.
const TESTS: u64 = 125;
/// The default and the largest number of loops per test.
const LOOPS: u32 = 1_000;
/// The smallest and the largest capacity in tests: 1.5 MiB, and 96 MiB. The duration of a test is
/// estimated from a short warm-up, in which other tasks may have used the CPU.
const CAPACITY_MIN: u64 = 1 << 16;
const CAPACITY_MAX: u64 = 1 << 22;
/// How long the workload runs before, to estimate the duration of one run.
const WARM_UP: Nanos = Nanos::from_millis(50);
/// A workload that has not returned for that long after the end is assumed to hang.
const PATIENCE: Nanos = Nanos::from_secs(5);
/// The estimate is the median of that many runs, the last ones.
const MEDIAN_OF: usize = 512;

/// Runs the tests.
pub(crate) fn run(
    spec: &JitterSpec,
    facts: &Facts,
    watch: &mut Watch<'_>,
    doubts: &mut Vec<Doubt>,
) -> Result<JitterSeries, Error> {
    refuse(spec, facts)?;
    let clock = Clock::calibrate()?;
    let whole = measure(spec, clock.estimate(), facts, watch)?;
    let after = ProcCounters::now();
    let (hz, of_clock) = clock.finish(facts);
    doubts.extend(of_clock);
    doubts.extend(after.doubts());
    doubts.extend(whole.ended.tick.clone());
    doubts.extend(doubts_of(&whole, spec, hz, facts));
    Ok(whole.series(spec.cpu, hz, &after, facts))
}

/// Refuses an invalid specification, and one that would leave the machine no CPU time.
pub(crate) fn refuse(spec: &JitterSpec, facts: &Facts) -> Result<(), Error> {
    let refused = |text: &str| Err(Error::new(Kind::Spec, text));
    if let Some(duration) = spec.duration_ns {
        check_length("the duration", duration)?;
    }
    if spec.tests == Some(0) || spec.loops == Some(0) {
        return refused("at least one test of one loop is needed");
    }
    if spec.tests.is_some() && spec.duration_ns.is_some() {
        return refused("the number of tests and the duration exclude each other");
    }
    check_trigger("jitter", spec.trigger)?;
    work::refuse(&spec.workload)?;
    check_priority(spec.fifo, &CpuSet::from_iter([spec.cpu]), facts)
}

/// The upper limit of its duration, if one is given.
pub(crate) fn max_duration(spec: &JitterSpec) -> Option<Nanos> {
    let usual = spec.tests.is_none().then_some(DURATION);
    spec.duration_ns.or(usual).map(|length| length + WARM_UP)
}

/// The plan, for an estimated duration of one run of the workload.
fn plan(spec: &JitterSpec, loop_ns: Nanos) -> JitterPlan {
    let is_free = spec.tests.is_none() && spec.duration_ns.is_none();
    let fitting = || {
        let loops = DURATION.get() / TESTS / loop_ns.get().max(1);
        u32::try_from(loops).unwrap_or(LOOPS).clamp(2, LOOPS)
    };
    let usual = if is_free { fitting() } else { LOOPS };
    JitterPlan {
        loops: spec.loops.unwrap_or(usual),
        tests: spec.tests,
        duration_ns: spec.duration_ns.or(is_free.then_some(DURATION)),
        loop_ns,
    }
}

/// The parameters of the measuring thread: how much to do, and the capacity in tests.
#[derive(Debug, Clone, Copy)]
struct Start {
    limits: TestLimits,
    capacity: usize,
}

impl Start {
    fn of(plan: &JitterPlan, trigger: Trigger, hz: TscHz) -> Self {
        let forever = TscDelta::from_ticks(u64::MAX >> 1);
        let limits = TestLimits {
            loops: plan.loops,
            tests: plan.tests.map_or(u64::MAX, u64::from),
            length: plan.duration_ns.map_or(forever, |duration| hz.ticks(duration)),
            above: trigger.stop_above_ns.map(|above| (hz.ticks(above), hz)),
        };
        // Loops may turn out to be twice as fast.
        let test_ns = plan.loop_ns.saturating_mul(u64::from(plan.loops)).get().max(1);
        let fitting = plan.duration_ns.map_or(u64::MAX, |all| all.get() / test_ns * 2);
        let capacity = limits.tests.min(fitting.clamp(CAPACITY_MIN, CAPACITY_MAX));
        Self { limits, capacity: usize::try_from(capacity).unwrap_or(0) }
    }
}

/// The raw data of a run, in ticks of the counter.
struct RawRun {
    plan: JitterPlan,
    before: ProcCounters,
    ended: Ended,
}

/// What the measuring thread returns.
struct Ended {
    result: JitterResult,
    /// The counter and `CLOCK_MONOTONIC` before and after the tests.
    clock: [(Tsc, Nanos); 2],
    proc: ProcCounts,
    /// The CPU of the thread when it ended.
    ended_on: Option<Cpu>,
    /// The doubt if its tick should have stopped, and did not.
    tick: Option<Doubt>,
}

impl Ended {
    /// A time since the first loop's start on `CLOCK_MONOTONIC`. That clock is adjusted to the time of
    /// a network, so that its rate is that between the two readings.
    fn monotonic(&self, since: TscDelta) -> Nanos {
        let [(begin, time), (end, last)] = self.clock;
        let ticks = u128::from(end.since(begin).ticks()).max(1);
        let passed = u128::from(last.saturating_sub(time).get());
        let since = self.result.began.plus(since).since(begin).ticks();
        let since = u128::from(since) * passed / ticks;
        time + Nanos::from_nanos(u64::try_from(since).unwrap_or(u64::MAX))
    }
}

impl RawRun {
    fn series(
        self,
        cpu: Cpu,
        clock_hz: TscHz,
        after: &ProcCounters,
        facts: &Facts,
    ) -> JitterSeries {
        let ended = &self.ended;
        let slowest_at = ended.result.slowest_at().iter();
        let slowest_at_ns = slowest_at.map(|at| ended.monotonic(*at)).collect();
        let began = ended.monotonic(TscDelta::default());
        let Ended { result, proc, .. } = self.ended;
        JitterSeries {
            clock: counter::NAME.to_owned(),
            clock_hz,
            plan: self.plan,
            began_ns: Some(began),
            elapsed_ns: clock_hz.span(result.elapsed),
            tests: result.tests().to_vec(),
            slowest_at_ns,
            source: None,
            blamed: None,
            lost: result.lost,
            unfinished: result.unfinished,
            backwards: result.backwards,
            proc: ProcCounts {
                preempted: proc.preempted,
                waited_ns: proc.waited_ns,
                ..after.since(&self.before, cpu, facts)
            },
        }
    }
}

/// Pins the measuring thread, starts it, and waits until it has ended.
fn measure(
    spec: &JitterSpec,
    hz: TscHz,
    facts: &Facts,
    watch: &mut Watch<'_>,
) -> Result<RawRun, Error> {
    let (control, board) = (watch.control, &Board::default());
    let _elsewhere = isolate::AvoidedCpus::new(spec.cpu);
    let (worker, mut ends) = Worker::pair(control.stop.clone())?;
    scope(|scope| {
        let (ready, is_ready) = channel();
        let (begin, is_begun) = channel();
        let thread = start(scope, "jitter", move || {
            work(
                spec,
                facts,
                control,
                board,
                |ticks| worker.report(&ready, ticks),
                &is_begun,
            )
        })?;
        // The thread was started with the capabilities that it needs; the library must have none.
        if matches!(spec.workload, Workload::Exec(_)) {
            isolate::drop_capabilities(Retain::Nothing)?;
        }
        ends.wait(watch, max_duration(spec), PATIENCE, |_| {});
        let loop_ticks = is_ready.recv().unwrap_or_else(|_| Err(died("jitter")))?;
        let plan = plan(spec, hz.span(loop_ticks));
        (watch.listener)(Notice::Plan(&plan));
        let before = ProcCounters::now();
        // A thread that has ended early is noticed when it is joined.
        let _ = begin.send(Start::of(&plan, spec.trigger, hz));
        let patience = PATIENCE.max(plan.loop_ns.saturating_mul(3));
        let mut reported = 0;
        ends.wait(watch, plan.duration_ns, patience, |watch| {
            if let Some(so_far) = board.read().filter(|so_far| so_far.tests > reported) {
                reported = so_far.tests;
                (watch.listener)(Notice::Jitter { so_far: &so_far, hz });
            }
        });
        let ended = thread.join().ok().flatten().ok_or_else(|| died("jitter"))?;
        Ok(RawRun { plan, before, ended })
    })
}

/// The thread's main function; `None` if it could not be pinned or was never started.
fn work(
    spec: &JitterSpec,
    facts: &Facts,
    control: &Control,
    board: &Board,
    ready: impl FnOnce(Result<TscDelta, Error>),
    begin: &Receiver<Start>,
) -> Option<Ended> {
    let Control { stop, moments, .. } = control;
    let (mut work, loop_ticks) = match seat(spec, stop) {
        Ok(seated) => seated,
        Err(error) => {
            ready(Err(error));
            return None;
        }
    };
    ready(Ok(loop_ticks));
    let Start { limits, capacity } = begin.recv().ok()?;
    let mut result = JitterResult::with_capacity(capacity);
    let before = ThreadTime::now();
    let tick = stop_tick(spec.cpu, facts, stop.as_atomic());
    // The thread has slept: warm up the caches again.
    work.once();
    let moments = OnMoment::of(stop.as_atomic(), moments, spec.cpu);
    let clock = counter::read_with(libc::CLOCK_MONOTONIC);
    mark::begin();
    run_tests(limits, &mut *work, moments, board, &mut result);
    mark::end();
    let clock = [clock, counter::read_with(libc::CLOCK_MONOTONIC)];
    let mut proc = ProcCounts::default();
    ThreadTime::now().add_since(before, &mut proc);
    Some(Ended { result, clock, proc, ended_on: isolate::current_cpu(), tick })
}

/// Takes the CPU, prepares the workload, and estimates the duration of one run.
fn seat(spec: &JitterSpec, stop: &Stop) -> Result<(Box<dyn Work>, TscDelta), Error> {
    block_signals();
    isolate::pin_with_priority(spec.cpu, spec.fifo)?;
    let mut work = prepare(&spec.workload)?;
    let loop_ticks = warm_up(&mut *work, stop);
    Ok((work, loop_ticks))
}

/// Runs the workload for a while; returns the median duration of its last runs, which a long
/// interruption of one does not change. The first run counts only if it is the only one.
fn warm_up(work: &mut dyn Work, stop: &Stop) -> TscDelta {
    let now = || counter::kernel(libc::CLOCK_MONOTONIC_RAW);
    let until = now() + WARM_UP;
    let (mut last, mut loops) = ([TscDelta::default(); MEDIAN_OF], 0);
    let first = timed(work);
    while now() < until && !stop.is_requested() {
        last[loops % MEDIAN_OF] = timed(work);
        loops += 1;
    }
    let kept = &mut last[..loops.min(MEDIAN_OF)];
    kept.sort_unstable();
    kept.get(kept.len() / 2).copied().unwrap_or(first)
}

/// The duration of one run of the workload.
fn timed(work: &mut dyn Work) -> TscDelta {
    let before = counter::now();
    work.once();
    counter::now().since(before)
}

/// Doubts of the tests and the thread, and of CPU time that the kernel reserves for ordinary tasks.
fn doubts_of(whole: &RawRun, spec: &JitterSpec, hz: TscHz, facts: &Facts) -> Vec<Doubt> {
    let alone = CpuSet::from_iter([spec.cpu]);
    let text = |words| format!("{}: {words}", doubts::label(&alone));
    let doubts_if = of_tests(whole).into_iter().chain(of_thread(whole, spec.cpu));
    let doubts_if = doubts_if.filter(|(is_so, ..)| *is_so);
    let mut doubts: Vec<Doubt> =
        doubts_if.map(|(_, code, words)| Doubt::new(code, text(words))).collect();
    let slow = |test: &LoopTimes| hz.span(test.jitter()) > doubts::THROTTLED_MIN;
    if spec.fifo.is_some() && whole.ended.result.tests().iter().any(slow) {
        doubts.extend(doubts::of_fifo(&alone, facts));
    }
    doubts
}

/// A condition and its doubt.
type DoubtIf = (bool, Code, &'static str);

/// Too few or too short tests, and those beyond the capacity.
fn of_tests(whole: &RawRun) -> [DoubtIf; 4] {
    let kept = u64::try_from(whole.ended.result.tests().len()).unwrap_or(u64::MAX);
    let made = kept.saturating_add(whole.ended.result.lost.map_or(0, |lost| lost.tests));
    [
        (
            made == 0,
            Code::NothingMeasured,
            "no test was complete at the end: no jitter was measured; a smaller -l makes \
             tests shorter",
        ),
        (
            made > 0 && whole.plan.loops == 1,
            Code::TooShort,
            "a test of one loop has nothing to compare it with: its jitter is always 0",
        ),
        (
            (1..ENOUGH).contains(&made),
            Code::TooShort,
            "fewer than 100 tests: their p99 is their largest jitter",
        ),
        (
            whole.ended.result.lost.is_some(),
            Code::TestsLost,
            "more tests than the buffer holds: all are counted and summed, but the later \
             ones are missing in median, p99 and histogram; a larger -l makes fewer",
        ),
    ]
}

/// A counter that was set back, and a wrong CPU.
fn of_thread(whole: &RawRun, cpu: Cpu) -> [DoubtIf; 2] {
    [
        (
            whole.ended.result.backwards > 0,
            Code::ClockBackwards,
            "the counter went backwards during the run",
        ),
        (
            whole.ended.ended_on.is_some_and(|ended| ended != cpu),
            Code::Migrated,
            "the measuring thread was moved to another CPU: something changed its affinity, \
             or the CPU went offline",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::LengthUnit;

    fn spec() -> JitterSpec {
        JitterSpec {
            cpu: Cpu::new(0),
            workload: Workload::Tif,
            tests: None,
            loops: None,
            duration_ns: None,
            unit: LengthUnit::Ns,
            fifo: None,
            trigger: recording::Trigger::default(),
        }
    }

    fn no_facts() -> Facts {
        serde_json::from_str(r#"{"sources": {}, "unknown": {}}"#).unwrap()
    }

    /// Check the defaults: 125 tests in 20 s, of 2 to 1000 loops; and that requested values are
    /// used, with 1000 loops if only others are given.
    #[test]
    fn plans() {
        let loops = |loop_us| plan(&spec(), Nanos::from_micros(loop_us)).loops;
        assert_eq!(
            [0, 1, 160, 1_000, 150_000, u64::MAX].map(loops),
            [1_000, 1_000, 1_000, 160, 2, 2]
        );
        let free = plan(&spec(), Nanos::from_millis(1));
        assert_eq!((free.tests, free.duration_ns), (None, Some(DURATION)));
        let asked = JitterSpec { tests: Some(7), ..spec() };
        let planned = plan(&asked, Nanos::from_millis(1));
        assert_eq!((planned.loops, planned.tests), (1_000, Some(7)));
        assert_eq!(planned.duration_ns, None);
        let asked = JitterSpec { loops: Some(3), ..spec() };
        let planned = plan(&asked, Nanos::from_millis(1));
        assert_eq!((planned.loops, planned.duration_ns), (3, Some(DURATION)));
        let asked = JitterSpec { duration_ns: Some(Nanos::from_secs(60)), ..spec() };
        let planned = plan(&asked, Nanos::from_millis(1));
        assert_eq!((planned.loops, planned.tests), (1_000, None));
    }

    /// Check that an interrupted run does not make all others seem long, and that one run is
    /// enough.
    #[test]
    fn interrupted_warm_ups() {
        struct Interrupted(u32);
        impl Work for Interrupted {
            fn once(&mut self) {
                let length = if self.0 == 3 { 30 } else { 1 };
                self.0 += 1;
                std::thread::sleep(std::time::Duration::from_millis(length));
            }
        }
        let hz = Clock::calibrate().unwrap().estimate();
        let stop = Stop::new().unwrap();
        let took = hz.span(warm_up(&mut Interrupted(0), &stop));
        assert!(took < Nanos::from_millis(15), "{took:?}");
        stop.flag().store(true, std::sync::atomic::Ordering::Relaxed);
        let took = hz.span(warm_up(&mut Interrupted(3), &stop));
        assert!(took >= Nanos::from_millis(29), "{took:?}");
    }

    /// Check that the capacity suffices for the plan, and has an upper limit.
    #[test]
    fn room_for_tests() {
        let hz = TscHz::new(1_000_000_000).unwrap();
        let capacity = |asked: &JitterSpec, loop_ns| {
            let plan = plan(asked, Nanos::from_nanos(loop_ns));
            Start::of(&plan, Trigger::default(), hz).capacity
        };
        assert_eq!(capacity(&JitterSpec { tests: Some(7), ..spec() }, 50), 7);
        // However long a run took before.
        assert_eq!(capacity(&spec(), 1_000_000), 1 << 16);
        let most = usize::try_from(CAPACITY_MAX).unwrap();
        assert_eq!(capacity(&JitterSpec { tests: Some(u32::MAX), ..spec() }, 50), most);
        assert_eq!(capacity(&JitterSpec { loops: Some(1), ..spec() }, 0), most);
    }

    /// Check that invalid specifications are refused before anything runs.
    #[test]
    fn nonsense_is_refused() {
        for nonsense in [
            JitterSpec { tests: Some(0), ..spec() },
            JitterSpec { loops: Some(0), ..spec() },
            JitterSpec { duration_ns: Some(Nanos::ZERO), ..spec() },
            JitterSpec { duration_ns: Some(DURATION), tests: Some(1), ..spec() },
            JitterSpec { fifo: Some(0), ..spec() },
            JitterSpec { fifo: Some(100), ..spec() },
        ] {
            let refused = refuse(&nonsense, &no_facts()).unwrap_err();
            assert_eq!(refused.kind(), Kind::Spec, "{nonsense:?}");
        }
        refuse(&spec(), &no_facts()).unwrap();
    }

    fn result(tests: u64, loops: u32, capacity: usize) -> JitterResult {
        struct Nothing;
        impl Work for Nothing {
            fn once(&mut self) {}
        }
        let length = TscDelta::from_ticks(u64::MAX >> 1);
        let never = std::sync::atomic::AtomicBool::new(false);
        let mut result = JitterResult::with_capacity(capacity);
        let limits = TestLimits { loops, tests, length, above: None };
        let moments = OnMoment::stopping(&never);
        run_tests(limits, &mut Nothing, moments, &Board::default(), &mut result);
        result
    }

    fn whole(tests: u64, loops: u32, ended_on: u32) -> RawRun {
        RawRun {
            plan: plan(&JitterSpec { loops: Some(loops), ..spec() }, Nanos::ZERO),
            before: ProcCounters::now(),
            ended: Ended {
                result: result(tests, loops, 200),
                clock: [(Tsc::from_counter(0), Nanos::ZERO); 2],
                proc: ProcCounts::default(),
                ended_on: Some(Cpu::new(ended_on)),
                tick: None,
            },
        }
    }

    /// Check that the beginnings of loops are converted with the rate between the two readings.
    #[test]
    fn times_of_slow_loops() {
        let mut ended = whole(2, 3, 0).ended;
        ended.result.began = Tsc::from_counter(110);
        let since: Vec<u64> =
            ended.result.slowest_at().iter().map(|at| at.ticks()).collect();
        let reading = |ticks, ns| (Tsc::from_counter(ticks), Nanos::from_nanos(ns));
        ended.clock = [reading(100, 1_000), reading(300, 1_400)];
        let expected = since.iter().map(|since| Nanos::from_nanos(1_020 + since * 2));
        let slowest_at = ended.result.slowest_at().iter();
        let slowest_at = slowest_at.map(|at| ended.monotonic(*at));
        assert_eq!(slowest_at.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    }

    /// Check what causes a doubt, and that a good run has none.
    #[test]
    fn doubtful_runs() {
        let hz = TscHz::new(1_000_000_000).unwrap();
        let codes = |whole: &RawRun| -> Vec<Code> {
            let doubts = doubts_of(whole, &spec(), hz, &no_facts());
            doubts.iter().map(|doubt| doubt.code).collect()
        };
        assert_eq!(codes(&whole(100, 2, 0)), []);
        assert_eq!(codes(&whole(99, 2, 0)), [Code::TooShort]);
        assert_eq!(codes(&whole(100, 1, 0)), [Code::TooShort]);
        assert_eq!(codes(&whole(0, 2, 0)), [Code::NothingMeasured]);
        assert_eq!(codes(&whole(201, 2, 0)), [Code::TestsLost]);
        let mut few = whole(20, 2, 0);
        few.ended.result = result(120, 2, 20);
        assert_eq!(codes(&few), [Code::TestsLost]);
        assert_eq!(codes(&whole(100, 2, 1)), [Code::Migrated]);
        let mut back = whole(100, 2, 0);
        back.ended.result.backwards = 1;
        assert_eq!(codes(&back), [Code::ClockBackwards]);
    }
}
