//! Time slices: how long CPU-bound processes run before they are preempted.
//!
//! Some processes spin, others sleep periodically (`workers`). A thread with a higher priority reads
//! the usage and the context switches of each at the edges of each sample. With several variants
//! (steps), each round (turn) has the current settings and each variant, in an order that is reversed
//! in every second round (A B, B A), so that a drift of the machine affects all of them alike.
//!
//! With phases, each phase has new processes, which start at another offset to the tick: how
//! sleepers and ticks coincide is determined when processes begin. In a guest each turn is one
//! phase of the counter.
//!
//! Cannot see what ended a slice, nor a single one: only the scheduler's switches show that
//! (`blame::switches`).

pub(crate) mod task_reading;
pub(crate) mod workers;

use facts::Facts;
use isolate::{PinnedThread, Tuning, TuningLease};
use recording::{
    Code, Doubt, Phases, SlicesSample, SlicesSeries, SlicesSpec, SlicesTask, SlicesTurn,
    Step,
};
use rustix::time::{ClockId, clock_getres};
use units::{CpuSet, Nanos, chain};

use crate::control::observer::Watch;
use crate::latency::timers::{now, timer_slack};
use crate::slices::task_reading::{StatusBuffer, TaskReading};
use crate::slices::workers::{Work, WorkerSpec, Workers};
use crate::threads::thread::SignalsElsewhere;
use crate::time::counter;
use crate::time::mark;
use crate::time::phase;
use crate::time::timespec::nanos;
use crate::{Error, Kind, check_length};

/// The most processes: each uses some memory of the kernel.
const PROCESSES_MAX: u32 = 10_000;
const TURNS_MAX: u32 = 1_000;
const SAMPLES_MAX: u64 = 100_000;
/// The sampler's priority: any real-time one is above ordinary tasks.
const ABOVE: u8 = 1;
/// The time limit until all have run, and the extra time for each of them.
const PATIENCE: Nanos = Nanos::from_secs(10);
const PATIENCE_EACH: Nanos = Nanos::from_millis(50);
/// Interval of checks whether they have.
const LOOK: Nanos = Nanos::from_millis(2);
/// Two readings take equally long if the difference is at most that part of the sample.
const UNEVEN: u64 = 100;
/// With fewer slices of each spinner, the mean of a turn depends on where it began.
const FEW: u64 = 8;

/// Runs all turns of all variants, in each phase.
pub(crate) fn run(
    spec: &SlicesSpec,
    facts: &Facts,
    watch: &mut Watch<'_>,
    doubts: &mut Vec<Doubt>,
) -> Result<SlicesSeries, Error> {
    refuse(spec, facts)?;
    let specs = specs(spec);
    // That of a real-time thread is 0, also for the processes that it forks.
    let slack = timer_slack();
    let suspended = counter::suspended();
    let began_ns = now();
    let mut series = SlicesSeries {
        began_ns,
        tasks: Vec::new(),
        turns: Vec::new(),
        switches: None,
        wakers: None,
        placements: None,
    };
    for number in 0..phases(spec) {
        if watch.control.stop.is_requested() && number > 0 {
            break;
        }
        if let Some(phases) = &spec.phases {
            phase::wait(phases, number);
        }
        let early = shares_cpus(spec).then(|| PinnedThread::raise_priority(ABOVE));
        let workers = Workers::start(&specs, slack)?;
        let seat = early.unwrap_or_else(|| PinnedThread::raise_priority(ABOVE));
        if number == 0 {
            series.tasks = tasks(&workers, &specs, spec);
        }
        let mut sampler =
            Sampler { workers: &workers, specs: &specs, began_ns, facts, uneven: None };
        sampler.run(spec, watch, &mut series.turns)?;
        doubts.extend(seat.err().filter(|_| number == 0).map(|why| competes(&why)));
        doubts.extend(sampler.uneven);
    }
    doubts.extend(crate::doubts::of_suspension(
        counter::suspended().saturating_sub(suspended),
    ));
    doubts.extend(doubts_of(&series, spec));
    Ok(series)
}

