//! Whether the order of values matters: a trend, a jump, or alternating values.
//!
//! Each of these is a contrast: the sum of the ranks, weighted by the place of the value. The weights of a
//! trend increase evenly, those of a jump are 0 before it and 1 from there on, and those of alternating
//! values are 1 and -1 in turn. The largest contrast of all, in its standard deviations, is compared with those
//! of random orders of the same ranks. So the test is exact for any distribution and any ties, and as
//! one test, whatever the number of contrasts (E. S. Edgington, P. Onghena: Randomization Tests, 2007).

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::random::shuffle;
use crate::ranks::ranks;

/// Any number; the same values always have the same result.
const SEED: u64 = 0x6f72_6465_7230_3031;
/// The number of random orders.
const ORDERS: usize = 4_999;
/// Of all orders, the given one included, so many at most may have a contrast as large: one of 1000.
const LARGE_MAX: usize = 5;
/// Two contrasts are equal if they differ by rounding only.
const ROUNDING: f64 = 1.0 - 1e-9;

/// Whether the order of these values is none that chance gives: its probability is at most 0.001. Values must
/// not be NaN.
pub(crate) fn is_ordered(values: &[f64]) -> bool {
    let mean = (values.len() as f64 + 1.0) / 2.0;
    let mut ranks: Vec<f64> = ranks(values).into_iter().map(|rank| rank - mean).collect();
    let own = largest(&ranks) * ROUNDING;
    if own == 0.0 {
        return false;
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let mut large = 1;
    for _ in 0..ORDERS {
        shuffle(&mut random, &mut ranks);
        large += usize::from(largest(&ranks) >= own);
        if large > LARGE_MAX {
            return false; // the rest cannot change it
        }
    }
    true
}

/// The largest contrast of ranks whose sum is 0. Its unit is the same for all orders of the ranks.
fn largest(ranks: &[f64]) -> f64 {
    let count = ranks.len() as f64;
    let (mut before, mut trend, mut alternating, mut jump) = (0.0, 0.0, 0.0, 0.0_f64);
    for (place, rank) in ranks.iter().enumerate() {
        let place_number = place as f64;
        jump =
            jump.max(square_ratio(before, place_number * (count - place_number) / count));
        before += rank;
        trend += rank * place_number;
        alternating += if place % 2 == 0 { *rank } else { -rank };
    }
    let odd = (ranks.len() % 2) as f64;
    let trend = square_ratio(trend, count * (count * count - 1.0) / 12.0);
    let alternating = square_ratio(alternating, count - odd / count);
    jump.max(trend).max(alternating)
}

/// The square of a weighted sum, in the sum of the squares of its weights; 0 without weights.
fn square_ratio(sum: f64, weights: f64) -> f64 {
    if weights > 0.0 { sum * sum / weights } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(at: usize) -> f64 {
        (at * 7 % 5) as f64 / 10.0
    }

    /// The smallest number of values whose order is found.
    fn smallest(value: impl Fn(usize, usize) -> f64) -> Option<usize> {
        (2..30).find(|count| {
            let values: Vec<f64> = (0..*count).map(|at| value(at, *count)).collect();
            is_ordered(&values)
        })
    }

    /// Check the smallest numbers of values whose order is found: 7 of a trend without exceptions, since 2
    /// of 5040 orders are one; and 15 of a jump in the middle or alternating values: 2 of 6435 divisions are as
    /// uneven, and trends are sought, too.
    #[test]
    fn few_values() {
        assert_eq!(smallest(|at, _| at as f64), Some(7));
        let half = |at: usize, count: usize| f64::from(u8::from(2 * at >= count));
        assert_eq!(smallest(|at, count| noise(at) + half(at, count)), Some(15));
        assert_eq!(smallest(|at, _| noise(at) + (at % 2) as f64), Some(15));
        assert!(!is_ordered(&[]) && !is_ordered(&[1.0]) && !is_ordered(&[3.0; 50]));
    }
}
