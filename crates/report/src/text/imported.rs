//! Lengths of time that another tool measured: a table for each kind.

use itertools::Itertools;
use recording::{ImportedSeries, ImportedSpec, LengthKind, Recording};
use summary::{ImportedSummary, LengthsSummary};

use crate::number;
use crate::text::layout::labels::cut_labels;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table};
use crate::text::ticks::words::cpus;

/// How much of a command line is shown.
const COMMAND_MAX: usize = 300;
/// The maximum width of a tag.
const PLACE: usize = 16;

pub(crate) fn imported_text(
    recording: &Recording,
    spec: &ImportedSpec,
    series: &ImportedSeries,
    summary: &ImportedSummary,
) -> String {
    let mut text = paragraph("", &title(recording, spec));
    if let Some(command) = &series.command {
        let shown: String = command.chars().take(COMMAND_MAX).collect();
        text.push_str(&paragraph("  ", &format!("$ {shown}")));
    }
    for kind in summary.lengths.iter().map(|lengths| lengths.kind).unique() {
        let of_kind = summary.lengths.iter().filter(|lengths| lengths.kind == kind);
        let lengths: Vec<&LengthsSummary> = of_kind.collect();
        let table = if kind == LengthKind::Gap { gaps(&lengths) } else { all(&lengths) };
        text.push_str(&format!("\n{}\n\n{table}", about(kind)));
    }
    text + "\n" + &paragraph("", &legend(spec, summary))
}

fn title(recording: &Recording, spec: &ImportedSpec) -> String {
    let places = match spec.cpus.is_empty() {
        true => String::new(),
        false => format!(" on {}", cpus(&spec.cpus)),
    };
    let kernel = recording.facts.kernel.release.get();
    let kernel = kernel.map_or(String::new(), |release| format!(", Linux {release}"));
    let taken = match recording.taken.is_empty() {
        true => String::new(),
        false => format!(", at {}", recording.taken),
    };
    format!("Measured by {}{places}{kernel}{taken}.", spec.measured_by)
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

fn gaps(lengths: &[&LengthsSummary]) -> String {
    let heads =
        ["CPU", "time", "noise", "gaps", "gaps/s", "median", "p99", "p99.9", "longest"];
    let mut table = Table::new(1, &heads.map(|head| (head, Side::Right)));
    for one in lengths {
        let shown = [
            number::known(one.elapsed_ns, number::duration),
            number::known(one.noise_ppm, number::share),
            number::known(one.count, number::count),
            number::known(one.gaps_hz, number::bare_rate),
        ];
        let quantiles = [one.ns.p50, one.ns.p99, one.ns.p99_9, one.ns.max];
        let quantiles = quantiles.map(|length| number::known(length, number::duration));
        table.row([place(one)].into_iter().chain(shown).chain(quantiles));
    }
    table.text()
}

fn all(lengths: &[&LengthsSummary]) -> String {
    let heads = ["CPU", "count", "min", "median", "mean", "p99", "p99.9", "max"];
    let mut heads = heads.map(|head| (head, Side::Right));
    if lengths.iter().any(|one| one.tag.is_some()) {
        heads[0] = ("tag", Side::Left);
    }
    let mut table = Table::new(1, &heads);
    let places = cut_labels(lengths.iter().map(|one| place(one)), PLACE);
    for (one, place) in lengths.iter().zip(places) {
        let of = one.ns;
        let shown = [of.min, of.p50, of.mean, of.p99, of.p99_9, of.max];
        let shown = shown.map(|length| number::known(length, number::duration));
        let count = number::known(one.count, number::count);
        table.row([place, count].into_iter().chain(shown));
    }
    table.text()
}

fn place(lengths: &LengthsSummary) -> String {
    match (&lengths.tag, lengths.cpu) {
        (Some(tag), _) => tag.clone(),
        (None, Some(cpu)) => cpu.to_string(),
        (None, None) => "all".to_owned(),
    }
}

fn legend(spec: &ImportedSpec, summary: &ImportedSummary) -> String {
    let mut sentences = vec![
        "Other tools define these numbers differently: see docs/format.md.".to_owned(),
    ];
    if let Some(threshold) = spec.threshold_ns {
        let threshold = number::duration(threshold);
        sentences.push(format!("Gaps are counted from {threshold} on."));
    }
    if let Some(width) = spec.resolution_ns {
        let width = number::duration(width);
        sentences.push(format!(
            "{} rounds lengths down to multiples of {width}.",
            spec.measured_by
        ));
    }
    if summary.lengths.iter().any(|one| one.beyond > 0) {
        sentences.push("\"?\": the quantile is beyond the last bin.".to_owned());
    }
    sentences.join(" ")
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::{Body, Recording};
    use units::Nanos;

    use super::*;
    use crate::text::text_of;

    fn example() -> Recording {
        let golden = include_str!("../../../recording/tests/golden/imported-1.json");
        Recording::from_json(golden, "imported.json".as_ref()).unwrap()
    }

    /// Check latencies, with quantiles beyond the last bin.
    #[test]
    fn latencies() {
        assert_snapshot!(text_of(&example()), @r#"
        Measured by cyclictest 2.40 on CPUs 0,1, Linux 6.18.44-fc-v782, at
        2026-11-26T07:57:55Z.
          $ cyclictest -m -q -p 80 -t 2 -a 0-1 -i 1000 -l 5000 -h 400
          --json=cyclictest.json

        Wake-up latency, from a timer's expiry

         CPU  count   min  median     mean  p99  p99.9      max
           0   5000  8 µs       ?  22.9 µs    ?      ?  7.90 ms

        Other tools define these numbers differently: see docs/format.md. cyclictest
        2.40 rounds lengths down to multiples of 1 µs. "?": the quantile is beyond the
        last bin.

        Doubts (reasons not to trust a number)
          - latencies beyond the histogram: 33; hint: a larger -h
        "#);
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
        assert_snapshot!(text_of(&recording), @r#"
        Measured by cyclictest 2.40 on CPUs 0,1, Linux 6.18.44-fc-v782, at
        2026-11-26T07:57:55Z.
          $
          xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
          xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
          xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
          xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx

        OS noise: time that a busy loop lost

         CPU  time   noise  gaps  gaps/s  median  p99  p99.9  longest
           0  10 s  1.14 %  5000     500       ?    ?      ?  7.90 ms

        Values of a log, as nanoseconds

         tag               count   min  median     mean  p99  p99.9      max
         a tag of more t…   5000  8 µs       ?  22.9 µs    ?      ?  7.90 ms

        Other tools define these numbers differently: see docs/format.md. Gaps are
        counted from 1 µs on. cyclictest 2.40 rounds lengths down to multiples of 1 µs.
        "?": the quantile is beyond the last bin.

        Doubts (reasons not to trust a number)
          - latencies beyond the histogram: 33; hint: a larger -h
        "#);
    }
}
