//! Tasks on CPUs, from one event to the next: an interrupt of a timer, or a system call of the running
//! task.
//!
//! The order of what happens in an interrupt is the kernel's (`hrtimer_interrupt`, `sched_tick`,
//! `try_to_wake_up`, `__schedule`): expired timers run in their order, each reads the clock after what the
//! ones before it took, and at the end the kernel reschedules if that was requested.
//!
//! An engine is generic over its observer, and compiled in the crate that names one: what runs at each event
//! is `#[inline]` in this folder, which saves a fifth of the time.

use std::ops::Range;

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};
use recording::{End, TaskTime};
use units::{Cpu, Nanos};

use crate::scheduler::cpu::CpuState;
use crate::scheduler::fair::Arrival;
use crate::scheduler::machine::Machine;
use crate::scheduler::observer::{Observer, Ran};
use crate::scheduler::queue::Asleep;
use crate::scheduler::rules::Rules;
use crate::scheduler::shares::Shares;
use crate::scheduler::task::{Policy, Task, TaskSpec, Until, Work};
use crate::scheduler::timers::{Action, Timer};
use crate::scheduler::{Error, Kind, placement};

/// More are not useful, and slow.
const CPUS_MAX: u32 = 1024;
/// The part by which the times differ that new tasks need before their work begins.
const START_SPREAD: u64 = 256;
/// The slice of `SCHED_RR` (`RR_TIMESLICE`).
const ROUND_ROBIN: u64 = 100_000_000;

/// A simulation.
#[derive(Debug)]
pub struct Engine<O> {
    granularity: Option<Nanos>,
    pub(crate) is_lazy: bool,
    pub(crate) has_slice_timer: bool,
    pub(crate) keeps_clock: bool,
    pub(crate) balances_by_load: bool,
    pub(crate) machine: Machine,
    pub(crate) period: u64,
    pub(crate) cpus: Vec<CpuState>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) groups: Vec<Shares>,
    now: u64,
    random: SplitMix64,
    pub(crate) observer: O,
    /// Entities that were found to sleep; it is reused, to avoid allocations.
    pub(crate) asleep: Asleep,
    events: u64,
}

impl<O: Observer> Engine<O> {
    /// Tasks that are all started at once, on idle CPUs; those that wait with a timeout are asleep, until
    /// a random time.
    ///
    /// # Errors
    /// `Kind::Load` if there is no CPU, no tick, or a task that may not use any CPU.
    pub fn new(
        rules: &Rules,
        machine: &Machine,
        tasks: Vec<TaskSpec>,
        seed: u64,
        observer: O,
    ) -> Result<Self, Error> {
        check(machine, &tasks)?;
        let period = machine.hz.period().get();
        let fair = rules.fair(machine.cpus, period);
        let weights: Vec<u64> = machine.group_weights().collect();
        let balances_by_load = rules.balances_by_load();
        let averages = balances_by_load && machine.cpus > 1;
        let cpu = CpuState::new(fair, &weights, averages);
        let shares = |weight| Shares { weight, load: 0 };
        let mut engine = Self {
            granularity: fair.granularity(),
            is_lazy: rules.is_lazy(),
            has_slice_timer: rules.has_slice_timer(),
            keeps_clock: rules.keeps_clock(),
            balances_by_load,
            machine: machine.clone(),
            period,
            cpus: vec![cpu; machine.cpus as usize],
            groups: weights.into_iter().map(shares).collect(),
            tasks: Vec::with_capacity(tasks.len()),
            now: 0,
            random: SplitMix64::seed_from_u64(seed),
            observer,
            asleep: Vec::new(),
            events: 0,
        };
        for (cpu, state) in (0..).map(Cpu::new).zip(&mut engine.cpus) {
            state.is_nohz_full = machine.nohz_full.contains(cpu);
        }
        for cpu in 0..engine.cpus.len() {
            engine.set_tick(cpu, machine.tick_phase_ns.get());
            engine.set_steal(cpu, 0);
        }
        for task in tasks {
            engine.start(task);
        }
        for cpu in 0..engine.cpus.len() {
            engine.schedule(cpu, 0, true);
            engine.stop_or_start_tick(cpu, 0);
        }
        Ok(engine)
    }

    /// Virtual time.
    pub fn now(&self) -> Nanos {
        Nanos::from_nanos(self.now)
    }

    /// The number of expired timers and system calls so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// The observer.
    pub fn observer(&mut self) -> &mut O {
        &mut self.observer
    }

    /// The observer, at the end.
    pub fn into_observer(self) -> O {
        self.observer
    }

