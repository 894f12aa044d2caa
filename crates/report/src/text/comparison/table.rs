//! The tables of a comparison: metrics, and the time lost to culprits.

use stats::Conclusion;
use summary::{Compared, Comparison};
use units::printable;

use crate::number;
use crate::text::comparison::verdict;
use crate::text::layout::fit::{fits, fitted};
use crate::text::layout::labels::cut_labels;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table};
use crate::text::noise::culprits::kind_word;

/// Of more metrics than this, only those with a difference are listed.
const METRICS: usize = 24;
/// The number of listed culprits, besides those with a difference.
const CULPRITS: usize = 8;
/// The width of a culprit's name.
const NAME: std::ops::RangeInclusive<usize> = 8..=23;

/// The metrics of two sets.
pub(crate) fn metrics(other: &str, all: &[Compared]) -> String {
    let is_listed = |one: &&Compared| all.len() <= METRICS || one.is_difference();
    let listed: Vec<&Compared> = all.iter().filter(is_listed).take(METRICS).collect();
    let table = [2, 1].map(|space| metrics_table(other, &listed, space));
    let [wide, narrow] = table;
    let mut text = if listed.is_empty() {
        String::new()
    } else if fits(&wide) {
        wide
    } else {
        narrow
    };
    if listed.len() < all.len() {
        text.push_str(&rest(all, &listed));
    }
    text
}

fn metrics_table(other: &str, listed: &[&Compared], space: usize) -> String {
    let has_cpus = listed.iter().any(|one| one.quantity.cpu().is_some());
    let mut heads = vec![("metric", Side::Left)];
    heads.extend(has_cpus.then_some(("CPU", Side::Right)));
    heads.extend([("A", Side::Right), (other, Side::Right), ("difference", Side::Left)]);
    let mut table = Table::new(1, &heads).spaced(space);
    for one in listed {
        let Some(metric) = one.quantity.metric() else { continue };
        let mut row = vec![printable(metric).into_owned()];
        row.extend(
            has_cpus.then(|| number::any(one.quantity.cpu(), |cpu| cpu.to_string())),
        );
        row.extend(centers(one));
        row.push(verdict::verdict(one));
        table.row(row);
    }
    table.text()
}

/// The medians or means of both sets.
fn centers(compared: &Compared) -> [String; 2] {
    compared
        .centers
        .map(|center| number::any(center, |center| verdict::value(center, compared)))
}

/// A sentence about the metrics that are not listed.
fn rest(all: &[Compared], listed: &[&Compared]) -> String {
    let (mut more, mut equal, mut small, mut open) = (0, 0, 0, 0);
    for one in all {
        match one.conclusion {
            Conclusion::Lower | Conclusion::Higher => more += 1,
            Conclusion::Equal => equal += 1,
            Conclusion::NoLargerDifference { .. } => small += 1,
            Conclusion::NotEnoughData { .. } => open += 1,
        }
    }
    let counts = [
        (more - listed.len(), "more with a difference"),
        (equal, "equal"),
        (small, "without a difference of interest"),
        (open, "without enough data"),
    ];
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    let counts: Vec<String> =
        counts.map(|(count, what)| format!("{count} {what}")).collect();
    paragraph("", &format!("Other metrics (see --json): {}.", counts.join(", ")))
}

/// The share of their time that all CPUs lost to each culprit.
pub(crate) fn culprits(other: &str, comparison: &Comparison) -> String {
    let all = &comparison.culprits;
    let listed = all.iter().enumerate();
    let listed = listed.filter(|(at, one)| *at < CULPRITS || one.is_difference());
    let listed: Vec<&Compared> = listed.map(|(_, one)| one).take(3 * CULPRITS).collect();
    let table = fitted(NAME, |width| culprits_table(other, &listed, width));
    let mut text = format!("\nTime lost to each source of noise\n\n{table}");
    if listed.len() < all.len() {
        let more = all.len() - listed.len();
        text.push_str(&paragraph(" ", &format!("{more} more: see --json")));
    }
    if comparison.small_culprits > 0 {
        let small = comparison.small_culprits;
        let sources = if small == 1 { "source" } else { "sources" };
        let text_of =
            format!("{small} {sources} with less than 1 % of the noise: not compared");
        text.push_str(&paragraph(" ", &text_of));
    }
    text
}

fn culprits_table(letter: &str, listed: &[&Compared], width: usize) -> String {
    let heads = [
        ("source", Side::Left),
        ("", Side::Left),
        ("A", Side::Right),
        (letter, Side::Right),
        ("difference", Side::Left),
    ];
    let mut table = Table::new(1, &heads);
    let culprits = listed.iter().filter_map(|one| Some((one, one.quantity.culprit()?)));
    let culprits: Vec<_> = culprits.collect();
    let names = cut_labels(culprits.iter().map(|(_, (_, name))| printable(name)), width);
    for ((one, (kind, _)), name) in culprits.iter().zip(names) {
        let [base, other] = centers(one);
        table.row([
            kind_word(*kind).to_owned(),
            name,
            base,
            other,
            verdict::of_culprit(letter, one),
        ]);
    }
    table.text()
}
