use recording::Algorithm::{Dissemination, RecursiveDoubling, Ring, Tree};
use recording::Pattern::{Allreduce, Bsp, Halo2d, Halo3d, Pipeline};
use recording::{Algorithm, Network, Pattern};
use units::Nanos;

use super::{base, nanos, program, trace, with, with_parts};
use crate::ranks::{Program, random};

fn allreduce(algorithm: Algorithm) -> Program {
    Program { algorithm: Some(algorithm), ..program(Allreduce) }
}

/// Check the time of one step of each pattern for one to five ranks.
#[test]
fn each_pattern() {
    let halo = |pattern| program(pattern);
    let cases = [
        (program(Bsp), [100, 114, 128, 128, 142]),
        (allreduce(Dissemination), [100, 114, 128, 128, 142]),
        // Of three ranks, 0 sends to 1 (114), 1 and 2 exchange (118, 128), and 1 sends back (132).
        (allreduce(RecursiveDoubling), [100, 114, 132, 128, 142]),
        (allreduce(Ring), [100, 128, 156, 184, 212]),
        // Of three ranks, 0 has received both at 116, sends to 2 and then, at 118, to 1.
        (allreduce(Tree), [100, 128, 132, 156, 160]),
        // One dimension of two, three or five ranks: two messages. Two by two: four.
        (halo(Halo2d), [100, 116, 116, 120, 116]),
        (halo(Halo3d), [100, 116, 116, 120, 116]),
        (program(Pipeline), [100, 214, 328, 442, 556]),
    ];
    for (program, expected) in cases {
        let found = [1, 2, 3, 4, 5].map(|ranks| base(&program, ranks));
        assert_eq!(found, expected, "{:?} {:?}", program.pattern, program.algorithm);
    }
    // Six messages: sent until 112, when the first arrives; then one each 2 ns.
    assert_eq!(base(&program(Halo3d), 8), 124);
}

/// Check that the steps of a pipeline overlap: the third rank begins its second step at 332.
#[test]
fn pipeline_overlaps() {
    assert_eq!(base(&Program { steps: 2, ..program(Pipeline) }, 3), 432);
}

/// Check messages of several bytes, the shortest time between messages, and senders that wait.
#[test]
fn large_messages() {
    let network = |pattern| program(pattern).network;
    let bytes = Program {
        bytes: 5,
        network: Network { byte_gap_ns: nanos(3), ..network(Bsp) },
        ..program(Bsp)
    };
    assert_eq!(base(&bytes, 2), 114 + 4 * 3);
    let own = Network { byte_overhead_ns: nanos(4), ..bytes.network };
    // Each receives when it has sent its own bytes, at 118, and is slower than the network.
    assert_eq!(base(&Program { network: own, ..bytes }, 2), 118 + 2 + 4 * 4);
    let slow = Network { gap_ns: nanos(5), ..network(Halo2d) };
    // Sends begin at 100, 105, 110 and 115, and receives at 117, 122, 127 and 132.
    assert_eq!(base(&Program { network: slow, ..program(Halo2d) }, 4), 134);
    let waits = Network { eager_bytes: 0, ..network(Pipeline) };
    let two = |network| Program { steps: 2, network, ..program(Pipeline) };
    assert_eq!(base(&two(network(Pipeline)), 2), 316);
    // Rank 0 goes on at 112, when rank 1 begins to receive.
    assert_eq!(base(&two(waits), 2), 326);
}

/// Check that time without noise is that of LogGOPSim: a message of 8 bytes takes 5,542 ns.
#[test]
fn base_of_the_model() {
    let of = |ranks, steps| {
        let network = Network::default();
        let compute = Nanos::from_millis(1);
        base(
            &Program { pattern: Bsp, algorithm: None, compute, steps, bytes: 8, network },
            ranks,
        )
    };
    assert_eq!(of(64, 200), 206_650_400);
    assert_eq!(of(1_024, 100), 105_542_000);
    assert_eq!(of(16_384, 10), 10_775_880);
}

/// Check three ranks with the same noise, 1 µs of each 2 µs, of which each beginning is counted by hand: the
/// computation of 10 µs takes 19 µs, and the messages of two rounds end at 28,542 and 38,084.
#[test]
fn work_is_conserved() {
    let detours: Vec<(u64, u64)> =
        (0..500).map(|at| (at * 2_000 + 1_000, 1_000)).collect();
    let traces = [0; 3].map(|_| trace(1_000_000, &detours));
    let compute = Nanos::from_micros(10);
    let (pattern, network) = (Pattern::Bsp, Network::default());
    let program =
        Program { pattern, algorithm: None, compute, steps: 1, bytes: 8, network };
    assert_eq!(base(&program, 3), 21_084);
    assert_eq!(with(&program, &traces[..1]), 19_000);
    assert_eq!(with(&program, &traces), 38_084);
}

