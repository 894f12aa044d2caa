//! What a rate of timer interrupts means, in words.
//!
//! A CPU that ticks gets `CONFIG_HZ` timer interrupts a second. Fewer: the tick was
//! stopped part of the time (idle CPUs, or `nohz_full` ones with one task). More:
//! high-resolution timers came on top. What kept a tick alive cannot be seen here.

use std::collections::BTreeMap;

use facts::{Facts, TickMode};
use stats::CpuTicksSummary;
use units::{Cpu, CpuSet, Hz, PerSecond, Ppm};

use crate::number;

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Meaning {
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
    LooksLike(u32),
    /// Nothing is known to hold the rate against.
    NoHz,
    /// The rate itself is not known.
    Unknown,
}

/// CPUs whose rates mean the same.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) meaning: Meaning,
    pub(crate) cpus: CpuSet,
    /// The lowest and the highest rate.
    rates: Option<(PerSecond, PerSecond)>,
    /// The lowest and the highest busy share.
    busy: Option<(Ppm, Ppm)>,
}

/// The rate at which this kernel's tick comes where it is not stopped.
pub(crate) fn tick_hz(facts: &Facts) -> Option<Hz> {
    let divider = facts.tick.divider.get().and_then(Option::as_ref);
    divider.and_then(|divider| divider.effective_hz).or(facts.tick.hz.get().copied())
}

/// The tick's rate and where it comes from: `250 times a second (CONFIG_HZ)`.
pub(crate) fn rate(facts: &Facts) -> Option<String> {
    let hz = tick_hz(facts)?.get();
    let divider = facts.tick.divider.get().and_then(Option::as_ref);
    let divider = divider.filter(|divider| divider.effective_hz.is_some());
    let from = divider.map_or(String::new(), |divider| {
        let config = number::known(facts.tick.hz.get(), |hz| hz.get().to_string());
        format!(" {config}, divider={}", divider.asked)
    });
    Some(format!("{hz} times a second (CONFIG_HZ{from})"))
}

/// When the tick stops, as the end of a sentence about the tick.
pub(crate) fn stops(facts: &Facts, mode: TickMode) -> String {
    let listed = facts.tick.nohz_full.get().filter(|cpus| !cpus.is_empty());
    match (mode, listed) {
        (TickMode::Periodic, _) => "never stops".to_owned(),
        (TickMode::Full, Some(listed)) => format!(
            "stops on idle CPUs, and on {} (nohz_full) while a single task runs there",
            cpus(listed)
        ),
        (TickMode::Idle | TickMode::Full, _) => "stops on idle CPUs only".to_owned(),
    }
}