/// Reads all processes, at the edges of samples.
struct Sampler<'a> {
    workers: &'a Workers,
    specs: &'a [WorkerSpec],
    began_ns: Nanos,
    facts: &'a Facts,
    /// The first sample with two readings of too different duration.
    uneven: Option<Doubt>,
}

/// All processes at approximately one moment.
struct Reading {
    at: Nanos,
    took: Nanos,
    tasks: Vec<TaskReading>,
}

impl Sampler<'_> {
    /// All turns of these processes.
    fn run(
        &mut self,
        spec: &SlicesSpec,
        watch: &mut Watch<'_>,
        turns: &mut Vec<SlicesTurn>,
    ) -> Result<(), Error> {
        let _signals = SignalsElsewhere::begin();
        wait_for_all(self.workers, self.specs, watch)?;
        turns.extend(self.turns(spec, watch)?);
        Ok(())
    }

    /// All turns: the current settings and each variant, then the same in reverse, repeatedly.
    fn turns(
        &mut self,
        spec: &SlicesSpec,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<SlicesTurn>, Error> {
        let mut steps = vec![Vec::new()];
        for step in &spec.steps {
            steps.push(tunings(step)?);
        }
        let mut turns = Vec::new();
        let stop = watch.control.stop.clone();
        let is_stopped = || stop.is_requested();
        for turn in 0..spec.turns {
            for step in spec.steps_of_turn(turn) {
                let tunings = &steps[step];
                let tuned = match tunings.is_empty() {
                    true => None,
                    false => match TuningLease::begin(tunings, self.facts) {
                        // The wait for the journal has ended.
                        Err(_) if is_stopped() && !turns.is_empty() => return Ok(turns),
                        tuned => Some(tuned?),
                    },
                };
                let words = match spec.turns {
                    1 => "spinning".to_owned(),
                    all => format!("turn {} of {all}, step {step}", turn + 1),
                };
                let samples = self.turn(spec, &words, watch)?;
                tuned.map_or(Ok(Vec::new()), TuningLease::end)?;
                if !samples.is_empty() {
                    let step = u32::try_from(step).unwrap_or(u32::MAX);
                    turns.push(SlicesTurn { step, samples });
                }
                if is_stopped() {
                    return Ok(turns);
                }
            }
        }
        Ok(turns)
    }

    /// One turn, sample by sample; a stop request shortens the last sample.
    fn turn(
        &mut self,
        spec: &SlicesSpec,
        words: &str,
        watch: &mut Watch<'_>,
    ) -> Result<Vec<SlicesSample>, Error> {
        let length = spec.turn_ns();
        let each = spec.sample_ns.unwrap_or(length);
        let mut buffer = StatusBuffer::new();
        let mut samples = Vec::new();
        mark::begin();
        let mut before = self.read(&mut buffer)?;
        let (begin, until) = (before.at, before.at + length);
        while before.at < until && !watch.control.stop.is_requested() {
            let end = until.min(begin + each.saturating_mul(1 + samples.len() as u64));
            let raw = counter::kernel(libc::CLOCK_MONOTONIC_RAW);
            let rest = end.saturating_sub(now());
            watch.sleep(words, raw, raw + rest);
            let after = self.read(&mut buffer)?;
            self.uneven = self.uneven.take().or_else(|| uneven(&before, &after));
            samples.push(self.sample(&before, &after));
            before = after;
        }
        mark::end();
        match self.workers.ended().and_then(|place| self.specs.get(place)) {
            Some(killed) => Err(Error::new(
                Kind::System,
                format!("{} was killed while it was measured", killed.name),
            )),
            None => Ok(samples),
        }
    }

    fn read(&self, buffer: &mut StatusBuffer) -> Result<Reading, Error> {
        let at = now();
        let read = |(place, &pid): (usize, &libc::pid_t)| {
            TaskReading::of(pid, self.workers.passes(place), buffer).map_err(|error| {
                Error::system(format!("failed to read /proc/{pid}"), error)
            })
        };
        let tasks = self.workers.pids().iter().enumerate().map(read);
        let tasks = tasks.collect::<Result<_, _>>()?;
        Ok(Reading { at, took: now().saturating_sub(at), tasks })
    }

    fn sample(&self, before: &Reading, after: &Reading) -> SlicesSample {
        let tasks = after.tasks.iter().zip(&before.tasks);
        SlicesSample {
            start_ns: before.at.saturating_sub(self.began_ns),
            wall_ns: after.at.saturating_sub(before.at),
            reading_ns: before.took.max(after.took),
            tasks: tasks.map(|(after, before)| after.since(before)).collect(),
        }
    }
}

