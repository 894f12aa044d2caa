//! Jitter: one thread that has its CPU runs a workload over and over; a test's jitter is
//! the time of its slowest loop less that of its fastest.
//!
//! The measuring thread sleeps and prints nothing from the first test to the last. Another
//! thread, on another CPU where there is one, looks now and then how far it is.
//!
//! Cannot see: what slowed a loop, and what slows all of them alike.

use std::sync::mpsc::{Receiver, channel};
use std::thread::scope;

use facts::Facts;
use isolate::Retain;
use recording::{
    Code, Doubt, JitterPlan, JitterSeries, JitterSpec, LoopTimes, Meanwhile, Workload,
};
use units::{Cpu, CpuSet, Nanos, TscDelta, TscHz};

use crate::clock::Clock;
use crate::jitter_loop::{Board, Course, Seen, run as run_tests};
use crate::meanwhile::{Counters, OwnTime};
use crate::nohz::stop_tick;
use crate::observer::{Event, Watch};
use crate::stop::Stop;
use crate::thread::{block_signals, died, start};
use crate::work::{self, Work, prepare};
use crate::worker::Worker;
use crate::{Error, Kind, counter, doubts, mark, sensible, sensible_priority};

/// How long it is measured where nothing is asked.
const DURATION: Nanos = Nanos::from_secs(20);
/// So many tests say what their p99 is.
const ENOUGH: u64 = 100;
/// How many tests are made of that time: enough, though what interrupts makes them longer.
const TESTS: u64 = 125;
/// How often a test runs the workload where nothing is asked, and at most.
const LOOPS: u32 = 1_000;
/// Room for at least and at most that many tests: 1.5 MiB, and 96 MiB. How long a test takes is
/// known from a short while only, in which others may have had the CPU.
const ROOM_MIN: u64 = 1 << 16;
const ROOM_MAX: u64 = 1 << 22;
/// How long the workload is run before, to learn how long one run takes.
const WARM_UP: Nanos = Nanos::from_millis(50);
/// A workload that has not returned for so long after the end does not return any more.
const PATIENCE: Nanos = Nanos::from_secs(5);
/// So many of its last runs then say how long one takes.
const MEDIAN_OF: usize = 512;

/// Runs the tests.
pub(crate) fn run(
    spec: &JitterSpec,
    facts: &Facts,
    watch: &mut Watch<'_>,
    doubts: &mut Vec<Doubt>,
) -> Result<JitterSeries, Error> {
    refuse(spec, facts)?;
    let clock = Clock::settle()?;
    let whole = measure(spec, clock.guess(), facts, watch)?;
    let after = Counters::now();
    let (hz, of_clock) = clock.over_the_run(facts);
    doubts.extend(of_clock);
    doubts.extend(after.doubts());
    doubts.extend(whole.tick.clone());
    doubts.extend(doubts_of(&whole, spec, hz, facts));
    Ok(whole.series(spec.cpu, hz, &after, facts))
}

/// Refuses what makes no sense, and what would take the whole machine over.
pub(crate) fn refuse(spec: &JitterSpec, facts: &Facts) -> Result<(), Error> {
    let refused = |text: &str| Err(Error::new(Kind::Spec, text));
    if let Some(duration) = spec.duration_ns {
        sensible("the duration", duration)?;
    }
    if spec.tests == Some(0) || spec.loops == Some(0) {
        return refused("there must be at least one test of one loop");
    }
    if spec.tests.is_some() && spec.duration_ns.is_some() {
        return refused("either so many tests or so much time");
    }
    work::refuse(&spec.workload)?;
    sensible_priority(spec.fifo, &CpuSet::from_iter([spec.cpu]), facts)
}

/// How long it takes at most, where a time is given.
pub(crate) fn longest(spec: &JitterSpec) -> Option<Nanos> {
    let usual = spec.tests.is_none().then_some(DURATION);
    spec.duration_ns.or(usual).map(|length| length + WARM_UP)
}

/// What is going to be done, where one run of the workload takes that long.
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

/// What the measuring thread is told: how much to do, and for how many tests to have room.
#[derive(Debug, Clone, Copy)]
struct Start {
    course: Course,
    room: usize,
}

