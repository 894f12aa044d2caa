//! Tests of `period`.

use super::*;

/// Pseudo-random numbers, the same in each run (xorshift64*).
struct Random(u64);

impl Random {
    /// More than 0 and less than 1.
    fn next(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11;
        (bits as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn exponential(&mut self) -> f64 {
        -self.next().ln()
    }

    /// Approximately normal, with a standard deviation of 1.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next()).sum::<f64>() - 6.0
    }
}

fn random(seed: u64) -> Random {
    Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
}

/// Random events at this mean rate per second, for so many seconds.
fn poisson(random: &mut Random, rate: f64, seconds: f64, ns: u64) -> Vec<Event> {
    let mut events = Vec::new();
    let mut now = random.exponential() / rate;
    while now < seconds {
        events.push((nanos(now * 1e9), Nanos::from_nanos(ns)));
        now += random.exponential() / rate;
    }
    events
}

/// A train with this period and jitter, from a phase on.
fn train(
    random: &mut Random,
    (period, phase, jitter): (f64, f64, f64),
    seconds: f64,
    ns: u64,
) -> Vec<Event> {
    let mut events = Vec::new();
    let mut number = 1.0;
    while (number + phase) * period < seconds * 1e9 {
        let at = (number + phase) * period + jitter * random.normal();
        events.push((nanos(at), Nanos::from_nanos(ns)));
        number += 1.0;
    }
    events
}

fn together(parts: &[Vec<Event>]) -> Vec<Event> {
    let mut all = parts.concat();
    all.sort_unstable();
    all
}

fn is_near(found: f64, expected: f64, part: f64) -> bool {
    (found - expected).abs() <= expected * part
}

/// Check that two trains with jitter are found among random events, with their period on a clock
/// that is 40 ppm slow, their number and their share of the time.
#[test]
fn trains_are_found() {
    for seed in 1..6 {
        let random = &mut random(seed);
        let of_period = |phase| (10_000_400.0, phase, 20_000.0);
        let parts = [
            train(random, of_period(0.1), 10.0, 30_000),
            train(random, of_period(0.55), 10.0, 13_000),
            poisson(random, 1_500.0, 10.0, 2_000),
        ];
        let found = Period::find(&together(&parts)).unwrap();
        assert!(is_near(found.period_ns.get() as f64, 10_000_400.0, 2e-5), "{found:?}");
        let (periodic, other) = (1_000.0 * 43.0, 15_000.0 * 2.0);
        let share = periodic / (periodic + other) * 1e6;
        assert!(is_near(found.share_ppm.get(), share, 0.02), "{found:?} {share}");
        assert_eq!(found.trains, 2, "{found:?}");
    }
}

/// Check that a train of one in twenty events, but most of the time, is found, with a weak one that
/// coincides with it if folded with half of the period.
#[test]
fn few_long_ones_are_a_train() {
    for seed in 1..6 {
        let random = &mut random(seed);
        let parts = [
            train(random, (10e6, 0.1, 20_000.0), 4.0, 45_000),
            train(random, (10e6, 0.6, 20_000.0), 4.0, 5_000),
            poisson(random, 1_900.0, 4.0, 1_000),
        ];
        let found = Period::find(&together(&parts)).unwrap();
        assert!(is_near(found.period_ns.get() as f64, 10e6, 2e-5), "{found:?}");
        assert!(is_near(found.share_ppm.get(), 724_637.0, 0.05), "{found:?}");
    }
}

/// Check that of two trains with different periods, the one with more time is reported.
#[test]
fn more_time_is_the_period() {
    let random = &mut random(3);
    for (weights, expected) in [([1_000, 40_000], 10e6), ([40_000, 1_000], 4e6)] {
        let parts = [(4e6, weights[0]), (10e6, weights[1])]
            .map(|(period, ns)| train(random, (period, 0.3, 3_000.0), 8.0, ns));
        let found = Period::find(&together(&parts)).unwrap();
        assert!(is_near(found.period_ns.get() as f64, expected, 1e-4), "{found:?}");
    }
}

/// Check that a period is neither doubled nor halved, for each candidate, alone and among as many
/// random events.
#[test]
fn periods_are_exact() {
    for (seed, hertz) in (1..).zip(HERTZ) {
        let random = &mut random(seed);
        let period = 1e9 / hertz;
        let seconds = 400.0 / hertz;
        let alone = train(random, (period, 0.3, period * 0.01), seconds, 1_000);
        let others = poisson(random, hertz, seconds, 1_000);
        for events in [alone.clone(), together(&[alone, others])] {
            let found = Period::find(&events).unwrap();
            assert!(is_near(found.period_ns.get() as f64, period, 1.5e-4), "{found:?}");
            assert_eq!(found.trains, 1, "{hertz}: {found:?}");
        }
    }
}

/// Check that random events are not periodic, in bursts and with a few much longer ones, too: at most
/// two of 600, where 0.6 are expected.
#[test]
fn noise_is_not_periodic() {
    let mut found = 0;
    for seed in 1..=200 {
        let random = &mut random(seed);
        let rate = 50.0 + 20.0 * f64::from(u32::try_from(seed % 10).unwrap());
        let alone = poisson(random, rate, 6.0, 1_000);
        let mut bursts = Vec::new();
        for (begin, _) in poisson(random, 3.0, 6.0, 0) {
            let seconds = 0.05 * random.exponential();
            let burst = poisson(random, 2_000.0, seconds, 1_000);
            bursts.extend(burst.into_iter().map(|(time, ns)| (begin + time, ns)));
        }
        bursts.sort_unstable();
        let mut unequal = poisson(random, rate, 6.0, 1_000);
        for (_, ns) in &mut unequal {
            // Pareto's distribution with an exponent of 1: its mean does not exist.
            *ns = nanos(1_000.0 / random.next());
        }
        found += [alone, bursts, unequal]
            .iter()
            .filter_map(|events| Period::find(events))
            .count();
    }
    assert!(found <= 2, "{found} of 600");
}

/// Check that few events, short runs and no events have no period.
#[test]
fn too_little() {
    assert_eq!(Period::find(&[]), None);
    let random = &mut random(7);
    let tick = (10e6, 0.0, 0.0);
    assert_eq!(Period::find(&train(random, tick, 0.4, 1_000)), None);
    let same = vec![(Nanos::from_secs(1), Nanos::from_secs(1)); 100];
    assert_eq!(Period::find(&same), None);
}
