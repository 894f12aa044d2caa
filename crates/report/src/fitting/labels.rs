//! Names that are cut to a width: those of one set stay distinct.
//!
//! The end of a name is cut off, unless that makes two different names equal. Of such names the part
//! in which they differ is left, or their beginnings and ends, or a number.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::fitting::columns::{columns, cut};

/// Replaces what is cut off.
const CUT: char = '…';

/// The names of a set, each cut to `width` columns if it is longer; equal names have equal labels, and
/// others have others, unless there are more of them than labels of that width.
pub(crate) fn cut_labels<Name: AsRef<str>>(
    names: impl IntoIterator<Item = Name>,
    width: usize,
) -> Vec<String> {
    let names: Vec<Name> = names.into_iter().collect();
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    let set: BTreeSet<&str> = names.iter().copied().collect();
    let fit = set.iter().filter(|name| columns(name) <= width);
    let mut labels = Labels { used: fit.map(|name| (*name).to_owned()).collect(), width };
    let mut alike: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for name in set.iter().filter(|name| columns(name) > width) {
        alike.entry(cut(name, width)).or_default().push(name);
    }
    let (alone, alike): (Vec<_>, Vec<_>) =
        alike.into_values().partition(|names| names.len() == 1);
    let mut of = BTreeMap::new();
    for group in alone.iter().chain(&alike) {
        of.extend(group.iter().copied().zip(labels.of_group(group)));
    }
    names.iter().map(|name| of.get(name).cloned().unwrap_or((*name).to_owned())).collect()
}

/// The labels that are in use.
struct Labels {
    used: BTreeSet<String>,
    width: usize,
}

impl Labels {
    /// Labels of names that have the same beginning, in the same order.
    fn of_group(&mut self, names: &[&str]) -> Vec<String> {
        let width = self.width;
        let ends = names.iter().map(|name| cut(name, width)).collect();
        let parts =
            || [true, false].into_iter().filter_map(|whole| parts(names, width, whole));
        let both = (1..width)
            .map(|tail| names.iter().map(|name| both_ends(name, width, tail)).collect());
        let mut choices = std::iter::once(ends).chain(parts()).chain(both);
        let found = choices.find(|labels: &Vec<String>| self.are_new(labels));
        let labels = found.unwrap_or_else(|| self.numbered(names));
        self.used.extend(labels.iter().cloned());
        labels
    }

    /// Whether all are different from each other, and from those in use.
    fn are_new(&self, labels: &[String]) -> bool {
        let set: BTreeSet<&String> = labels.iter().collect();
        set.len() == labels.len() && set.iter().all(|label| !self.used.contains(*label))
    }

    /// The beginning of each name and a number. Without room for one, names are cut alike.
    fn numbered(&self, names: &[&str]) -> Vec<String> {
        let label = |name: &str, number: usize| {
            let number = number.to_string();
            let room = self.width.checked_sub(columns(&number))?;
            Some(if room == 0 { number } else { cut(name, room) + &number })
        };
        let mut next = 1;
        let numbered = names.iter().map(|name| {
            while let Some(label) = label(name, next) {
                next += 1;
                if !self.used.contains(&label) {
                    return label;
                }
            }
            cut(name, self.width)
        });
        numbered.collect()
    }
}

/// The part in which the names differ, of whole words if `whole`, after as much of their beginning as
/// fits; `None` if that part is too long for the width.
fn parts(names: &[&str], width: usize, whole: bool) -> Option<Vec<String>> {
    let names: Vec<Vec<char>> = names.iter().map(|name| name.chars().collect()).collect();
    let part = |name: &Vec<char>| differing(name, &names, whole);
    let label = |name: &Vec<char>| {
        let Range { start, end } = part(name);
        let after = if end < name.len() { 1 } else { 0 };
        let room = width.checked_sub(end - start + after + 1)?;
        let head = room.min(start);
        let before = if head < start { Some(CUT) } else { None };
        let text = name[..head].iter().copied().chain(before);
        let text = text.chain(name[start..end].iter().copied());
        Some(text.chain((after == 1).then_some(CUT)).collect())
    };
    names.iter().map(label).collect()
}

