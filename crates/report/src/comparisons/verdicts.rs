//! The verdicts of `compare` in few lines, for a comment on a pull request: how many metrics are worse and better,
//! and those that differ, the worst first.

use summary::{Compared, Comparison, MetricChange};

use crate::comparisons::ComparedSets;
use crate::comparisons::doubts::doubts;
use crate::comparisons::letter;
use crate::comparisons::quantities;
use crate::comparisons::section::{centers, other_benchmarks};
use crate::comparisons::verdict::verdict;
use crate::document::Document;
use crate::document::table::{Column, Table};
use crate::document::text::{Text, text};
use crate::number;

/// A comment has so many metrics of each set, and doubts.
const METRICS: usize = 20;
const DOUBTS: usize = 4;

/// The verdicts on all sets.
pub fn verdicts_document(compared: &ComparedSets<'_>) -> Document {
    let others = compared.comparisons.iter().zip(1..);
    let sections = others.map(|(comparison, other)| section(compared, other, comparison));
    let all: Vec<Text> = doubts(&[], compared.sets).collect();
    let more = all.len().saturating_sub(DOUBTS);
    let more = (more > 0).then(|| text!("{} more", more));
    Document::default()
        .heading("noisefloor compare")
        .add_all(sections)
        .reasons(all.into_iter().take(DOUBTS).chain(more))
        .titled("noisefloor compare")
}

fn section(
    compared: &ComparedSets<'_>,
    other: usize,
    comparison: &Comparison,
) -> Document {
    let [base, name] = [0, other].map(|set| Text::name(&compared.names[set]));
    let sentence = text!("{} compared with {}: {}.", name, base, counts(comparison));
    let letter = letter(other);
    Document::from(sentence)
        .add(table(&letter, comparison))
        .add_all(other_benchmarks(&letter, comparison))
}

/// How many metrics changed in which way.
fn counts(comparison: &Comparison) -> Text {
    let count = |change| {
        let own = comparison.metrics.iter().filter(|one| MetricChange::of(one) == change);
        own.count()
    };
    let all = [
        (MetricChange::Worse, "worse"),
        (MetricChange::Different, "different"),
        (MetricChange::Better, "better"),
        (MetricChange::Same, "without a difference of interest"),
        (MetricChange::Unknown, "without enough data"),
    ];
    let all = all.map(|(change, words)| (count(change), words));
    let all = all.iter().filter(|(count, _)| *count > 0);
    Text::join(all.map(|(count, words)| text!("{} {}", *count, *words)), ", ")
}

/// The metrics that differ, and those without enough data, the worst first.
fn table(other: &str, comparison: &Comparison) -> Table {
    let mut changed: Vec<(MetricChange, &Compared)> =
        comparison.metrics.iter().map(|one| (MetricChange::of(one), one)).collect();
    changed.retain(|(change, _)| *change != MetricChange::Same);
    changed.sort_by_key(|(change, _)| *change);
    let left_out = changed.len().saturating_sub(METRICS);
    let columns = [
        Column::number("A"),
        Column::number(other),
        Column::words("difference"),
        Column::words(""),
        Column::words("verdict"),
    ];
    let rows = changed.iter().take(METRICS).map(|(change, one)| {
        let ([base, other], [verdict, more]) = (centers(one), verdict(one));
        (&one.quantity, [base, other, verdict, more, word(*change).into()])
    });
    let table = quantities::table(columns, rows);
    match left_out {
        0 => table,
        more => table.rest(text!("{} more", number::counted(more as u64, "metric"))),
    }
}

fn word(change: MetricChange) -> &'static str {
    match change {
        MetricChange::Worse => "worse",
        MetricChange::Different | MetricChange::Same | MetricChange::Unknown => "",
        MetricChange::Better => "better",
    }
}
