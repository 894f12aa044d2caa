//! Periodic noise, as sentences; and the lengths of gaps without events.

use recording::CulpritKind;
use summary::{CpuNoiseSummary, CulpritSummary, NoiseSummary, Period};

use crate::number;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table};
use crate::text::noise::culprits::{CPUS, is_interrupt, kind_word, name};

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
pub(crate) fn periods(summary: &NoiseSummary) -> String {
    if summary.cpus.len() > CPUS {
        return String::new();
    }
    let of_cpu = |cpu: &CpuNoiseSummary| -> String {
        let periodic = cpu.culprits.iter().filter_map(|culprit| periodic(cpu, culprit));
        periodic
            .take(LISTED)
            .map(|(culprit, period)| line(cpu, culprit, period))
            .collect()
    };
    let lines: String = summary.cpus.iter().map(of_cpu).collect();
    if lines.is_empty() { lines } else { "\n".to_owned() + &lines }
}

fn periodic<'a>(
    cpu: &CpuNoiseSummary,
    culprit: &'a CulpritSummary,
) -> Option<(&'a CulpritSummary, Period)> {
    let period = culprit.period?;
    let is_noisy = culprit.noise_ppm.is_some_and(|part| part.get() >= NOISE_PPM);
    let is_periodic = is_noisy && period.share_ppm.get() >= PERIODIC_PPM;
    let is_tick = has_event(culprit) && is_ticks(cpu, period);
    let is_of_others = !culprit.is_own();
    (is_periodic && is_of_others && !is_tick).then_some((culprit, period))
}

/// Whether the CPU's own timer interrupts have the same period.
fn is_ticks(cpu: &CpuNoiseSummary, period: Period) -> bool {
    let timers = cpu.culprits.iter().filter(|culprit| culprit.kind == CulpritKind::Timer);
    let mut ticks = timers.filter_map(|timer| timer.period);
    ticks.any(|tick| (tick.hz.get() / period.hz.get() - 1.0).abs() < SAME)
}

fn has_event(culprit: &CulpritSummary) -> bool {
    is_interrupt(culprit.kind) || culprit.kind == CulpritKind::Thread
}

fn line(cpu: &CpuNoiseSummary, culprit: &CulpritSummary, period: Period) -> String {
    let source = match culprit.kind == CulpritKind::Unexplained {
        true => "unexplained".to_owned(),
        false => format!("{} {}", kind_word(culprit.kind), name(culprit)),
    };
    let gaps = match period.trains {
        0 | 1 => "gaps".to_owned(),
        trains => format!("{trains} series of gaps"),
    };
    let place =
        if has_event(culprit) || cpu.steal.is_none() { "" } else { " on the host" };
    let text = format!(
        "CPU {}, {source}: {} of its time is in {gaps} every {} (the period of a {} Hz timer{place}).",
        cpu.cpu,
        number::share(period.share_ppm),
        number::period(period.period_ns),
        number::bare_rate(period.hz)
    );
    paragraph("", &text)
}

/// The number of gaps without events by length, on all CPUs together; empty if there are none, or
/// if events were not traced.
pub(crate) fn eventless(summary: &NoiseSummary) -> String {
    let Some(eventless) = summary.eventless.as_ref().filter(|all| all.gaps > 0) else {
        return String::new();
    };
    let columns = [
        ("at least", Side::Right),
        ("below", Side::Right),
        ("gaps", Side::Right),
        ("time", Side::Right),
    ];
    let mut table = Table::new(1, &columns);
    for bin in &eventless.lengths {
        table.row([
            number::duration(bin.from_ns),
            number::duration(bin.below_ns),
            number::count(bin.gaps),
            number::duration(bin.ns),
        ]);
    }
    let title = format!(
        "\nGaps without events on all CPUs, by length: {}, {} in total\n\n",
        number::count(eventless.gaps),
        number::duration(eventless.ns)
    );
    title + &table.text()
}

#[cfg(test)]
mod tests {
    use recording::CulpritKind as Kind;
    use units::{Nanos, Span};

    use super::*;
    use crate::example::{self, GUEST};

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
        let text = periods(&summary).replace('\n', " ");
        let expected = "CPU 0, unexplained: 100 % of its time is in gaps every 10.000 ms (the period of a 100 Hz timer on the host).";
        assert!(text.contains(expected), "{text}");
        let table = eventless(&summary);
        assert!(table.contains("by length: 998, 39.9 ms in total"), "{table}");
        assert!(table.contains("    20 µs  50 µs   998  39.9 ms"), "{table}");
    }
}