/// Where a name differs from some of the others: it has the same beginning and the same end.
fn differing(name: &[char], names: &[Vec<char>], whole: bool) -> Range<usize> {
    let same =
        |other: &Vec<char>| name.iter().zip(other).take_while(|(a, b)| a == b).count();
    let mut start = names.iter().map(same).min().unwrap_or(0);
    let rest = |other: &Vec<char>| other.len().saturating_sub(start);
    let least = names.iter().map(rest).min().unwrap_or(0);
    let same = |other: &Vec<char>| {
        let both = name.iter().rev().zip(other.iter().rev());
        both.take_while(|(a, b)| a == b).count()
    };
    let mut end = name.len() - names.iter().map(same).min().unwrap_or(0).min(least);
    if whole {
        let is_word = |at: usize| name.get(at).is_some_and(|c| c.is_alphanumeric());
        while start > 0 && is_word(start - 1) && is_word(start) {
            start -= 1;
        }
        while end < name.len() && is_word(end) && is_word(end - 1) {
            end += 1;
        }
    }
    start..end
}

/// The beginning of a name and its last `tail` columns.
fn both_ends(name: &str, width: usize, tail: usize) -> String {
    let head = width.saturating_sub(tail + 1);
    let before = name.chars().take(head);
    let after = name.chars().skip(columns(name).saturating_sub(tail));
    before.chain([CUT]).chain(after).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KERNELS: [&str; 2] = ["6.12.117+deb12-cloud-amd64", "6.12.117+deb12-rt-amd64"];

    /// Check that the end is cut off where that suffices, and that the part that differs is left
    /// otherwise, at any width.
    #[test]
    fn kernels() {
        assert_eq!(cut_labels(KERNELS, 26), KERNELS);
        assert_eq!(cut_labels(KERNELS, 18), ["6.12.117+deb12-cl…", "6.12.117+deb12-rt…"]);
        assert_eq!(cut_labels(KERNELS, 12), ["6.12.…cloud…", "6.12.117…rt…"]);
        assert_eq!(cut_labels(KERNELS, 7), ["…cloud…", "6.1…rt…"]);
        assert_eq!(cut_labels(KERNELS, 5), ["6.1…1", "6.1…2"]);
        assert_eq!(cut_labels(KERNELS, 2), ["…1", "…2"]);
        assert_eq!(cut_labels(KERNELS, 1), ["1", "2"]);
    }

    /// Check that names without a common part to leave out have numbers, that equal names have equal
    /// labels, and that a name that fits is its label.
    #[test]
    fn odd_sets() {
        let names = ["aXbYc-long", "aXbZc-long", "aWbYc-long", "aWbZc-long"];
        assert_eq!(cut_labels(names, 4), ["aX…1", "aX…2", "a…Y…", "a…Z…"]);
        assert_eq!(cut_labels(["abcdef", "abc", "abcdef"], 5), ["abcd…", "abc", "abcd…"]);
        assert_eq!(cut_labels(["abc…", "abcdef", "abc"], 4), ["abc…", "ab…f", "abc"]);
        assert_eq!(cut_labels([""; 0], 4), [""; 0]);
    }

    proptest! {
        /// Check that distinct names have distinct labels of at most that width, equal names equal ones,
        /// and that names that fit are not changed.
        #[test]
        fn distinct_names_stay_distinct(
            names in proptest::collection::vec("[a1.…-]{0,12}", 1..9),
            width in 1_usize..14,
        ) {
            let labels = cut_labels(&names, width);
            prop_assert_eq!(labels.len(), names.len());
            for (name, label) in names.iter().zip(&labels) {
                prop_assert!(columns(label) <= width, "{name}: {label}");
                prop_assert!(columns(name) > width || name == label, "{name}: {label}");
                for (other, its) in names.iter().zip(&labels) {
                    prop_assert_eq!(name == other, label == its, "{} {}", name, other);
                }
            }
        }

        /// Check the same of names with long common parts.
        #[test]
        fn common_parts(
            ends in proptest::collection::btree_set("[ab]{0,3}(-[ab]{1,3})?", 2..9),
            width in 1_usize..40,
        ) {
            let names: Vec<String> =
                ends.iter().map(|end| format!("6.12.117+deb12-{end}-cloud-amd64")).collect();
            let labels = cut_labels(&names, width);
            let set: BTreeSet<&String> = labels.iter().collect();
            prop_assert_eq!(set.len(), names.len(), "{:?}", labels);
            prop_assert!(labels.iter().all(|label| columns(label) <= width), "{:?}", labels);
        }
    }
}
