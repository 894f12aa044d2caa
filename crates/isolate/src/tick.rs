//! Waiting until the tick of the calling thread's CPU has really stopped.
//!
//! Two ways of knowing: the kernel's own word (`/proc/timer_list`, root only), and its count of
//! timer interrupts (`/proc/interrupts`), which has to stand still while the thread spins for a
//! few ticks. Where the first may not be read, the second decides alone.
//!
//! A wait may be *forced*: the thread leaves the CPU for a moment and comes back, so that the
//! kernel stops the tick of a CPU that is idle, and has to find a reason to start it again.

pub(crate) mod back;
pub(crate) mod stop;
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

/// The thread spins for so many ticks before it is believed that they do not come.
const CONFIRM: u32 = 5;
/// So many of them may come nevertheless: other timers interrupt by the same line.
const STRAY: u64 = 2;
/// The kernel is watched for so many of them while it keeps the tick.
pub(crate) const ASK: u32 = 25;
/// So often it is looked then who else could run there.
const LOOKS: u32 = 5;
/// Ticks between two departures of a forced wait.
pub(crate) const STAY: u32 = 2;
/// Between two looks.
const PAUSE: Duration = Duration::from_micros(20);
/// How much of `/proc/timer_list` is read at once: the kernel makes up as much of it, which takes
/// most of a look's time.
const PIECE: usize = 1024;
/// Where the kernel does not say how often it ticks: no kernel does less often.
const SLOWEST: Hz = Hz::new(100);

/// How to wait.
#[derive(Debug, Clone, Copy)]
pub struct Wait<'a> {
    /// How long at most.
    pub limit: Nanos,
    /// Leave the CPU now and then, and come back.
    pub forced: bool,
    /// Make sure that the ticks do not come any more, which takes five of them.
    pub confirmed: bool,
    /// Ends the wait when it is set.
    pub stop: Option<&'a AtomicBool>,
}

/// What became of a wait.
#[derive(Debug)]
pub struct Entry {
    /// Whether the tick has stopped.
    pub entered: bool,
    /// How long that took, without making sure; the whole wait where it has not.
    pub waited: Nanos,
    /// How often the thread left the CPU.
    pub left: u32,
    /// What keeps it, and how often the kernel said so in 25 ticks after the wait; `Err` where
    /// that could not be seen. Nothing where the tick has stopped.
    pub kept_by: Result<KeptBy, Error>,
    /// The other threads that were runnable on that CPU in those ticks.
    pub others: Vec<WaitingThread>,
}

/// Makes sure that the tick of that CPU can stop while a task runs.
///
/// # Errors
/// `Kind::NoNohz` where it cannot; the message says what would make it so.
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

/// The CPU that the kernel boots on.
const BOOT: Cpu = Cpu::new(0);

/// What to boot with, so that the tick of that CPU can stop. Kernels that can suspend
/// (`CONFIG_PM_SLEEP_SMP`, as distributions have it) and all before 5.2 take the boot CPU out of
/// `nohz_full=` (`tick_nohz_init` in `kernel/time/tick-sched.c`), and some CPU has to keep the time
/// for the others: so another one is named instead.
fn boot_hint(cpu: Cpu, facts: &Facts) -> String {
    let others = facts.cpus.online.get().map(|online| online.without(&BOOT.into()));
    let other = others.and_then(|others| others.iter().last());
    let with = |cpu| format!("boot with nohz_full={cpu} isolcpus={cpu} rcu_nocbs={cpu}");
    match (cpu, other) {
        (BOOT, Some(other)) => format!(
            "the boot CPU keeps the time for the others and cannot be nohz_full; {}, and choose \
             CPU {other}",
            with(other)
        ),
        (BOOT, None) => {
            "it takes a second CPU, as the boot CPU keeps the time for the others \
                         and cannot be nohz_full"
                .to_owned()
        }
        (cpu, _) => with(cpu),
    }
}

/// Whether the kernel is one that stops no busy CPU's tick.
fn is_without(unknown: &Unknown) -> bool {
    matches!(unknown.code, Why::NotConfigured | Why::TooOld)
}

/// The CPUs whose tick can stop while a task runs, as far as is known, without CPU 0: it keeps
/// the time for them.
pub fn nohz_cpus(facts: &Facts) -> CpuSet {
    let zero: CpuSet = [Cpu::new(0)].into_iter().collect();
    facts.tick.nohz_full.get().map_or_else(CpuSet::empty, |cpus| cpus.without(&zero))
}

