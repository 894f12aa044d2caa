//! A set of runs, compared with the first.

use stats::Conclusion;
use summary::{Compared, Comparison};
use units::{CpuSet, Ppm};

use crate::comparisons::ComparedSets;
use crate::comparisons::letter;
use crate::comparisons::main_metric::would_show;
use crate::comparisons::quantities::{self, CULPRITS};
use crate::comparisons::verdict::{of_culprit, verdict};
use crate::document::Document;
use crate::document::table::{Column, Table};
use crate::document::text::{Text, text};
use crate::{metric_names, number};

/// Of more metrics than this, only those with a difference are listed.
const METRICS: usize = 24;
/// The number of sources of noise that a sentence names.
const NAMED: usize = 3;

/// A set compared with the first.
pub(crate) fn section(
    compared: &ComparedSets<'_>,
    other: usize,
    comparison: &Comparison,
) -> Document {
    let name = letter(other);
    if compared.is_same(other) {
        return Document::default()
            .heading(format!("{name} compared with A"))
            .add(same_runs(&name, comparison.common_runs));
    }
    let is_first = (1..other).all(|before| compared.is_same(before));
    let legend = if is_first { legend(compared.smallest) } else { Text::default() };
    let metrics: Document = match metrics(&name, &comparison.metrics) {
        none if none.rows.is_empty() => Document::from(none.rest).add(legend),
        table => table.legend(legend).into(),
    };
    let causes: Document = match comparison.culprits.is_empty() {
        false => Document::default()
            .add_screen(changed_culprits(&name, &comparison.culprits))
            .add_full(culprits(&name, comparison)),
        true if [0, other].iter().any(|set| compared.sets[*set].is_traced()) => {
            "Causes are not compared: single events were traced in one of both only."
                .into()
        }
        true => Document::default(),
    };
    Document::default()
        .heading(format!("{name} compared with A"))
        .add(metrics)
        .add_all(not_compared(&name, comparison))
        .add_all(other_benchmarks(&name, comparison))
        .add(could_show(compared, comparison))
        .add(causes)
}

/// A sentence in the place of a comparison of a set with itself.
fn same_runs(name: &str, runs: usize) -> Text {
    match runs {
        1 => text!("A and {} are the same run: there is nothing to compare.", name),
        _ => text!(
            "A and {} are the same {} runs: there is nothing to compare.",
            name,
            runs
        ),
    }
}

/// What the comparison would have shown of the main metric, if it has no difference.
fn could_show(compared: &ComparedSets<'_>, comparison: &Comparison) -> Option<Text> {
    let sets = compared.sets;
    let is_stationary = sets.iter().all(|set| set.pattern().is_none());
    let found = comparison.detectable.filter(|_| is_stationary)?;
    would_show(&found, sets[0].main_key()?)
}

/// Sentences about the CPUs that only one of both sets has.
fn not_compared(other: &str, comparison: &Comparison) -> impl Iterator<Item = Text> {
    let has_cpus = comparison.metrics.iter().any(|one| one.quantity.cpu().is_some());
    let only = ["A", other].into_iter().zip(&comparison.only_in);
    only.filter(move |(_, cpus)| has_cpus && !cpus.is_empty()).map(|(set, cpus)| {
        let cpus: CpuSet = cpus.iter().copied().collect();
        text!("Not compared: CPUs {}, which only {} has.", &cpus, set)
    })
}

/// Sentences about the benchmarks that only one of both sets has.
pub(crate) fn other_benchmarks(
    other: &str,
    comparison: &Comparison,
) -> impl Iterator<Item = Text> {
    let only = ["A", other].into_iter().zip(&comparison.only_benchmarks);
    only.filter(|(_, keys)| !keys.is_empty()).map(|(set, keys)| {
        let names = keys.iter().map(|key| metric_names::name(key)).collect();
        text!("Only in {}, and not compared: {}.", set, Text::first(NAMED, names, ", "))
    })
}

fn legend(smallest: Ppm) -> Text {
    text!(
        "Differences are in percent of A, with 95 % intervals. \"not enough data\": there may be a \
         difference of {} or more ({}).",
        smallest,
        Text::command("--smallest")
    )
}

/// The metrics of two sets.
fn metrics(other: &str, all: &[Compared]) -> Table {
    let is_listed = |one: &&Compared| all.len() <= METRICS || one.is_difference();
    let listed: Vec<&Compared> = all.iter().filter(is_listed).take(METRICS).collect();
    let columns = [
        Column::number("A"),
        Column::number(other),
        Column::words("difference"),
        Column::words(""),
    ];
    let rows = listed.iter().map(|one| {
        let ([base, other], [verdict, more]) = (centers(one), verdict(one));
        (&one.quantity, [base, other, verdict, more])
    });
    let table = quantities::table(columns, rows);
    if listed.len() < all.len() { table.rest(rest(all, listed.len())) } else { table }
}

/// The medians or means of both sets.
pub(crate) fn centers(compared: &Compared) -> [Text; 2] {
    let print = |center| number::in_unit(center, compared.unit);
    compared.centers.map(|center| number::any(center.map(print)))
}

/// A sentence about the metrics that are not listed.
fn rest(all: &[Compared], listed: usize) -> Text {
    let count =
        |is: fn(Conclusion) -> bool| all.iter().filter(|one| is(one.conclusion)).count();
    let differing = all.iter().filter(|one| one.is_difference()).count();
    let small = count(|it| matches!(it, Conclusion::NoLargerDifference { .. }));
    let counts = [
        (differing - listed, "more with a difference"),
        (count(|it| it == Conclusion::Equal), "equal"),
        (small, "without a difference of interest"),
        (
            count(|it| matches!(it, Conclusion::NotEnoughData { .. })),
            "without enough data",
        ),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts = counts.map(|(count, what)| text!("{} {}", *count, *what));
    let counts = Text::join(counts, ", ");
    text!("Other metrics (see {}): {}.", Text::command("--json"), counts)
}

/// The largest sources of noise that differ, in a sentence.
fn changed_culprits(letter: &str, all: &[Compared]) -> Option<Text> {
    let differing = all.iter().filter(|one| one.is_difference()).filter_map(|one| {
        let (_, name) = one.quantity.culprit()?;
        Some(text!("{} ({})", Text::name(name), of_culprit(letter, one)))
    });
    let named = Text::first(NAMED, differing.collect(), ", ");
    (!named.is_empty()).then(|| text!("Sources of noise that differ: {}.", named))
}

/// The share of their time that all CPUs lost to each culprit.
fn culprits(other: &str, comparison: &Comparison) -> Document {
    let all = &comparison.culprits;
    let listed = all.iter().enumerate();
    let listed = listed.filter(|(at, one)| *at < CULPRITS || one.is_difference());
    let listed: Vec<&Compared> = listed.map(|(_, one)| one).take(3 * CULPRITS).collect();
    let columns =
        [Column::number("A"), Column::number(other), Column::prose("difference")];
    let rows = listed.iter().map(|one| {
        let [base, center] = centers(one);
        (&one.quantity, [base, center, of_culprit(other, one)])
    });
    let table = quantities::table(columns, rows);
    let small = comparison.small_culprits;
    let small = (small > 0).then(|| {
        let sources = number::counted(small as u64, "source");
        text!("{} with less than 1 % of the noise: not compared", sources)
    });
    quantities::culprits(table, all.len() - listed.len()).add(small)
}