    /// How far a task of nice 0 has to be ahead to preempt the running one; `None`: that is decided
    /// otherwise.
    pub fn granularity(&self) -> Option<Nanos> {
        self.granularity
    }

    /// Runs until that time.
    pub fn run_until(&mut self, end: Nanos) {
        while self.step(end.get()) {}
        self.now = self.now.max(end.get());
    }

    /// Whether each of the first tasks has run.
    pub fn have_run(&self, tasks: usize) -> bool {
        (0..tasks.min(self.tasks.len())).all(|place| {
            // Where nothing takes time, a sleeper has none.
            let time = self.time(place);
            time.passes > 0 || !time.cpu_ns.is_zero()
        })
    }

    /// Wakes a task up that waits for that ([`Work::Timeout`]), to work for that long, and runs until it works.
    /// One that works already goes on for that long. No other task of its CPU may keep it from that.
    pub fn run_until_works(&mut self, place: usize, work: Nanos) {
        if self.works(place) {
            self.tasks[place].until.delay(work.get());
            return;
        }
        let Some(task) = self.tasks.get_mut(place) else { return };
        task.spec.work = Work::Timeout { sleep_ns: None, work_ns: work };
        let cpu = task.cpu;
        self.set_wakeup(cpu, place, [self.now; 2]);
        while !self.works(place) && self.step(u64::MAX) {}
    }

    /// Tells the observer of a task that runs now, as if it ended.
    pub fn observe_running(&mut self, place: usize) {
        let running = self.cpus.iter().position(|cpu| cpu.current == Some(place));
        if let Some(cpu) = running {
            self.observe(cpu, self.now, End::Other);
        }
    }

    /// Tells the observer of the stretch that ends now on a CPU.
    #[inline]
    pub(crate) fn observe(&mut self, cpu: usize, now: u64, end: End) {
        let state = &self.cpus[cpu];
        self.observer.ran(Ran {
            cpu,
            task: state.current,
            start_ns: Nanos::from_nanos(state.switched_at),
            ns: Nanos::from_nanos(now.saturating_sub(state.switched_at)),
            end,
        });
    }

    /// Whether that task runs, in user mode.
    fn works(&self, place: usize) -> bool {
        self.tasks.get(place).is_some_and(|task| {
            !task.returns() && self.cpus[task.cpu].current == Some(place)
        })
    }

    /// Runs until each of the first tasks has been in user mode again, and reads its time then: as
    /// tasks do that measure themselves. Not for tasks that sleep.
    pub fn read_by_themselves(&mut self, tasks: usize) -> Vec<(Nanos, TaskTime)> {
        let mut read = vec![None; tasks];
        while read.iter().any(Option::is_none) {
            let unread = |cpu: &CpuState| {
                let place = cpu.current.filter(|place| *place < tasks)?;
                let at = cpu.user_since.max(self.now);
                read[place].is_none().then_some((at, place))
            };
            let next = self.cpus.iter().filter_map(unread).min();
            let before = next.map_or(u64::MAX, |(at, _)| at);
            if self.step(before) {
                continue;
            }
            let Some((at, place)) = next else { break };
            self.now = at;
            read[place] = Some((self.now(), self.time(place)));
        }
        let end = self.now();
        let left =
            |(place, read): (usize, Option<_>)| read.unwrap_or((end, self.time(place)));
        read.into_iter().enumerate().map(left).collect()
    }

    /// The next event, if it is before `end`.
    fn step(&mut self, end: u64) -> bool {
        let cpus = self.cpus.iter().zip(0..);
        let next = cpus.map(|(state, cpu)| (self.next_event(state), cpu)).min();
        let Some((at, cpu)) = next.filter(|(at, _)| *at < end) else { return false };
        self.now = self.now.max(at);
        if self.cpus[cpu].timers.next() <= at {
            self.interrupt(cpu, at);
        } else {
            self.events += 1;
            self.call(cpu, at);
        }
        true
    }

    /// What each task has had until now.
    pub fn times(&self) -> Vec<TaskTime> {
        (0..self.tasks.len()).map(|task| self.time(task)).collect()
    }

