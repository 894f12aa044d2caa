//! Wake-ups, system calls and switches: what changes which task runs (`kernel/sched/core.c`).

use recording::End;
use units::Nanos;

use crate::scheduler::engine::Engine;
use crate::scheduler::fair::{Arrival, WakeupCheck};
use crate::scheduler::observer::{Observer, Woken};
use crate::scheduler::placement;
use crate::scheduler::queue::Entity;
use crate::scheduler::task::{Policy, Task, Until, Work};
use crate::scheduler::timers::{Action, Timer};

impl<O: Observer> Engine<O> {
    /// The running task leaves user mode, for an interrupt or a system call.
    #[inline]
    pub(crate) fn leave_user(&mut self, cpu: usize, now: u64) {
        let state = &self.cpus[cpu];
        let Some(place) = state.current else { return };
        self.tasks[place].user += now.saturating_sub(state.user_since);
    }

    /// The running task does what it has to do now.
    pub(crate) fn call(&mut self, cpu: usize, now: u64) {
        let Some(place) = self.cpus[cpu].current else { return };
        self.leave_user(cpu, now);
        let task = &mut self.tasks[place];
        match task.spec.work {
            Work::Spin => {}
            Work::Ask { every_ns, .. } => {
                task.until = Until::User(task.user + every_ns.get());
                self.ask(cpu, now);
            }
            Work::Sleep { burst_ns, .. } if task.returns() => {
                task.time.passes += 1;
                task.until = Until::Time(now + burst_ns.get());
                self.cpus[cpu].user_since = now;
                if burst_ns.is_zero() {
                    self.call(cpu, now);
                }
            }
            Work::Timeout { work_ns, .. } if task.returns() => {
                task.until = Until::User(task.user + work_ns.get());
                self.cpus[cpu].user_since = now;
            }
            Work::Sleep { sleep_ns, .. } => self.sleep(cpu, place, sleep_ns.get(), now),
            Work::Timeout { sleep_ns, .. } => {
                if let Some(sleep) = sleep_ns {
                    self.set_timeout(cpu, place, now + sleep.get());
                }
                self.begin_sleep(cpu, place, now);
            }
        }
    }

    /// A system call that updates the task's run time: with EEVDF this can find that its slice is
    /// over.
    fn ask(&mut self, cpu: usize, now: u64) {
        let [to_update, back] = self.machine.costs.call_ns.map(Nanos::get);
        let at = now + to_update;
        let state = &mut self.cpus[cpu];
        if state.fair.account(at) {
            state.request(false, self.is_lazy);
        }
        state.user_since = at + back;
        if state.request.is_some() {
            self.schedule(cpu, at + back, false);
        }
    }

    fn sleep(&mut self, cpu: usize, place: usize, sleep: u64, now: u64) {
        let from = now + self.machine.costs.sleep_ns.get() + sleep;
        // Real-time tasks have no slack.
        let policy = self.tasks[place].spec.policy;
        let slack = policy.priority().map_or(self.machine.timer_slack_ns.get(), |_| 0);
        self.set_wakeup(cpu, place, [from, from + slack]);
        self.begin_sleep(cpu, place, now);
    }

    pub(crate) fn set_wakeup(&mut self, cpu: usize, place: usize, [from, by]: [u64; 2]) {
        self.cpus[cpu].timers.set(Timer { from, by, action: Action::Wake(place) });
    }

    fn begin_sleep(&mut self, cpu: usize, place: usize, now: u64) {
        self.tasks[place].until = Until::Return;
        let begin = now + self.machine.costs.sleep_to_schedule_ns.get();
        self.schedule(cpu, begin, true);
    }

    /// Wakes a task up at that tick of its CPU from now on, counted from 1, if it sleeps then.
    pub fn wake_at_tick(&mut self, place: usize, tick: u64) {
        let Some(task) = self.tasks.get(place) else { return };
        let cpu = task.cpu;
        let after = tick.saturating_sub(1) * self.period;
        let from = self.tick_from(self.now().get()) + after;
        self.set_timeout(cpu, place, from);
    }

    /// Wakes a task up at the first tick from then on, by the timer wheel.
    pub(crate) fn set_timeout(&mut self, cpu: usize, place: usize, from: u64) {
        let by = self.tick_from(from);
        self.cpus[cpu].timers.set(Timer { from: by, by, action: Action::Timeout(place) });
    }

