//! What a rate of timer interrupts means, in words.

use facts::{Facts, TickMode};
use summary::{TickMeaning, TickVerdict, tick_hz};
use units::{CpuSet, Hz};

use crate::document::text::{Text, text};
use crate::number::{self, ShareUnit};

/// The tick rate and its origin: `250 times a second (CONFIG_HZ)`.
pub(crate) fn rate(facts: &Facts) -> Option<Text> {
    let hz = number::count(tick_hz(facts)?.get().into());
    let divider = facts.tick.divider.get().and_then(Option::as_ref);
    let divider = divider.filter(|divider| divider.effective_hz.is_some());
    let from = divider.map(|divider| {
        let config = number::known(facts.tick.hz.get().map(|hz| hz.get()));
        text!(" {}, {}", config, Text::command(format!("divider={}", divider.asked)))
    });
    Some(text!("{} times a second (CONFIG_HZ{})", hz, from))
}

/// The rate, and when the tick stops.
pub(crate) fn reference(facts: &Facts) -> Text {
    let rate = rate(facts).unwrap_or_else(|| match facts.tick.hz.value() {
        Err(why) => text!("unknown rate: {}", why.to_string()),
        Ok(_) => "unknown rate".into(),
    });
    let stops = facts.tick.mode.get().map(|mode| stops(facts, *mode));
    text!("{}{}", rate, stops.map(|stops| text!("; {}", stops)))
}

/// When the tick stops.
fn stops(facts: &Facts, mode: TickMode) -> Text {
    let listed = facts.tick.nohz_full.get().filter(|cpus| !cpus.is_empty());
    match (mode, listed) {
        (TickMode::Periodic, _) => "never stops".into(),
        (TickMode::Full, Some(listed)) => text!(
            "stops on idle CPUs, and on {} (nohz_full) while a single task runs there",
            cpus(listed)
        ),
        (TickMode::Idle | TickMode::Full, _) => "stops on idle CPUs only".into(),
    }
}

/// The rate: `250`, or `12.1 to 15.3`, timer interrupts a second.
pub(crate) fn rates(verdict: &TickVerdict) -> Text {
    let Some((low, high)) = verdict.timer_hz else {
        return "an unknown number of timer interrupts".into();
    };
    let rate = range(low, high);
    let plural = if rate == "1" { "" } else { "s" };
    text!("{} timer interrupt{} a second", rate, plural)
}

/// The busy share of the CPUs' time: `1.2 %`, or `0 % to 1.2 %`.
pub(crate) fn busy(verdict: &TickVerdict) -> Option<Text> {
    verdict.busy_ppm.map(|(low, high)| {
        let unit = ShareUnit::of([Some(low), Some(high)]);
        range(unit.print(low), unit.print(high))
    })
}

/// What the rate means.
pub(crate) fn words(verdict: &TickVerdict, facts: &Facts) -> Text {
    let meaning = meaning(verdict, facts);
    let similar =
        if let TickMeaning::LooksLike(hz) = verdict.meaning { Some(hz) } else { None };
    let hz = tick_hz(facts).map(Hz::get).or(similar);
    let hz = number::known(hz);
    if meaning.contains("{}") { Text::of(meaning, [hz]) } else { meaning.into() }
}

/// The same, in which `{}` stands for HZ.
fn meaning(verdict: &TickVerdict, facts: &Facts) -> &'static str {
    use TickMeaning::{
        AtHz, Between, BusyFew, FullStopped, FullTicks, IdleStopped, IdleTicks,
        IdleTimers, KeepsTime, LooksLike, MoreThanHz, NoHz, Unknown,
    };
    match verdict.meaning {
        IdleStopped => "The tick stops while a CPU is idle: tickless idle works",
        IdleTicks => {
            "This is HZ ({}) although idle: something prevents the tick from stopping"
        }
        KeepsTime => {
            "This is HZ ({}) although idle: with nohz_full=, one housekeeping CPU keeps the time \
             for all CPUs, and its tick never stops"
        }
        IdleTimers => "Below HZ ({}), but high for an idle CPU: timers wake it often",
        AtHz if facts.tick.mode.get() == Some(&TickMode::Periodic) => {
            "This is HZ ({}): this kernel's tick never stops"
        }
        AtHz => "This is HZ ({}), as expected of a busy CPU",
        Between => "Below HZ ({}): the tick stops whenever the CPU is idle",
        BusyFew if facts.virt.hypervisor.get() == Some(&None) => {
            "Below HZ ({}) although busy: the tick was stopped"
        }
        BusyFew => {
            "Below HZ ({}) although busy: the tick was stopped, or delayed by the hypervisor"
        }
        MoreThanHz => {
            "More than HZ ({}): high-resolution timers of programs add to the tick"
        }
        FullStopped => "Far below HZ ({}) although not idle: nohz_full stops the tick",
        FullTicks => {
            "Listed in nohz_full, but the tick (HZ {}) does not stop: more than one task, or \
             another tick dependency of the kernel, prevents it"
        }
        LooksLike(_) => "CONFIG_HZ is unknown; on a busy CPU this rate means HZ={}",
        NoHz => "CONFIG_HZ is unknown: no comparison is possible",
        Unknown => "The CPU went online or offline, or its counter was reset",
    }
}

