//! Simulations: how often a difference is reported that is none, and how often one is found.

use recording::CpuNoise;
use stats::{Conclusion, FALSE_DISCOVERIES, Pair, adjusted, below};
use units::{Cpu, Nanos, Ppm, Span};

use crate::comparison::blocks::noise;
use crate::comparison::compare;
use crate::comparison::observation::Observation;
use crate::comparison::run_set::RunSet;
use crate::comparison::samples::pairs;
use crate::example::{cpu_noise, noise as series};
use crate::metrics::read::gaps;
use crate::metrics::table::GapNumbers;
use crate::noise::NoiseSummary;
use crate::noise::culprits::GapTotal;
use crate::random::Random;
use crate::summary::Summary;

const TRIALS: usize = 2_000;
/// Where each takes long.
const FEW_TRIALS: usize = 100;
/// Two standard deviations of the share of so many trials, if it is 5 %.
const SAMPLING: f64 = 0.01;
const MOST: f64 = FALSE_DISCOVERIES + SAMPLING;

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "times of simulated runs"
)]
fn nanos(ns: f64) -> Nanos {
    Nanos::from_nanos(ns as u64)
}

/// A set of runs of one second, in which each CPU has one gap of so many nanoseconds.
fn set(runs: usize, cpus: u32, mut value: impl FnMut() -> f64) -> RunSet {
    let mut run = || {
        let mut cpu = |cpu| {
            let length = nanos(value().abs());
            let gap = Span { start: Nanos::ZERO, length };
            let total = GapTotal { gaps: 1, ns: length, max: length };
            (Cpu::new(cpu), GapNumbers::of(Nanos::from_secs(1), total, &[gap]))
        };
        Observation::new(gaps((0..cpus).map(&mut cpu)), None)
    };
    RunSet { observations: (0..runs).map(|_| run()).collect(), ..RunSet::default() }
}

/// Whether a difference is found, without the intervals of all metrics.
fn finds_difference(base: &RunSet, other: &RunSet) -> bool {
    let pairs = pairs(base, other).compared;
    let p_values: Vec<f64> = pairs.iter().map(Pair::p_value).collect();
    adjusted(&p_values).iter().any(|adjusted| *adjusted <= FALSE_DISCOVERIES)
}

/// The share of trials in which a difference is found.
fn found(mut sets: impl FnMut() -> [RunSet; 2]) -> f64 {
    let found = (0..TRIALS).filter(|_| {
        let [a, b] = sets();
        finds_difference(&a, &b)
    });
    let share = found.count() as f64 / TRIALS as f64;
    println!("a difference in {:.1} % of {TRIALS} trials", share * 100.0);
    share
}

/// Check that runs of one distribution differ in at most 5 % of the trials: with a short tail, a long
/// one, with equal values, and with different numbers of runs.
#[test]
fn few_false_differences() {
    let mut random = Random::new(1);
    let share = found(|| [20, 20].map(|n| set(n, 1, || 1e6 + 1e5 * random.normal())));
    assert!(share <= MOST, "normal: {share}");
    let share = found(|| [10, 25].map(|n| set(n, 1, || 1e4 * random.pareto())));
    assert!(share <= MOST, "pareto: {share}");
    let share =
        found(|| [20, 20].map(|n| set(n, 1, || (random.exponential() * 3.0).floor())));
    assert!(share <= MOST, "equal values: {share}");
}

/// Check that of many CPUs without a difference, few are reported: in at most 5 % of the trials there is
/// one.
#[test]
fn few_false_discoveries() {
    let mut random = Random::new(2);
    let share = found(|| [12, 12].map(|n| set(n, 20, || 1e4 * random.exponential())));
    assert!(share <= MOST, "{share}");
}

/// Check that a shift of 10 % is found in at least 90 % of the trials with 20 runs each, if the runs
/// have a standard deviation of 9 %; and that the interval contains it in about 95 %.
#[test]
fn true_differences() {
    let mut random = Random::new(3);
    let (mut higher, mut contained) = (0_u32, 0_u32);
    for _ in 0..TRIALS {
        let a = set(20, 1, || 1e6 + 9e4 * random.normal());
        let b = set(20, 1, || 1.1e6 + 9e4 * random.normal());
        let compared = compare(&a, &[b], Ppm::new(1e4));
        let noise = &compared[0].metrics[0];
        higher += u32::from(noise.conclusion == Conclusion::Higher);
        let [low, high] = noise.interval.unwrap();
        contained += u32::from(low <= 100.0 && 100.0 <= high);
    }
    println!(
        "of {TRIALS} shifts {higher} are found, and {contained} are in their intervals"
    );
    let [higher, contained] = [higher, contained].map(|n| f64::from(n) / TRIALS as f64);
    assert!(higher >= 0.9, "{higher}");
    assert!((0.935..=0.975).contains(&contained), "{contained}");
}

