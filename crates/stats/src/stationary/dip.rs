//! The dip test: whether a distribution has two modes.
//!
//! The dip is the largest distance between the distribution of the values and the closest one that has a
//! single mode (J. A. Hartigan, P. M. Hartigan: The dip test of unimodality. Annals of Statistics 13, 1985).
//! A long tail is no second mode, so that it needs no assumption about noise. Of all distributions with one
//! mode, the uniform one has the largest dip by chance: its quantiles are the limits.

use std::cmp::Ordering;

/// The fewest values that can have two modes.
const VALUES_MIN: usize = 7;
/// Up to each number of uniform values, the dip times the square root of their number that is exceeded with a
/// probability of 0.001: from simulations of a million samples (of large ones of fewer), rounded up.
const LIMITS: [(usize, f64); 12] = [
    (7, 0.54),
    (8, 0.553),
    (10, 0.573),
    (12, 0.592),
    (15, 0.607),
    (20, 0.622),
    (30, 0.648),
    (50, 0.677),
    (100, 0.692),
    (200, 0.71),
    (500, 0.725),
    (usize::MAX, 0.75),
];

/// Whether these values, in ascending order, have two modes. Equal values are rounded ones, and are spread
/// over the smallest difference between two: steps are no modes.
pub(crate) fn has_two_modes(sorted: &[f64]) -> bool {
    let scaled = dip(&spread(sorted)) * (sorted.len() as f64).sqrt();
    limit(sorted.len()).is_some_and(|limit| scaled > limit)
}

/// The limit for so many values; limits increase with their number.
fn limit(count: usize) -> Option<f64> {
    let own = LIMITS.iter().find(|(most, _)| count <= *most);
    own.filter(|_| count >= VALUES_MIN).map(|(_, limit)| *limit)
}

/// The smallest difference between two values that are not equal; `None` if all are.
pub(crate) fn resolution(sorted: &[f64]) -> Option<f64> {
    let differences = sorted.windows(2).map(|pair| pair[1] - pair[0]);
    differences.filter(|one| *one > 0.0).min_by(f64::total_cmp)
}

/// The values, with equal ones at equal distances around their value.
fn spread(sorted: &[f64]) -> Vec<f64> {
    let step = resolution(sorted).unwrap_or(0.0);
    let mut all = Vec::with_capacity(sorted.len());
    for group in sorted.chunk_by(|a, b| a == b) {
        let place = |index: usize| (index as f64 + 0.5) / group.len() as f64 - 0.5;
        all.extend((0..group.len()).map(|index| group[0] + step * place(index)));
    }
    all
}

/// The dip of values in ascending order. As in algorithm AS 217 (P. M. Hartigan, Applied Statistics 34,
/// 1985), the interval of the mode shrinks until its own part of the distribution deviates less from one with a
/// single mode than what is outside of it.
pub(crate) fn dip(sorted: &[f64]) -> f64 {
    let count = sorted.len();
    if count < 2 || sorted[0] == sorted[count - 1] {
        return 0.0;
    }
    let (mut low, mut high, mut dip) = (0, count - 1, 1.0_f64);
    loop {
        let [below, above] =
            [Side::Below, Side::Above].map(|side| side.hull(sorted, low, high));
        let distance = |at: &usize| above.at(sorted, *at) - below.at(sorted, *at);
        let corners = below.corners.iter().chain(&above.corners).copied();
        let Some(widest) = corners.max_by(|a, b| distance(a).total_cmp(&distance(b)))
        else {
            break;
        };
        if distance(&widest) < dip {
            break;
        }
        let new_low =
            below.corners.iter().rfind(|at| **at <= widest).copied().unwrap_or(low);
        let new_high =
            above.corners.iter().find(|at| **at >= widest).copied().unwrap_or(high);
        let left =
            (low..=new_low).map(|at| Side::Above.height(at) - below.at(sorted, at));
        let right =
            (new_high..=high).map(|at| above.at(sorted, at) - Side::Below.height(at));
        dip = left.chain(right).fold(dip, f64::max);
        if (new_low, new_high) == (low, high) {
            break;
        }
        (low, high) = (new_low, new_high);
    }
    dip / (2 * count) as f64
}

