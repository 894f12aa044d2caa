//! Waiting until the tick of the calling thread's CPU has stopped.
//!
//! There are two sources: the kernel's state of the tick (`/proc/timer_list`, root only), and its
//! count of timer interrupts (`/proc/interrupts`), which must not increase during a busy loop of a
//! few ticks. If the first cannot be read, only the second is used.
//!
//! In a *forced* wait, the thread periodically migrates to another CPU and back: the kernel stops
//! the tick of the idle CPU, and restarts it on return only if it has a reason.

pub(crate) mod stop;
pub(crate) mod timers;
pub(crate) mod trace;
pub(crate) mod tracepoint;

use std::collections::BTreeMap;
use std::fs::File;
use std::hint::black_box;
use std::io::{BufReader, Seek};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use facts::{Facts, Interrupts, TimerList, Unknown, Why};
use units::{Cause, Cpu, CpuSet, Hz, Nanos};

use crate::error::{Error, Kind};
use crate::thread::waiting::{WaitingThread, waiting};
use crate::thread::{current_cpu, mask_of, pin, set_affinity};
use crate::tick::stop::{Attempts, KeptBy};

/// Ticks of busy loop after which missing timer interrupts are considered stopped.
const CONFIRM_TICKS: u32 = 5;
/// Timer interrupts tolerated in that time, since other timers use the same vector.
const STRAY_MAX: u64 = 2;
/// Ticks for which the kernel is traced to find what keeps the tick.
pub(crate) const OBSERVE_TICKS: u32 = 25;
/// How often runnable threads are listed in that time.
const CHECKS: u32 = 5;
/// The longest trace, in multiples of that time: a guest whose host is busy has few ticks, or none,
/// in a time that is long enough elsewhere.
const OBSERVE_MAX: u32 = 10;
/// Ticks between two migrations of a forced wait.
pub(crate) const STAY_TICKS: u32 = 2;
/// The interval between two checks.
const CHECK_INTERVAL: Duration = Duration::from_micros(20);
/// The buffer for `/proc/timer_list`: the kernel generates as much as is read at once, which takes
/// most of the time of a check.
const BUFFER_SIZE: usize = 1024;
/// If the tick rate is unknown: no kernel has a lower one.
const HZ_MIN: Hz = Hz::new(100);

/// The parameters of a wait.
#[derive(Debug, Clone, Copy)]
pub struct NohzWait<'a> {
    /// The timeout.
    pub limit: Nanos,
    /// Migrate to another CPU and back periodically.
    pub forced: bool,
    /// Confirm that no timer interrupts occur, for five ticks.
    pub confirmed: bool,
    /// Ends the wait when set.
    pub stop: Option<&'a AtomicBool>,
}

/// The result of a wait.
#[derive(Debug)]
pub struct NohzOutcome {
    /// Whether the tick has stopped.
    pub entered: bool,
    /// The time until the tick stopped, without the confirmation; the whole wait if it did not
    /// stop.
    pub waited: Nanos,
    /// How often the thread left the CPU.
    pub left: u32,
    /// The dependencies that prevented the tick from stopping in 25 or more ticks after the wait, with
    /// their counts; `Err` if they could not be traced. Empty if the tick has stopped.
    pub kept_by: Result<KeptBy, Error>,
    /// The other threads that were runnable on that CPU in those ticks.
    pub others: Vec<WaitingThread>,
}

/// Checks that the tick of a CPU can stop while a task runs.
///
/// # Errors
/// `Kind::NoNohz` if it cannot; the message has a hint.
pub fn nohz_full(cpu: Cpu, facts: &Facts) -> Result<(), Error> {
    let refuse = |text: String| Err(Error::new(Kind::NoNohz, text));
    let boot = boot_hint(cpu, facts);
    match facts.tick.nohz_full.value() {
        Ok(cpus) if cpus.contains(cpu) => Ok(()),
        Ok(cpus) if cpus.is_empty() => refuse(format!(
            "no CPU of this machine is nohz_full; hint: {boot} (the kernel is built for it)"
        )),
        Ok(cpus) if cpu == BOOT => refuse(format!(
            "CPU 0 is not nohz_full, {cpus} is; hint: choose one of these"
        )),
        Ok(cpus) => {
            refuse(format!("CPU {cpu} is not nohz_full, {cpus} is; hint: {boot}"))
        }
        Err(unknown) if is_without(unknown) => refuse(format!(
            "the tick of a busy CPU cannot stop: {unknown}; hint: it takes a kernel with \
             CONFIG_NO_HZ_FULL=y; {boot}"
        )),
        Err(unknown) => {
            refuse(format!("whether CPU {cpu} is nohz_full is not known: {unknown}"))
        }
    }
}

