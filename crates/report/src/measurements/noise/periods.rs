//! Periodic noise, as sentences; and the lengths of gaps without events.

use recording::CulpritKind;
use summary::{CpuNoiseSummary, CulpritSummary, NoiseSummary, Period};

use crate::document::Document;
use crate::document::table::Table;
use crate::document::text::{Text, text};
use crate::measurements::noise::culprits::{CPUS, kind_word, name};
use crate::number;

/// A culprit's period is reported if at least this share of the culprit's time is periodic,
const PERIODIC_PPM: f64 = 250_000.0;
/// and the culprit's time is at least this share of the CPU's noise.
const NOISE_PPM: f64 = 10_000.0;
/// Rates with a smaller relative difference are regarded as equal.
const SAME: f64 = 1e-3;
/// The maximum number of sentences for each CPU.
const LISTED: usize = 3;

/// A sentence for each periodic culprit, if the CPUs are few. Culprits with the period of the CPU's
/// own tick are omitted, unless they are not events of this kernel.
pub(crate) fn periods(summary: &NoiseSummary) -> Vec<Text> {
    if summary.cpus.len() > CPUS {
        return Vec::new();
    }
    let of_cpu = |cpu: &CpuNoiseSummary| -> Vec<Text> {
        let culprits = cpu.culprits.iter();
        let periodic = culprits
            .filter_map(|culprit| Some(sentence(cpu, culprit, periodic(cpu, culprit)?)));
        periodic.take(LISTED).collect()
    };
    summary.cpus.iter().flat_map(of_cpu).collect()
}

/// The period of a culprit that is worth a sentence.
fn periodic(cpu: &CpuNoiseSummary, culprit: &CulpritSummary) -> Option<Period> {
    let period = culprit.period?;
    let is_noisy = culprit.noise_ppm.is_some_and(|part| part.get() >= NOISE_PPM);
    let is_periodic = is_noisy && period.share_ppm.get() >= PERIODIC_PPM;
    let is_tick = culprit.kind.is_event() && is_ticks(cpu, period);
    (is_periodic && !culprit.is_own() && !is_tick).then_some(period)
}

/// Whether the CPU's own timer interrupts have the same period.
fn is_ticks(cpu: &CpuNoiseSummary, period: Period) -> bool {
    let timers = cpu.culprits.iter().filter(|culprit| culprit.kind == CulpritKind::Timer);
    let mut ticks = timers.filter_map(|timer| timer.period);
    ticks.any(|tick| (tick.hz.get() / period.hz.get() - 1.0).abs() < SAME)
}

fn sentence(cpu: &CpuNoiseSummary, culprit: &CulpritSummary, period: Period) -> Text {
    let source = match culprit.kind == CulpritKind::Unexplained {
        true => "unexplained".into(),
        false => text!("{} {}", kind_word(culprit.kind), name(culprit)),
    };
    let gaps = match period.trains {
        0 | 1 => "gaps".to_owned(),
        trains => format!("{trains} series of gaps"),
    };
    let is_own = culprit.kind.is_event() || culprit.kind == CulpritKind::Firmware;
    let place = if is_own || cpu.steal.is_none() { "" } else { " on the host" };
    text!(
        "CPU {}, {}: {} of its time is in {} every {} (the period of a {} Hz timer{}).",
        cpu.cpu,
        source,
        period.share_ppm,
        gaps,
        number::period(period.period_ns),
        period.hz,
        place,
    )
}

/// The number of gaps without events by length, on all CPUs together; empty if there are none, or
/// if events were not traced.
pub(crate) fn eventless(summary: &NoiseSummary) -> Document {
    let Some(eventless) = summary.eventless.as_ref().filter(|all| all.gaps > 0) else {
        return Document::default();
    };
    let title = text!(
        "Gaps without events on all CPUs, by length: {}, {} in total",
        eventless.gaps,
        eventless.ns
    );
    let table = Table::of(&eventless.lengths)
        .number("at least", |bin| bin.from_ns)
        .number("below", |bin| bin.below_ns)
        .number("gaps", |bin| bin.gaps)
        .number("time", |bin| bin.ns)
        .table;
    Document::section(title, table)
}

#[cfg(test)]
mod tests {
    use recording::CulpritKind as Kind;
    use units::{Nanos, Span};

    use super::*;
    use crate::example::{self, GUEST};
    use crate::terminal::full_text;

    /// Check that unexplained gaps every 10 ms in a guest are reported with period and share, and
    /// that gaps without events are listed by length.
    #[test]
    fn periodic_gaps() {
        let mut recording = example::blamed(example::noise(GUEST, 1));
        let series = recording.body.noise_mut().unwrap();
        let cpu = &mut series.cpus[0];
        let blamed = cpu.blamed.as_mut().unwrap();
        let unexplained =
            blamed.culprits.iter().position(|culprit| culprit.kind == Kind::Unexplained);
        let length = Nanos::from_micros(40);
        for number in 1..999 {
            let start = Nanos::from_micros(number * 10_000 + 1_234);
            blamed.shares.push(recording::Share {
                gap: cpu.gaps.len(),
                culprit: unexplained.unwrap(),
                ns: length,
                inside_ns: Nanos::ZERO,
                entry_ns: Some(Nanos::ZERO),
            });
            cpu.gaps.push(Span { start, length });
        }
        let summary = NoiseSummary::of(series);
        let text = Text::join(periods(&summary), " ").to_string();
        let expected = "CPU 0, unexplained: 100 % of its time is in gaps every 10.000 ms (the period of a 100 Hz timer on the host).";
        assert!(text.contains(expected), "{text}");
        let table = full_text(&eventless(&summary));
        assert!(table.contains("by length: 998, 39.9 ms in total"), "{table}");
        assert!(table.contains("    20 µs  50 µs   998  39.9 ms"), "{table}");
    }
}
