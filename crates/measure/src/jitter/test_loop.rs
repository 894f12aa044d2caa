//! The timed loop of `jitter`: repeats a workload, records the fastest and the slowest loop of each
//! test, and when the slowest one began, and publishes its progress.
//!
//! It does not allocate, lock or enter the kernel, as long as the workload does not
//! (`tests/quiet.rs` counts). Memory for the tests is touched before it begins; when it is full the
//! loop continues, and later tests are counted and summed. A reader of the [`Board`] costs the loop
//! one cache miss.
//!
//! # Caveats
//! Each loop includes two readings of the counter, some 10 ns each, which are not ordered with the
//! workload's edges: a few ns. What interrupts between two loops is in neither.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use recording::{JitterSoFar, LoopTimes, LostTests, UnfinishedTest};
use units::{Tsc, TscDelta, TscHz};

use crate::control::moments::OnMoment;
use crate::jitter::work::Work;
use crate::time::counter;

/// The limits of a run.
#[derive(Debug, Clone, Copy)]
pub struct TestLimits {
    /// The number of loops per test.
    pub loops: u32,
    /// The number of tests.
    pub tests: u64,
    /// The duration.
    pub length: TscDelta,
    /// A test with a larger jitter is a moment; and the rate of the counter.
    pub above: Option<(TscDelta, TscHz)>,
}

/// The results.
#[derive(Debug)]
pub struct JitterResult {
    recorded: Box<[LoopTimes]>,
    /// From the beginning to the slowest loop of each recorded test.
    slowest_at: Box<[TscDelta]>,
    used: usize,
    /// Tests beyond the capacity.
    pub lost: Option<LostTests>,
    /// The incomplete test at the end.
    pub unfinished: Option<UnfinishedTest>,
    /// How often the counter went backwards; such a loop has no time.
    pub backwards: u64,
    /// The first reading of the counter.
    pub began: Tsc,
    /// The duration.
    pub elapsed: TscDelta,
}

impl JitterResult {
    /// A buffer for that many tests, allocated and touched.
    pub fn with_capacity(tests: usize) -> Self {
        Self {
            // Not zero, which would be mapped lazily and fault in the loop.
            recorded: vec![UNSEEN; tests].into_boxed_slice(),
            slowest_at: vec![UNSEEN.fastest; tests].into_boxed_slice(),
            began: Tsc::from_counter(0),
            used: 0,
            lost: None,
            unfinished: None,
            backwards: 0,
            elapsed: TscDelta::default(),
        }
    }

    /// The recorded tests, in order.
    pub fn tests(&self) -> &[LoopTimes] {
        &self.recorded[..self.used]
    }

    /// The beginnings of their slowest loops, from the first reading of the counter on.
    pub fn slowest_at(&self) -> &[TscDelta] {
        &self.slowest_at[..self.used]
    }

    fn record(&mut self, test: LoopTimes, slowest_at: TscDelta) {
        let place = self.recorded.get_mut(self.used);
        if let Some(place) = place.zip(self.slowest_at.get_mut(self.used)) {
            (*place.0, *place.1) = (test, slowest_at);
            self.used += 1;
            return;
        }
        let lost = self.lost.get_or_insert(LostTests {
            tests: 0,
            jitter_ticks_min: UNSEEN.fastest,
            jitter_ticks_max: UNSEEN.slowest,
            jitter_ticks_sum: UNSEEN.sum,
            loop_ticks: UNSEEN,
        });
        lost.tests += 1;
        lost.jitter_ticks_min = lost.jitter_ticks_min.min(test.jitter());
        lost.jitter_ticks_max = lost.jitter_ticks_max.max(test.jitter());
        lost.jitter_ticks_sum = lost.jitter_ticks_sum.saturating_add(test.jitter());
        lost.loop_ticks = LoopTimes {
            fastest: lost.loop_ticks.fastest.min(test.fastest),
            slowest: lost.loop_ticks.slowest.max(test.slowest),
            sum: lost.loop_ticks.sum.saturating_add(test.sum),
        };
    }
}

/// Before the first loop.
const UNSEEN: LoopTimes = LoopTimes {
    fastest: TscDelta::from_ticks(u64::MAX),
    slowest: TscDelta::from_ticks(0),
    sum: TscDelta::from_ticks(0),
};

