//! The timer interrupts of a CPU, by the timers that expired in them.
//!
//! A timer of the timer wheel expires in the timer softirq, after the interrupt of the tick's
//! hrtimer, which the kernel programs for it although the tick has stopped; an hrtimer that expires
//! in softirq context does so after an interrupt without one. Both are added to the last timer
//! interrupt before them. What a timer's function does until it returns tells why the timer was armed:
//! the function that it queues for a worker thread, or the thread that it wakes or sends a signal to.
//!
//! The tick itself restarts because of a dependency. That of the scheduler is the fair server (since
//! Linux 6.12) if this CPU has started a deadline timer since the tick before, although neither a
//! deadline task exists nor another thread has run or waits: the server's timer expires, often on
//! the CPU that ran `sched_tick_remote`, and the server is then on the run queue until the next tick.
//!
//! The clock event device may fire slightly before the time of its timer, since the kernel measures
//! its frequency: no timer expires then, and the device is set again for the rest of the time. Such an
//! interrupt is followed by that of the timer, with no other event between them.
//!
//! Unknown: the code that armed a timer; other interrupts in which no timer expired have no cause.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;

use facts::{Facts, TaskStat, TimerList};

use crate::thread::waiting::{ThreadPolicy, stats};
use crate::tick::stop::{Dependency, failed_attempt};
use crate::tick::trace::Event;
use crate::tick::tracepoint::Record;

/// The addresses of the kernel's functions.
const KALLSYMS: &str = "/proc/kallsyms";
/// The function of the hrtimer of a deadline task, or of a deadline server of the scheduler.
const DEADLINE: &str = "dl_task_timer";
/// The first version in which each CPU has a fair server.
const FAIR_SERVER: (u32, u32) = (6, 12);

/// Timer interrupts in which the same timers expired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimerInterrupts {
    /// The timers, in the order in which they expired; none: the interrupts came before their timers,
    /// which expired in the next ones.
    pub timers: Vec<ExpiredTimer>,
    /// The number of interrupts.
    pub times: u64,
}

/// A timer that expired.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExpiredTimer {
    /// Whether it is of the timer wheel, and not a high-resolution timer.
    pub is_of_wheel: bool,
    /// The name of its function, or the address.
    pub function: String,
    /// Why it was armed, if that is known.
    pub reason: Option<TimerReason>,
}

/// Why a timer was armed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum TimerReason {
    /// It queues this function for a worker thread.
    Work(String),
    /// It wakes this thread, or sends it a signal.
    Thread {
        /// The thread ID.
        tid: u32,
        /// The name.
        name: String,
    },
    /// It is that of the fair server of the CPU, or the tick that restarted because of it.
    FairServer,
    /// It is the tick, which restarted because of this dependency.
    Dependency(Dependency),
}

/// The same, by addresses.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    Work(u64),
    Thread(u32, String),
    /// Of the tick: this dependency, and whether a deadline timer was started for it.
    Dependency(Dependency, bool),
}

/// An expired timer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Timer {
    is_of_wheel: bool,
    function: u64,
    reason: Option<Reason>,
}

/// A tick that runs.
#[derive(Debug, Clone, Copy)]
struct Restart {
    dependency: Dependency,
    /// Whether this CPU has started a deadline timer since the last tick.
    has_deadline_timer: bool,
    /// Whether it has run another thread since the tick restarted.
    has_switched: bool,
}

/// The timer interrupts of a trace.
#[derive(Debug)]
pub(crate) struct Interrupts<'a> {
    names: &'a Functions,
    by_timers: BTreeMap<Vec<Timer>, u64>,
    /// The timers of the last interrupt; `None` before the first one.
    last: Option<Vec<Timer>>,
    /// Whether that interrupt is in progress.
    is_inside: bool,
    /// Whether it is certainly one of the timer: on architectures where that is a device, if a
    /// timer expired in it.
    is_of_timer: bool,
    /// Whether nothing else was recorded since that interrupt began.
    is_alone: bool,
    /// The number of interrupts without a timer, each alone, directly before the last one.
    early: u64,
    /// The indexes of the timers whose functions run: in softirqs, and in the interrupt.
    running: [Option<usize>; 2],
    /// `None` while the tick is stopped.
    restart: Option<Restart>,
}