/// A side of the steps of a distribution.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    /// The largest convex function that is not above them.
    Below,
    /// The smallest concave function that is not below them.
    Above,
}

impl Side {
    /// The end of the step at a value, in values.
    fn height(self, at: usize) -> f64 {
        match self {
            Self::Below => at as f64,
            Self::Above => at as f64 + 1.0,
        }
    }

    /// The function over a part of the values.
    fn hull(self, sorted: &[f64], low: usize, high: usize) -> Hull {
        let bend = match self {
            Self::Below => Ordering::Less,
            Self::Above => Ordering::Greater,
        };
        let mut corners: Vec<usize> = Vec::new();
        for next in low..=high {
            while let [.., before, last] = corners[..] {
                let run = |from: usize, to: usize| {
                    (sorted[to] - sorted[from], (to - from) as f64)
                };
                let ((x, y), (u, v)) = (run(before, last), run(last, next));
                // The slopes y / x and v / u, of which one may be infinite.
                if (y * u).total_cmp(&(v * x)) == bend {
                    break;
                }
                corners.pop();
            }
            corners.push(next);
        }
        Hull { side: self, corners }
    }
}

/// A function that is linear between its corners.
struct Hull {
    side: Side,
    /// Places of values, in order.
    corners: Vec<usize>,
}

impl Hull {
    /// Its height at a value.
    fn at(&self, sorted: &[f64], at: usize) -> f64 {
        let right = self.corners.partition_point(|corner| *corner < at);
        let Some(&to) = self.corners.get(right) else { return 0.0 };
        let from = self.corners[right.saturating_sub(1)];
        let width = sorted[to] - sorted[from];
        let part = if width > 0.0 { (sorted[at] - sorted[from]) / width } else { 1.0 };
        self.side.height(from) + part * (to - from) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: impl Iterator<Item = f64>) -> f64 {
        let mut values: Vec<f64> = values.collect();
        values.sort_unstable_by(f64::total_cmp);
        dip(&values)
    }

    /// Check the dip against numbers of `diptest` 0.8 for Python, which has the code of R's package: two
    /// distant groups, irregular values, and values of which many are equal.
    #[test]
    fn of_other_programs() {
        let groups = (0..10).map(|n| f64::from(n) + if n < 5 { 0.0 } else { 100.0 });
        let irregular = (0..60).map(|n| {
            let far = if n % 3 == 0 { 3000.0 } else { 0.0 };
            f64::from(n * 7919 % 1009).powf(1.5) + far
        });
        let equal = (0..80).map(|n| f64::from(n * n % 101 + n % 2 * 60));
        let cubes = (0..50).map(|n| (f64::from(n) - 24.3).powi(3));
        let found = [of(groups), of(irregular), of(equal), of(cubes)];
        let expected =
            [0.240_476_190_476_190, 0.028_620_270_562_846, 0.036_397_058_823_529, 0.01];
        for (found, expected) in found.into_iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
        assert_eq!(dip(&[3.0; 9]), 0.0);
    }

    /// Check that the steps of rounded values are no modes.
    #[test]
    fn steps() {
        let rounded = [vec![10.0; 12], vec![11.0; 9], vec![12.0; 3]].concat();
        assert!(!has_two_modes(&rounded), "{}", dip(&spread(&rounded)));
        assert_eq!(spread(&[1.0, 1.0, 3.0]), [0.5, 1.5, 3.0]);
        let two = [vec![10.0; 8], vec![11.0; 4], vec![30.0; 8], vec![31.0; 4]].concat();
        assert!(has_two_modes(&two));
    }
}