impl Start {
    fn of(plan: &JitterPlan, hz: TscHz) -> Self {
        let forever = TscDelta::from_ticks(u64::MAX >> 1);
        let course = Course {
            loops: plan.loops,
            tests: plan.tests.map_or(u64::MAX, u64::from),
            length: plan.duration_ns.map_or(forever, |duration| hz.ticks(duration)),
        };
        // Loops may turn out to be twice as fast.
        let test_ns = plan.loop_ns.saturating_mul(u64::from(plan.loops)).get().max(1);
        let fitting = plan.duration_ns.map_or(u64::MAX, |all| all.get() / test_ns * 2);
        let room = course.tests.min(fitting.clamp(ROOM_MIN, ROOM_MAX));
        Self { course, room: usize::try_from(room).unwrap_or(0) }
    }
}

/// Everything a run leaves behind, still in ticks.
struct Whole {
    plan: JitterPlan,
    before: Counters,
    seen: Seen,
    meanwhile: Meanwhile,
    /// The CPU the thread was on when it ended.
    ended_on: Option<Cpu>,
    /// Why its tick did not stop, where it should have.
    tick: Option<Doubt>,
}

impl Whole {
    fn series(
        self,
        cpu: Cpu,
        clock_hz: TscHz,
        after: &Counters,
        facts: &Facts,
    ) -> JitterSeries {
        let seen = self.seen;
        JitterSeries {
            clock: counter::NAME.to_owned(),
            clock_hz,
            plan: self.plan,
            elapsed_ns: clock_hz.span(seen.elapsed),
            tests: seen.tests().to_vec(),
            lost: seen.lost,
            unfinished: seen.unfinished,
            backwards: seen.backwards,
            meanwhile: Meanwhile {
                preempted: self.meanwhile.preempted,
                waited_ns: self.meanwhile.waited_ns,
                ..after.since(&self.before, cpu, facts)
            },
        }
    }
}

/// Seats the measuring thread, tells it what to do, and waits until it has done it.
fn measure(
    spec: &JitterSpec,
    hz: TscHz,
    facts: &Facts,
    watch: &mut Watch<'_>,
) -> Result<Whole, Error> {
    let (stop, board) = (&watch.control.stop, &Board::default());
    let _elsewhere = isolate::AvoidedCpus::new(spec.cpu);
    let (worker, mut ends) = Worker::pair(stop.clone())?;
    scope(|scope| {
        let (ready, is_ready) = channel();
        let (begin, is_begun) = channel();
        let thread = start(scope, "jitter", move || {
            work(spec, facts, stop, board, |ticks| worker.tell(&ready, ticks), &is_begun)
        })?;
        // The thread has begun with those that it needs; a library is to have none.
        if matches!(spec.workload, Workload::Exec(_)) {
            isolate::drop_capabilities(Retain::Nothing)?;
        }
        ends.wait(watch, longest(spec), PATIENCE, |_| {});
        let loop_ticks = is_ready.recv().unwrap_or_else(|_| Err(died("jitter")))?;
        let plan = plan(spec, hz.span(loop_ticks));
        watch.observer.event(Event::Plan(&plan));
        let before = Counters::now();
        // A thread that has died is noticed when it is joined.
        let _ = begin.send(Start::of(&plan, hz));
        let patience = PATIENCE.max(plan.loop_ns.saturating_mul(3));
        let mut told = 0;
        ends.wait(watch, plan.duration_ns, patience, |watch| {
            if let Some(so_far) = board.read().filter(|so_far| so_far.tests > told) {
                told = so_far.tests;
                watch.observer.event(Event::Jitter { so_far: &so_far, hz });
            }
        });
        let ended = thread.join().ok().flatten().ok_or_else(|| died("jitter"))?;
        let (seen, meanwhile, ended_on, tick) = ended;
        Ok(Whole { plan, before, seen, meanwhile, ended_on, tick })
    })
}