    /// Wakes a task up, whose timer was on `cpu` (`try_to_wake_up`).
    pub(crate) fn wake(&mut self, cpu: usize, place: usize, now: u64) {
        let task = &mut self.tasks[place];
        let (priority, from) = (task.spec.policy.priority(), task.cpu);
        let is_queued = task.entity.is_none() && priority.is_none();
        if !is_queued {
            task.cpu = placement::of_woken(&self.cpus, task, cpu);
        }
        task.woken_at = now;
        let target = task.cpu;
        let entity = task.entity.take_if(|_| priority.is_none());
        self.cpus[target].read_clock(now);
        if let Some(priority) = priority {
            self.cpus[target].wake_realtime(place, priority);
        } else {
            let queued = match entity {
                Some(entity) => Some(self.enqueue(entity, [from, target], now)),
                None => self.cpus[target].fair.requeue(place, now),
            };
            let Some(reschedule) = queued else { return };
            if reschedule {
                self.cpus[target].request(false, self.is_lazy);
            }
            self.check_preemption(target, place, now);
        }
        self.divide_groups(target, now);
        let state = &mut self.cpus[target];
        let request =
            state.request.filter(|request| !request.is_lazy && self.keeps_clock);
        if request.is_some() && state.current.is_some() {
            state.clock_kept = Some(now);
        }
        if state.is_nohz_full {
            self.stop_or_start_tick(target, now);
        }
        let state = &mut self.cpus[target];
        if self.has_slice_timer && state.timers.find(Action::SliceEnd).is_none() {
            state.start_slice_timer(now);
        }
        if target != cpu && state.request.is_some() {
            let timer = Timer { from: now, by: now, action: Action::Reschedule };
            state.timers.set(timer);
        }
    }

    /// Queues a task that slept on one CPU and wakes up on another one, or the same; returns whether to
    /// reschedule.
    fn enqueue(
        &mut self,
        mut entity: Box<Entity>,
        [from, to]: [usize; 2],
        now: u64,
    ) -> bool {
        let mut arrival = Arrival::Woken;
        if to != from {
            arrival = Arrival::WokenElsewhere;
            self.cpus[from].fair.detach(&mut entity, now);
        }
        self.cpus[to].fair.enqueue(entity, arrival, now)
    }

    /// Whether a task that woke up preempts what runs (`wakeup_preempt`).
    fn check_preemption(&mut self, cpu: usize, woken: usize, now: u64) {
        let state = &mut self.cpus[cpu];
        let running = state.current.filter(|_| state.fair.is_running());
        let mut preempts = state.current.is_none();
        let view = self.observer.wants_wakeups().then(|| state.fair.ahead(woken));
        let lost = view.and_then(|_| state.fair.rest()).map(Nanos::from_nanos);
        if running.is_some() {
            preempts = self.preempts(cpu, woken, now);
        }
        if preempts {
            self.cpus[cpu].request(false, self.is_lazy && running.is_some());
        }
        if let Some((ahead_ns, ahead_of_average_ns)) = view {
            self.observer.woken(Woken {
                cpu,
                at_ns: Nanos::from_nanos(now),
                task: woken,
                running,
                ahead_ns,
                ahead_of_average_ns,
                lost_ns: lost.filter(|_| preempts),
            });
        }
    }

    /// Whether a task that came to the queue preempts the running one of its class.
    #[inline]
    pub(crate) fn preempts(&mut self, cpu: usize, woken: usize, now: u64) -> bool {
        let state = &mut self.cpus[cpu];
        let check = WakeupCheck {
            now,
            requested: state.request.is_some_and(|request| !request.is_lazy),
            is_batch: matches!(self.tasks[woken].spec.policy, Policy::Batch(_)),
        };
        let preempts = state.fair.preempts(woken, check, &mut self.asleep);
        self.keep_asleep();
        preempts
    }

    /// Gives the entities that were found to sleep back to their tasks.
    #[inline]
    fn keep_asleep(&mut self) {
        if !self.asleep.is_empty() {
            self.keep_each_asleep();
        }
    }

    fn keep_each_asleep(&mut self) {
        while let Some(entity) = self.asleep.pop() {
            let task = entity.task;
            self.tasks[task].entity = Some(entity);
        }
    }