/// Whether this thread can run on the CPUs of the processes only. It then has its priority before it forks
/// them, so that none runs on its CPU before all exist: they begin with the same virtual times. On another CPU that
/// is of no use, and a task with a higher priority could keep it from forking them.
fn shares_cpus(spec: &SlicesSpec) -> bool {
    isolate::allowed().is_ok_and(|own| own.iter().all(|cpu| spec.cpus.contains(cpu)))
}

/// A doubt: the reading thread has no real-time priority.
fn competes(why: &isolate::Error) -> Doubt {
    let text = format!(
        "the reading thread competes with the processes that it reads, and uses some of \
         their time: {}",
        chain(why)
    );
    Doubt::new(Code::Competes, text)
}

/// A doubt if one reading took longer than the other by more than a part of the time between them,
/// which then differs between the processes.
fn uneven(before: &Reading, after: &Reading) -> Option<Doubt> {
    let wall = after.at.saturating_sub(before.at);
    let more = before.took.max(after.took).saturating_sub(before.took.min(after.took));
    let millis = |nanos: Nanos| nanos.get() / 1_000_000;
    (more.saturating_mul(UNEVEN) > wall).then(|| {
        let text = format!(
            "reading the counters of all processes took {} ms at the beginning of a sample \
             of {} ms and {} ms at its end: another real-time task used the CPU, and some \
             processes were measured for a longer or shorter time than others",
            millis(before.took),
            millis(wall),
            millis(after.took)
        );
        Doubt::new(Code::Unequal, text)
    })
}

/// How many phases there are.
fn phases(spec: &SlicesSpec) -> u32 {
    Phases::parts(spec.phases.as_ref())
}

/// Waits until each of them has run once: the last ones have to wait for all others.
fn wait_for_all(
    workers: &Workers,
    specs: &[WorkerSpec],
    watch: &mut Watch<'_>,
) -> Result<(), Error> {
    let clock = || counter::kernel(libc::CLOCK_MONOTONIC_RAW);
    let begin = clock();
    let limit = PATIENCE + PATIENCE_EACH.saturating_mul(specs.len() as u64);
    while !workers.is_at_work() && !watch.control.stop.is_requested() {
        if clock() > begin + limit {
            let idle = (0..specs.len()).find(|&place| workers.passes(place) == 0);
            let name = idle.map_or("", |place| specs[place].name.as_str());
            let text = format!(
                "{name} did not run for {} s: its CPU is occupied",
                limit.get() / 1_000_000_000
            );
            return Err(Error::new(Kind::System, text));
        }
        watch.sleep("starting", begin, clock() + LOOK);
    }
    Ok(())
}