/// The boot CPU.
const BOOT: Cpu = Cpu::new(0);

/// The boot parameters with which the tick of a CPU can stop. Kernels that support suspend
/// (`CONFIG_PM_SLEEP_SMP`, set by distributions) and all before 5.2 remove the boot CPU from
/// `nohz_full=` (`tick_nohz_init` in `kernel/time/tick-sched.c`), and some CPU must do the
/// timekeeping: so for the boot CPU, another one is suggested.
fn boot_hint(cpu: Cpu, facts: &Facts) -> String {
    let others = facts.cpus.online.get().map(|online| online.without(&BOOT.into()));
    let other = others.and_then(|others| others.iter().last());
    let with = |cpu| format!("boot with nohz_full={cpu} isolcpus={cpu} rcu_nocbs={cpu}");
    match (cpu, other) {
        (BOOT, Some(other)) => format!(
            "the boot CPU does the timekeeping for the others and cannot be nohz_full; {}, and \
             choose CPU {other}",
            with(other)
        ),
        (BOOT, None) => {
            "a second CPU is required: the boot CPU does the timekeeping for the others \
                         and cannot be nohz_full"
                .to_owned()
        }
        (cpu, _) => with(cpu),
    }
}

/// Whether this kernel never stops the tick of a busy CPU.
fn is_without(unknown: &Unknown) -> bool {
    matches!(unknown.code, Why::NotConfigured | Why::TooOld)
}

/// The known `nohz_full` CPUs without CPU 0, which does the timekeeping for them.
pub fn nohz_cpus(facts: &Facts) -> CpuSet {
    let cpus = facts.tick.nohz_full.get();
    cpus.map_or_else(CpuSet::empty, |cpus| cpus.without(&BOOT.into()))
}

/// Waits until the tick has stopped on the CPU to which the calling thread is pinned; in a forced
/// wait, the thread migrates to `others`.
///
/// # Errors
/// `Kind::System` if neither the state of the tick nor the count of timer interrupts can be read.
pub fn wait_for_nohz(
    wait: &NohzWait<'_>,
    others: &CpuSet,
    facts: &Facts,
) -> Result<NohzOutcome, Error> {
    let began = Instant::now();
    let mut tick = Tick::of_current_cpu(facts)?;
    let entry = tick.wait(began, wait, others)?;
    if entry.entered {
        return Ok(entry);
    }
    let (kept_by, others) = tick.kept_by();
    Ok(NohzOutcome { kept_by, others, ..entry })
}

/// Like [`wait_for_nohz`], but does not trace what keeps the tick, which takes 25 ticks; returns
/// whether the tick has stopped.
///
/// # Errors
/// Those of [`wait_for_nohz`]; `Kind::NoNohz` immediately if this kernel never stops the tick.
pub fn reach_nohz(
    wait: &NohzWait<'_>,
    others: &CpuSet,
    facts: &Facts,
) -> Result<bool, Error> {
    let began = Instant::now();
    let mut tick = Tick::of_current_cpu(facts)?;
    match facts.tick.nohz_full.value() {
        Err(unknown) if is_without(unknown) => nohz_full(tick.cpu, facts).map(|()| false),
        _ => Ok(tick.wait(began, wait, others)?.entered),
    }
}

/// The tick of one CPU.
pub(crate) struct Tick {
    pub(crate) cpu: Cpu,
    pub(crate) period: Duration,
    /// `/proc/timer_list`, if it can be read.
    list: Option<BufReader<File>>,
}

