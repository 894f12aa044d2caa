//! `noisefloor slices` in virtual time: spinners and sleepers, as a recording.
//!
//! The load and the samples are those of `measure::slices`. Each phase and each round has new tasks, which
//! are measured when all have run. The sampler preempts the first CPU's task to read all tasks; or each
//! spinner reads its own times, as those of the 2009 report did.

mod log;

use facts::{Facts, TickMode};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use recording::{
    Body, Moments, Phases, Policy as Class, Recording, Role, Simulated, SlicesSample,
    SlicesSeries, SlicesSpec, SlicesTask, SlicesTurn, TaskTime,
};
use serde_json::json;
use units::{Cpu, CpuSet, Nanos};

use crate::scheduler::{
    Engine, Error, KernelThread, Kind, Machine, Occasion, Policy, Rules, TaskSpec, Work,
};
use crate::slices::log::Log;

/// The limits of rounds and samples, and of all of them.
const SHORTEST: Nanos = Nanos::from_millis(1);
const LONGEST: Nanos = Nanos::from_secs(24 * 3600);
/// Interval at which the sampler looks whether all tasks have run.
const LOOK: Nanos = Nanos::from_millis(2);
/// The part by which the loop between two system calls is faster than the other one, as compilers unroll it: 11
/// instructions for four iterations, instead of 12.
const UNROLLED: u64 = 12;
/// When a simulation is taken: virtual time begins then. The same inputs give the same bytes.
const TAKEN: &str = "1970-01-01T00:00:00Z";
/// The ID of the first task.
const FIRST_PID: u32 = 100_000;

/// What is simulated, beside the load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Simulation {
    /// The rules of the scheduler.
    pub rules: Rules,
    /// The machine.
    pub machine: Machine,
    /// The groups that the tasks are in.
    pub groups: Groups,
    /// The seed of all that is random.
    pub seed: u64,
    /// Whether each spinner reads its own times when it runs, instead of a sampler at one moment.
    pub reads_itself: bool,
    /// Whether switches are stored.
    pub traces: bool,
    /// Whether it is stored where tasks that wake up are placed.
    pub places: bool,
}

/// The groups (cgroups) that tasks are in, by role: their `cpu.weight`; `None`: the root cgroup.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Groups {
    /// That of the spinners.
    pub spinners: Option<u32>,
    /// That of the sleepers.
    pub sleepers: Option<u32>,
}

impl Groups {
    fn weights(self) -> Vec<u32> {
        self.spinners.into_iter().chain(self.sleepers).collect()
    }

    /// The number of the group of each role among the weights.
    fn of_roles(self) -> [Option<usize>; 2] {
        let before = usize::from(self.spinners.is_some());
        [self.spinners.map(|_| 0), self.sleepers.map(|_| before)]
    }
}

impl Simulation {
    /// Runs the load.
    ///
    /// # Errors
    /// `Kind::Load` if the load or the machine is invalid, `Kind::Setting` if the rules do not have a
    /// setting of a step.
    pub fn run(&self, spec: &SlicesSpec) -> Result<Recording, Error> {
        check(spec)?;
        let mut log = Log::new(self);
        let mut turns = Vec::new();
        for phase in 0..Phases::parts(spec.phases.as_ref()) {
            for step in (0..spec.turns).flat_map(|turn| spec.steps_of_turn(turn)) {
                let (round, samples) = self.round(spec, log, phase, step)?;
                log = round;
                turns.push(SlicesTurn { step: number(step), samples });
            }
        }
        let (switches, placements) = log.into_parts(spec);
        let series = SlicesSeries {
            began_ns: Nanos::ZERO,
            tasks: tasks(spec),
            turns,
            switches: Some(switches).filter(|_| self.traces),
            wakers: None,
            placements: Some(placements).filter(|_| self.places),
        };
        Ok(Recording {
            taken: TAKEN.to_owned(),
            tool: Recording::TOOL.to_owned(),
            facts: self.facts(),
            body: Body::Slices { spec: self.with_inputs(spec), series },
            doubts: Vec::new(),
            moments: Moments::default(),
            hardware: None,
            repeat: None,
        })
    }