/// A single run of ten seconds.
fn single(gaps: Vec<Span>) -> RunSet {
    let cpu = CpuNoise { elapsed_ns: Nanos::from_secs(10), ..cpu_noise(&gaps) };
    let series = series(None, vec![cpu]);
    let whole = Observation::of_summary(&Summary::Noise(NoiseSummary::of(&series)));
    RunSet { observations: vec![whole], levels: noise(&series), ..RunSet::default() }
}

/// Gaps in bursts: the gaps of one have about one length, with a long tail, and it lasts about as long
/// as the pause after it.
fn bursts(random: &mut Random, burst_ns: f64) -> Vec<Span> {
    let (mut gaps, mut now, end) = (Vec::new(), 0.0, 1e10);
    while now < end {
        let until = now + burst_ns * random.exponential();
        let (pause, length) = (2e6 * random.exponential(), 2_000.0 * random.pareto());
        while now < until.min(end) {
            let length = (length * (0.5 + random.exponential())).min(1e8);
            gaps.push(Span { start: nanos(now), length: nanos(length) });
            now += length + pause.max(1e5) * random.exponential();
        }
        now += burst_ns * random.exponential();
    }
    gaps
}

/// Check that single runs whose gaps come in bursts differ in few trials: short bursts, and ones that
/// last as long as a block.
#[test]
fn bursts_are_no_differences() {
    let mut random = Random::new(4);
    for burst_ns in [1e6, 5e7, 4e8] {
        let share = found(|| [(); 2].map(|()| single(bursts(&mut random, burst_ns))));
        assert!(share <= MOST, "bursts of {burst_ns} ns: {share}");
    }
}

/// Gaps as they were recorded on a busy machine: the time since the last gap, and the length.
fn recorded() -> Vec<(u64, u64)> {
    let lines = include_str!("../../tests/busy-gaps.txt").lines();
    let pair = |line: &str| {
        let (pause, length) = line.split_once(' ')?;
        Some((pause.parse().ok()?, length.parse().ok()?))
    };
    lines.filter_map(pair).collect()
}

/// A run of ten seconds of stretches of recorded gaps, each from a random place and about half a second
/// long: they keep their order, their tail and their dependence.
fn resampled(random: &mut Random, recorded: &[(u64, u64)]) -> Vec<Span> {
    let (mut gaps, mut now, end) = (Vec::new(), 0, 10_000_000_000);
    while now < end {
        let until = (now + nanos(5e8 * random.exponential()).get()).min(end);
        let mut at = below(&mut random.0, recorded.len());
        while now < until {
            let (pause, length) = recorded[at % recorded.len()];
            let (start, length) = (now + pause, Nanos::from_nanos(length));
            gaps.push(Span { start: Nanos::from_nanos(start), length });
            now = start + length.get();
            at += 1;
        }
    }
    gaps
}

/// Check that single runs of gaps as they were recorded on a busy machine differ in few trials.
#[test]
fn recorded_gaps_are_no_differences() {
    let (mut random, recorded) = (Random::new(5), recorded());
    let share = found(|| [(); 2].map(|()| single(resampled(&mut random, &recorded))));
    assert!(share <= MOST, "{share}");
}

/// Check that of differences as large as a set says that it can show, comparisons of such sets report about 8 of
/// 10: with a short tail, a long one, and rounded values.
#[test]
fn detectable_differences() {
    let mut random = Random::new(6);
    let mut value = |kind: usize| match kind {
        0 => 1e8 + 1e6 * random.normal(),
        1 => 1e8 + 1e6 * random.pareto(),
        _ => ((1e2 + 2.0 * random.normal()).round()) * 1e6,
    };
    for kind in 0..3 {
        let mut found = 0;
        for _ in 0..FEW_TRIALS {
            let known = set(15, 1, || value(kind)).main_metric().unwrap();
            let least = known.detectable.unwrap().difference_ppm.unwrap();
            let base = set(15, 1, || value(kind));
            let other = set(15, 1, || value(kind) * (1.0 + least.get() / 1e6));
            let compared = compare(&base, &[other], Ppm::new(1e5));
            found += usize::from(compared[0].metrics[0].conclusion == Conclusion::Higher);
        }
        println!("a difference in {found} of {FEW_TRIALS} trials");
        assert!((70..=92).contains(&(found * 100 / FEW_TRIALS)), "{kind}: {found}");
    }
}