    fn time(&self, place: usize) -> TaskTime {
        let task = &self.tasks[place];
        let cpu = &self.cpus[task.cpu];
        let queued = cpu.fair.find(place);
        let entity = queued.or(task.entity.as_deref());
        let is_current = cpu.current == Some(place);
        let fair = entity.map_or(0, |entity| entity.sum_exec);
        let since = match task.spec.policy.priority() {
            Some(_) => cpu.realtime.accounted_until,
            None => cpu.fair.accounted_until(),
        };
        let running = if is_current { self.now.saturating_sub(since) } else { 0 };
        let user = self.now.saturating_sub(cpu.user_since);
        let user = if is_current { user } else { 0 };
        let passes = match task.spec.work {
            Work::Spin => (task.user + user) / self.machine.pass_ns.get().max(1),
            Work::Ask { every_ns, passes } => {
                let all = u128::from(task.user + user) * u128::from(passes);
                u64::try_from(all / u128::from(every_ns.get().max(1))).unwrap_or(u64::MAX)
            }
            Work::Sleep { .. } | Work::Timeout { .. } => task.time.passes,
        };
        let cpu_ns = Nanos::from_nanos(fair + task.realtime_exec + running);
        TaskTime { cpu_ns, passes, ..task.time }
    }

    /// How far each of these tasks was behind the others when it began to sleep, by the rules of EEVDF.
    pub fn lags(&self, tasks: Range<usize>) -> Vec<i64> {
        let entity = |place: usize| {
            let task = &self.tasks[place];
            task.entity.as_deref().or_else(|| self.cpus[task.cpu].fair.find(place))
        };
        tasks.map(|place| entity(place).map_or(0, |entity| entity.lag)).collect()
    }

    /// Lets tasks that sleep, from this one on, have these lags.
    pub fn set_lags(&mut self, first: usize, lags: &[i64]) {
        let tasks = self.tasks.iter_mut().skip(first);
        for (task, lag) in tasks.zip(lags) {
            if let Some(entity) = &mut task.entity {
                entity.lag = *lag;
            }
        }
    }

    fn start(&mut self, spec: TaskSpec) {
        let place = self.tasks.len();
        let cpu = placement::of_new(&self.cpus, &spec.cpus);
        let mut task = Task::new(place, spec, cpu);
        if let Work::Timeout { sleep_ns, .. } = task.spec.work {
            self.tasks.push(task);
            if let Some(sleep) = sleep_ns {
                let from = self.random_below(sleep.get());
                self.set_timeout(cpu, place, from);
            }
            return;
        }
        if let Work::Sleep { .. } = task.spec.work {
            task.until = Until::User(self.start_up());
        }
        let priority = task.spec.policy.priority();
        let entity = task.entity.take_if(|_| priority.is_none());
        self.tasks.push(task);
        if let Some(priority) = priority {
            self.cpus[cpu].realtime.push(priority, place);
        } else if let Some(entity) = entity {
            self.cpus[cpu].fair.enqueue(entity, Arrival::New, 0);
            self.divide_groups(cpu, 0);
        }
    }

    /// How long a new task runs before its work begins.
    fn start_up(&mut self) -> u64 {
        let longest = self.machine.costs.start_ns.get();
        longest - self.random_below(longest / START_SPREAD)
    }

    /// A random number; 0 if there is none below the limit.
    fn random_below(&mut self, limit: u64) -> u64 {
        if limit == 0 { 0 } else { self.random.next_u64() % limit }
    }

    /// When something happens next on a CPU.
    #[inline]
    fn next_event(&self, cpu: &CpuState) -> u64 {
        let call = |place: usize| self.tasks[place].next_call(cpu.user_since);
        cpu.current.map_or(u64::MAX, call).min(cpu.timers.next())
    }

    pub(crate) fn set_tick(&mut self, cpu: usize, at: u64) {
        let jitter = self.machine.tick_jitter_ns.get();
        let late = if jitter == 0 { 0 } else { self.random_below(jitter + 1) };
        let by = at + late;
        self.cpus[cpu].timers.set(Timer { from: by, by, action: Action::Tick });
    }

    fn set_steal(&mut self, cpu: usize, after: u64) {
        if let Some(steal) = &self.machine.steal {
            let by = after + steal.every_ns.get();
            self.cpus[cpu].timers.set(Timer { from: by, by, action: Action::Steal });
        }
    }

    /// An interrupt of the timer, which may come later than it was set to: not before the kernel's
    /// work on this CPU is done.
    fn interrupt(&mut self, cpu: usize, at: u64) {
        let begin = at.max(self.cpus[cpu].user_since);
        self.leave_user(cpu, begin);
        let mut clock = begin + self.machine.costs.interrupt_ns.get();
        loop {
            let read = clock;
            while let Some(timer) = self.cpus[cpu].timers.expired(read) {
                clock = self.run(cpu, timer, clock);
            }
            if self.cpus[cpu].timers.next() > clock {
                break;
            }
        }
        let (state, costs) = (&mut self.cpus[cpu], &self.machine.costs);
        if state.request.is_some() {
            self.schedule(cpu, clock + costs.to_schedule_ns.get(), false);
        } else {
            state.user_since = clock + costs.to_user_ns.get();
        }
    }