impl<'a> Interrupts<'a> {
    pub(crate) fn new(names: &'a Functions) -> Self {
        Self {
            names,
            by_timers: BTreeMap::new(),
            last: None,
            is_inside: false,
            is_of_timer: false,
            is_alone: false,
            early: 0,
            running: [None; 2],
            restart: None,
        }
    }

    /// Adds the next record.
    pub(crate) fn add(&mut self, record: &Record<Event>) {
        self.is_alone &= matches!(
            record.kind,
            Event::Attempt | Event::Interrupt | Event::InterruptEnd
        );
        match record.kind {
            Event::Attempt => self.attempt(failed_attempt(record)),
            Event::Interrupt => self.begin(),
            Event::InterruptEnd => {
                (self.is_inside, self.running[1]) = (false, None);
            }
            Event::Hrtimer => self.expire(false, record.number(0)),
            Event::Timer => self.expire(true, record.number(0)),
            Event::HrtimerEnd => self.running[usize::from(self.is_inside)] = None,
            Event::TimerEnd => self.running[0] = None,
            Event::HrtimerStart => {
                let is_deadline = self.names.is_deadline(record.number(0));
                self.restart
                    .iter_mut()
                    .for_each(|one| one.has_deadline_timer |= is_deadline);
            }
            Event::Switch => {
                self.restart.iter_mut().for_each(|one| one.has_switched = true)
            }
            Event::Work => self.does(Reason::Work(record.number(0))),
            Event::Wakeup | Event::Signal => {
                let tid = u32::try_from(record.number(0)).unwrap_or(0);
                self.does(Reason::Thread(tid, record.text(1)));
            }
            Event::Raise | Event::Run => (),
        }
    }

    /// An attempt to stop the tick, which this dependency prevented, if any.
    fn attempt(&mut self, dependency: Option<Dependency>) {
        self.restart = dependency.map(|dependency| {
            let new =
                Restart { dependency, has_deadline_timer: false, has_switched: false };
            self.restart.map_or(new, |restart| Restart { dependency, ..restart })
        });
    }

    fn begin(&mut self) {
        self.end();
        self.last = Some(Vec::new());
        (self.is_inside, self.is_of_timer) = (true, cfg!(target_arch = "x86_64"));
        self.is_alone = true;
        self.running = [None, None];
    }

    /// Counts the last interrupt if timers expired in it, and those that came before these timers.
    fn end(&mut self) {
        let Some(timers) = self.last.take().filter(|_| self.is_of_timer) else { return };
        if timers.is_empty() {
            self.early = if self.is_alone { self.early + 1 } else { 0 };
            return;
        }
        self.count(timers, 1);
        let early = std::mem::take(&mut self.early);
        if early > 0 {
            self.count(Vec::new(), early);
        }
    }

    fn count(&mut self, timers: Vec<Timer>, times: u64) {
        *self.by_timers.entry(timers).or_default() += times;
    }

    fn expire(&mut self, is_of_wheel: bool, function: u64) {
        let is_tick = self.names.is_tick(function);
        let reason = self.restart.as_mut().filter(|_| is_tick).map(|restart| {
            let has_deadline_timer = std::mem::take(&mut restart.has_deadline_timer);
            Reason::Dependency(
                restart.dependency,
                has_deadline_timer && !restart.has_switched,
            )
        });
        self.is_of_timer |= self.is_inside && !is_of_wheel;
        if let Some(timers) = &mut self.last {
            let place = usize::from(self.is_inside && !is_of_wheel);
            // The tick wakes threads for many reasons.
            self.running[place] = (!is_tick).then_some(timers.len());
            timers.push(Timer { is_of_wheel, function, reason });
        }
    }