/// Waits until the tick has stopped on the CPU that the calling thread is pinned to; `others`
/// are those that it may go to where the wait is forced.
///
/// # Errors
/// `Kind::System` where the kernel tells neither whether the tick is stopped nor how often it
/// came.
pub fn wait_for_nohz(
    wait: &Wait<'_>,
    others: &CpuSet,
    facts: &Facts,
) -> Result<Entry, Error> {
    let began = Instant::now();
    let mut tick = Tick::here(facts)?;
    let entry = tick.wait(began, wait, others)?;
    if entry.entered {
        return Ok(entry);
    }
    let (kept_by, others) = tick.kept_by();
    Ok(Entry { kept_by, others, ..entry })
}

/// The same as [`wait_for_nohz`], without asking what keeps the tick, which takes 25 of them;
/// whether it has stopped.
///
/// # Errors
/// Those of [`wait_for_nohz`]; `Kind::NoNohz`, at once, where this kernel's never does.
pub fn reach_nohz(
    wait: &Wait<'_>,
    others: &CpuSet,
    facts: &Facts,
) -> Result<bool, Error> {
    let began = Instant::now();
    let mut tick = Tick::here(facts)?;
    match facts.tick.nohz_full.value() {
        Err(unknown) if is_without(unknown) => nohz_full(tick.cpu, facts).map(|()| false),
        _ => Ok(tick.wait(began, wait, others)?.entered),
    }
}

/// One CPU's tick, as far as the kernel tells.
pub(crate) struct Tick {
    pub(crate) cpu: Cpu,
    pub(crate) period: Duration,
    /// `/proc/timer_list`, where it may be read.
    list: Option<BufReader<File>>,
}

impl Tick {
    /// That of the CPU that the calling thread is on.
    pub(crate) fn here(facts: &Facts) -> Result<Self, Error> {
        let Some(cpu) = current_cpu() else {
            let text = "the kernel does not say which CPU this is";
            return Err(Error::new(Kind::System, text));
        };
        let tick = facts.tick.hz.get().copied().unwrap_or(SLOWEST);
        let list = File::open(TimerList::FILE).ok();
        let list = list.map(|file| BufReader::with_capacity(PIECE, file));
        Ok(Self { cpu, period: tick.period().into(), list })
    }

    /// Waits until it has stopped, or has not in time.
    pub(crate) fn wait(
        &mut self,
        began: Instant,
        wait: &Wait<'_>,
        others: &CpuSet,
    ) -> Result<Entry, Error> {
        let limit = Duration::from(wait.limit);
        let (mut left, mut came_back) = (0, began);
        loop {
            let stopped = self.is_stopped()?;
            let waited = began.elapsed();
            let entered = stopped && (!wait.confirmed || self.stands_still()?);
            let told = wait.stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
            if entered || told || waited >= limit {
                let (waited, kept_by) = (Nanos::from(waited), Ok(KeptBy::new()));
                let others = Vec::new();
                return Ok(Entry { entered, waited, left, kept_by, others });
            }
            if wait.forced && came_back.elapsed() >= self.period * STAY {
                left += u32::from(leave(self.cpu, others)?);
                came_back = Instant::now();
            }
            spin(PAUSE, None);
        }
    }

    /// What the kernel says; without its word, what its count says.
    fn is_stopped(&mut self) -> Result<bool, Error> {
        let Some(list) = &mut self.list else { return self.stands_still() };
        list.rewind().map_err(unreadable)?;
        let stopped = TimerList::tick_stopped(list, self.cpu).map_err(unreadable)?;
        stopped.ok_or_else(|| unreadable(TimerList::silent()))
    }

    /// Whether no tick comes while the thread spins.
    fn stands_still(&self) -> Result<bool, Error> {
        let before = self.count()?;
        spin(self.period * CONFIRM, None);
        Ok(self.count()?.wrapping_sub(before) <= STRAY)
    }

    /// What keeps it, while the thread spins, and who else could run there. Only asked for when it
    /// has not stopped: beginning and ceasing to watch disturbs the CPU.
    fn kept_by(&self) -> (Result<KeptBy, Error>, Vec<WaitingThread>) {
        let attempts = Attempts::watch(self.cpu);
        let mut others = BTreeMap::new();
        for _ in 0..LOOKS {
            spin(self.period * ASK / LOOKS, None);
            others.extend(waiting(self.cpu).into_iter().map(|other| (other.tid, other)));
        }
        (attempts.map(|mut seen| seen.take()), others.into_values().collect())
    }