/// Before the first test.
const NOTHING: JitterSoFar = JitterSoFar {
    tests: 0,
    last: UNSEEN.slowest,
    min: UNSEEN.fastest,
    max: UNSEEN.slowest,
    sum: UNSEEN.sum,
};

fn add(so_far: &mut JitterSoFar, jitter: TscDelta) {
    so_far.tests += 1;
    so_far.last = jitter;
    so_far.min = so_far.min.min(jitter);
    so_far.max = so_far.max.max(jitter);
    so_far.sum = so_far.sum.saturating_add(jitter);
}

/// The progress of the loop, for other threads. Its numbers belong together: a reader that finds
/// them changing reads again. In a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Board {
    /// Odd while the numbers change.
    turn: AtomicU64,
    numbers: [AtomicU64; 5],
}

/// The number of a reader's attempts: the writer may be preempted while it writes.
const TRIES: u32 = 1_000;

impl Board {
    fn write(&self, so_far: &JitterSoFar) {
        let turn = self.turn.load(Ordering::Relaxed);
        self.turn.store(turn + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        let JitterSoFar { tests, last, min, max, sum } = so_far;
        let numbers = [*tests, last.ticks(), min.ticks(), max.ticks(), sum.ticks()];
        for (place, number) in self.numbers.iter().zip(numbers) {
            place.store(number, Ordering::Relaxed);
        }
        self.turn.store(turn + 2, Ordering::Release);
    }

    /// The progress; `None` before the first test is complete, and if the numbers changed in every
    /// attempt.
    pub fn read(&self) -> Option<JitterSoFar> {
        (0..TRIES).find_map(|_| {
            let turn = self.turn.load(Ordering::Acquire);
            let [tests, ticks @ ..] =
                self.numbers.each_ref().map(|number| number.load(Ordering::Relaxed));
            fence(Ordering::Acquire);
            let again = self.turn.load(Ordering::Relaxed);
            let [last, min, max, sum] = ticks.map(TscDelta::from_ticks);
            let is_whole = turn == again && turn % 2 == 0 && tests > 0;
            is_whole.then_some(JitterSoFar { tests, last, min, max, sum })
        })
    }
}

/// Consecutive readings of the counter. If it is set back, the beginning is shifted too, or the end
/// would be reached never, or at once.
struct Readings {
    begin: Tsc,
    last: Tsc,
    backwards: u64,
}

impl Readings {
    fn from(begin: Tsc) -> Self {
        Self { begin, last: begin, backwards: 0 }
    }

    /// The time since the last reading; `None` if the counter went backwards.
    #[inline(always)]
    fn add(&mut self, now: Tsc) -> Option<TscDelta> {
        let delta = now.since(self.last);
        self.last = now;
        if delta.is_backwards() {
            self.backwards += 1;
            self.begin = self.begin.plus(delta);
            return None;
        }
        Some(delta)
    }

    fn elapsed(&self) -> TscDelta {
        self.last.since(self.begin)
    }
}

/// Runs the tests, until all are complete, the time is over, or `stop`.
#[inline(never)]
pub fn run(
    limits: TestLimits,
    work: &mut dyn Work,
    moments: OnMoment<'_>,
    board: &Board,
    result: &mut JitterResult,
) {
    let is_stopped = || moments.stop().load(Ordering::Relaxed);
    result.began = counter::now();
    let mut readings = Readings::from(result.began);
    let (mut so_far, mut is_over) = (NOTHING, false);
    while so_far.tests < limits.tests && !is_over {
        let (mut test, mut loops) = (UNSEEN, 0);
        let mut slowest_at = TscDelta::default();
        while loops < limits.loops && !is_over {
            let _between = readings.add(counter::now());
            let started = readings.elapsed();
            work.once();
            if let Some(took) = readings.add(counter::now()) {
                if took > test.slowest {
                    slowest_at = started;
                }
                test.fastest = test.fastest.min(took);
                test.slowest = test.slowest.max(took);
                test.sum = test.sum.saturating_add(took);
            }
            loops += 1;
            is_over = is_stopped() || readings.elapsed() >= limits.length;
        }
        if loops < limits.loops {
            result.unfinished = Some(UnfinishedTest { loops, loop_ticks: test });
        } else {
            result.record(test, slowest_at);
            add(&mut so_far, test.jitter());
            board.write(&so_far);
            if let Some((_, hz)) =
                limits.above.filter(|(above, _)| test.jitter() > *above)
            {
                let ago = readings.elapsed().saturating_sub(slowest_at);
                moments.handle(|| (hz.span(ago), hz.span(test.slowest)));
                is_over |= is_stopped();
            }
        }
    }
    (result.elapsed, result.backwards) = (readings.elapsed(), readings.backwards);
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    /// Stops after a number of runs.
    struct Counted<'a> {
        runs: u64,
        until: u64,
        stop: &'a AtomicBool,
    }

