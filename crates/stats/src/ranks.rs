//! The Mann-Whitney U test: the probability that two samples of one distribution are ordered as much
//! as these are, by chance. It needs no assumption about the distribution; those of noise have long
//! tails.
//!
//! H. B. Mann, D. R. Whitney: On a test of whether one of two random variables is stochastically
//! larger than the other. Annals of Mathematical Statistics 18 (1947). Ties share their ranks, and
//! the normal approximation is corrected for them and for continuity.

use std::cmp::Ordering;

use statrs::function::erf::erfc;

/// Two samples without ties of at most so many pairs have the exact distribution of U.
const EXACT_PAIRS: usize = 1_000;

/// The two-sided p-value of the hypothesis that both samples have one distribution; 1 if one is
/// empty. The variance of U is larger by `inflation` than for independent values. Values must not be
/// NaN.
pub(crate) fn p_value(a: &[f64], b: &[f64], inflation: f64) -> f64 {
    if a.is_empty() || b.is_empty() {
        return 1.0;
    }
    let pairs = a.len() * b.len();
    let ranks = RankSum::of(a, b);
    let (n, m) = (a.len() as f64, b.len() as f64);
    let extreme = ranks.u.max(pairs as f64 - ranks.u);
    let ties = ranks.ties;
    match ties == 0.0 && pairs <= EXACT_PAIRS && inflation <= 1.0 {
        true => (2.0 * upper_tail(a.len(), b.len(), extreme)).min(1.0),
        false => approximate([n, m], ties, extreme, inflation),
    }
}

/// Whether a value of `b` is larger than one of `a` in most pairs.
pub(crate) fn direction(a: &[f64], b: &[f64]) -> Ordering {
    let half = a.len() as f64 * b.len() as f64 / 2.0;
    half.total_cmp(&RankSum::of(a, b).u)
}

/// The p-value by the normal approximation.
fn approximate([n, m]: [f64; 2], ties: f64, extreme: f64, inflation: f64) -> f64 {
    let all = n + m;
    let variance = n * m / 12.0 * (all + 1.0 - ties / (all * (all - 1.0))) * inflation;
    if variance <= 0.0 {
        return 1.0; // all values are equal
    }
    let z = (extreme - n * m / 2.0 - 0.5) / variance.sqrt();
    erfc(z / std::f64::consts::SQRT_2).min(1.0)
}

/// The ranks of the first of two samples among all values.
struct RankSum {
    /// Mann's and Whitney's U: in how many pairs the value of the first sample is the larger one;
    /// pairs of equal values are halves.
    u: f64,
    /// The sum of t³ - t over all groups of t equal values.
    ties: f64,
}

impl RankSum {
    fn of(a: &[f64], b: &[f64]) -> Self {
        let own = a.iter().map(|value| (*value, true));
        let mut all: Vec<(f64, bool)> =
            own.chain(b.iter().map(|value| (*value, false))).collect();
        all.sort_unstable_by(|one, other| one.0.total_cmp(&other.0));
        let (mut sum, mut ties, mut before) = (0.0, 0.0, 0.0);
        for group in all.chunk_by(|one, other| one.0 == other.0) {
            let count = group.len() as f64;
            let of_first = group.iter().filter(|(_, is_first)| *is_first).count() as f64;
            sum += of_first * (before + (count + 1.0) / 2.0);
            ties += count.powi(3) - count;
            before += count;
        }
        let least = (a.len() * (a.len() + 1)) as f64 / 2.0;
        Self { u: sum - least, ties }
    }
}

/// The rank of each value; equal values have the mean of their ranks.
pub(crate) fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_unstable_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for group in order.chunk_by(|a, b| values[*a] == values[*b]) {
        let rank = before as f64 + (group.len() as f64 + 1.0) / 2.0;
        group.iter().for_each(|index| ranks[*index] = rank);
        before += group.len();
    }
    ranks
}

/// The probability that U is at least `least`, for samples of these sizes without ties.
fn upper_tail(n: usize, m: usize, least: f64) -> f64 {
    let of_sizes = distribution(n, m).into_iter().enumerate();
    of_sizes.filter(|(u, _)| *u as f64 >= least).map(|(_, p)| p).sum()
}

