//! What a rate of timer interrupts means.
//!
//! A CPU that ticks gets `CONFIG_HZ` timer interrupts a second. Fewer: the tick was
//! stopped part of the time (idle CPUs, or `nohz_full` ones with one task). More:
//! high-resolution timers came on top. What kept a tick alive cannot be seen here.

use std::collections::BTreeMap;

use facts::{Facts, TickMode};
use serde::Serialize;
use units::{Cpu, CpuSet, Hz, PerSecond, Ppm};

use crate::CpuTicksSummary;

/// Less than this of `CONFIG_HZ` is a tick that was stopped most of the time.
const STOPPED: f64 = 0.5;
/// Within this of `CONFIG_HZ` is the tick itself.
const AT_HZ: f64 = 0.05;
/// Below this a CPU counts as idle, above the other as busy throughout.
const IDLE_PPM: f64 = 50_000.0;
const BUSY_PPM: f64 = 900_000.0;
/// The values of `CONFIG_HZ` that kernels are built with.
const RATES: [u32; 4] = [100, 250, 300, 1000];

/// What kept a CPU busy while its ticks were counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Load {
    Idle,
    Some,
    Busy,
    Unknown,
}

/// What a rate means. In order of how much it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TickMeaning {
    /// Idle, yet ticks, and the kernel could stop the tick.
    IdleTicks,
    /// Idle, yet ticks: a CPU outside `nohz_full=` keeps the time for those in it.
    KeepsTime,
    /// In `nohz_full`, at work, and ticks.
    FullTicks,
    /// More than `CONFIG_HZ`.
    MoreThanHz,
    /// Busy throughout, and fewer than `CONFIG_HZ`.
    BusyFew,
    /// In `nohz_full`, at work, and hardly a tick.
    FullStopped,
    /// Idle, many timers, but fewer than `CONFIG_HZ`.
    IdleTimers,
    /// Ticks, as it must.
    AtHz,
    /// Ticks while it works.
    Between,
    /// Idle, and hardly a tick.
    IdleStopped,
    /// The rate of a kernel whose `CONFIG_HZ` is not known looks like this value.
    #[serde(rename = "looks_like_hz")]
    LooksLike(u32),
    /// Nothing is known to hold the rate against.
    NoHz,
    /// The rate itself is not known.
    Unknown,
}

/// CPUs whose rates mean the same.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TickVerdict {
    /// What they mean.
    pub meaning: TickMeaning,
    /// The CPUs.
    pub cpus: CpuSet,
    /// The lowest and the highest rate.
    pub timer_hz: Option<(PerSecond, PerSecond)>,
    /// The lowest and the highest busy share.
    pub busy_ppm: Option<(Ppm, Ppm)>,
}

/// The rate at which this kernel's tick comes where it is not stopped.
pub fn tick_hz(facts: &Facts) -> Option<Hz> {
    let divider = facts.tick.divider.get().and_then(Option::as_ref);
    divider.and_then(|divider| divider.effective_hz).or(facts.tick.hz.get().copied())
}

/// The rates of CPUs, some idle and some not.
pub fn tick_verdicts(facts: &Facts, cpus: &[CpuTicksSummary]) -> Vec<TickVerdict> {
    let judged = cpus.iter().map(|cpu| {
        let load = match cpu.busy_ppm.map(Ppm::get) {
            None => Load::Unknown,
            Some(ppm) if ppm < IDLE_PPM => Load::Idle,
            Some(ppm) if ppm > BUSY_PPM => Load::Busy,
            Some(_) => Load::Some,
        };
        let meaning = meaning(facts, cpu.cpu, cpu.timer_hz, load);
        (meaning, (cpu.cpu, cpu.timer_hz, cpu.busy_ppm))
    });
    grouped(judged)
}

/// The rates of CPUs on which a loop spun.
pub fn spinning_verdicts(
    facts: &Facts,
    rates: impl Iterator<Item = (Cpu, Option<PerSecond>)>,
) -> Vec<TickVerdict> {
    grouped(
        rates.map(|(cpu, rate)| {
            (meaning(facts, cpu, rate, Load::Busy), (cpu, rate, None))
        }),
    )
}

/// One CPU, its rate and how busy it was.
type Rated = (Cpu, Option<PerSecond>, Option<Ppm>);

fn grouped(judged: impl Iterator<Item = (TickMeaning, Rated)>) -> Vec<TickVerdict> {
    let mut groups: BTreeMap<TickMeaning, Vec<Rated>> = BTreeMap::new();
    for (meaning, seen) in judged {
        groups.entry(meaning).or_default().push(seen);
    }
    let verdict = |(meaning, all): (TickMeaning, Vec<Rated>)| {
        let cpus = all.iter().map(|(cpu, ..)| *cpu).collect();
        let timer_hz = ends(all.iter().filter_map(|(_, rate, _)| *rate));
        let busy_ppm = ends(all.iter().filter_map(|(.., busy)| *busy));
        TickVerdict { meaning, cpus, timer_hz, busy_ppm }
    };
    groups.into_iter().map(verdict).collect()
}

fn ends<T: Copy + PartialOrd>(values: impl Iterator<Item = T>) -> Option<(T, T)> {
    values.fold(None, |ends, value| match ends {
        None => Some((value, value)),
        Some((low, high)) => Some((
            if value < low { value } else { low },
            if value > high { value } else { high },
        )),
    })
}

fn meaning(facts: &Facts, cpu: Cpu, rate: Option<PerSecond>, load: Load) -> TickMeaning {
    let Some(rate) = rate else { return TickMeaning::Unknown };
    let Some(hz) = tick_hz(facts) else { return looks_like(rate, load) };
    let part = rate.get() / f64::from(hz.get());
    let is_full = facts.tick.nohz_full.get().is_some_and(|cpus| cpus.contains(cpu));
    let keeps_time = !is_full && facts.tick.mode.get() == Some(&TickMode::Full);
    let never_stops = facts.tick.mode.get() == Some(&TickMode::Periodic);
    if part > 1.0 + AT_HZ {
        return TickMeaning::MoreThanHz;
    }
    let is_at_hz = part >= 1.0 - AT_HZ;
    let by_rate = if is_at_hz { TickMeaning::AtHz } else { TickMeaning::Between };
    match load {
        Load::Idle if part < STOPPED => TickMeaning::IdleStopped,
        Load::Idle if is_at_hz && keeps_time => TickMeaning::KeepsTime,
        Load::Idle if is_at_hz && !never_stops => TickMeaning::IdleTicks,
        Load::Idle if !is_at_hz => TickMeaning::IdleTimers,
        Load::Busy | Load::Some if is_full && part < STOPPED => TickMeaning::FullStopped,
        Load::Busy | Load::Some if is_full => TickMeaning::FullTicks,
        Load::Busy if !is_at_hz => TickMeaning::BusyFew,
        Load::Idle | Load::Some | Load::Busy | Load::Unknown => by_rate,
    }
}

/// A busy CPU's rate gives `CONFIG_HZ` away; an idle one's does not.
fn looks_like(rate: PerSecond, load: Load) -> TickMeaning {
    let is_near = |hz: &u32| (rate.get() / f64::from(*hz) - 1.0).abs() < AT_HZ;
    match RATES.into_iter().find(is_near) {
        Some(hz) if load == Load::Busy => TickMeaning::LooksLike(hz),
        _ => TickMeaning::NoHz,
    }
}