    /// Stores the first thing that the running timer's function does.
    fn does(&mut self, reason: Reason) {
        let running = self.running[usize::from(self.is_inside)];
        let timer = self.last.as_mut().zip(running);
        if let Some(timer) = timer.and_then(|(timers, index)| timers.get_mut(index)) {
            timer.reason.get_or_insert(reason);
        }
    }

    /// The interrupts of timers, by the names of these, the most frequent first. With
    /// `is_shared`, another thread waits for the CPU.
    pub(crate) fn by_timers(
        mut self,
        is_shared: bool,
        facts: &Facts,
    ) -> Vec<TimerInterrupts> {
        self.end();
        let has_server = has_fair_server(facts) && !has_deadline_tasks();
        let named = |timer| self.names.timer(timer, has_server, is_shared);
        let mut found: BTreeMap<Vec<ExpiredTimer>, u64> = BTreeMap::new();
        for (timers, times) in self.by_timers {
            *found.entry(timers.into_iter().map(named).collect()).or_default() += times;
        }
        let found = found.into_iter();
        let mut interrupts: Vec<TimerInterrupts> =
            found.map(|(timers, times)| TimerInterrupts { timers, times }).collect();
        interrupts.sort_by_key(|one| Reverse(one.times));
        interrupts
    }
}

/// The kernel's functions, by `/proc/kallsyms`.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    /// Lines of `address type name [module]`.
    text: String,
    ticks: Vec<u64>,
    deadline: Option<u64>,
}

impl Functions {
    /// Those of this machine; without names if they are hidden.
    pub(crate) fn read() -> Self {
        Self::parse(fs::read_to_string(KALLSYMS).unwrap_or_default())
    }

    pub(crate) fn parse(text: String) -> Self {
        let address = |function: &str| {
            let end = format!(" {function}");
            let line = text.lines().find(|line| line.ends_with(&end))?;
            let address = u64::from_str_radix(line.split(' ').next()?, 16).ok()?;
            (address > 0).then_some(address)
        };
        let ticks = TimerList::TICKS.iter().filter_map(|tick| address(tick)).collect();
        let deadline = address(DEADLINE);
        Self { text, ticks, deadline }
    }

    fn is_tick(&self, address: u64) -> bool {
        self.ticks.contains(&address)
    }

    fn is_deadline(&self, address: u64) -> bool {
        self.deadline == Some(address)
    }

    /// The function at an address, or the address.
    pub(crate) fn name(&self, address: u64) -> String {
        let address = format!("{address:016x}");
        let mut lines = self.text.lines().filter_map(|line| line.strip_prefix(&address));
        let name = lines.find_map(|line| line.split_ascii_whitespace().nth(1));
        name.map_or(address.clone(), str::to_owned)
    }

    fn timer(&self, timer: Timer, has_server: bool, is_shared: bool) -> ExpiredTimer {
        let is_deadline = self.is_deadline(timer.function);
        let reason = match timer.reason {
            _ if is_deadline => has_server.then_some(TimerReason::FairServer),
            Some(Reason::Work(work)) => Some(TimerReason::Work(self.name(work))),
            Some(Reason::Thread(tid, name)) => Some(TimerReason::Thread { tid, name }),
            Some(Reason::Dependency(Dependency::Sched, true))
                if has_server && !is_shared =>
            {
                Some(TimerReason::FairServer)
            }
            Some(Reason::Dependency(dependency, _)) => {
                Some(TimerReason::Dependency(dependency))
            }
            None => None,
        };
        let function = self.name(timer.function);
        ExpiredTimer { is_of_wheel: timer.is_of_wheel, function, reason }
    }
}

/// Whether each CPU of this kernel has a fair server.
fn has_fair_server(facts: &Facts) -> bool {
    facts.kernel_at_least(FAIR_SERVER.0, FAIR_SERVER.1) == Some(true)
}

