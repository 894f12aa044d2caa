//! `compare` of sets of runs: the sets, what differs between them besides their numbers, and each set
//! compared with the first.

use serde::Serialize;
use stats::{Block, BlockUnit, FALSE_DISCOVERIES, ItemUnit};
use summary::{Comparison, MainMetric, RunSet, RunsDoubt};
use units::{Nanos, Ppm};

use crate::comparisons::ComparedSets;
use crate::comparisons::differing::{Differing, differing};
use crate::comparisons::doubts::{doubts, with_pattern};
use crate::comparisons::section::section;
use crate::comparisons::{letter, runs, taken};
use crate::document::Document;
use crate::document::table::Table;
use crate::document::text::{Text, text};
use crate::json::object;
use crate::{metric_names, number};

/// The comparison.
pub fn compared_sets_document(compared: &ComparedSets<'_>) -> Document {
    without_doubts(compared)
        .reasons(doubts(&[], compared.sets))
        .titled("noisefloor compare")
}

/// The comparison without the doubts about its sets.
pub(crate) fn without_doubts(compared: &ComparedSets<'_>) -> Document {
    let others = compared.comparisons.iter().zip(1..);
    let sections = others.map(|(comparison, other)| section(compared, other, comparison));
    Document::from(sets(compared))
        .add(differing(compared.sets))
        .add_all(sections)
        .add(single_runs(compared))
        .add_full(method(compared))
}

/// One row for each set: its name, its runs, and when they were taken.
fn sets(compared: &ComparedSets<'_>) -> Table {
    let named = compared.names.iter().zip(compared.sets).enumerate();
    Table::terms(named.map(|(at, (name, set))| {
        let kinds = set.kinds().join(" and ");
        let name = Text::name(name);
        let about = text!("{}: {} of {}{}", name, runs(set), kinds, taken(set));
        [letter(at).into(), about]
    }))
}

/// The blocks of which single runs consist.
fn block(compared: &ComparedSets<'_>) -> Option<Block> {
    let mut all = compared.comparisons.iter().flat_map(|one| &one.metrics);
    all.find_map(|one| one.block)
}

/// A sentence about single runs; empty if there are several.
fn single_runs(compared: &ComparedSets<'_>) -> Text {
    let is_compared = (1..compared.sets.len()).any(|other| !compared.is_same(other));
    let Some(block) = block(compared).filter(|_| is_compared) else {
        return Text::default();
    };
    if block.unit == BlockUnit::Items(ItemUnit::Values) {
        return single_files(block);
    }
    let length = match block.unit {
        BlockUnit::Ns => number::duration(Nanos::from_nanos(block.length)),
        BlockUnit::Items(item) => {
            let items = match item {
                ItemUnit::Wakeups => "wake-ups",
                ItemUnit::Tests => "tests",
                ItemUnit::Intervals => "intervals",
                ItemUnit::Values => "values",
            };
            text!("{} {}", block.length, items)
        }
    };
    text!(
        "Each set is a single run, divided into blocks of {}. What differs from run to run is not \
         seen in a single one; hint: compare folders with several recordings.",
        length
    )
}

/// The same about files of benchmarks.
fn single_files(block: Block) -> Text {
    let of = match block.length {
        1 => text!("values"),
        length => text!("medians of {} values", length),
    };
    text!(
        "Benchmarks are compared by the {} in one file each. What differs from session to session \
         is not seen in a single one; hint: compare folders with several files.",
        of
    )
}

/// How differences are found, and the keys of the metrics.
fn method(compared: &ComparedSets<'_>) -> Document {
    let of = match block(compared) {
        Some(Block { length: 1, .. }) => "values",
        Some(_) => "blocks",
        None => "runs",
    };
    let each = compared.comparisons.iter();
    let all: usize = each.map(|one| one.metrics.len() + one.culprits.len()).sum();
    let method = text!(
        "Values are medians of the {}, or means of values that are mostly 0. A difference is the \
         median of the differences of all pairs (Hodges-Lehmann), or that of the means; the \
         interval contains the true one with a probability of 95 % (bootstrap). \"lower\" and \
         \"higher\" follow from Mann-Whitney tests; of all differences that are reported among \
         these {} comparisons, at most 5 % are false on average (Benjamini-Hochberg).",
        of,
        all
    );
    let metrics = compared.comparisons.iter().flat_map(|one| &one.metrics);
    let keys = metrics.filter_map(|one| one.quantity.metric());
    Document::from(method).add(metric_names::glossary(keys))
}

#[derive(Serialize)]
struct SetJson<'a> {
    name: &'a str,
    runs: usize,
    taken: &'a Option<[String; 2]>,
    main: Option<MainMetric>,
    doubts: Vec<RunsDoubt>,
}

impl<'a> SetJson<'a> {
    fn of((name, set): (&'a String, &'a RunSet)) -> Self {
        let main = set.main_metric();
        Self {
            name,
            runs: set.runs(),
            taken: &set.taken,
            main,
            doubts: with_pattern(set),
        }
    }
}