impl Tick {
    /// The tick of the CPU on which the calling thread runs.
    pub(crate) fn of_current_cpu(facts: &Facts) -> Result<Self, Error> {
        let Some(cpu) = current_cpu() else {
            let text = "failed to determine the current CPU";
            return Err(Error::new(Kind::System, text));
        };
        let tick = facts.tick.hz.get().copied().unwrap_or(HZ_MIN);
        let list = File::open(TimerList::FILE).ok();
        let list = list.map(|file| BufReader::with_capacity(BUFFER_SIZE, file));
        Ok(Self { cpu, period: tick.period().into(), list })
    }

    /// Waits until the tick has stopped, or the timeout.
    pub(crate) fn wait(
        &mut self,
        began: Instant,
        wait: &NohzWait<'_>,
        others: &CpuSet,
    ) -> Result<NohzOutcome, Error> {
        let limit = Duration::from(wait.limit);
        let (mut left, mut came_back) = (0, began);
        loop {
            let stopped = self.is_stopped()?;
            let waited = began.elapsed();
            let entered = stopped && (!wait.confirmed || self.stands_still()?);
            let is_requested = wait.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
            if entered || is_requested || waited >= limit {
                let (waited, kept_by) = (Nanos::from(waited), Ok(KeptBy::new()));
                let others = Vec::new();
                return Ok(NohzOutcome { entered, waited, left, kept_by, others });
            }
            if wait.forced && came_back.elapsed() >= self.period * STAY_TICKS {
                left += u32::from(leave(self.cpu, others)?);
                came_back = Instant::now();
            }
            spin(CHECK_INTERVAL, None);
        }
    }

    /// Whether the tick has stopped, by the kernel's state if it can be read, or else by the count.
    fn is_stopped(&mut self) -> Result<bool, Error> {
        let Some(list) = &mut self.list else { return self.stands_still() };
        list.rewind().map_err(unreadable)?;
        let stopped = TimerList::tick_stopped(list, self.cpu).map_err(unreadable)?;
        stopped.ok_or_else(|| unreadable(TimerList::unavailable()))
    }

    /// Whether no timer interrupts occur during a busy loop.
    fn stands_still(&self) -> Result<bool, Error> {
        let before = self.count()?;
        spin(self.period * CONFIRM_TICKS, None);
        Ok(self.count()?.wrapping_sub(before) <= STRAY_MAX)
    }

    /// What keeps the tick during a busy loop, and the other runnable threads. Called only if the
    /// tick has not stopped, since starting and ending the trace disturbs the CPU.
    fn kept_by(&self) -> (Result<KeptBy, Error>, Vec<WaitingThread>) {
        let attempts = Attempts::trace(self.cpu);
        let before = self.count().ok();
        let mut others = BTreeMap::new();
        for check in 1..=CHECKS * OBSERVE_MAX {
            spin(self.period * OBSERVE_TICKS / CHECKS, None);
            others.extend(waiting(self.cpu).into_iter().map(|other| (other.tid, other)));
            if check >= CHECKS && self.has_ticked(before) {
                break;
            }
        }
        (attempts.map(|mut attempts| attempts.take()), others.into_values().collect())
    }

    /// Whether enough timer interrupts have occurred since that count, if it is known.
    fn has_ticked(&self, before: Option<u64>) -> bool {
        let Some((before, now)) = before.zip(self.count().ok()) else { return true };
        now.wrapping_sub(before) >= OBSERVE_TICKS.into()
    }

    /// The count of timer interrupts of this CPU.
    pub(crate) fn count(&self) -> Result<u64, Error> {
        let text = std::fs::read_to_string(Interrupts::FILE).unwrap_or_default();
        let interrupts = Interrupts::parse(&text, Interrupts::FILE);
        let count = interrupts.ok().and_then(|interrupts| interrupts.timer(self.cpu));
        count.ok_or_else(|| {
            let text =
                format!("{} has no timer count for CPU {}", Interrupts::FILE, self.cpu);
            Error::new(Kind::System, text)
        })
    }
}

fn unreadable(why: impl Into<Cause>) -> Error {
    Error::new(Kind::System, "failed to read whether the tick is stopped").caused_by(why)
}

/// Migrates to another CPU and back; returns whether there was another CPU.
fn leave(cpu: Cpu, others: &CpuSet) -> Result<bool, Error> {
    match set_affinity(&mask_of(others)) {
        Ok(()) => pin(cpu).map(|()| true),
        Err(_) => Ok(false),
    }
}