    /// Chooses what runs next (`__schedule`); `sleeps`: the running task goes to sleep.
    pub(crate) fn schedule(&mut self, cpu: usize, begin: u64, sleeps: bool) {
        let state = &mut self.cpus[cpu];
        let now = state.clock_kept.take().unwrap_or(begin);
        let previous = state.current;
        if let Some(place) = previous {
            self.account_previous(cpu, place, now, sleeps);
        }
        let next = loop {
            let next = self.choose(cpu, now);
            if next.is_some() || !self.pull(cpu, now) {
                break next;
            }
        };
        let state = &mut self.cpus[cpu];
        let request = state.request.take();
        if next == previous && !sleeps {
            state.user_since = begin + self.machine.costs.to_user_ns.get();
            return;
        }
        let by_tick = request.is_some_and(|request| request.by_tick);
        self.switch(cpu, [begin, now], next, reason(sleeps, by_tick));
    }

    fn account_previous(&mut self, cpu: usize, place: usize, now: u64, sleeps: bool) {
        let (state, task) = (&mut self.cpus[cpu], &mut self.tasks[place]);
        if task.spec.policy.priority().is_some() {
            task.realtime_exec += now.saturating_sub(state.realtime.accounted_until);
            state.realtime.accounted_until = now;
            if sleeps {
                state.realtime.remove(place);
            }
            return;
        }
        state.fair.account(now);
        if sleeps {
            task.entity = state.fair.sleep();
            self.divide_groups(cpu, now);
        }
    }

    /// Chooses the next task, and makes it the running one of its class.
    fn choose(&mut self, cpu: usize, now: u64) -> Option<usize> {
        let state = &mut self.cpus[cpu];
        if let Some((_, place)) = state.realtime.first() {
            state.fair.put_current();
            if state.current != Some(place) {
                state.realtime.accounted_until = now;
            }
            return Some(place);
        }
        let chosen = state.fair.choose(&mut self.asleep, now);
        self.keep_asleep();
        chosen
    }

    /// Switches to a task, and counts the end of the other one's stretch.
    fn switch(
        &mut self,
        cpu: usize,
        [begin, now]: [u64; 2],
        next: Option<usize>,
        why: End,
    ) {
        let (state, costs) = (&self.cpus[cpu], &self.machine.costs);
        let (previous, began) = (state.current, state.switched_at);
        let next_task = next.map(|next| &self.tasks[next]);
        let is_woken = next_task.is_some_and(|task| task.woken_at >= began);
        let end = if why == End::Other && is_woken { End::Wakeup } else { why };
        let is_fair = |task: usize| self.tasks[task].spec.policy.priority().is_none();
        let switch_ns = if why == End::Sleep {
            match previous.is_some_and(is_fair) {
                true => costs.switch_from_sleep_ns,
                false => costs.switch_from_realtime_ns,
            }
        } else if next_task.is_some_and(Task::returns) {
            costs.switch_to_woken_ns
        } else {
            costs.switch_ns
        };
        if let Some(place) = previous {
            let time = &mut self.tasks[place].time;
            match end {
                End::Sleep => time.voluntary += 1,
                End::Tick | End::Wakeup | End::Yield | End::Other => {
                    time.involuntary += 1
                }
            }
        }
        let end = if previous.is_none() { End::Sleep } else { end };
        self.observe(cpu, now, end);
        let state = &mut self.cpus[cpu];
        (state.current, state.switched_at) = (next, now);
        state.user_since = begin + switch_ns.get();
        if state.is_nohz_full || previous.is_none() != next.is_none() {
            self.stop_or_start_tick(cpu, now);
        }
        if self.has_slice_timer {
            let state = &mut self.cpus[cpu];
            let timer_ns = self.machine.costs.slice_timer_ns.get();
            state.start_slice_timer(state.user_since - timer_ns);
        }
    }

    /// Stops the tick of a CPU that does not need it, or lets it go on at its next regular time
    /// (`can_stop_idle_tick`, `sched_can_stop_tick`).
    pub(crate) fn stop_or_start_tick(&mut self, cpu: usize, now: u64) {
        let state = &mut self.cpus[cpu];
        let needs_tick = match state.current {
            None => !self.machine.stops_idle_tick,
            Some(_) => !state.is_nohz_full || state.len() > 1,
        };
        let has_tick = state.timers.find(Action::Tick).is_some();
        if has_tick && !needs_tick {
            state.timers.cancel(Action::Tick);
        } else if needs_tick && !has_tick {
            self.set_tick(cpu, self.tick_from(now + 1));
        }
    }
}

/// Why a stretch ended, as far as the task that ran knows.
fn reason(sleeps: bool, by_tick: bool) -> End {
    match (sleeps, by_tick) {
        (true, _) => End::Sleep,
        (false, true) => End::Tick,
        (false, false) => End::Other,
    }
}
