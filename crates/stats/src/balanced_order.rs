//! The order in which variants are measured, round by round: random, and balanced, so that neither a
//! drift of the machine nor what the run before has left behind (warm caches, a warm CPU) poses as
//! an effect of a variant.
//!
//! As many rounds as there are variants are a block: in it, each variant is once at each place of a
//! round. If their number is even, each variant also follows each other one once within the rounds of
//! a block; if it is odd, that takes two blocks (E. J. Williams: Experimental designs balanced for
//! the estimation of residual effects of treatments. Australian Journal of Scientific Research A 2,
//! 1949). Which variant has which part, and the order of the rounds, are random.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;

use crate::random::below;

/// For each round, the numbers of all variants in the order in which they are measured; without an end,
/// if there is a variant.
pub fn balanced_order(variants: usize, seed: u32) -> impl Iterator<Item = Vec<usize>> {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed.into());
    let pairs = if variants == 0 { 0 } else { u32::MAX };
    (0..pairs).flat_map(move |_| two_blocks(variants, &mut random))
}

/// Two blocks, the second with mirrored rounds, so that both together are balanced for an odd number of
/// variants, too.
fn two_blocks(variants: usize, random: &mut Xoshiro256PlusPlus) -> Vec<Vec<usize>> {
    let parts = shuffled(variants, random);
    let places: Vec<usize> = zigzag(variants).collect();
    let mirrored: Vec<usize> = places.iter().rev().copied().collect();
    let mut rounds = Vec::new();
    for places in [places, mirrored] {
        let round = |shift: usize| -> Vec<usize> {
            places.iter().map(|place| parts[(place + shift) % variants]).collect()
        };
        rounds.extend(shuffled(variants, random).into_iter().map(round));
    }
    rounds
}

/// The numbers 0, 1, n - 1, 2, n - 2, ...: the differences of neighbours are all different.
fn zigzag(variants: usize) -> impl Iterator<Item = usize> {
    (0..variants).map(move |at| match at % 2 {
        1 => at.div_ceil(2),
        _ => (variants - at / 2) % variants,
    })
}

/// The numbers below `count` in random order.
fn shuffled(count: usize, random: &mut Xoshiro256PlusPlus) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        numbers.swap(last, below(random, last + 1));
    }
    numbers
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// How often each pair of variants is measured one after the other in a round.
    fn neighbours(order: &[Vec<usize>], variants: usize) -> Vec<Vec<usize>> {
        let mut counts = vec![vec![0; variants]; variants];
        for round in order {
            for pair in round.windows(2) {
                counts[pair[0]][pair[1]] += 1;
            }
        }
        counts
    }

    proptest! {
        /// Check that each round has each variant once, that each variant is as often at each
        /// place, and that each follows each other one as often.
        #[test]
        fn is_balanced(variants in 1_usize..8, blocks in 1_usize..4, seed: u32) {
            let blocks = if variants % 2 == 0 { blocks } else { 2 * blocks };
            let order = balanced_order(variants, seed).take(variants * blocks);
            let order: Vec<_> = order.collect();
            for round in &order {
                let mut sorted = round.clone();
                sorted.sort_unstable();
                prop_assert_eq!(sorted, (0..variants).collect::<Vec<_>>());
            }
            for place in 0..variants {
                for variant in 0..variants {
                    let there = order.iter().filter(|round| round[place] == variant);
                    prop_assert_eq!(there.count(), blocks);
                }
            }
            let counts = neighbours(&order, variants);
            for (a, row) in counts.iter().enumerate() {
                for (b, count) in row.iter().enumerate() {
                    prop_assert_eq!(*count, if a == b { 0 } else { blocks });
                }
            }
        }

        /// Check that rounds that are not a whole block are complete, too.
        #[test]
        fn any_number_of_rounds(variants in 0_usize..8, rounds in 0_usize..20, seed: u32) {
            let order: Vec<_> = balanced_order(variants, seed).take(rounds).collect();
            prop_assert_eq!(order.len(), if variants == 0 { 0 } else { rounds });
            prop_assert!(order.iter().all(|round| round.len() == variants));
        }
    }

    /// Check that the order of two variants is A B B A or B A A B, depends on the seed only, and that
    /// both occur.
    #[test]
    fn two_variants() {
        let first = |seed| balanced_order(2, seed).take(2).flatten().collect();
        let orders: Vec<Vec<usize>> = (0..20).map(first).collect();
        assert!(
            orders.iter().all(|order| *order == [0, 1, 1, 0] || *order == [1, 0, 0, 1])
        );
        assert!(orders.iter().any(|order| order[0] == 0));
        assert!(orders.iter().any(|order| order[0] == 1));
        assert_eq!(first(7), first(7));
    }
}