/// Runs a busy loop in user space, as a workload does, for this time or until `stop` is set. It
/// computes, and reads the clock every 10,000 instructions or so: on an emulated CPU, reading a
/// clock, a `spin_loop` or a jump takes as long as tens to hundreds of other instructions.
pub fn spin(length: Duration, stop: Option<&AtomicBool>) {
    let began = Instant::now();
    let is_requested = || stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
    let mut word = 1;
    while !is_requested() && began.elapsed() < length {
        for _ in 0..50 {
            word = black_box((0..20).fold(word, |word, _| mixed(word)));
        }
    }
}

/// About ten instructions (xorshift, Marsaglia 2003) that the compiler cannot remove.
fn mixed(mut word: u64) -> u64 {
    word ^= word << 13;
    word ^= word >> 7;
    word ^ (word << 17)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that all forms of lists are parsed: with CPU 0 first, longer than 128 characters, with
    /// strides, beyond CPU 1023.
    #[test]
    fn lists_of_every_form() {
        let every_third: Vec<String> =
            (1..100).map(|cpu| (3 * cpu).to_string()).collect();
        let long = every_third.join(",");
        assert!(long.len() > 128);
        for (list, first, last, many) in [
            ("0-3,8", 1, 8, 4),
            ("0", 0, 0, 0),
            ("", 0, 0, 0),
            ("0-62:2/4", 1, 61, 31),
            ("1-7:1/2", 1, 7, 4),
            (&long, 3, 297, 99),
            ("0,1024-2047", 1024, 2047, 1024),
        ] {
            let page = serde_json::json!({
                "tick": {"nohz_full": list}, "sources": {}, "unknown": {},
            });
            let cpus = nohz_cpus(&serde_json::from_value(page).unwrap());
            let ends = [cpus.first(), cpus.iter().last()];
            let ends = ends.map(|cpu| cpu.map_or(0, Cpu::get));
            assert_eq!((ends, cpus.len()), ([first, last], many), "{list}");
        }
    }

    /// Check that the suggested boot parameters are valid: never CPU 0.
    #[test]
    fn never_the_boot_cpu() {
        let is_requested = |cpu, online: &str, nohz_full: &str| {
            let page = serde_json::json!({
                "cpus": {"online": online}, "tick": {"nohz_full": nohz_full},
                "sources": {}, "unknown": {},
            });
            let facts: Facts = serde_json::from_value(page).unwrap();
            super::nohz_full(Cpu::new(cpu), &facts).unwrap_err().to_string()
        };
        assert!(is_requested(0, "0-3", "").contains("nohz_full=3 isolcpus=3"));
        assert!(is_requested(0, "0-3", "").contains("choose CPU 3"));
        assert!(is_requested(0, "0", "").contains("second CPU"));
        assert!(is_requested(0, "0-3", "2").ends_with("2 is; hint: choose one of these"));
        assert!(is_requested(1, "0-3", "2").contains("boot with nohz_full=1 isolcpus=1"));
        for nohz_full in ["", "2"] {
            assert!(!is_requested(0, "0-3", nohz_full).contains("nohz_full=0"));
        }
    }

    /// Check that a wait with a timeout of zero checks a tick once, and that a kernel that never
    /// stops the tick is reported as such immediately.
    #[test]
    fn checks_once() {
        let mut facts = Facts::read(&facts::Root::live());
        if facts.tick.nohz_full.get().is_some_and(|cpus| !cpus.is_empty()) {
            println!("skipped: checks_once: ticks stop on this machine");
            return;
        }
        let wait = |limit| NohzWait { limit, forced: true, confirmed: false, stop: None };
        let unknown = Unknown::new(Why::NotConfigured, "not built so");
        facts.tick.nohz_full = facts::Fact::unknown(unknown, "test");
        let refused = reach_nohz(&wait(Nanos::MAX), &CpuSet::empty(), &facts);
        assert_eq!(refused.unwrap_err().kind(), Kind::NoNohz);
        facts.tick.nohz_full = facts::Fact::known(CpuSet::empty(), "test");
        match reach_nohz(&wait(Nanos::ZERO), &CpuSet::empty(), &facts) {
            Ok(stopped) => assert!(!stopped),
            Err(why) => println!("skipped: checks_once: {why}"),
        }
    }
}