/// Spinners, then sleepers.
fn specs(spec: &SlicesSpec) -> Vec<WorkerSpec> {
    let at =
        |place| spec.pinned_cpu(place).map_or_else(|| spec.cpus.clone(), CpuSet::from);
    let worker = |kind: &str, work: Work, place: u32| WorkerSpec {
        name: format!("{kind}/{place}"),
        work,
        cpus: at(place),
        policy: spec.policy,
        nice: spec.nice,
    };
    let spin = spec.getrusage_every.map_or(Work::Spin, Work::Ask);
    let spinners = (0..spec.spinners).map(|place| worker("spin", spin, place));
    let sleep = Work::Sleep(spec.sleep_ns, spec.burst_ns);
    let sleepers = (0..spec.sleepers).map(|place| worker("sleep", sleep, place));
    spinners.chain(sleepers).collect()
}

fn tasks(workers: &Workers, specs: &[WorkerSpec], spec: &SlicesSpec) -> Vec<SlicesTask> {
    let task = |(worker, pid): (&WorkerSpec, &libc::pid_t)| SlicesTask {
        pid: u32::try_from(*pid).unwrap_or(0),
        name: worker.name.clone(),
        role: worker.work.role(),
        cpu: worker.cpus.first().filter(|_| spec.pinned),
    };
    specs.iter().zip(workers.pids()).map(task).collect()
}

/// The settings of a variant.
fn tunings(step: &Step) -> Result<Vec<Tuning>, Error> {
    let settings = step.settings.iter();
    let tuning = settings.map(|setting| Tuning::parse(&setting.name, &setting.value));
    Ok(tuning.collect::<Result<_, _>>()?)
}

/// Refuses an invalid or unsupported specification, before anything is started.
pub(crate) fn refuse(spec: &SlicesSpec, facts: &Facts) -> Result<(), Error> {
    check_workers(spec)?;
    check_times(spec)?;
    for step in &spec.steps {
        isolate::may_tune(&tunings(step)?, facts)?;
    }
    Ok(())
}

fn check_workers(spec: &SlicesSpec) -> Result<(), Error> {
    let refused = |text: &str| Err(Error::new(Kind::Spec, text));
    if spec.spinners == 0 {
        return refused("at least one spinner is needed");
    }
    if spec.spinners.saturating_add(spec.sleepers) > PROCESSES_MAX {
        return refused("at most 10000 processes are started");
    }
    if spec.cpus.is_empty() {
        return refused("no CPU to measure");
    }
    if spec.sleepers > 0 && !(1..=1_000_000_000).contains(&spec.sleep_ns.get()) {
        return refused("a sleep must be between 1 ns and 1 s");
    }
    if spec.burst_ns > Nanos::from_secs(1) {
        return refused("a burst must not be longer than 1 s");
    }
    match spec.nice {
        -20..=19 => Ok(()),
        _ => refused("nice values are -20 to 19"),
    }
}

fn check_times(spec: &SlicesSpec) -> Result<(), Error> {
    let refused = |text: &str| Err(Error::new(Kind::Spec, text));
    check_length("the duration", spec.duration_ns)?;
    if !(1..=TURNS_MAX).contains(&spec.turns) {
        return refused("the number of rounds must be between 1 and 1000");
    }
    let turn = spec.turn_ns();
    check_length("a round (the duration by the number of rounds and phases)", turn)?;
    match spec.sample_ns {
        Some(sample) if !(Nanos::from_millis(1)..=turn).contains(&sample) => {
            refused("a sample must be between 1 ms and the length of a round")
        }
        Some(sample) if turn.get() / sample.get() > SAMPLES_MAX => {
            refused("more than 100000 samples in a round; use a longer one")
        }
        _ => Ok(()),
    }
}