/// The rates of CPUs, some idle and some not.
pub(crate) fn verdicts(facts: &Facts, cpus: &[CpuTicksSummary]) -> Vec<Verdict> {
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
pub(crate) fn spinning_verdicts(
    facts: &Facts,
    rates: impl Iterator<Item = (Cpu, Option<PerSecond>)>,
) -> Vec<Verdict> {
    grouped(
        rates.map(|(cpu, rate)| {
            (meaning(facts, cpu, rate, Load::Busy), (cpu, rate, None))
        }),
    )
}

/// One CPU, its rate and how busy it was.
type Seen = (Cpu, Option<PerSecond>, Option<Ppm>);

fn grouped(judged: impl Iterator<Item = (Meaning, Seen)>) -> Vec<Verdict> {
    let mut groups: BTreeMap<Meaning, Vec<Seen>> = BTreeMap::new();
    for (meaning, seen) in judged {
        groups.entry(meaning).or_default().push(seen);
    }
    let verdict = |(meaning, all): (Meaning, Vec<Seen>)| {
        let cpus = all.iter().map(|(cpu, ..)| *cpu).collect();
        let rates = ends(all.iter().filter_map(|(_, rate, _)| *rate));
        let busy = ends(all.iter().filter_map(|(.., busy)| *busy));
        Verdict { meaning, cpus, rates, busy }
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

fn meaning(facts: &Facts, cpu: Cpu, rate: Option<PerSecond>, load: Load) -> Meaning {
    let Some(rate) = rate else { return Meaning::Unknown };
    let Some(hz) = tick_hz(facts) else { return looks_like(rate, load) };
    let part = rate.get() / f64::from(hz.get());
    let is_full = facts.tick.nohz_full.get().is_some_and(|cpus| cpus.contains(cpu));
    let keeps_time = !is_full && facts.tick.mode.get() == Some(&TickMode::Full);
    let never_stops = facts.tick.mode.get() == Some(&TickMode::Periodic);
    if part > 1.0 + AT_HZ {
        return Meaning::MoreThanHz;
    }
    let is_at_hz = part >= 1.0 - AT_HZ;
    match load {
        Load::Idle if part < STOPPED => Meaning::IdleStopped,
        Load::Idle if is_at_hz && keeps_time => Meaning::KeepsTime,
        Load::Idle if is_at_hz && !never_stops => Meaning::IdleTicks,
        Load::Idle if !is_at_hz => Meaning::IdleTimers,
        Load::Busy | Load::Some if is_full && part < STOPPED => Meaning::FullStopped,
        Load::Busy | Load::Some if is_full => Meaning::FullTicks,
        Load::Busy if !is_at_hz => Meaning::BusyFew,
        _ if is_at_hz => Meaning::AtHz,
        _ => Meaning::Between,
    }
}

/// A busy CPU's rate gives `CONFIG_HZ` away; an idle one's does not.
fn looks_like(rate: PerSecond, load: Load) -> Meaning {
    let is_near = |hz: &u32| (rate.get() / f64::from(*hz) - 1.0).abs() < AT_HZ;
    match RATES.into_iter().find(is_near) {
        Some(hz) if load == Load::Busy => Meaning::LooksLike(hz),
        _ => Meaning::NoHz,
    }
}

impl Verdict {
    /// `CPU 3` or `CPUs 0-2`.
    pub(crate) fn who(&self) -> String {
        cpus(&self.cpus)
    }

    /// The rate: `250`, or `12.1 to 15.3`, timer interrupts a second.
    pub(crate) fn rate(&self) -> String {
        let Some((low, high)) = self.rates else {
            return "an unknown number of timer interrupts".to_owned();
        };
        let rate = range(number::bare_rate(low), number::bare_rate(high));
        let is_one = rate == "1";
        format!("{rate} timer interrupt{} a second", if is_one { "" } else { "s" })
    }

    /// How busy the CPUs were: `1.2 %`, or `0 % to 1.2 %`.
    pub(crate) fn busy(&self) -> Option<String> {
        self.busy.map(|(low, high)| range(number::share(low), number::share(high)))
    }

    /// What the rate means.
    pub(crate) fn words(&self, facts: &Facts) -> String {
        let hz = number::known(tick_hz(facts), |hz| hz.get().to_string());
        match self.meaning {
            Meaning::IdleStopped => {
                "The tick stops while a CPU is idle: tickless idle works".to_owned()
            }
            Meaning::IdleTicks => format!(
                "That is HZ ({hz}) although idle: something keeps the tick from stopping"
            ),
            Meaning::KeepsTime => format!(
                "That is HZ ({hz}) although idle: with nohz_full= one of the other CPUs \
                 keeps the time for all, and its tick never stops"
            ),
            Meaning::IdleTimers => {
                format!(
                    "Below HZ ({hz}), yet much for an idle CPU: timers keep waking it"
                )
            }
            Meaning::AtHz if facts.tick.mode.get() == Some(&TickMode::Periodic) => {
                format!("That is HZ ({hz}): this kernel's tick never stops")
            }
            Meaning::AtHz => format!("That is HZ ({hz}), as expected of a CPU at work"),
            Meaning::Between => {
                format!("Below HZ ({hz}): the tick stops whenever there is nothing to do")
            }
            Meaning::BusyFew if facts.virt.hypervisor.get() == Some(&None) => {
                format!("Below HZ ({hz}) although busy: the tick was stopped")
            }
            Meaning::BusyFew => format!(
                "Below HZ ({hz}) although busy: the tick was stopped, or held back by a \
                 hypervisor"
            ),
            Meaning::MoreThanHz => format!(
                "More than HZ ({hz}): programs' own high-resolution timers come on top of \
                 the tick"
            ),
            Meaning::FullStopped => {
                format!(
                    "Far below HZ ({hz}) while at work: nohz_full stops the tick here"
                )
            }
            Meaning::FullTicks => format!(
                "Listed in nohz_full, and yet the tick (HZ {hz}) comes: more than one \
                 task, or a chore of the kernel's, keeps it"
            ),
            Meaning::LooksLike(hz) => {
                format!("CONFIG_HZ is not known, but on a busy CPU this means HZ={hz}")
            }
            Meaning::NoHz => "CONFIG_HZ is not known, so this says little".to_owned(),
            Meaning::Unknown => {
                "The CPU came or went, or its counter was set back".to_owned()
            }
        }
    }
}

/// Longer lists of CPUs are abbreviated.
const LIST: usize = 30;

/// `CPU 3`, `CPUs 0-2`, and `128 CPUs (1,3,5,...)` where the list is long.
pub(crate) fn cpus(cpus: &CpuSet) -> String {
    let list = cpus.to_string();
    match (cpus.len(), list.char_indices().nth(LIST)) {
        (1, _) => format!("CPU {list}"),
        (_, None) => format!("CPUs {list}"),
        (count, Some((at, _))) => {
            let start = list.get(..at).and_then(|start| start.rsplit_once(','));
            format!("{count} CPUs ({},...)", start.map_or("", |(start, _)| start))
        }
    }
}

/// Two printed numbers that may be the same.
pub(crate) fn range(low: String, high: String) -> String {
    if low == high { low } else { format!("{low} to {high}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example;

    fn judge(facts: &str, rate: f64, busy: f64) -> String {
        let cpu = CpuTicksSummary {
            cpu: Cpu::new(3),
            timer_hz: Some(PerSecond::new(rate)),
            busy_ppm: Some(Ppm::new(busy * 1e4)),
            interrupts_hz: None,
        };
        let facts = example::facts(facts);
        verdicts(&facts, &[cpu])[0].words(&facts)
    }

    /// Check each meaning on the case it is made for.
    #[test]
    fn meanings() {
        let idle = r#""tick": {"hz": 250, "mode": "idle", "nohz_full": ""}"#;
        let full = r#""tick": {"hz": 1000, "mode": "full", "nohz_full": "2-3"}"#;
        let periodic = r#""tick": {"hz": 250, "mode": "periodic", "nohz_full": ""}"#;
        let unknown = r#""tick": {}"#;
        for (facts, rate, busy, words) in [
            (idle, 12.0, 1.0, "tickless idle works"),
            (idle, 249.0, 1.0, "something keeps the tick"),
            (idle, 180.0, 1.0, "timers keep waking it"),
            (idle, 251.0, 100.0, "as expected of a CPU at work"),
            (idle, 120.0, 40.0, "whenever there is nothing to do"),
            (idle, 120.0, 100.0, "although busy"),
            (idle, 2400.0, 30.0, "high-resolution timers"),
            (periodic, 250.0, 0.0, "this kernel's tick never stops"),
            (full, 1.0, 100.0, "nohz_full stops the tick"),
            (full, 1000.0, 100.0, "Listed in nohz_full, and yet"),
            (full, 3.0, 0.1, "tickless idle works"),
            (unknown, 1003.0, 100.0, "this means HZ=1000"),
            (unknown, 12.0, 0.0, "says little"),
        ] {
            let found = judge(facts, rate, busy);
            assert!(found.contains(words), "{rate}/s, {busy} % busy: {found}");
        }
    }

    /// Check that RHEL 5's divider counts as the rate where it has an effect.
    #[test]
    fn divider_is_the_rate() {
        let facts = r#""tick": {"hz": 1000, "mode": "periodic", "nohz_full": "",
            "divider": {"asked": "10", "effective_hz": 100, "text": ""}}"#;
        assert!(judge(facts, 100.0, 1.0).contains("HZ (100)"));
        let rate = rate(&example::facts(facts));
        assert_eq!(rate.unwrap(), "100 times a second (CONFIG_HZ 1000, divider=10)");
    }

    /// Check that CPUs of one meaning share a sentence, with the ends of their rates.
    #[test]
    fn groups() {
        let facts =
            example::facts(r#""tick": {"hz": 250, "mode": "idle", "nohz_full": ""}"#);
        let cpu = |cpu, rate, busy| CpuTicksSummary {
            cpu: Cpu::new(cpu),
            timer_hz: rate,
            busy_ppm: Some(Ppm::new(busy)),
            interrupts_hz: None,
        };
        let rate = |hz| Some(PerSecond::new(hz));
        let all = verdicts(
            &facts,
            &[
                cpu(0, rate(12.0), 0.0),
                cpu(1, rate(249.0), 1e6),
                cpu(2, rate(9.5), 2e4),
                cpu(3, None, 0.0),
            ],
        );
        let who: Vec<String> = all.iter().map(Verdict::who).collect();
        assert_eq!(who, ["CPU 1", "CPUs 0,2", "CPU 3"]);
        assert_eq!(all[1].rate(), "9.5 to 12 timer interrupts a second");
        let odd: CpuSet = (0..64).map(|n| Cpu::new(2 * n + 1)).collect();
        assert_eq!(cpus(&odd), "64 CPUs (1,3,5,7,9,11,13,15,17,19,21,...)");
        assert_eq!(all[1].busy().as_deref(), Some("0 % to 2 %"));
    }
}