    /// How often the timer interrupted this CPU.
    pub(crate) fn count(&self) -> Result<u64, Error> {
        let text = std::fs::read_to_string(Interrupts::FILE).unwrap_or_default();
        let interrupts = Interrupts::parse(&text, Interrupts::FILE);
        let count = interrupts.ok().and_then(|interrupts| interrupts.timer(self.cpu));
        count.ok_or_else(|| {
            let text =
                format!("{} does not count CPU {}'s ticks", Interrupts::FILE, self.cpu);
            Error::new(Kind::System, text)
        })
    }
}

fn unreadable(why: impl Into<Cause>) -> Error {
    Error::new(Kind::System, "failed to read whether the tick is stopped").caused_by(why)
}

/// Goes to another CPU, and comes back; whether there was one that it could go to.
fn leave(cpu: Cpu, others: &CpuSet) -> Result<bool, Error> {
    match set_affinity(&mask_of(others)) {
        Ok(()) => pin(cpu).map(|()| true),
        Err(_) => Ok(false),
    }
}

/// Spins in user space, as a workload does, for so long or until `stop` is set: it computes, and
/// looks at the clock every 10,000 instructions or so. For a clock, a `spin_loop` or a jump an
/// emulated CPU takes as long as for tens to hundreds of other instructions.
pub fn spin(length: Duration, stop: Option<&AtomicBool>) {
    let began = Instant::now();
    let told = || stop.is_some_and(|stop| stop.load(Ordering::Relaxed));
    let mut word = 1;
    while !told() && began.elapsed() < length {
        for _ in 0..50 {
            word = black_box((0..20).fold(word, |word, _| mixed(word)));
        }
    }
}

/// Some ten instructions (xorshift, Marsaglia 2003) that no compiler does without.
fn mixed(mut word: u64) -> u64 {
    word ^= word << 13;
    word ^= word >> 7;
    word ^ (word << 17)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that lists of every form are understood: with CPU 0 first, longer than 128
    /// characters, with strides, beyond CPU 1023.
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

    /// Check that what is said to boot with is what a kernel accepts: never CPU 0.
    #[test]
    fn never_the_boot_cpu() {
        let told = |cpu, online: &str, nohz_full: &str| {
            let page = serde_json::json!({
                "cpus": {"online": online}, "tick": {"nohz_full": nohz_full},
                "sources": {}, "unknown": {},
            });
            let facts: Facts = serde_json::from_value(page).unwrap();
            super::nohz_full(Cpu::new(cpu), &facts).unwrap_err().to_string()
        };
        assert!(told(0, "0-3", "").contains("nohz_full=3 isolcpus=3"));
        assert!(told(0, "0-3", "").contains("choose CPU 3"));
        assert!(told(0, "0", "").contains("second CPU"));
        assert!(told(0, "0-3", "2").ends_with("2 is; hint: choose one of these"));
        assert!(told(1, "0-3", "2").contains("boot with nohz_full=1 isolcpus=1"));
        for nohz_full in ["", "2"] {
            assert!(!told(0, "0-3", nohz_full).contains("nohz_full=0"));
        }
    }

    /// Check that a wait of no length looks once at a tick that does not stop, and that a
    /// kernel that stops none is told as such, at once.
    #[test]
    fn looks_once() {
        let mut facts = Facts::read(&facts::Root::live());
        if facts.tick.nohz_full.get().is_some_and(|cpus| !cpus.is_empty()) {
            println!("skipped: looks_once: ticks stop on this machine");
            return;
        }
        let wait = |limit| Wait { limit, forced: true, confirmed: false, stop: None };
        let unknown = Unknown::new(Why::NotConfigured, "not built so");
        facts.tick.nohz_full = facts::Fact::unknown(unknown, "test");
        let refused = reach_nohz(&wait(Nanos::MAX), &CpuSet::empty(), &facts);
        assert_eq!(refused.unwrap_err().kind(), Kind::NoNohz);
        facts.tick.nohz_full = facts::Fact::known(CpuSet::empty(), "test");
        match reach_nohz(&wait(Nanos::ZERO), &CpuSet::empty(), &facts) {
            Ok(stopped) => assert!(!stopped),
            Err(why) => println!("skipped: looks_once: {why}"),
        }
    }
}