/// A comparison with the place of the other set.
#[derive(Serialize)]
pub(crate) struct With<'a, T> {
    base: usize,
    other: usize,
    #[serde(flatten)]
    comparison: &'a T,
}

/// The comparisons with the places of their sets.
pub(crate) fn numbered<T>(comparisons: &[T]) -> Vec<With<'_, T>> {
    let numbered = comparisons.iter().zip(1..);
    numbered.map(|(comparison, other)| With { base: 0, other, comparison }).collect()
}

#[derive(Serialize)]
pub(crate) struct SetsJson<'a> {
    sets: Vec<SetJson<'a>>,
    facts: Differing<'a>,
    parameters: Differing<'a>,
    smallest_ppm: Ppm,
    false_discovery_rate: f64,
    comparisons: Vec<With<'a, Comparison>>,
}

impl<'a> SetsJson<'a> {
    pub(crate) fn of(compared: &ComparedSets<'a>) -> Self {
        let ComparedSets { names, sets, comparisons, smallest } = *compared;
        Self {
            sets: names.iter().zip(sets).map(SetJson::of).collect(),
            facts: Differing::facts(sets),
            parameters: Differing::parameters(sets),
            smallest_ppm: smallest,
            false_discovery_rate: FALSE_DISCOVERIES,
            comparisons: numbered(comparisons),
        }
    }
}

/// The comparison as one JSON object.
///
/// # Errors
/// None that is known: all fields can be written.
pub fn compared_sets_json(compared: &ComparedSets<'_>) -> serde_json::Result<String> {
    object("comparison", SetsJson::of(compared))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::Body;
    use summary::compare;

    use super::*;
    use crate::example::sets::run_set;
    use crate::example::{self, GUEST, METAL};
    use crate::terminal::width::set_width;
    use crate::terminal::{full_text, screen_text};

    fn report(sets: &[(&str, RunSet)], show: fn(&Document) -> String) -> String {
        let names: Vec<String> =
            sets.iter().map(|(name, _)| (*name).to_owned()).collect();
        let sets: Vec<RunSet> = sets.iter().map(|(_, set)| set.clone()).collect();
        let smallest = Ppm::new(1e5);
        let comparisons = compare(&sets[0], &sets[1..], smallest);
        let (names, comparisons) = (&names[..], &comparisons[..]);
        let compared = ComparedSets { names, sets: &sets, comparisons, smallest };
        show(&compared_sets_document(&compared))
    }

    fn assert_fits(text: &str, width: usize) {
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{line}");
            assert_eq!(line.trim_end(), line);
        }
    }

    /// Check the report of two sets on different machines, and that of one screen.
    #[test]
    fn folders() {
        let base =
            run_set(&example::blamed(example::noise(GUEST, 1)), &[98, 99, 100, 101, 102]);
        let mut other = example::blamed(example::noise(METAL, 1));
        let Body::Noise { spec, .. } = &mut other.body else { panic!() };
        spec.fifo = Some(50);
        let other = run_set(&other, &[128, 129, 130, 131, 132]);
        let sets = [("before", base), ("after", other)];
        for (name, size) in
            [("folders", full_text as fn(&Document) -> String), ("screen", screen_text)]
        {
            let text = report(&sets, size);
            assert_fits(&text, 80);
            assert_snapshot!(name, text);
        }
    }

    /// Check the report of two single recordings: no difference, of blocks.
    #[test]
    fn single_recordings() {
        let mut later = example::noise(GUEST, 2);
        later.taken = "2026-11-21T06:30:12Z".to_owned();
        let [one, other] =
            [example::noise(GUEST, 2), later].map(|it| RunSet::single(&it));
        let text = report(&[("a.json", one), ("b.json", other)], full_text);
        assert_fits(&text, 80);
        assert_snapshot!(text);
    }

    /// Check that a set is not compared with itself, and that a set with some of its runs is a doubt.
    #[test]
    fn same_runs() {
        let recording = example::noise(GUEST, 1);
        let [all, some] = [&[98, 99, 100, 101, 102, 103][..], &[98, 99, 100, 150]]
            .map(|percents| run_set(&recording, percents));
        let sets = [("a", all.clone()), ("copy", all), ("b", some)];
        let text = report(&sets, full_text);
        assert_fits(&text, 80);
        assert_snapshot!(text);
    }

    /// Check that three sets with 101 CPUs and wide names and numbers fit the terminal, a narrow one, too, and
    /// that only the metrics with a difference are listed.
    #[test]
    fn wide() {
        let recording = example::blamed(example::wide(example::noise(GUEST, 101)));
        let name = "a/folder/with/a/long/name/".repeat(5);
        let base = run_set(&recording, &[98, 99, 100, 101, 102]);
        let other = run_set(&recording, &[498, 499, 500, 501, 502]);
        let few = run_set(&example::wide(example::noise(GUEST, 101)), &[100, 101]);
        let sets = [(name.as_str(), base), ("b", other), ("c", few)];
        for width in [40, 80] {
            set_width(width);
            let text = report(&sets, full_text);
            assert_fits(&text, width);
            let more = text.replace(['\n', ' '], "");
            assert!(more.contains("Othermetrics(see--json):"), "{text}");
        }
    }
}