/// The probability of each U, for samples of these sizes without ties.
///
/// The largest of all values is in the first sample with probability n / (n + m), and then exceeds
/// all m of the other: so the distribution for (n, m) follows from those for (n - 1, m) and (n, m - 1).
fn distribution(n: usize, m: usize) -> Vec<f64> {
    let mut rows: Vec<Vec<f64>> = vec![vec![1.0]; m + 1]; // no value in the first sample
    for i in 1..=n {
        let mut row: Vec<Vec<f64>> = vec![vec![1.0]];
        for j in 1..=m {
            let of_first = i as f64 / (i + j) as f64;
            let mut next = vec![0.0; i * j + 1];
            for (u, p) in rows[j].iter().enumerate() {
                next[u + j] += of_first * p;
            }
            for (u, p) in row[j - 1].iter().enumerate() {
                next[u] += (1.0 - of_first) * p;
            }
            row.push(next);
        }
        rows = row;
    }
    rows.swap_remove(m)
}

/// The smallest U that differs significantly, for samples of these sizes without ties: its two-sided p-value is
/// at most `level`. `None` if they are too small.
pub(crate) fn significant([n, m]: [usize; 2], level: f64) -> Option<usize> {
    let pairs = n * m;
    if pairs <= EXACT_PAIRS {
        let mut tail = 0.0;
        let probabilities = distribution(n, m);
        let all = probabilities.iter().enumerate().rev();
        let is_significant = |(u, p): &(usize, &f64)| {
            tail += *p;
            2.0 * tail <= level && 2 * u > pairs
        };
        return all.take_while(is_significant).last().map(|(u, _)| u);
    }
    let p_value = |u: usize| approximate([n as f64, m as f64], 0.0, u as f64, 1.0);
    let least = partition(pairs / 2..pairs + 1, |u| p_value(u) > level);
    (least <= pairs).then_some(least)
}

/// The first number for which a condition does not hold that holds for all smaller ones.
pub(crate) fn partition(
    range: std::ops::Range<usize>,
    holds: impl Fn(usize) -> bool,
) -> usize {
    let (mut low, mut high) = (range.start, range.end);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Check p-values against a table of the distribution: of the 70 orders of four and four values,
    /// one has U = 16 and one U = 15, and as many the smallest two.
    #[test]
    fn small_samples() {
        let a = [1.0, 2.0, 3.0, 4.0];
        let close = |p: f64, expected: f64| assert!((p - expected).abs() < 1e-12, "{p}");
        close(p_value(&a, &[5.0, 6.0, 7.0, 8.0], 1.0), 2.0 / 70.0);
        close(p_value(&a, &[3.5, 6.0, 7.0, 8.0], 1.0), 4.0 / 70.0);
        close(p_value(&a, &[0.0, 0.5, 7.0, 8.0], 1.0), 1.0);
        close(p_value(&a, &[], 1.0), 1.0);
        close(p_value(&[2.0; 5], &[2.0; 9], 1.0), 1.0);
        assert_eq!(direction(&a, &[3.5, 6.0, 7.0, 8.0]), Ordering::Greater);
        assert_eq!(direction(&a, &[0.5]), Ordering::Less);
        assert_eq!(direction(&a, &a), Ordering::Equal);
        assert_eq!(ranks(&[7.0, 3.0, 7.0, 9.0]), [2.5, 1.0, 2.5, 4.0]);
    }

    /// Check the smallest significant U against a table (two-sided, 5 %): of 5 and 5 values 23 of 25, of 10 and
    /// 10 77 of 100, of 20 and 20 273 of 400; of 3 and 3 none.
    #[test]
    fn table_of_u() {
        let found = [[3, 3], [4, 4], [5, 5], [10, 10], [20, 20]]
            .map(|sizes| significant(sizes, 0.05));
        assert_eq!(found, [None, Some(16), Some(23), Some(77), Some(273)]);
        assert_eq!(significant([40, 40], 0.05), Some(1005));
    }

    proptest! {
        /// Check that the order of the samples has no effect.
        #[test]
        fn symmetric(
            a in proptest::collection::vec(-1e3..1e3, 1..30),
            b in proptest::collection::vec(-1e3..1e3, 1..30),
        ) {
            let p = p_value(&a, &b, 1.0);
            prop_assert!((0.0..=1.0).contains(&p));
            prop_assert!((p - p_value(&b, &a, 1.0)).abs() < 1e-9);
            prop_assert!(p_value(&a, &b, 2.0) >= p_value(&b, &a, 1.5));
        }
    }

    /// Check that the exact distribution and the approximation agree for samples that are not small.
    #[test]
    fn approximation() {
        for u in [150.0, 180.0, 210.0, 240.0_f64] {
            let exact = 2.0 * upper_tail(15, 20, u);
            let near = approximate([15.0, 20.0], 0.0, u, 1.0);
            assert!((exact.min(1.0) - near).abs() < 0.005, "{u}: {exact} {near}");
        }
    }
}