    /// One round of one variant, in one phase.
    fn round(
        &self,
        spec: &SlicesSpec,
        log: Log,
        phase: u32,
        step: usize,
    ) -> Result<(Log, Vec<SlicesSample>), Error> {
        let mut rules = self.rules.clone();
        let changes = step.checked_sub(1).and_then(|place| spec.steps.get(place));
        for setting in changes.iter().flat_map(|step| &step.settings) {
            rules.set(&setting.name, &setting.value)?;
        }
        let mut machine = self.machine.clone();
        machine.groups = self.groups.weights();
        let (seed, offset) = (self.seed.wrapping_add(log.rounds), log.offset);
        machine.tick_phase_ns = self.tick_phase(spec, phase, seed);
        let load = self.load(spec, offset + Nanos::from_nanos(spec.turn_ns().get() / 2));
        let threads = count(spec)..self.sampler(spec);
        let (is_first, lags) = (log.rounds == 0, log.lags.clone());
        let mut engine = Engine::new(&rules, &machine, load, seed, log)?;
        engine.set_lags(threads.start, &lags);
        // As `measure` waits until all have run, at a real-time priority. This decides for long how
        // far the tasks are apart.
        while !engine.have_run(count(spec)) {
            engine.run_until(engine.now() + LOOK);
            engine.run_until_works(self.sampler(spec), Nanos::ZERO);
        }
        let granularity = engine.granularity();
        let began = engine.now();
        engine.observer().begin(began, granularity);
        if !is_first {
            self.wake_threads(spec, &mut engine, Occasion::Exits);
        }
        let samples = self.samples(spec, &mut engine, offset);
        // It ended the last stretch.
        engine.observe_running(self.sampler(spec));
        let length = engine.now().saturating_sub(began);
        let lags = engine.lags(threads);
        let mut log = engine.into_observer();
        log.end(length, lags);
        Ok((log, samples))
    }

    /// The first tick after all tasks of a phase have been forked. In guests the first phase's forks took an eighth
    /// longer (their pages are not in use yet), and the time of all differed by up to a thirty-second part.
    fn tick_phase(&self, spec: &SlicesSpec, phase: u32, seed: u64) -> Nanos {
        let machine = &self.machine;
        let period = machine.hz.period().get().max(1);
        let step = spec.phases.as_ref().map_or(Nanos::ZERO, |phases| phases.step_ns);
        let [_, fork] = machine.costs.fork_ns;
        let forks = fork.saturating_mul(count(spec) as u64).get();
        let longer = if phase == 0 { forks / 8 } else { 0 };
        let shorter = SplitMix64::seed_from_u64(seed).next_u64() % (forks / 16).max(1);
        let forked = forks + longer + forks / 32 - shorter;
        let since = step.saturating_mul(phase.into()).get() + forked;
        let next = machine.tick_phase_ns.get() + period - since % period;
        Nanos::from_nanos(next % period)
    }

    /// The samples of a round, which begins at `offset` of the recording.
    fn samples(
        &self,
        spec: &SlicesSpec,
        engine: &mut Engine<Log>,
        offset: Nanos,
    ) -> Vec<SlicesSample> {
        let length = spec.turn_ns();
        let sample_ns = spec.sample_ns.unwrap_or(length);
        let began = engine.now();
        let mut before = self.reading(spec, engine, began);
        let mut samples = Vec::new();
        for number in 1..=length.get().div_ceil(sample_ns.get()) {
            let begin = before.iter().map(|(at, _)| *at).max().unwrap_or(began);
            // Tasks that read themselves are late: the next sample begins then.
            let end = match self.reads_itself {
                true => begin + sample_ns,
                false => began + sample_ns.saturating_mul(number).min(length),
            };
            let after = self.reading(spec, engine, end);
            samples.push(sample(&before, &after, offset + begin.saturating_sub(began)));
            before = after;
        }
        samples
    }