/// Whether a thread of this machine has a deadline, so that a deadline timer may be its own.
fn has_deadline_tasks() -> bool {
    let policy = |stat: &str| TaskStat::parse(stat)?.number(41).map(ThreadPolicy::of);
    stats().any(|(_, stat)| policy(&stat) == Some(ThreadPolicy::Deadline))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &str = "0000000000000001 t tick_nohz_handler\n\
        0000000000000002 t dl_task_timer\n0000000000000003 t hrtimer_wakeup\n\
        0000000000000004 T delayed_work_timer_fn\n0000000000000005 t vmstat_update\n\
        0000000000000006 t posix_timer_fn\n";

    fn event(kind: Event, number: u64) -> Record<Event> {
        Record::of(kind, &[&number.to_ne_bytes()])
    }

    fn thread(kind: Event, tid: u32) -> Record<Event> {
        Record::of(kind, &[&tid.to_ne_bytes(), b"cyclic\0\0"])
    }

    /// An hrtimer with this function, and what the function does.
    fn hrtimer(function: u64, does: &[Record<Event>]) -> Vec<Record<Event>> {
        let ends = [Event::Hrtimer, Event::HrtimerEnd].map(|kind| event(kind, function));
        [&ends[..1], does, &ends[1..]].concat()
    }

    /// A timer interrupt with these events.
    fn interrupt(events: &[Vec<Record<Event>>]) -> Vec<Record<Event>> {
        let ends = [Event::Interrupt, Event::InterruptEnd].map(|kind| event(kind, 0));
        [&ends[..1], &events.concat(), &ends[1..]].concat()
    }

    fn facts(release: &str) -> Facts {
        let page = serde_json::json!({
            "kernel": {"release": release}, "sources": {}, "unknown": {},
        });
        serde_json::from_value(page).unwrap()
    }

    /// The interrupts of these records on a kernel without a fair server, as text.
    fn found(records: &[Record<Event>]) -> Vec<String> {
        found_on("6.1.0", false, records)
    }

    fn found_on(
        release: &str,
        is_shared: bool,
        records: &[Record<Event>],
    ) -> Vec<String> {
        let names = Functions::parse(NAMES.to_owned());
        let mut interrupts = Interrupts::new(&names);
        records.iter().for_each(|record| interrupts.add(record));
        let text = |timer: &ExpiredTimer| match &timer.reason {
            Some(reason) => format!("{} {reason:?}", timer.function),
            None => timer.function.clone(),
        };
        let found = interrupts.by_timers(is_shared, &facts(release));
        let line = |one: &TimerInterrupts| {
            let timers: Vec<String> = one.timers.iter().map(text).collect();
            format!("{} × {}", one.times, timers.join(", "))
        };
        found.iter().map(line).collect()
    }

    /// Check that interrupts are counted by all timers that expire in them, with the thread that
    /// a timer is for, and that those without a timer are not among them if other events follow.
    #[test]
    fn by_timers() {
        let wakeup = hrtimer(3, &[thread(Event::Wakeup, 40)]);
        let signal = hrtimer(6, &[thread(Event::Signal, 41), thread(Event::Wakeup, 41)]);
        let tick = hrtimer(1, &[thread(Event::Wakeup, 20)]);
        let records = [
            hrtimer(3, &[]),
            interrupt(std::slice::from_ref(&tick)),
            interrupt(&[]),
            vec![event(Event::Switch, 0)],
            interrupt(&[wakeup.clone(), signal]),
            vec![thread(Event::Wakeup, 50)],
            interrupt(&[tick]),
            interrupt(&[wakeup]),
        ];
        let cyclic = |tid| format!("Thread {{ tid: {tid}, name: \"cyclic\" }}");
        let expected = [
            "2 × tick_nohz_handler".to_owned(),
            format!("1 × hrtimer_wakeup {}", cyclic(40)),
            format!("1 × hrtimer_wakeup {}, posix_timer_fn {}", cyclic(40), cyclic(41)),
        ];
        assert_eq!(found(&records.concat()), expected);
    }

    /// Check that interrupts without a timer belong to the timer of the next one if nothing is recorded
    /// between them, and that the last one, which none follows, does not.
    #[test]
    fn too_early() {
        if !cfg!(target_arch = "x86_64") {
            return println!("skipped: too_early: timer interrupts have no tracepoint");
        }
        let tick = || interrupt(&[hrtimer(1, &[])]);
        let records = [
            interrupt(&[]),
            interrupt(&[]),
            tick(),
            interrupt(&[]),
            vec![event(Event::Run, 1)],
            tick(),
            interrupt(&[]),
            vec![attempt(1, 0)],
            tick(),
            interrupt(&[]),
        ];
        assert_eq!(found(&records.concat()), ["3 × ", "3 × tick_nohz_handler"]);
    }

    /// Check that a timer of the timer wheel belongs to the interrupt before its softirq, with the
    /// work that it queues, and that what is queued after another interrupt is not taken for its own.
    #[test]
    fn timer_wheel() {
        let wheel =
            [event(Event::Timer, 4), event(Event::Work, 5), event(Event::Wakeup, 9)];
        let records = [
            interrupt(&[hrtimer(1, &[])]),
            wheel.to_vec(),
            vec![event(Event::TimerEnd, 4), event(Event::Work, 1)],
            interrupt(&[hrtimer(1, &[])]),
            wheel[..1].to_vec(),
            interrupt(&[hrtimer(2, &[])]),
            wheel[1..].to_vec(),
        ];
        let expected = [
            "1 × tick_nohz_handler, delayed_work_timer_fn Work(\"vmstat_update\")",
            "1 × tick_nohz_handler, delayed_work_timer_fn",
            "1 × dl_task_timer",
        ];
        let mut found = found(&records.concat());
        found.sort();
        let mut expected = expected.map(str::to_owned);
        expected.sort();
        assert_eq!(found, expected);
    }

    fn attempt(success: u64, dependency: u64) -> Record<Event> {
        let fields = [success, dependency].map(u64::to_ne_bytes);
        Record::of(Event::Attempt, &[&fields[0], &fields[1]])
    }

    /// The records of a tick that a dependency on the scheduler restarts.
    fn restart(meanwhile: &[Record<Event>]) -> Vec<Record<Event>> {
        let tick = interrupt(&[hrtimer(1, &[event(Event::HrtimerStart, 2)])]);
        let (failed, stopped) = (attempt(0, 4), attempt(1, 0));
        [&[failed], meanwhile, &tick, &[stopped], &interrupt(&[hrtimer(1, &[])])].concat()
    }

    /// Check that a tick that restarts has the dependency, until it stops again, and that the
    /// scheduler's is the fair server if a deadline timer was started, on kernels that have one and
    /// unless another thread runs or waits.
    #[test]
    fn restarts() {
        let start = event(Event::HrtimerStart, 2);
        let sched = ["1 × tick_nohz_handler", "1 × tick_nohz_handler Dependency(Sched)"];
        let server = ["1 × tick_nohz_handler", "1 × tick_nohz_handler FairServer"];
        let switched = [start.clone(), event(Event::Switch, 0)];
        let started = std::slice::from_ref(&start);
        if has_deadline_tasks() {
            return println!("skipped: restarts: there are deadline tasks");
        }
        assert_eq!(found_on("6.12.0", false, &restart(started)), server);
        assert_eq!(found_on("6.12.0", false, &restart(&[])), sched);
        assert_eq!(found_on("6.12.0", false, &restart(&switched)), sched);
        assert_eq!(found_on("6.12.0", true, &restart(started)), sched);
        assert_eq!(found_on("6.11.0", false, &restart(started)), sched);
        let own = interrupt(&[hrtimer(2, &[])]);
        assert_eq!(found_on("6.12.0", true, &own), ["1 × dl_task_timer FairServer"]);
        assert_eq!(found_on("6.1.0", true, &own), ["1 × dl_task_timer"]);
    }
}
