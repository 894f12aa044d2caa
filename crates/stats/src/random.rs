//! Random numbers from a seed.

use rand_xoshiro::rand_core::RngCore;

/// A random number below another one: the upper half of a product, biased by less than 1 in 2^40.
pub fn below(random: &mut impl RngCore, limit: usize) -> usize {
    let product = u128::from(random.next_u64()) * limit as u128;
    usize::try_from(product >> 64).unwrap_or(0)
}

/// Brings values into a random order (R. Durstenfeld: Algorithm 235. Communications of the ACM 7, 1964).
pub(crate) fn shuffle<T>(random: &mut impl RngCore, values: &mut [T]) {
    for last in (1..values.len()).rev() {
        values.swap(last, below(random, last + 1));
    }
}
