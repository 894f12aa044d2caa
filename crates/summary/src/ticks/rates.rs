//! The meaning of a rate of timer interrupts.
//!
//! A CPU with a running tick has `CONFIG_HZ` timer interrupts per second. With fewer, the tick was
//! stopped part of the time (idle CPUs, or `nohz_full` ones with one task); with more, there were also
//! high-resolution timers. Cannot see why a tick did not stop.

use std::collections::BTreeMap;

use facts::{Facts, TickMode};
use itertools::Itertools;
use serde::Serialize;
use units::{Cpu, CpuSet, Hz, PerSecond, Ppm};

use crate::ticks::CpuTicksSummary;

/// Below this part of `CONFIG_HZ`, the tick was stopped most of the time.
const STOPPED: f64 = 0.5;
/// Within this part of `CONFIG_HZ`, the rate is that of the tick itself.
const AT_HZ: f64 = 0.05;
/// Below the first a CPU counts as idle, above the second as busy throughout.
const IDLE_PPM: f64 = 50_000.0;
const BUSY_PPM: f64 = 900_000.0;
/// The usual values of `CONFIG_HZ`.
const RATES: [u32; 4] = [100, 250, 300, 1000];

/// The load of a CPU while its ticks were counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Load {
    Idle,
    Some,
    Busy,
    Unknown,
}

/// The meaning of a rate, the most important first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TickMeaning {
    /// Idle, but ticks, although the kernel could stop the tick.
    IdleTicks,
    /// Idle, but ticks: a CPU outside `nohz_full=` does the timekeeping for those in it.
    KeepsTime,
    /// In `nohz_full`, not idle, and ticks.
    FullTicks,
    /// More than `CONFIG_HZ`.
    MoreThanHz,
    /// Busy throughout, and fewer than `CONFIG_HZ`.
    BusyFew,
    /// In `nohz_full`, not idle, and hardly a tick.
    FullStopped,
    /// Idle, many timers, but fewer than `CONFIG_HZ`.
    IdleTimers,
    /// Ticks at `CONFIG_HZ`, as expected.
    AtHz,
    /// Partly busy, with fewer than `CONFIG_HZ`.
    Between,
    /// Idle, and hardly a tick.
    IdleStopped,
    /// `CONFIG_HZ` is unknown; the rate suggests this value.
    #[serde(rename = "looks_like_hz")]
    LooksLike(u32),
    /// `CONFIG_HZ` is unknown.
    NoHz,
    /// The rate is unknown.
    Unknown,
}

/// CPUs whose rates have the same meaning.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TickVerdict {
    /// The meaning.
    pub meaning: TickMeaning,
    /// The CPUs.
    pub cpus: CpuSet,
    /// The lowest and the highest rate.
    pub timer_hz: Option<(PerSecond, PerSecond)>,
    /// The lowest and the highest load.
    pub busy_ppm: Option<(Ppm, Ppm)>,
}

/// The rate of this kernel's tick if it is not stopped.
pub fn tick_hz(facts: &Facts) -> Option<Hz> {
    let divider = facts.tick.divider.get().and_then(Option::as_ref);
    divider.and_then(|divider| divider.effective_hz).or(facts.tick.hz.get().copied())
}

/// The meaning of the rates of CPUs with any load.
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

/// The meaning of the rates of busy CPUs.
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

/// One CPU, its rate and its load.
type Rated = (Cpu, Option<PerSecond>, Option<Ppm>);

fn grouped(judged: impl Iterator<Item = (TickMeaning, Rated)>) -> Vec<TickVerdict> {
    let mut groups: BTreeMap<TickMeaning, Vec<Rated>> = BTreeMap::new();
    for (meaning, rated) in judged {
        groups.entry(meaning).or_default().push(rated);
    }
    let verdict = |(meaning, all): (TickMeaning, Vec<Rated>)| {
        let cpus = all.iter().map(|(cpu, ..)| *cpu).collect();
        let timer_hz = all.iter().filter_map(|(_, rate, _)| *rate).minmax().into_option();
        let busy_ppm = all.iter().filter_map(|(.., busy)| *busy).minmax().into_option();
        TickVerdict { meaning, cpus, timer_hz, busy_ppm }
    };
    groups.into_iter().map(verdict).collect()
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

/// The rate of a busy CPU is `CONFIG_HZ`; that of an idle one is not.
fn looks_like(rate: PerSecond, load: Load) -> TickMeaning {
    let is_near = |hz: &u32| (rate.get() / f64::from(*hz) - 1.0).abs() < AT_HZ;
    match RATES.into_iter().find(is_near) {
        Some(hz) if load == Load::Busy => TickMeaning::LooksLike(hz),
        _ => TickMeaning::NoHz,
    }
}
