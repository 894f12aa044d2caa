//! Random numbers from a seed.

use rand_xoshiro::rand_core::RngCore;

/// A random number below another one: the upper half of a product, biased by less than 1 in 2^40.
pub fn below(random: &mut impl RngCore, limit: usize) -> usize {
    let product = u128::from(random.next_u64()) * limit as u128;
    usize::try_from(product >> 64).unwrap_or(0)
}