    /// Runs until then; when each task was read, and its times.
    fn reading(
        &self,
        spec: &SlicesSpec,
        engine: &mut Engine<Log>,
        at: Nanos,
    ) -> Vec<(Nanos, TaskTime)> {
        let mut read = Vec::new();
        engine.run_until(at);
        if self.reads_itself {
            read = engine.read_by_themselves(spec.spinners as usize);
        } else {
            let [all, each] = self.machine.costs.reading_ns;
            let work = all + each.saturating_mul(count(spec) as u64);
            engine.run_until_works(self.sampler(spec), work);
            self.wake_threads(spec, engine, Occasion::Reading);
        }
        let now = engine.now();
        let others = engine.times().into_iter().take(count(spec)).skip(read.len());
        read.extend(others.map(|time| (now, time)));
        read
    }

    /// Wakes up the kernel threads, which are behind the tasks, at these ticks.
    fn wake_threads(
        &self,
        spec: &SlicesSpec,
        engine: &mut Engine<Log>,
        occasion: Occasion,
    ) {
        for (thread, place) in self.machine.threads.iter().zip(count(spec)..) {
            let ticks = thread.wakes.ticks(occasion).iter();
            ticks.for_each(|tick| engine.wake_at_tick(place, *tick));
        }
    }

    /// The place of the sampler, which is behind the tasks and the kernel threads.
    fn sampler(&self, spec: &SlicesSpec) -> usize {
        count(spec) + self.machine.threads.len()
    }

    /// What the tasks do in a round in whose middle it is that time of the measurement.
    fn load(&self, spec: &SlicesSpec, middle: Nanos) -> Vec<TaskSpec> {
        let machine = &self.machine;
        let policy = match spec.policy {
            Class::Other => Policy::Other(spec.nice),
            Class::Batch => Policy::Batch(spec.nice),
        };
        let spin = spec.getrusage_every.map_or(Work::Spin, |passes| {
            let all_ns = machine.pass_ns.saturating_mul(passes.into()).get();
            let every_ns = Nanos::from_nanos(all_ns - all_ns / UNROLLED);
            Work::Ask { every_ns, passes }
        });
        let sleep = Work::Sleep { sleep_ns: spec.sleep_ns, burst_ns: spec.burst_ns };
        let groups = self.groups.of_roles();
        let task = |(work, number, group)| {
            let cpus = spec.pinned_cpu(number);
            let cpus = cpus.map_or_else(|| spec.cpus.clone(), CpuSet::from);
            TaskSpec { work, policy, cpus, slice_ns: None, group }
        };
        let spinners = (0..spec.spinners).map(|number| (spin, number, groups[0]));
        let sleepers = (0..spec.sleepers).map(|number| (sleep, number, groups[1]));
        let thread = |thread: &KernelThread| TaskSpec {
            work: Work::Timeout {
                sleep_ns: thread.wakes.sleep_at(middle),
                work_ns: thread.work_ns,
            },
            policy: Policy::Other(0),
            cpus: machine.all_cpus(),
            slice_ns: None,
            group: None,
        };
        let threads = machine.threads.iter().map(thread);
        let sampler = TaskSpec {
            work: Work::Timeout { sleep_ns: None, work_ns: Nanos::ZERO },
            policy: Policy::Fifo(1),
            cpus: CpuSet::from(Cpu::new(0)),
            slice_ns: None,
            group: None,
        };
        let tasks = spinners.chain(sleepers).map(task);
        tasks.chain(threads).chain([sampler]).collect()
    }

