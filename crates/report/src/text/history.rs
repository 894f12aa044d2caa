//! The report of `history`: the parts of each metric between its change points, and what changed in the
//! kernel and its settings.

use stats::Stretch;
use units::printable;

use crate::history::{FactsChange, HistoryReport, MetricHistory};
use crate::number;
use crate::text::comparison::differing::label;
use crate::text::facts::value::words;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table};

/// The number of listed changes, the newest, and of facts of each.
const CHANGES: usize = 12;
const FACTS: usize = 6;
/// The length of a date in a time.
const DATE: usize = "2026-11-26".len();

/// A history for the terminal.
pub fn history_text(history: &HistoryReport) -> String {
    let entries = history.metrics.iter().map(|metric| metric.entries.len()).max();
    let title = format!(
        "History of {} on {}: {}",
        history.kind,
        history.machine,
        counted(entries.unwrap_or(0), "entry", "entries")
    );
    let mut text = paragraph("", &printable(&title));
    for metric in &history.metrics {
        text.push_str(&metric_text(metric));
    }
    text.push_str(&changes(&history.changes));
    text.push('\n');
    text.push_str(&paragraph(
        "",
        "Values are medians of the worst CPU. A series is divided where Pettitt's test finds a change; a \
         series without a change is divided with a probability of 5 % at most.",
    ));
    text
}

fn counted(count: usize, one: &str, several: &str) -> String {
    let number = number::count(u64::try_from(count).unwrap_or(u64::MAX));
    format!("{number} {}", if count == 1 { one } else { several })
}

fn metric_text(metric: &MetricHistory) -> String {
    let heads = [
        ("from", Side::Left),
        ("to", Side::Left),
        ("entries", Side::Right),
        ("median", Side::Right),
        ("change", Side::Right),
    ];
    let mut table = Table::new(1, &heads);
    let mut before = None;
    for stretch in &metric.stretches {
        table.row(row(metric, stretch, before));
        before = Some(stretch);
    }
    format!("\n{}\n\n{}", printable(&metric.metric), table.text())
}

fn row(
    metric: &MetricHistory,
    stretch: &Stretch,
    before: Option<&Stretch>,
) -> [String; 5] {
    let date = |at: usize| {
        let taken = metric.entries.get(at).map_or("", |(_, taken, _)| taken.as_str());
        printable(taken.get(..DATE).unwrap_or(taken)).into_owned()
    };
    let length = u64::try_from(stretch.end - stretch.begin).unwrap_or(u64::MAX);
    let change = before.and_then(|before| stretch.change_since(before));
    [
        date(stretch.begin),
        date(stretch.end.saturating_sub(1)),
        number::count(length),
        number::in_unit(stretch.median, metric.unit),
        change.map_or_else(String::new, number::change),
    ]
}

/// What changed in the kernel and its settings; empty without changes.
fn changes(changes: &[FactsChange]) -> String {
    if changes.is_empty() {
        return "\nNo fact has changed: the same kernel and settings, as far as known\n"
            .to_owned();
    }
    let mut text = "\nChanges of the kernel and its settings\n".to_owned();
    let left_out = changes.len().saturating_sub(CHANGES);
    if left_out > 0 {
        let earlier = counted(left_out, "earlier change", "earlier changes");
        text.push_str(&paragraph("  ", &format!("{earlier}: see --json")));
    }
    for change in &changes[left_out..] {
        let date = change.taken.get(..DATE).unwrap_or(&change.taken);
        let fact = |(key, [old, new]): (&String, &[Option<serde_json::Value>; 2])| {
            let [old, new] = [old, new]
                .map(|value| number::known(value.as_ref(), |value| words(key, value)));
            format!("{}: {old} -> {new}", label(key))
        };
        let mut facts: Vec<String> = change.facts.iter().take(FACTS).map(fact).collect();
        if change.facts.len() > FACTS {
            facts.push(format!("{} more", change.facts.len() - FACTS));
        }
        let line = format!("entry {}: {}", change.id, facts.join("; "));
        let lead = format!("  {}  ", printable(date));
        text.push_str(&paragraph(&lead, &printable(&line)));
    }
    text
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use stats::{Unit, stretches};

    use super::*;

    /// Check the report of a metric with a change, and of a kernel that has changed.
    #[test]
    fn a_change() {
        let values: Vec<f64> =
            (0..40_u8).map(|day| if day < 25 { 1100.0 } else { 3300.0 }).collect();
        let entry = |(day, value): (usize, &f64)| {
            let taken = format!("2026-{:02}-{:02}T06:00:00Z", 9 + day / 30, day % 30 + 1);
            (i64::try_from(day).unwrap() + 1, taken, *value)
        };
        let metric = MetricHistory {
            metric: "noise_ppm".to_owned(),
            unit: Unit::Ppm,
            entries: values.iter().enumerate().map(entry).collect(),
            stretches: stretches(&values),
        };
        let facts = [(
            "kernel.release".to_owned(),
            ["6.12.48", "6.12.57"].map(|release| Some(release.into())),
        )];
        let change = FactsChange {
            id: 26,
            taken: "2026-09-26T06:00:00Z".to_owned(),
            facts: facts.into(),
        };
        let history = HistoryReport {
            machine: "node-7".to_owned(),
            kind: "check".to_owned(),
            metrics: vec![metric],
            changes: vec![change],
        };
        let text = history_text(&history);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_snapshot!(text, @r#"
        History of check on node-7: 40 entries

        noise_ppm

         from        to          entries  median  change
         2026-09-01  2026-09-25       25  0.11 %
         2026-09-26  2026-10-10       15  0.33 %  +200 %

        Changes of the kernel and its settings
          2026-09-26  entry 26: kernel release: 6.12.48 -> 6.12.57

        Values are medians of the worst CPU. A series is divided where Pettitt's test
        finds a change; a series without a change is divided with a probability of 5 %
        at most.
        "#);
    }
}
