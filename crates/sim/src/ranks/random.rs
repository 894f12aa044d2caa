//! Random numbers that depend on a seed and a place only, on every machine and in any order.
//!
//! The generator is SplitMix64 (G. L. Steele, D. Lea, C. H. Flood: Fast splittable pseudorandom number
//! generators. OOPSLA 2014): the place is the counter, so that no rank's numbers depend on another's.

use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{RngCore, SeedableRng};

/// The odd number nearest to 2^64 divided by the golden ratio.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The number of that seed at that place. Seeds are mixed, so that near ones have nothing in common.
pub(super) fn at(seed: u64, place: u64) -> u64 {
    sequence(sequence(seed, 0), place)
}

/// The number at that place of the generator's sequence.
pub(super) fn sequence(seed: u64, place: u64) -> u64 {
    let state = seed.wrapping_add(place.wrapping_mul(GOLDEN));
    SplitMix64::seed_from_u64(state).next_u64()
}

/// A number below the limit, from a random one: the upper half of a product.
pub(super) fn below(random: u64, limit: u64) -> u64 {
    let product = u128::from(random) * u128::from(limit);
    u64::try_from(product >> 64).unwrap_or(0)
}