    /// The load, with what is simulated beside it.
    fn with_inputs(&self, spec: &SlicesSpec) -> SlicesSpec {
        let Self { rules, machine, groups, seed, reads_itself, .. } = self;
        let simulated = Simulated {
            rules: rules.name().to_owned(),
            settings: rules.changed(),
            spinners_cgroup: groups.spinners,
            sleepers_cgroup: groups.sleepers,
            tick_jitter_ns: machine.tick_jitter_ns,
            timer_slack_ns: machine.timer_slack_ns,
            steal: machine.steal,
            kernel_work: !machine.threads.is_empty(),
            reads_itself: *reads_itself,
            seed: *seed,
        };
        SlicesSpec { simulated: Some(Box::new(simulated)), ..spec.clone() }
    }

    fn facts(&self) -> Facts {
        let release = format!("{} (simulated)", self.rules.name());
        let tick = match (&self.machine.nohz_full, self.machine.stops_idle_tick) {
            (some, _) if !some.is_empty() => TickMode::Full,
            (_, true) => TickMode::Idle,
            (_, false) => TickMode::Periodic,
        };
        Facts::of_known(vec![
            ("kernel.release", json!(release)),
            ("tick.hz", json!(self.machine.hz)),
            ("tick.mode", json!(tick)),
            ("tick.nohz_full", json!(self.machine.nohz_full)),
            ("sched.features", json!(self.rules.enabled_features())),
            ("cpus.online", json!(self.machine.all_cpus())),
            ("cpus.possible", json!(self.machine.all_cpus())),
        ])
    }
}

fn check(spec: &SlicesSpec) -> Result<(), Error> {
    let length = spec.turn_ns();
    let sample = spec.sample_ns.unwrap_or(length);
    let text = match () {
        () if spec.duration_ns > LONGEST => "the simulated time must be at most a day",
        () if length < SHORTEST => {
            "a round (the duration by the number of rounds and phases) must be at least 1 ms"
        }
        () if !(SHORTEST..=length).contains(&sample) => {
            "a sample must be between 1 ms and the length of a round"
        }
        () => return Ok(()),
    };
    Err(Error::new(Kind::Load, text))
}

/// From one reading to the next. Where tasks read themselves, the length is the mean of theirs.
fn sample(
    before: &[(Nanos, TaskTime)],
    after: &[(Nanos, TaskTime)],
    start_ns: Nanos,
) -> SlicesSample {
    let pairs = || before.iter().zip(after);
    let lengths = pairs().map(|(before, after)| after.0.saturating_sub(before.0).get());
    let wall = lengths.sum::<u64>() / (after.len().max(1) as u64);
    let time = |(before, after): (&(Nanos, TaskTime), &(Nanos, TaskTime))| TaskTime {
        cpu_ns: after.1.cpu_ns.saturating_sub(before.1.cpu_ns),
        involuntary: after.1.involuntary - before.1.involuntary,
        voluntary: after.1.voluntary - before.1.voluntary,
        passes: after.1.passes - before.1.passes,
    };
    SlicesSample {
        start_ns,
        wall_ns: Nanos::from_nanos(wall),
        reading_ns: Nanos::ZERO,
        tasks: pairs().map(time).collect(),
    }
}

/// The number of tasks that are measured.
fn count(spec: &SlicesSpec) -> usize {
    spec.spinners as usize + spec.sleepers as usize
}

/// The name, the role and the CPU of each task.
fn tasks(spec: &SlicesSpec) -> Vec<SlicesTask> {
    let task = |(kind, role, number, place): (&str, Role, u32, u32)| SlicesTask {
        pid: FIRST_PID + place,
        name: format!("{kind}/{number}"),
        role,
        cpu: spec.pinned_cpu(number),
    };
    let spinners = (0..spec.spinners).map(|one| ("spin", Role::Spinner, one, one));
    let sleepers =
        (0..spec.sleepers).map(|one| ("sleep", Role::Sleeper, one, spec.spinners + one));
    spinners.chain(sleepers).map(task).collect()
}

fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(u32::MAX)
}