    impl Work for Counted<'_> {
        fn once(&mut self) {
            self.runs += 1;
            self.stop.store(self.runs == self.until, Ordering::Relaxed);
        }
    }

    const FOREVER: TscDelta = TscDelta::from_ticks(u64::MAX >> 1);

    fn runs(
        limits: TestLimits,
        until: u64,
        capacity: usize,
    ) -> (u64, JitterResult, Option<JitterSoFar>) {
        let (stop, board) = (AtomicBool::new(false), Board::default());
        let mut work = Counted { runs: 0, until, stop: &stop };
        let mut result = JitterResult::with_capacity(capacity);
        run(limits, &mut work, OnMoment::stopping(&stop), &board, &mut result);
        (work.runs, result, board.read())
    }

    /// Check that each test runs the workload as often as requested, and the progress that is
    /// published.
    #[test]
    fn all_tests_are_made() {
        let limits = TestLimits { loops: 7, tests: 5, length: FOREVER, above: None };
        let (runs, result, so_far) = runs(limits, 0, 5);
        assert_eq!((runs, result.tests().len()), (35, 5));
        assert_eq!((result.lost, result.unfinished), (None, None));
        let jitters = || result.tests().iter().map(|test| test.jitter());
        let so_far = so_far.unwrap();
        assert_eq!(so_far.tests, 5);
        assert_eq!(Some(so_far.last), jitters().next_back());
        assert_eq!(Some(so_far.min), jitters().min());
        assert_eq!(Some(so_far.max), jitters().max());
        let sum: u64 = jitters().map(TscDelta::ticks).sum();
        assert_eq!(so_far.sum.ticks(), sum);
        for test in result.tests() {
            assert!(test.fastest <= test.slowest && test.slowest <= test.sum);
            let (fastest, slowest) = (test.fastest.ticks(), test.slowest.ticks());
            assert!(fastest * 7 <= test.sum.ticks() && test.sum.ticks() <= slowest * 7);
        }
    }

    /// Check that the slowest loop of a test began when the workload was slow: in its first test after one
    /// quick loop, in its second at once.
    #[test]
    fn the_slowest_loop_has_a_time() {
        struct Slow(Vec<u64>);
        impl Work for Slow {
            fn once(&mut self) {
                std::thread::sleep(std::time::Duration::from_millis(self.0.remove(0)));
            }
        }
        let limits = TestLimits { loops: 2, tests: 2, length: FOREVER, above: None };
        let (never, board) = (AtomicBool::new(false), Board::default());
        let mut result = JitterResult::with_capacity(2);
        let mut work = Slow(vec![5, 500, 500, 5]);
        run(limits, &mut work, OnMoment::stopping(&never), &board, &mut result);
        let [first, second] = [0, 1].map(|test| {
            let (at, times) = (result.slowest_at()[test], result.tests()[test]);
            (at.ticks(), at.ticks() + times.slowest.ticks())
        });
        let quick = result.tests().iter().map(|test| test.fastest.ticks());
        assert_eq!(result.tests().len(), 2);
        assert!(first.0 >= quick.min().unwrap() && first.1 <= second.0, "{first:?}");
        assert!(second.1 <= result.elapsed.ticks(), "{second:?}");
    }

    /// Check that a test with more jitter than the limit makes the stop request, which ends it before the
    /// next test, and that one below the limit does not.
    #[test]
    fn stops_after_a_moment() {
        struct SlowOnce(bool);
        impl Work for SlowOnce {
            fn once(&mut self) {
                if !std::mem::replace(&mut self.0, true) {
                    std::thread::sleep(std::time::Duration::from_millis(5));
                }
            }
        }
        let hz = TscHz::new(1_000_000_000).unwrap();
        for (above, tests) in [(TscDelta::default(), 1), (FOREVER, 4)] {
            let above = Some((above, hz));
            let limits = TestLimits { loops: 2, tests: 4, length: FOREVER, above };
            let (stop, board) = (AtomicBool::new(false), Board::default());
            let mut result = JitterResult::with_capacity(4);
            let moments = OnMoment::stopping(&stop);
            run(limits, &mut SlowOnce(false), moments, &board, &mut result);
            assert_eq!((result.tests().len(), result.unfinished), (tests, None));
            assert_eq!(stop.load(Ordering::Relaxed), tests == 1);
        }
    }

    /// Check that the stop request ends it after the loop in which it arrived: in the middle of a
    /// test, which then does not count, or just at its end.
    #[test]
    fn stops_when_told() {
        let limits =
            TestLimits { loops: 7, tests: u64::MAX, length: FOREVER, above: None };
        let (ran, result, _) = runs(limits, 17, 5);
        assert_eq!((ran, result.tests().len()), (17, 2));
        assert_eq!(result.unfinished.map(|test| test.loops), Some(3));
        let (ran, result, so_far) = runs(limits, 14, 5);
        assert_eq!((ran, result.tests().len(), result.unfinished), (14, 2, None));
        assert_eq!(so_far.map(|so_far| so_far.tests), Some(2));
        let (_, result, so_far) = runs(limits, 1, 5);
        assert_eq!((result.tests().len(), so_far), (0, None));
    }

    /// Check that the duration ends it, after at least one loop.
    #[test]
    fn ends_with_its_time() {
        let limits = TestLimits {
            loops: 2,
            tests: u64::MAX,
            length: TscDelta::default(),
            above: None,
        };
        let (ran, result, _) = runs(limits, 0, 5);
        assert_eq!((ran, result.tests().len()), (1, 0));
        assert!(result.elapsed >= result.unfinished.unwrap().loop_ticks.sum);
    }

    /// Check that a counter that is set back, in a loop or between two, changes neither the time
    /// nor the end.
    #[test]
    fn counters_that_are_set_back() {
        let mut readings = Readings::from(Tsc::from_counter(1_000));
        let mut add = |tsc| {
            let delta = readings.add(Tsc::from_counter(tsc));
            (delta.map(TscDelta::ticks), readings.elapsed().ticks(), readings.backwards)
        };
        assert_eq!(add(1_010), (Some(10), 10, 0));
        assert_eq!(add(500), (None, 10, 1));
        assert_eq!(add(507), (Some(7), 17, 1));
        assert_eq!(add(3), (None, 17, 2));
        assert_eq!(add(u64::MAX), (None, 17, 3));
        assert_eq!(add(1), (Some(2), 19, 3));
    }

    /// Check that tests beyond the capacity are counted, and that the published progress covers
    /// all.
    #[test]
    fn no_more_room() {
        let limits = TestLimits { loops: 3, tests: 10, length: FOREVER, above: None };
        let (_, result, so_far) = runs(limits, 0, 4);
        let (lost, so_far) = (result.lost.unwrap(), so_far.unwrap());
        assert_eq!((result.tests().len(), lost.tests), (4, 6));
        let jitters = || result.tests().iter().map(|test| test.jitter());
        let sum: u64 = jitters().map(TscDelta::ticks).sum();
        assert_eq!(so_far.sum.ticks(), sum + lost.jitter_ticks_sum.ticks());
        assert_eq!(so_far.max, jitters().max().unwrap().max(lost.jitter_ticks_max));
        assert_eq!(so_far.min, jitters().min().unwrap().min(lost.jitter_ticks_min));
        assert!(lost.loop_ticks.fastest <= lost.loop_ticks.slowest);
        assert!(lost.loop_ticks.jitter() >= lost.jitter_ticks_max);
    }

    /// Check that a reader never sees numbers of two tests mixed.
    #[test]
    fn numbers_belong_together() {
        let board = Board::default();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1..200_000 {
                    let ticks = TscDelta::from_ticks(round);
                    let tests = round;
                    board.write(&JitterSoFar {
                        tests,
                        last: ticks,
                        min: ticks,
                        max: ticks,
                        sum: ticks,
                    });
                }
                over.store(true, Ordering::Relaxed);
            });
            while !over.load(Ordering::Relaxed) {
                let Some(so_far) = board.read() else { continue };
                let ticks = [so_far.last, so_far.min, so_far.max, so_far.sum];
                assert_eq!(ticks, [TscDelta::from_ticks(so_far.tests); 4]);
            }
        });
    }
}