/// Check that noise while a rank waits costs nothing, and that each rank waits for the slowest one.
#[test]
fn absorbed_and_amplified() {
    let quiet = || trace(1_000_000, &[]);
    let of = |detours: [&[(u64, u64)]; 2]| {
        with(&program(Bsp), &detours.map(|detours| trace(1_000_000, detours)))
    };
    // Rank 0 waits from 102 to 112.
    assert_eq!(of([&[(103, 8)], &[]]), 114);
    // It is late by 30, and so is rank 1.
    assert_eq!(of([&[(50, 30)], &[]]), 144);
    // Both at once, or at different times.
    assert_eq!(of([&[(50, 30)], &[(20, 30)]]), 144);
    // A message arrives in a detour that ends at 120.
    assert_eq!(of([&[(110, 10)], &[]]), 122);
    let steps = Program { steps: 2, ..program(Bsp) };
    let one = || trace(1_000_000, &[(50, 30)]);
    let other = || trace(1_000_000, &[(200, 30)]);
    // In different steps, both count.
    assert_eq!(with(&steps, &[one(), other()]), 2 * 114 + 60);
    assert_eq!(with(&steps, &[one(), quiet()]), 2 * 114 + 30);
}

/// Check three ranks that have a daemon's detours at the same time, and ticks at times of their own: each
/// delays the rank by its length, also if it begins during the other one, but not while the rank waits.
#[test]
fn one_source_at_the_same_time() {
    type Ranks<'a> = [&'a [(u64, u64)]; 3];
    let all = |ranks: Ranks<'_>| ranks.map(|detours| trace(1_000_000, detours));
    let of = |program: &Program, ticks: Ranks<'_>, daemons: Ranks<'_>| {
        with_parts(program, &[&all(ticks), &all(daemons)])
    };
    let (one, two) = (program(Bsp), Program { steps: 2, ..program(Bsp) });
    let none: Ranks<'_> = [&[]; 3];
    assert_eq!((base(&one, 3), base(&two, 3)), (128, 256));
    // At once on all ranks, one step is late; at different times, both are: rank 1 begins the second one at
    // 148, and computes until 278.
    assert_eq!(of(&two, none, [&[(50, 30)]; 3]), 286);
    assert_eq!(of(&two, none, [&[(50, 30)], &[(200, 30)], &[]]), 306);
    // Rank 0 has its tick before the daemon, rank 1 during it, and rank 2 in the time by which that made the
    // computation longer: all end it at 140.
    let ticks: Ranks<'_> = [&[(20, 10)], &[(60, 10)], &[(125, 10)]];
    assert_eq!(of(&one, ticks, [&[(50, 30)]; 3]), 168);
    // Rank 0 ends the first step at 168, and rank 1 at 158: both compute until 268 in the second one.
    assert_eq!(of(&two, [&[(20, 10)], &[(220, 10)], &[]], [&[(50, 30)]; 3]), 296);
    // All wait from 132 to 142. The tick runs until 137, and the daemon then until 141.
    let waiting = [[(50, 30), (133, 4)].as_slice(); 3];
    assert_eq!(of(&one, waiting, [&[(135, 4)]; 3]), 158);
    // Until 145: each rank receives until 147, sends until 149, waits until 159, and receives again.
    assert_eq!(of(&one, waiting, [&[(135, 8)]; 3]), 161);
}

/// Check detours without end, as long as many steps, and traces that are shorter than a step.
#[test]
fn long_and_short() {
    let long = trace(1_000_000, &[(10, 900_000)]);
    assert_eq!(with(&program(Bsp), &[long]), 900_100);
    // 3 of each 10 ns: 100 ns of work need 14 repetitions (98), and 2 ns of the next.
    let short = || trace(10, &[(2, 3)]);
    assert_eq!(with(&program(Bsp), &[short()]), 142);
    // Of 1,000,000: 142,857 repetitions (999,999), and 1.
    let much = Program { compute: nanos(1_000_000), ..program(Bsp) };
    assert_eq!(with(&much, &[short()]), 1_428_571);
}

/// Check the numbers of SplitMix64 that its authors' program prints for the seed 1234567: the first three of
/// a generator are those of the places 0, 1 and 2 of a mixed seed.
#[test]
fn random_numbers() {
    let first = [0, 1, 2].map(|place| random::sequence(1_234_567, place));
    let known =
        [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
    assert_eq!(first, known);
    assert_ne!(random::at(1, 2), random::at(2, 1));
    assert_eq!(random::below(u64::MAX, 10), 9);
    assert_eq!(random::below(0, 10), 0);
}
