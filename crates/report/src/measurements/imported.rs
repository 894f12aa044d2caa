//! The report of lengths of time that another tool measured: a table for each kind.

use itertools::Itertools;
use recording::{ImportedSeries, ImportedSpec, LengthKind, Recording};
use summary::{ImportedSummary, LengthsSummary};

use crate::document::Document;
use crate::document::list::{Item, List};
use crate::document::table::{Column, Table};
use crate::document::text::{Text, text};
use crate::measurements::program::beginning;
use crate::measurements::ticks::words::cpus;
use crate::number;

/// The maximum width of a tag.
const TAG: usize = 16;

pub(crate) fn imported(
    recording: &Recording,
    spec: &ImportedSpec,
    series: &ImportedSeries,
    summary: &ImportedSummary,
) -> Document {
    let title = Item {
        commands: series.command.iter().map(|command| beginning(command)).collect(),
        ..Item::new(title(recording, spec))
    };
    let kinds = summary.lengths.iter().map(|lengths| lengths.kind).unique();
    let tables = kinds.map(|kind| {
        let of_kind = summary.lengths.iter().filter(|lengths| lengths.kind == kind);
        let lengths: Vec<&LengthsSummary> = of_kind.collect();
        let is_gap = kind == LengthKind::Gap;
        let table = if is_gap { gaps(&lengths, spec) } else { all(&lengths) };
        Document::section(about(kind), table)
    });
    Document::from(List::lines([title])).add_all(tables).add_full(definitions(spec))
}

fn title(recording: &Recording, spec: &ImportedSpec) -> Text {
    let mut title = text!("Measured by {}", Text::name(&spec.measured_by));
    if !spec.cpus.is_empty() {
        title.push(text!(" on {}", cpus(&spec.cpus)));
    }
    if let Some(release) = recording.facts.kernel.release.get() {
        title.push(text!(", Linux {}", Text::name(release)));
    }
    if !recording.taken.is_empty() {
        title.push(text!(", at {}", Text::name(&recording.taken)));
    }
    text!("{}.", title)
}

fn about(kind: LengthKind) -> &'static str {
    match kind {
        LengthKind::TimerInterruptLatency => {
            "Latency of the timer interrupt, from the timer's expiry to its handler"
        }
        LengthKind::WakeupLatency => "Wake-up latency, from a timer's expiry",
        LengthKind::UserLatency => {
            "Latency until the thread runs in user mode again, from the timer's expiry"
        }
        LengthKind::Gap => "OS noise: time that a busy loop lost",
        LengthKind::Value => "Values of a log, as nanoseconds",
    }
}

fn gaps(lengths: &[&LengthsSummary], spec: &ImportedSpec) -> Table {
    let from = |least| text!("Gaps are counted from {} on.", least);
    let counted = spec.threshold_ns.map(from);
    Table::of(lengths)
        .number("CPU", |one| place(one))
        .number("time", |one| number::known(one.elapsed_ns))
        .number("noise", |one| number::known(one.noise_ppm))
        .number("gaps", |one| number::known(one.count))
        .number("gaps/s", |one| number::known(one.gaps_hz))
        .numbers(["median", "p99", "p99.9", "longest"], |one| {
            [one.ns.p50, one.ns.p99, one.ns.p99_9, one.ns.max].map(number::known)
        })
        .table
        .legend(Text::join(counted.into_iter().chain(beyond(lengths)), " "))
}

fn all(lengths: &[&LengthsSummary]) -> Table {
    let first = match lengths.iter().any(|one| one.tag.is_some()) {
        true => Column::name("tag", TAG..=TAG),
        false => Column::number("CPU"),
    };
    Table::of(lengths)
        .column(first, |one| place(one))
        .number("count", |one| number::known(one.count))
        .numbers(["min", "median", "mean", "p99", "p99.9", "max"], |one| {
            let of = one.ns;
            [of.min, of.p50, of.mean, of.p99, of.p99_9, of.max].map(number::known)
        })
        .table
        .legend(beyond(lengths).unwrap_or_default())
}

fn place(lengths: &LengthsSummary) -> Text {
    match (&lengths.tag, lengths.cpu) {
        (Some(tag), _) => Text::name(tag),
        (None, Some(cpu)) => cpu.into(),
        (None, None) => "all".into(),
    }
}

/// The meaning of a quantile that is unknown, if there is one.
fn beyond(lengths: &[&LengthsSummary]) -> Option<Text> {
    let is_beyond = lengths.iter().any(|one| one.beyond > 0);
    is_beyond.then(|| "\"?\": the quantile is beyond the last bin.".into())
}

/// What distinguishes these numbers from those of noisefloor.
fn definitions(spec: &ImportedSpec) -> Text {
    let mut words =
        Text::from("Other tools define these numbers differently: see docs/format.md.");
    if let Some(width) = spec.resolution_ns {
        let (tool, width) = (Text::name(&spec.measured_by), width);
        words.push(text!(" {} rounds lengths down to multiples of {}.", tool, width));
    }
    words
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::{Body, Recording};
    use units::Nanos;

    use super::*;
    use crate::measurements::text_of;

    fn example() -> Recording {
        let golden = include_str!("../../../recording/tests/golden/imported-1.json");
        Recording::from_json(golden, "imported.json".as_ref()).unwrap()
    }

    /// Check latencies, with quantiles beyond the last bin.
    #[test]
    fn latencies() {
        assert_snapshot!(text_of(&example()));
    }

    /// Check gaps, and that a long tag fits.
    #[test]
    fn gaps_and_tags() {
        let mut recording = example();
        let Body::Imported { spec, series } = &mut recording.body else { panic!() };
        spec.threshold_ns = Some(Nanos::from_micros(1));
        let first = &mut series.lengths[0];
        first.kind = LengthKind::Gap;
        first.elapsed_ns = Some(Nanos::from_secs(10));
        let mut tagged = first.clone();
        tagged.kind = LengthKind::Value;
        tagged.tag = Some("a tag of more than 16 characters".to_owned());
        series.lengths.push(tagged);
        series.command = Some("x".repeat(1000));
        assert_snapshot!(text_of(&recording));
    }
}