/// Doubts of the results: few slices, sleepers that no timer can wake as often as requested.
fn doubts_of(series: &SlicesSeries, spec: &SlicesSpec) -> Vec<Doubt> {
    let spinners = usize::try_from(spec.spinners).unwrap_or(usize::MAX);
    let samples = || series.turns.iter().flat_map(|turn| &turn.samples);
    let mut doubts = Vec::new();
    // Phases cover several offsets: together they have enough.
    let enough = FEW.div_ceil(phases(spec).into()).saturating_mul(spec.spinners.into());
    let few = |turn: &SlicesTurn| {
        let spun = turn.samples.iter().flat_map(|s| s.tasks.iter().take(spinners));
        let switches: u64 = spun.map(|task| task.involuntary).sum();
        switches < enough
    };
    let contend =
        spinners + usize::try_from(spec.sleepers).unwrap_or(0) > spec.cpus.len();
    if contend && series.turns.iter().any(few) {
        let text = "fewer than 8 slices of each spinner in a round: its mean depends on \
                    where it began; a longer -d gives more";
        doubts.push(Doubt::new(Code::TooShort, text));
    }
    let resolved = timer_slack() + resolution();
    if spec.sleepers > 0 && spec.sleep_ns < resolved {
        let wall: u64 = samples().map(|sample| sample.wall_ns.get()).sum();
        let sleeping = samples().flat_map(|sample| sample.tasks.iter().skip(spinners));
        let woken: u64 = sleeping.map(|task| task.passes).sum();
        let rate = u128::from(woken) * 1_000_000_000
            / u128::from(wall.max(1))
            / u128::from(spec.sleepers);
        let text = format!(
            "a sleep of {} ns is below the resolution of timers ({} ns): each sleeper woke \
             up {rate} times a second",
            spec.sleep_ns.get(),
            resolved.get()
        );
        doubts.push(Doubt::new(Code::CoarseTimer, text));
    }
    doubts
}

/// The resolution of the kernel's timers (`clock_getres(2)`): a whole tick without high-resolution
/// ones.
fn resolution() -> Nanos {
    let step = clock_getres(ClockId::Monotonic);
    nanos(step.tv_sec, step.tv_nsec)
}

#[cfg(test)]
mod tests {
    use recording::{Policy, Role};

    use super::*;
    use crate::{Control, ignore};

    fn run_with(
        spec: &SlicesSpec,
        doubts: &mut Vec<Doubt>,
    ) -> Result<SlicesSeries, Error> {
        let (facts, control) =
            (Facts::read(&facts::Root::live()), Control::new().unwrap());
        let mut watch = Watch { control: &control, listener: &mut ignore };
        run(spec, &facts, &mut watch, doubts)
    }

    fn spec() -> SlicesSpec {
        let facts = Facts::read(&facts::Root::live());
        SlicesSpec {
            spinners: 4,
            getrusage_every: None,
            sleepers: 1,
            sleep_ns: Nanos::from_millis(1),
            burst_ns: Nanos::from_micros(20),
            duration_ns: Nanos::from_millis(400),
            cpus: facts.cpus.allowed.get().unwrap().iter().take(1).collect(),
            pinned: true,
            nice: 0,
            policy: Policy::Other,
            steps: Vec::new(),
            turns: 2,
            sample_ns: Some(Nanos::from_millis(100)),
            phases: None,
            simulated: None,
        }
    }

    /// Check that invalid specifications are refused before anything is started.
    #[test]
    fn nonsense_is_refused() {
        let facts = Facts::read(&facts::Root::live());
        let refused = |change: fn(&mut SlicesSpec)| {
            let mut spec = spec();
            change(&mut spec);
            refuse(&spec, &facts).is_err_and(|error| error.kind() == Kind::Spec)
        };
        assert!(refused(|spec| spec.spinners = 0));
        assert!(refused(|spec| spec.spinners = 10_000));
        assert!(refused(|spec| spec.cpus = CpuSet::empty()));
        assert!(refused(|spec| spec.sleep_ns = Nanos::ZERO));
        assert!(refused(|spec| spec.burst_ns = Nanos::from_secs(2)));
        assert!(refused(|spec| spec.nice = 20));
        assert!(refused(|spec| spec.turns = 0));
        assert!(refused(|spec| spec.turns = 500));
        assert!(refused(|spec| spec.sample_ns = Some(Nanos::from_millis(201))));
        assert!(!refused(|spec| spec.sleepers = 0));
        assert!(!refused(|_| {}));
    }