/// The thread's whole life; `None` where it could not be seated or was never started.
fn work(
    spec: &JitterSpec,
    facts: &Facts,
    stop: &Stop,
    board: &Board,
    ready: impl FnOnce(Result<TscDelta, Error>),
    begin: &Receiver<Start>,
) -> Option<(Seen, Meanwhile, Option<Cpu>, Option<Doubt>)> {
    let (mut work, loop_ticks) = match seat(spec, stop) {
        Ok(seated) => seated,
        Err(error) => {
            ready(Err(error));
            return None;
        }
    };
    ready(Ok(loop_ticks));
    let Start { course, room } = begin.recv().ok()?;
    let mut seen = Seen::with_room(room);
    let before = OwnTime::now();
    let tick = stop_tick(spec.cpu, facts, stop.as_atomic());
    // It has slept: what that left cold is warmed up again.
    work.once();
    mark::begin();
    run_tests(course, &mut *work, stop.as_atomic(), board, &mut seen);
    mark::end();
    let mut meanwhile = Meanwhile::default();
    OwnTime::now().add_since(before, &mut meanwhile);
    Some((seen, meanwhile, isolate::current_cpu(), tick))
}

/// Takes the CPU, makes the workload ready, and learns how long one run of it takes.
fn seat(spec: &JitterSpec, stop: &Stop) -> Result<(Box<dyn Work>, TscDelta), Error> {
    block_signals();
    isolate::pin_with_priority(spec.cpu, spec.fifo)?;
    let mut work = prepare(&spec.workload)?;
    let loop_ticks = warm_up(&mut *work, stop);
    Ok((work, loop_ticks))
}

/// Runs the workload for a while; the median of how long its last runs took, which one that is
/// interrupted for long does not change. The first is left out where there are others.
fn warm_up(work: &mut dyn Work, stop: &Stop) -> TscDelta {
    let now = || counter::kernel(libc::CLOCK_MONOTONIC_RAW);
    let until = now() + WARM_UP;
    let (mut last, mut loops) = ([TscDelta::default(); MEDIAN_OF], 0);
    let first = timed(work);
    while now() < until && !stop.given() {
        last[loops % MEDIAN_OF] = timed(work);
        loops += 1;
    }
    let kept = &mut last[..loops.min(MEDIAN_OF)];
    kept.sort_unstable();
    kept.get(kept.len() / 2).copied().unwrap_or(first)
}

/// How long one run of the workload takes.
fn timed(work: &mut dyn Work) -> TscDelta {
    let before = counter::now();
    work.once();
    counter::now().since(before)
}

/// Doubts of the tests and the thread, and of what the kernel keeps from real-time tasks.
fn doubts_of(whole: &Whole, spec: &JitterSpec, hz: TscHz, facts: &Facts) -> Vec<Doubt> {
    let alone = CpuSet::from_iter([spec.cpu]);
    let text = |words| format!("{}: {words}", doubts::named(&alone));
    let told = of_tests(whole).into_iter().chain(of_thread(whole, spec.cpu));
    let told = told.filter(|(is_so, ..)| *is_so);
    let mut doubts: Vec<Doubt> =
        told.map(|(_, code, words)| Doubt::new(code, text(words))).collect();
    let slow = |test: &LoopTimes| hz.span(test.jitter()) > doubts::KEPT_OFF;
    if spec.fifo.is_some() && whole.seen.tests().iter().any(slow) {
        doubts.extend(doubts::of_fifo(&alone, facts));
    }
    doubts
}

