//! Tests of `ablation`.

use std::collections::BTreeSet;
use std::convert::Infallible;

use super::*;

fn changes(count: usize) -> Vec<OptionsChange> {
    let change = |index| {
        let (from, to) = ("n".to_owned(), "y".to_owned());
        OptionsChange(vec![OptionChange { name: format!("O{index}"), from, to }])
    };
    (0..count).map(change).collect()
}

/// The parts of a difference, and the number of tests.
fn ablate(
    count: usize,
    tolerance: f64,
    budget: usize,
    metric: &dyn Fn(&BTreeSet<usize>) -> Option<f64>,
) -> (Ablation, usize) {
    let value = |made: &[usize]| metric(&made.iter().copied().collect());
    let all: Vec<usize> = (0..count).collect();
    let ends = [value(&[]).unwrap(), value(&all).unwrap()];
    let mut tests = 0;
    let mut test = |made: &[usize]| -> Result<Tested, Infallible> {
        if tests == budget {
            return Ok(Tested::Ended(Ended::Budget));
        }
        tests += 1;
        let unresolved = || Tested::Unresolved("does not boot".to_owned());
        Ok(value(made).map_or_else(unresolved, Tested::Value))
    };
    let Ok(found) = Ablation::of(&changes(count), ends, tolerance, &mut test);
    let sum: f64 = found.contributions.iter().map(|part| part.difference).sum();
    assert_eq!(sum + found.unexplained_sum, found.difference, "{found:?}");
    assert!(found.unexplained_sum != 0.0 || found.unexplained_sum.is_sign_positive());
    (found, tests)
}

fn names(changes: &[OptionsChange]) -> Vec<&str> {
    changes.iter().flat_map(|change| &change.0).map(|one| one.name.as_str()).collect()
}

fn parts(found: &Ablation) -> Vec<(Vec<&str>, f64)> {
    let part = |part: &'_ Contribution| part.difference;
    found.contributions.iter().map(|one| (names(&one.changes), part(one))).collect()
}

const ENDLESS: usize = usize::MAX;

/// Check that a sum of contributions is found with few tests, ranked, and that all other changes
/// are without effect.
#[test]
fn sums() {
    let weights = [(3, 5.0), (70, -28.0), (99, 1.0)];
    let metric = |made: &BTreeSet<usize>| {
        let of = weights.iter().filter(|(index, _)| made.contains(index));
        Some(100.0 + of.map(|(_, weight)| weight).sum::<f64>())
    };
    let (found, tests) = ablate(128, 0.0, ENDLESS, &metric);
    let expected = [(vec!["O70"], -28.0), (vec!["O3"], 5.0), (vec!["O99"], 1.0)];
    assert_eq!(parts(&found), expected);
    assert!(found.contributions.iter().all(|part| !part.interacts()));
    assert_eq!((found.without_effect, found.ended), (125, None));
    assert!(tests <= 3 * 7 + 6, "{tests}");
}

/// Check that two changes with an effect only together are both named, and marked.
#[test]
fn interactions() {
    let metric = |made: &BTreeSet<usize>| {
        Some(if made.contains(&2) && made.contains(&5) { 10.0 } else { 0.0 })
    };
    let (found, _) = ablate(8, 0.0, ENDLESS, &metric);
    let [part] = found.contributions.as_slice() else { panic!("{found:?}") };
    assert_eq!(names(&part.changes), ["O5"]);
    assert_eq!((part.alone, part.last), (Some(0.0), Some(10.0)));
    assert!(part.interacts());
}

/// Check that changes that cannot be tested apart are one part, and that others are still found.
#[test]
fn dependencies() {
    let metric = |made: &BTreeSet<usize>| {
        let inside = (2..6).filter(|index| made.contains(index)).count();
        let is_testable = inside == 0 || inside == 4;
        let last = if made.contains(&7) { 1.0 } else { 0.0 };
        is_testable.then_some(if inside == 4 { 7.0 } else { 0.0 } + last)
    };
    let (found, _) = ablate(8, 0.0, ENDLESS, &metric);
    let expected = [(vec!["O2", "O3", "O4", "O5"], 7.0), (vec!["O7"], 1.0)];
    assert_eq!(parts(&found), expected);
    assert_eq!(found.unresolved.len(), 3);
    assert_eq!(found.unresolved[0].why, "does not boot");
}

/// Check that a budget leaves the smaller differences unexplained, and names their changes.
#[test]
fn budgets() {
    let metric = |made: &BTreeSet<usize>| {
        let weight = |index: &usize| if *index == 1 { 100.0 } else { 1.0 };
        Some(made.iter().map(weight).sum())
    };
    let (found, tests) = ablate(16, 0.0, 4, &metric);
    assert_eq!((tests, found.ended), (4, Some(Ended::Budget)));
    assert_eq!(parts(&found)[0], (vec!["O1"], 100.0));
    assert_eq!(found.contributions[0].alone, None);
    assert_eq!(found.unexplained_sum, 14.0);
    let unexplained = found.unexplained.iter().map(|rest| rest.changes.len());
    assert_eq!(unexplained.sum::<usize>(), 14);
    let (found, _) = ablate(16, 0.0, 0, &metric);
    assert_eq!((found.contributions.len(), found.unexplained_sum), (0, 115.0));
}

/// Check that differences within the tolerance are not examined, and stay unexplained.
#[test]
fn tolerances() {
    let metric = |made: &BTreeSet<usize>| {
        let weight = |index: &usize| if *index == 6 { 50.0 } else { 0.5 };
        Some(made.iter().map(weight).sum())
    };
    let (found, _) = ablate(8, 4.0, ENDLESS, &metric);
    assert_eq!(parts(&found), [(vec!["O6"], 50.0)]);
    assert_eq!(found.unexplained_sum, 3.5);
}

/// Check that a single change is the whole difference without a test.
#[test]
fn one_change() {
    let (found, tests) = ablate(1, 0.0, ENDLESS, &|made| Some(made.len() as f64));
    assert_eq!((parts(&found), tests), (vec![(vec!["O0"], 1.0)], 0));
}
