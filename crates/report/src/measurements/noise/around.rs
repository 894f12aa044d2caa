//! One gap above the limit of `--stop-above`, with the events before and during it.

use recording::{Blamed, CpuNoise, Event, NoiseSeries};
use units::{Nanos, Span};

use crate::document::Document;
use crate::document::table::{Column, Table, cells};
use crate::document::text::{Text, text};
use crate::measurements::noise::culprits::kind_word;
use crate::number;

/// Events that ended this long before the gap are listed, too.
const BEFORE: Nanos = Nanos::from_micros(500);
/// The maximum number of listed events: the last ones.
const EVENTS: usize = 40;

/// The first gap above `limit` and the events around it; `None` if there is none, or if events
/// were not recorded.
pub fn around(series: &NoiseSeries, limit: Nanos) -> Option<Document> {
    let first = |cpu: &&CpuNoise| cpu.gaps.iter().find(|gap| gap.length > limit).copied();
    let hit = series.cpus.iter().filter_map(|cpu| Some((cpu, first(&cpu)?)));
    let (cpu, gap) = hit.min_by_key(|(cpu, gap)| cpu.began_ns + gap.start)?;
    let title = text!(
        "CPU {}: a gap of {}, more than {}, {} after the start of the loop. Events before and \
         during the gap, from its start:",
        cpu.cpu,
        gap.length,
        limit,
        number::moment(gap.start)
    );
    Some(Document::from(title).add(table(cpu.blamed.as_ref()?, gap)?))
}

fn table(blamed: &Blamed, gap: Span) -> Option<Table> {
    let from = gap.start.saturating_sub(BEFORE);
    let is_near = |span: Span| span.end() >= from && span.start <= gap.end();
    let near = blamed.trace.as_ref()?.iter().filter(|event| is_near(event.span));
    let near: Vec<&Event> = near.collect();
    let near = &near[near.len().saturating_sub(EVENTS)..];
    let row = |event: &&Event| {
        let culprit = blamed.culprits.get(event.culprit)?;
        let (kind, name) = (kind_word(culprit.kind), Text::name(&culprit.name));
        Some(cells![since(event.span, gap), event.span.length, kind, name])
    };
    let first = near.iter().position(|event| gap.start <= event.span.start);
    let (before, during) = near.split_at(first.unwrap_or(near.len()));
    let mut table = Table::new([
        Column::number("start"),
        Column::number("duration"),
        Column::words(""),
        Column::name("", 12..=48),
    ]);
    before.iter().filter_map(row).for_each(|cells| table.row(cells));
    table.row(cells![Nanos::ZERO, gap.length, "", "start of the gap"]);
    during.iter().filter_map(row).for_each(|cells| table.row(cells));
    table.row(cells![gap.length, "", "", "end of the gap"]);
    Some(table)
}

/// The start of an event, from that of the gap.
fn since(span: Span, gap: Span) -> Text {
    match span.start < gap.start {
        true => text!("-{}", gap.start.saturating_sub(span.start)),
        false => span.start.saturating_sub(gap.start).into(),
    }
}

#[cfg(test)]
mod tests {
    use recording::{Event, NoiseSeries};

    use super::*;
    use crate::example::{self, GUEST};

    fn series(events: &[(usize, u64, u64)]) -> NoiseSeries {
        let mut recording = example::blamed(example::noise(GUEST, 1));
        let mut series = recording.body.noise_mut().unwrap().clone();
        let span = |start, length| Span {
            start: Nanos::from_nanos(start),
            length: Nanos::from_nanos(length),
        };
        let cpu = &mut series.cpus[0];
        cpu.gaps =
            vec![span(1_000, 2_000), span(1_000_000, 60_000), span(2_000_000, 90_000)];
        let event =
            |&(culprit, start, length): &_| Event { culprit, span: span(start, length) };
        let trace = events.iter().map(event).collect();
        cpu.blamed.as_mut().unwrap().trace = Some(trace);
        series
    }

    /// Check that the first gap above the limit is reported with the events before it, during
    /// it, and those that continued after it, and no others.
    #[test]
    fn in_order() {
        let series = series(&[
            (0, 1_100, 1_500),
            (1, 700_000, 5_000),
            (0, 1_001_000, 3_000),
            (3, 1_005_000, 54_000),
            (0, 2_001_000, 3_000),
        ]);
        insta::assert_snapshot!(crate::terminal::full_text(&around(&series, Nanos::from_micros(50)).unwrap()), @r#"
    CPU 0: a gap of 60 µs, more than 50 µs, 0.0 s after the start of the loop.
    Events before and during the gap, from its start:

       start  duration
     -300 µs      5 µs  softirq  SCHED
        0 ns     60 µs           start of the gap
        1 µs      3 µs  timer    tick_nohz_handler
        5 µs     54 µs  thread   kworker/u513:15-events_unbound
       60 µs                     end of the gap
    "#);
        assert_eq!(around(&series, Nanos::from_micros(100)), None);
    }

    /// Check that a gap without any event is reported as well.
    #[test]
    fn no_events() {
        insta::assert_snapshot!(crate::terminal::full_text(&around(&series(&[]), Nanos::from_micros(50)).unwrap()), @r#"
    CPU 0: a gap of 60 µs, more than 50 µs, 0.0 s after the start of the loop.
    Events before and during the gap, from its start:

     start  duration
      0 ns     60 µs    start of the gap
     60 µs              end of the gap
    "#);
    }
}