/// Longer lists of CPUs are abbreviated.
const LIST: usize = 30;

/// `CPU 3`, `CPUs 0-2`, and `128 CPUs (1,3,5,...)` if the list is long.
pub(crate) fn cpus(cpus: &CpuSet) -> Text {
    let list = cpus.to_string();
    match (cpus.len(), list.char_indices().nth(LIST)) {
        (1, _) => text!("CPU {}", cpus),
        (_, None) => text!("CPUs {}", cpus),
        (count, Some((at, _))) => {
            let start = list.get(..at).and_then(|start| start.rsplit_once(','));
            format!("{count} CPUs ({},...)", start.map_or("", |(start, _)| start)).into()
        }
    }
}

/// A range of two printed numbers, or one number if they are equal.
fn range(low: impl Into<Text>, high: impl Into<Text>) -> Text {
    let (low, high) = (low.into(), high.into());
    if low == high { low } else { text!("{} to {}", low, high) }
}

#[cfg(test)]
mod tests {
    use summary::{CpuTicksSummary, tick_verdicts};
    use units::{Cpu, PerSecond, Ppm};

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
        words(&tick_verdicts(&facts, &[cpu])[0], &facts).to_string()
    }

    /// Check an example of each meaning.
    #[test]
    fn meanings() {
        let idle = r#""tick": {"hz": 250, "mode": "idle", "nohz_full": ""}"#;
        let full = r#""tick": {"hz": 1000, "mode": "full", "nohz_full": "2-3"}"#;
        let periodic = r#""tick": {"hz": 250, "mode": "periodic", "nohz_full": ""}"#;
        let unknown = r#""tick": {}"#;
        for (facts, rate, busy, words) in [
            (idle, 12.0, 1.0, "tickless idle works"),
            (idle, 249.0, 1.0, "something prevents the tick"),
            (idle, 180.0, 1.0, "timers wake it often"),
            (idle, 251.0, 100.0, "as expected of a busy CPU"),
            (idle, 120.0, 40.0, "whenever the CPU is idle"),
            (idle, 120.0, 100.0, "although busy"),
            (idle, 2400.0, 30.0, "high-resolution timers"),
            (periodic, 250.0, 0.0, "this kernel's tick never stops"),
            (full, 1.0, 100.0, "nohz_full stops the tick"),
            (full, 1000.0, 100.0, "Listed in nohz_full, but"),
            (full, 3.0, 0.1, "tickless idle works"),
            (unknown, 1003.0, 100.0, "this rate means HZ=1000"),
            (unknown, 12.0, 0.0, "no comparison is possible"),
        ] {
            let found = judge(facts, rate, busy);
            assert!(found.contains(words), "{rate}/s, {busy} % busy: {found}");
        }
    }

    /// Check that RHEL 5's divider sets the rate if it has an effect.
    #[test]
    fn divider_is_the_rate() {
        let facts = r#""tick": {"hz": 1000, "mode": "periodic", "nohz_full": "",
            "divider": {"asked": "10", "effective_hz": 100, "text": ""}}"#;
        assert!(judge(facts, 100.0, 1.0).contains("HZ (100)"));
        let rate = rate(&example::facts(facts));
        assert_eq!(rate.unwrap(), "100 times a second (CONFIG_HZ 1000, divider=10)");
    }

    /// Check that CPUs of one meaning share a sentence, with the range of their rates.
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
        let all = tick_verdicts(
            &facts,
            &[
                cpu(0, rate(12.0), 0.0),
                cpu(1, rate(249.0), 1e6),
                cpu(2, rate(9.5), 2e4),
                cpu(3, None, 0.0),
            ],
        );
        let names: Vec<Text> = all.iter().map(|of| cpus(&of.cpus)).collect();
        assert_eq!(names, ["CPU 1", "CPUs 0,2", "CPU 3"]);
        assert_eq!(rates(&all[1]), "9.5 to 12 timer interrupts a second");
        let odd: CpuSet = (0..64).map(|n| Cpu::new(2 * n + 1)).collect();
        assert_eq!(cpus(&odd), "64 CPUs (1,3,5,7,9,11,13,15,17,19,21,...)");
        assert_eq!(busy(&all[1]).unwrap(), "0 % to 2 %");
    }
}
