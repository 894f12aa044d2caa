//! The timer interrupts of `nohz_full` CPUs, whose tick should be stopped while a loop runs there.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use facts::Facts;
use summary::{CpuNoiseSummary, NoiseSummary, TimerRate};
use units::Cpu;

use crate::document::Document;
use crate::document::list::List;
use crate::document::table::{Column, Table, cells};
use crate::document::text::{Text, text};
use crate::measurements::nohz::timer_functions::about;
use crate::number;

/// The timers of the sentence.
const NAMED: usize = 3;

/// A row for each CPU and timer, and what the timers are; on one screen a sentence. Empty for other
/// CPUs, or without events.
pub(crate) fn timers(summary: &NoiseSummary, facts: &Facts) -> Document {
    let nohz_full = facts.tick.nohz_full.get();
    let is_nohz_full =
        |cpu: &&CpuNoiseSummary| nohz_full.is_some_and(|cpus| cpus.contains(cpu.cpu));
    let cpus = summary.cpus.iter().filter(is_nohz_full);
    let of = |cpu: &CpuNoiseSummary| {
        let (cpu, timers) = (cpu.cpu, cpu.timers.clone().unwrap_or_default());
        timers.into_iter().map(move |timer| (cpu, timer))
    };
    let rows: Vec<(Cpu, TimerRate)> = cpus.flat_map(of).collect();
    if rows.is_empty() {
        return Document::default();
    }
    let title = "Timer interrupts of nohz_full CPUs, by the first timer that expired";
    let all = Document::section(title, table(&rows));
    let meaning = meaning(rows.iter().map(|(_, timer)| timer));
    Document::default().add_or(all, sentence(&rows)).add_full(meaning)
}

/// The most frequent timers of all these CPUs.
fn sentence(rows: &[(Cpu, TimerRate)]) -> Text {
    let mut counts: BTreeMap<&String, u64> = BTreeMap::new();
    for (_, timer) in rows {
        *counts.entry(&timer.name).or_default() += timer.count;
    }
    let mut counts: Vec<(&String, u64)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| Reverse(*count));
    let named = counts.iter().take(NAMED);
    let named = named
        .map(|(name, count)| text!("{} {}", Text::name(*name), number::count(*count)));
    let more = counts.len().saturating_sub(NAMED);
    let more = (more > 0).then(|| text!(", {} more", number::count(more as u64)));
    text!("Timer interrupts of nohz_full CPUs: {}{}.", Text::join(named, ", "), more)
}

fn table(rows: &[(Cpu, TimerRate)]) -> Table {
    let mut table = Table::new([
        Column::number("CPU"),
        Column::name("timer", 16..=48),
        Column::number("count"),
        Column::number("per second"),
    ]);
    for (cpu, timer) in rows {
        let rate = number::known(timer.rate_hz);
        table.row(cells![cpu.to_string(), Text::name(&timer.name), timer.count, rate]);
    }
    table
}

/// What each timer is, once.
fn meaning<'a>(timers: impl Iterator<Item = &'a TimerRate>) -> List {
    let known = timers.filter_map(|timer| Some((&timer.name, about(&timer.name)?)));
    let known: BTreeMap<&String, &str> = known.collect();
    let item = |(name, about): (&String, &str)| text!("{}: {}", Text::name(name), about);
    List::bullets(known.into_iter().map(item))
}

#[cfg(test)]
mod tests {
    use facts::Fact;
    use insta::assert_snapshot;
    use units::{CpuSet, PerSecond};

    use super::*;
    use crate::example::{self, GUEST};
    use crate::terminal::full_text;

    /// Check the timers of a `nohz_full` CPU, and that those of others are not listed.
    #[test]
    fn nohz_full_only() {
        let mut recording = example::blamed(example::noise(GUEST, 2));
        let series = recording.body.noise_mut().unwrap().clone();
        let mut summary = NoiseSummary::of(&series);
        let rate = |name: &str, count: u32| TimerRate {
            name: name.to_owned(),
            count: count.into(),
            rate_hz: Some(PerSecond::new(f64::from(count) / 10.0)),
        };
        for cpu in &mut summary.cpus {
            cpu.timers =
                Some(vec![rate("tick_nohz_handler", 9), rate("watchdog_timer_fn", 2)]);
        }
        let mut facts = recording.facts.clone();
        let text = |facts: &Facts| full_text(&timers(&summary, facts));
        let none = Fact::known(CpuSet::empty(), "test");
        facts.tick.nohz_full = none;
        assert_eq!(text(&facts), "");
        let one = CpuSet::from_iter([Cpu::new(1)]);
        facts.tick.nohz_full = Fact::known(one, "test");
        assert_snapshot!(text(&facts));
    }
}