    /// Check that all are measured, sample by sample, that the CPU time used does not exceed the
    /// time available, and that spinners on one CPU have to leave it.
    #[test]
    fn everybody_is_measured() {
        let (spec, control) = (spec(), Control::new().unwrap());
        let mut watch = Watch { control: &control, listener: &mut ignore };
        let facts = Facts::read(&facts::Root::live());
        let series = run(&spec, &facts, &mut watch, &mut Vec::new()).unwrap();
        assert_eq!(series.turns.len(), 2);
        let roles: Vec<Role> = series.tasks.iter().map(|task| task.role).collect();
        assert_eq!(roles, [[Role::Spinner; 4].as_slice(), &[Role::Sleeper]].concat());
        let samples = || series.turns.iter().flat_map(|turn| &turn.samples);
        assert!(samples().count() >= 4, "{series:?}");
        for sample in samples() {
            let used: u64 = sample.tasks.iter().map(|task| task.cpu_ns.get()).sum();
            // Processes may have been read at the beginning of one and at the end of the other.
            let there = sample.wall_ns + sample.reading_ns + Nanos::from_millis(20);
            assert!(used <= there.get(), "{used} of {there:?}");
        }
        let sum = |place: usize, part: fn(&recording::TaskTime) -> u64| -> u64 {
            samples().map(|sample| part(&sample.tasks[place])).sum()
        };
        assert!((0..4).all(|place| sum(place, |task| task.involuntary) > 0));
        assert!(sum(4, |task| task.voluntary) > 0 && sum(4, |task| task.passes) > 0);
    }

    /// Check that readings that differ in duration by more than a hundredth of the sample cause a
    /// doubt, whichever is longer.
    #[test]
    fn uneven_readings() {
        let millis = Nanos::from_millis;
        let reading =
            |at, took| Reading { at: millis(at), took: millis(took), tasks: Vec::new() };
        let doubt =
            |first, second| uneven(&reading(1_000, first), &reading(3_000, second));
        assert!(doubt(1, 21).is_none() && doubt(500, 500).is_none());
        for (first, second) in [(1, 22), (22, 1)] {
            let doubt = doubt(first, second).unwrap();
            let said = format!("took {first} ms at the beginning of a sample of 2000 ms");
            assert!(doubt.code == Code::Unequal && doubt.text.contains(&said), "{doubt}");
        }
    }

    /// Check that each phase has its turns, that all tasks are measured in each, and that the
    /// duration is that of all together.
    #[test]
    fn phases_have_turns() {
        let step_ns = Nanos::from_micros(1_300);
        let every_ns = Nanos::from_millis(20);
        let phases = Some(recording::Phases { count: 2, every_ns, step_ns });
        let spec = SlicesSpec { phases, turns: 1, sample_ns: None, ..spec() };
        assert_eq!(spec.turn_ns(), Nanos::from_millis(200));
        let series = run_with(&spec, &mut Vec::new()).unwrap();
        let samples: Vec<_> =
            series.turns.iter().flat_map(|turn| &turn.samples).collect();
        assert_eq!((series.turns.len(), samples.len(), series.tasks.len()), (2, 2, 5));
        for sample in &samples {
            assert!(sample.tasks.iter().all(|task| task.passes > 0), "{sample:?}");
        }
        assert!(samples[1].start_ns > samples[0].start_ns + samples[0].wall_ns);
    }

    /// Check that a sleep below the timers' resolution is reported, with the actual rate.
    #[test]
    fn coarse_timers_are_told() {
        let spec = SlicesSpec { sleep_ns: Nanos::from_nanos(1), ..spec() };
        let mut doubts = Vec::new();
        run_with(&spec, &mut doubts).unwrap();
        let told = doubts.iter().find(|doubt| doubt.code == Code::CoarseTimer).unwrap();
        assert!(told.text.contains("times a second"), "{told}");
    }
}