/// A doubt, if it is so.
type IfSo = (bool, Code, &'static str);

/// Too few or too short tests, and those that there was no room for.
fn of_tests(whole: &Whole) -> [IfSo; 4] {
    let kept = u64::try_from(whole.seen.tests().len()).unwrap_or(u64::MAX);
    let made = kept.saturating_add(whole.seen.lost.map_or(0, |lost| lost.tests));
    [
        (
            made == 0,
            Code::TooShort,
            "no test was complete when it ended: there is no jitter to tell of; a smaller -l \
             makes tests shorter",
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
            whole.seen.lost.is_some(),
            Code::TestsLost,
            "more tests than there is room for: all are counted and summed, but the later \
             ones are not in median, p99 and histogram; a larger -l makes fewer",
        ),
    ]
}

/// A counter that was set back, and another CPU than asked.
fn of_thread(whole: &Whole, cpu: Cpu) -> [IfSo; 2] {
    [
        (
            whole.seen.backwards > 0,
            Code::ClockBackwards,
            "the counter went backwards during the run",
        ),
        (
            whole.ended_on.is_some_and(|ended| ended != cpu),
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
        }
    }

    fn no_facts() -> Facts {
        serde_json::from_str(r#"{"sources": {}, "unknown": {}}"#).unwrap()
    }

    /// Check what is chosen where nothing is asked: 125 tests in 20 s, of two loops at
    /// least and 1000 at most; and that what is asked is kept, with 1000 loops beside it.
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

    /// Check that a run that was interrupted does not make all others seem long, and that one run
    /// is enough.
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
        let hz = Clock::settle().unwrap().guess();
        let stop = Stop::new().unwrap();
        let took = hz.span(warm_up(&mut Interrupted(0), &stop));
        assert!(took < Nanos::from_millis(15), "{took:?}");
        stop.flag().store(true, std::sync::atomic::Ordering::Relaxed);
        let took = hz.span(warm_up(&mut Interrupted(3), &stop));
        assert!(took >= Nanos::from_millis(29), "{took:?}");
    }

    /// Check that there is room for what is planned, and never for more than there may be.
    #[test]
    fn room_for_tests() {
        let hz = TscHz::new(1_000_000_000).unwrap();
        let room = |asked: &JitterSpec, loop_ns| {
            Start::of(&plan(asked, Nanos::from_nanos(loop_ns)), hz).room
        };
        assert_eq!(room(&JitterSpec { tests: Some(7), ..spec() }, 50), 7);
        // However long a run took before.
        assert_eq!(room(&spec(), 1_000_000), 1 << 16);
        let most = usize::try_from(ROOM_MAX).unwrap();
        assert_eq!(room(&JitterSpec { tests: Some(u32::MAX), ..spec() }, 50), most);
        assert_eq!(room(&JitterSpec { loops: Some(1), ..spec() }, 0), most);
    }

    /// Check that questions that make no sense are refused before anything runs.
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

    fn seen(tests: u64, loops: u32, room: usize) -> Seen {
        struct Nothing;
        impl Work for Nothing {
            fn once(&mut self) {}
        }
        let length = TscDelta::from_ticks(u64::MAX >> 1);
        let never = std::sync::atomic::AtomicBool::new(false);
        let mut seen = Seen::with_room(room);
        let course = Course { loops, tests, length };
        run_tests(course, &mut Nothing, &never, &Board::default(), &mut seen);
        seen
    }

    fn whole(tests: u64, loops: u32, ended_on: u32) -> Whole {
        Whole {
            plan: plan(&JitterSpec { loops: Some(loops), ..spec() }, Nanos::ZERO),
            before: Counters::now(),
            seen: seen(tests, loops, 200),
            meanwhile: Meanwhile::default(),
            ended_on: Some(Cpu::new(ended_on)),
            tick: None,
        }
    }

    /// Check what gives reason to doubt, and that nothing does where all is well.
    #[test]
    fn doubtful_runs() {
        let hz = TscHz::new(1_000_000_000).unwrap();
        let codes = |whole: &Whole| -> Vec<Code> {
            let doubts = doubts_of(whole, &spec(), hz, &no_facts());
            doubts.iter().map(|doubt| doubt.code).collect()
        };
        assert_eq!(codes(&whole(100, 2, 0)), []);
        assert_eq!(codes(&whole(99, 2, 0)), [Code::TooShort]);
        assert_eq!(codes(&whole(100, 1, 0)), [Code::TooShort]);
        assert_eq!(codes(&whole(0, 2, 0)), [Code::TooShort]);
        assert_eq!(codes(&whole(201, 2, 0)), [Code::TestsLost]);
        let mut few = whole(20, 2, 0);
        few.seen = seen(120, 2, 20);
        assert_eq!(codes(&few), [Code::TestsLost]);
        assert_eq!(codes(&whole(100, 2, 1)), [Code::Migrated]);
        let mut back = whole(100, 2, 0);
        back.seen.backwards = 1;
        assert_eq!(codes(&back), [Code::ClockBackwards]);
    }
}