    /// Runs an expired timer; returns the time after it.
    fn run(&mut self, cpu: usize, timer: Timer, clock: u64) -> u64 {
        self.events += 1;
        let costs = &self.machine.costs;
        match timer.action {
            Action::Wake(task) => self.expire(cpu, task, clock),
            Action::Timeout(task) => {
                let softirq = costs.softirq_ns.get();
                self.expire(cpu, task, clock + softirq)
            }
            Action::Tick => {
                let [before, after] = costs.tick_ns.map(Nanos::get);
                self.tick(cpu, clock + before);
                let last = timer.by - timer.by.saturating_sub(self.phase()) % self.period;
                self.set_tick(cpu, last + self.period);
                clock + before + after
            }
            Action::SliceEnd => {
                let [before, after] = costs.slice_end_ns.map(Nanos::get);
                let state = &mut self.cpus[cpu];
                state.read_clock(clock + before);
                state.fair.account(clock + before);
                state.request(true, false);
                clock + before + after
            }
            Action::Steal => {
                let ns = self.machine.steal.map_or(0, |steal| steal.ns.get());
                self.set_steal(cpu, timer.by);
                clock + ns
            }
            Action::Reschedule => {
                self.cpus[cpu].request(false, false);
                clock
            }
        }
    }

    /// A timer that wakes a task up; returns the time after it.
    #[inline]
    fn expire(&mut self, cpu: usize, task: usize, clock: u64) -> u64 {
        let costs = &self.machine.costs;
        let [before, after] = costs.wakeup_ns.map(Nanos::get);
        let request = self.cpus[cpu].request;
        let checks = request.is_none_or(|request| request.is_lazy);
        let unchecked = if checks { 0 } else { costs.check_ns.get() };
        self.wake(cpu, task, clock + before);
        clock + before + after.saturating_sub(unchecked)
    }

    /// The first tick at or after that time.
    pub(crate) fn tick_from(&self, at: u64) -> u64 {
        let passed = at.saturating_sub(self.phase()).div_ceil(self.period);
        self.phase() + passed * self.period
    }

    fn phase(&self) -> u64 {
        self.machine.tick_phase_ns.get()
    }

    /// The running task's tick.
    fn tick(&mut self, cpu: usize, now: u64) {
        let state = &mut self.cpus[cpu];
        state.read_clock(now);
        let Some(task) = state.current else { return };
        match self.tasks[task].spec.policy {
            Policy::Other(_) | Policy::Batch(_) => {
                if state.fair.tick(now) {
                    state.request(true, self.is_lazy);
                }
            }
            Policy::RoundRobin(_) if now - state.switched_at >= ROUND_ROBIN => {
                state.realtime.rotate(task);
                state.request(true, false);
            }
            Policy::RoundRobin(_) | Policy::Fifo(_) => {}
        }
        self.divide_groups(cpu, now);
        self.balance(cpu, now);
    }
}

/// What a user-mode task does next is known: everything has a length.
fn check(machine: &Machine, tasks: &[TaskSpec]) -> Result<(), Error> {
    let refused = |text: &str| Err(Error::new(Kind::Load, text));
    if machine.cpus == 0 || machine.cpus > CPUS_MAX {
        return refused("a simulated machine has 1 to 1024 CPUs");
    }
    if machine.hz.get() == 0 {
        return refused("a simulated machine has at least one tick a second");
    }
    if machine.steal.is_some_and(|steal| steal.ns >= steal.every_ns) {
        return refused("the time that is stolen must be shorter than its interval");
    }
    let online = machine.all_cpus();
    if !machine.nohz_full.iter().all(|cpu| online.contains(cpu)) {
        return refused("a CPU of nohz_full is not one of the simulated CPUs");
    }
    let is_in = |task: &TaskSpec| task.group.is_none_or(|one| one < machine.groups.len());
    if !tasks.iter().all(is_in) {
        return refused("a task is in a group that the simulated machine does not have");
    }
    let homeless =
        tasks.iter().any(|task| task.cpus.iter().all(|cpu| !online.contains(cpu)));
    if homeless {
        return refused("a task may use none of the simulated CPUs");
    }
    let idle = |task: &TaskSpec| match task.work {
        Work::Spin => false,
        Work::Ask { every_ns, .. } => every_ns.is_zero(),
        Work::Sleep { sleep_ns, .. } => sleep_ns.is_zero(),
        Work::Timeout { sleep_ns, .. } => sleep_ns.is_some_and(Nanos::is_zero),
    };
    if tasks.iter().any(idle) {
        return refused(
            "sleeps and the time between system calls must be longer than zero",
        );
    }
    Ok(())
}
