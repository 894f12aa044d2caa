//! The report of `ticks`: what the rates of timer interrupts mean, and the rate and the load of each
//! CPU in each interval. Of very many CPUs, only those with the most timer interrupts are listed.

pub(crate) mod live;
pub(crate) mod words;

use facts::{Facts, Why};
use recording::{Doubt, TickSample, TicksSeries, TicksSpec};
use summary::{
    CpuTicksSummary, PowerSummary, TickVerdict, TicksSummary, ZonePower, tick_verdicts,
};
use units::PerSecond;

use crate::document::Document;
use crate::document::table::Table;
use crate::document::text::{Text, text};
use crate::measurements::ticks::words as tick_words;
use crate::measurements::worst::Worst;
use crate::number;

/// Of more CPUs than this, the [`MOST`] with the most timer interrupts are listed.
const LISTED: usize = 24;
const MOST: usize = 12;

/// All of `ticks`: the text below the live table, and each interval.
pub(crate) fn ticks(
    facts: &Facts,
    spec: &TicksSpec,
    series: &TicksSeries,
    summary: &TicksSummary,
) -> Document {
    head(facts, spec)
        .add(ticks_close(facts, summary, &[]))
        .add_full(intervals(series, summary))
}

/// The lines below the last interval: what the rates mean, and the doubts.
pub fn ticks_close(facts: &Facts, summary: &TicksSummary, reasons: &[Doubt]) -> Document {
    let verdicts = tick_verdicts(facts, &summary.cpus);
    let power = summary.power.as_ref().and_then(power);
    let power = power.map(|power| text!("Power: {}.", power));
    Document::default()
        .lines(verdicts.iter().map(|one| sentence(facts, one)).chain(power))
        .doubts(reasons)
}

/// What is measured, and the tick that the kernel has by its configuration.
fn head(facts: &Facts, spec: &TicksSpec) -> Document {
    let title = text!(
        "Timer interrupts a second and busy time of each CPU, every {}",
        spec.interval_ns
    );
    Document::default().lines([title, text!("Tick: {}", tick_words::reference(facts))])
}

/// The power of the processors, or why it is unknown; `None` if the machine has no counters.
pub(crate) fn power(power: &PowerSummary) -> Option<Text> {
    if let Some(unknown) = &power.unknown {
        let text = text!("unknown: {}", unknown.to_string());
        return (unknown.code != Why::Absent).then_some(text);
    }
    let zone = |zone: &ZonePower| {
        let watts =
            number::any(zone.power_w.map(|watts| Text::number(format!("{watts:.2} W"))));
        text!("{} {}", Text::name(&zone.zone), watts)
    };
    let zones = Text::join(power.zones.iter().map(zone), ", ");
    Some(text!("{} (mean, by RAPL, all programs together)", zones))
}

/// One verdict as a sentence.
fn sentence(facts: &Facts, verdict: &TickVerdict) -> Text {
    let busy = tick_words::busy(verdict);
    let busy = busy.map(|busy| text!(", busy {} of the time", busy));
    let (cpus, rates) = (tick_words::cpus(&verdict.cpus), tick_words::rates(verdict));
    text!("{}: {}{}. {}.", cpus, rates, busy, tick_words::words(verdict, facts))
}

/// The rate and the load of each CPU in each interval.
fn intervals(series: &TicksSeries, summary: &TicksSummary) -> Document {
    let of_one = |one: &TickSample| {
        (one.start_ns, TicksSummary::of(std::slice::from_ref(one)).cpus)
    };
    let samples: Vec<_> = series.samples.iter().map(of_one).collect();
    let cpus = most_ticking(&summary.cpus);
    let table = |print: fn(&CpuTicksSummary) -> Text| {
        let mut table =
            Table::of(&samples).number("from", |(start, _)| number::moment(*start));
        for cpu in cpus.listed.iter().map(|one| one.cpu) {
            table = table.number(text!("CPU {}", cpu), |(_, all)| {
                number::known(all.iter().find(|one| one.cpu == cpu).map(print))
            });
        }
        table.table
    };
    let rest = cpus.rest("had", "the most timer interrupts", timer);
    let title = "Timer interrupts a second, by interval";
    Document::section(title, table(timer).rest(rest))
        .add(Document::section("Busy time, by interval", table(busy)))
}

fn timer(cpu: &CpuTicksSummary) -> Text {
    number::known(cpu.timer_hz.map(number::rate))
}

fn busy(cpu: &CpuTicksSummary) -> Text {
    number::known(cpu.busy_ppm)
}

/// The CPUs to list, in ascending order, and the others in descending order of their rates.
pub(crate) fn most_ticking(cpus: &[CpuTicksSummary]) -> Worst<'_, CpuTicksSummary> {
    let mut most = Worst::of(cpus, LISTED, MOST, |cpu| cpu.timer_hz.map(PerSecond::get));
    most.listed.sort_by_key(|cpu| cpu.cpu);
    most
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use crate::example::{self, GUEST, METAL};
    use crate::measurements::text_of;

    /// Check `ticks` of a few CPUs.
    #[test]
    fn few() {
        assert_snapshot!(text_of(&example::ticks(METAL, 8, 2)));
    }

    /// Check that `ticks` on many CPUs lists those with the most timer interrupts.
    #[test]
    fn many() {
        assert_snapshot!(text_of(&example::ticks(GUEST, 256, 1)));
    }
}
