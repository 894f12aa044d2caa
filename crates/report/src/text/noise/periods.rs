//! What takes a CPU's time periodically, in words; and the lengths of gaps without any event.

use recording::CulpritKind;
use stats::{CpuNoiseSummary, CulpritSummary, NoiseSummary, Period};

use crate::number;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table};
use crate::text::noise::culprits::{CPUS, kind_word, name};

/// Periods are said of culprits of which at least this part of the time comes periodically.
const STRONG_PPM: f64 = 250_000.0;
/// And which took at least this part of the CPU's noise.
const MUCH_PPM: f64 = 10_000.0;
/// Rates that differ by less than this part are one.
const SAME: f64 = 1e-3;
/// So many of a CPU are said.
const SAID: usize = 3;

/// A line for each culprit whose time comes periodically, of CPUs that are few. What comes with the
/// CPU's own tick is left out, unless it is unexplained.
pub(crate) fn periods(summary: &NoiseSummary) -> String {
    if summary.cpus.len() > CPUS {
        return String::new();
    }
    let of_cpu = |cpu: &CpuNoiseSummary| -> String {
        let strong = cpu.culprits.iter().filter_map(|culprit| strong(cpu, culprit));
        strong.take(SAID).map(|(culprit, period)| line(cpu, culprit, period)).collect()
    };
    let lines: String = summary.cpus.iter().map(of_cpu).collect();
    if lines.is_empty() { lines } else { "\n".to_owned() + &lines }
}

fn strong<'a>(
    cpu: &CpuNoiseSummary,
    culprit: &'a CulpritSummary,
) -> Option<(&'a CulpritSummary, Period)> {
    let period = culprit.period?;
    let is_much = culprit.noise_ppm.is_some_and(|part| part.get() >= MUCH_PPM);
    let is_strong = is_much && period.share_ppm.get() >= STRONG_PPM;
    let is_its_own = has_event(culprit) && is_ticks(cpu, period);
    (is_strong && !is_its_own).then_some((culprit, period))
}

/// Whether it is a period of the CPU's own timer interrupts.
fn is_ticks(cpu: &CpuNoiseSummary, period: Period) -> bool {
    let timers = cpu.culprits.iter().filter(|culprit| culprit.kind == CulpritKind::Timer);
    let mut ticks = timers.filter_map(|timer| timer.period);
    ticks.any(|tick| (tick.hz.get() / period.hz.get() - 1.0).abs() < SAME)
}

fn has_event(culprit: &CulpritSummary) -> bool {
    ![CulpritKind::Unexplained, CulpritKind::Steal].contains(&culprit.kind)
}

fn line(cpu: &CpuNoiseSummary, culprit: &CulpritSummary, period: Period) -> String {
    let who = match culprit.kind {
        CulpritKind::Unexplained => "unexplained".to_owned(),
        kind => format!("{} {}", kind_word(kind), name(culprit, usize::MAX)),
    };
    let gaps = match period.trains {
        0 | 1 => "gaps".to_owned(),
        trains => format!("{trains} series of gaps"),
    };
    let has_events =
        ![CulpritKind::Unexplained, CulpritKind::Steal].contains(&culprit.kind);
    let place = if has_events || cpu.steal.is_none() { "" } else { " on the host" };
    let text = format!(
        "CPU {}, {who}: {} of its time in {gaps} every {} (the period of a {} Hz timer{place}).",
        cpu.cpu,
        number::share(period.share_ppm),
        number::period(period.period_ns),
        number::bare_rate(period.hz)
    );
    paragraph("", &text)
}

/// How many gaps without any event there are of each length, on all CPUs together; nothing where
/// there are none or no events were watched.
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
        "\nGaps without any event on all CPUs, by length: {}, {} in all\n\n",
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

    /// Check that it is said with period and share when unexplained time comes every 10 ms in a guest,
    /// and that gaps without an event are listed by length.
    #[test]
    fn trains_are_said() {
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
        let said = periods(&summary);
        let said = said.replace('\n', " ");
        let words = "CPU 0, unexplained: 100 % of its time in gaps every 10.000 ms (the period of a 100 Hz timer on the host).";
        assert!(said.contains(words), "{said}");
        let table = eventless(&summary);
        assert!(table.contains("by length: 998, 39.9 ms in all"), "{table}");
        assert!(table.contains("    20 µs  50 µs   998  39.9 ms"), "{table}");
    }
}
