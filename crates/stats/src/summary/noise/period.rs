//! Whether something happens periodically: the period, and how much of its time comes with it.
//!
//! The times are folded with each candidate period into phases. Each has a weight w, the root of
//! what was taken then: a train of few long ones may be most of what was taken, and one that is much
//! longer than all others is no train. Where the times have nothing to do with the period, the power
//! of each harmonic of the phases, |sum of w exp(2 pi i k phase)|^2 / sum of w^2, is exponentially
//! distributed around 1 (Rayleigh's test; N. I. Fisher, Statistical Analysis of Circular Data, 1993,
//! 4.3). Times that come in bursts have more power everywhere: so a harmonic counts only if its power
//! exceeds that of the `NEIGHBOURS` frequencies around it, whose mean it is divided by. The ratio r of one exponential to the mean of K others exceeds x with probability
//! (1 + x / K)^-K; that is held to [`FALSE_ALARM`] for all candidates, offsets and harmonics that
//! are tried together (Bonferroni).
//!
//! Candidates are the periods of timers. Two clocks are never equally fast: each candidate is
//! tried as much as `OFFSET_PPM` longer and shorter. Cannot see other periods, those that wander,
//! and what happens less often than `CYCLES_MIN` times.

use serde::{Deserialize, Serialize};
use units::{Nanos, PerSecond, Ppm};

/// The probability that any candidate is found in times that are not periodic.
const FALSE_ALARM: f64 = 1e-3;

/// Candidates in hertz: the choices of `CONFIG_HZ`, and programs' round periods.
const HERTZ: [f64; 11] =
    [1_000.0, 500.0, 300.0, 250.0, 200.0, 100.0, 60.0, 50.0, 20.0, 10.0, 1.0];
/// The other clock may be so much faster or slower.
const OFFSET_PPM: f64 = 100.0;
/// Offsets that are tried: over `CYCLES_MAX` the highest harmonic of two of them is half a turn
/// apart.
const OFFSETS: i32 = 7;
/// Harmonics that are looked at: as many as a pulse of an eighth of the period has.
const HARMONICS: usize = 8;
/// Frequencies around a harmonic, which show what power is usual there; and how far the first is
/// from it, in steps of the resolution.
const NEIGHBOURS: i32 = 16;
const FIRST_NEIGHBOUR: i32 = 3;
/// No period is found in fewer times or cycles.
const TIMES_MIN: usize = 64;
const CYCLES_MIN: f64 = 50.0;
/// Only the first cycles and times are looked at.
const CYCLES_MAX: f64 = 2_000.0;
const TIMES_MAX: usize = 32_768;
/// Phases are kept in so many bins: a multiple of the harmonics.
const BINS: usize = 128;
/// So many times a bin at least, on average, where there are fewer bins than that.
const TIMES_A_BIN: usize = 8;
/// A bin holds a train if its count exceeds the median by so many standard deviations.
const DEVIATIONS: f64 = 6.0;
/// A train has at least this part of the time.
const TRAIN: f64 = 0.02;
/// Periods explain about as much if it is this part of the most. Of those the shortest is the period
/// that needs about the fewest pulses a second: folded with a fraction of it, a train is a train as
/// well, and with a multiple of it, another train may show.
const AS_MUCH: f64 = 0.8;
const AS_FEW: f64 = 1.1;

/// Something that comes again and again at the same phase.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Period {
    /// How long after the time before.
    pub period_ns: Nanos,
    /// How often a second.
    pub hz: PerSecond,
    /// The part of all the time taken that comes with it, in the cycles that were looked at.
    pub share_ppm: Ppm,
    /// At how many phases, of those that have at least a fiftieth of the time.
    pub trains: u64,
    /// The strongest harmonic's power, in terms of the power around it; at least some 20.
    pub power: f64,
}

/// What happened at a time, and how long it took; times are in rising order.
pub(crate) type Taken = (Nanos, Nanos);

impl Period {
    /// The period that explains most of what was taken; `None` where there is none.
    pub fn find(taken: &[Taken]) -> Option<Self> {
        let found = HERTZ.iter().filter_map(|hertz| candidate(taken, 1e9 / hertz));
        let mut found: Vec<Found> =
            found.filter(|Found { period, .. }| period.trains > 0).collect();
        let share = |found: &Found| found.period.share_ppm.get();
        let most = found.iter().map(share).fold(0.0, f64::max);
        found.retain(|found| share(found) > 0.0 && share(found) >= AS_MUCH * most);
        let fewest = found.iter().map(|found| found.pulses).fold(f64::MAX, f64::min);
        let few = found.into_iter().filter(|found| found.pulses <= AS_FEW * fewest);
        few.map(|found| found.period).min_by_key(|period| period.period_ns)
    }
}

/// A period that may be it.
struct Found {
    period: Period,
    /// How many trains of the same share would have as much in common, in pulses a second: two of
    /// which one is weak are little more than one.
    pulses: f64,
}

/// Times and what was taken then, in nanoseconds from the first one.
struct Window {
    times: Vec<f64>,
    taken: Vec<f64>,
    /// The weights: the roots of what was taken.
    roots: Vec<f64>,
    /// The sum of what was taken, and so of the weights' squares.
    all: f64,
    length: f64,
    /// Sine and cosine of each bin.
    turn: [(f64, f64); BINS],
}

impl Window {
    /// The first cycles of that period; `None` where they are too few.
    fn of(taken: &[Taken], period: f64) -> Option<Self> {
        let first = taken.first()?.0;
        let nanos = |nanos: Nanos| nanos.get() as f64;
        let since = |(time, _): &Taken| nanos(time.saturating_sub(first));
        let is_near = |taken: &&Taken| since(taken) < period * CYCLES_MAX;
        let near = taken.iter().take(TIMES_MAX).take_while(is_near);
        let times: Vec<f64> = near.clone().map(since).collect();
        let length = *times.last()?;
        let is_enough = times.len() >= TIMES_MIN && length >= period * CYCLES_MIN;
        let taken: Vec<f64> = near.map(|(_, taken)| nanos(*taken)).collect();
        let roots = taken.iter().map(|ns| ns.sqrt()).collect();
        let all = taken.iter().sum();
        let turn = std::array::from_fn(|bin| {
            (std::f64::consts::TAU * bin as f64 / BINS as f64).sin_cos()
        });
        is_enough.then_some(Self { times, taken, roots, all, length, turn })
    }

    /// The sum of the weights at each phase of a frequency, in cycles a nanosecond.
    fn weights(&self, frequency: f64) -> [f64; BINS] {
        let mut weights = [0.0; BINS];
        for (time, root) in self.times.iter().zip(&self.roots) {
            weights[bin(time * frequency)] += root;
        }
        weights
    }

    /// The power of one harmonic of the weights.
    fn power(&self, weights: &[f64; BINS], harmonic: usize) -> f64 {
        let (mut real, mut imaginary) = (0.0, 0.0);
        for (at, weight) in weights.iter().enumerate() {
            let (sine, cosine) = self.turn[at * harmonic % BINS];
            real += weight * cosine;
            imaginary += weight * sine;
        }
        (real * real + imaginary * imaginary) / self.all.max(1.0)
    }

    /// The frequency around that one at which the weights fall into the fewest bins (epoch folding;
    /// D. A. Leahy and others, Astrophysical Journal 266, 1983).
    fn sharpest(&self, frequency: f64) -> f64 {
        let most = OFFSET_PPM * 1e-6;
        // A step moves the last time by a bin.
        let step = 1.0 / (self.length * frequency * BINS as f64);
        let steps = (1..).map(|at| f64::from(at) * step).take_while(|step| *step <= most);
        let around = steps.flat_map(|step| [step, -step]).chain([0.0]);
        let squares = |frequency| {
            self.weights(frequency).iter().map(|weight| weight * weight).sum::<f64>()
        };
        let tried = around.map(|offset| frequency * (1.0 + offset));
        let tried = tried.map(|frequency| (squares(frequency), frequency));
        tried.max_by(|a, b| a.0.total_cmp(&b.0)).map_or(frequency, |best| best.1)
    }

    /// The mean power of the frequencies around that one.
    fn usual(&self, frequency: f64) -> f64 {
        let step = 1.0 / self.length;
        let steps = (0..NEIGHBOURS / 2).map(|at| f64::from(at + FIRST_NEIGHBOUR));
        let powers =
            steps.flat_map(|steps| [frequency - steps * step, frequency + steps * step]);
        let powers = powers.map(|frequency| self.power(&self.weights(frequency), 1));
        powers.sum::<f64>() / f64::from(NEIGHBOURS)
    }
}

/// The bin of a phase, which is counted in turns, fewer than 2^53 of them. Casts take an instruction
/// where `f64::fract` calls a function, and this is called most.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "turns are at least 0, their part is less than 1"
)]
fn bin(turns: f64) -> usize {
    let part = turns - (turns as i64) as f64;
    ((part * BINS as f64) as usize).min(BINS - 1)
}

/// What has about that period, or a fraction of it.
fn candidate(taken: &[Taken], period: f64) -> Option<Found> {
    let window = Window::of(taken, period)?;
    let around = (-(OFFSETS / 2)..=OFFSETS / 2).map(|offset| {
        let ppm = f64::from(offset) * OFFSET_PPM / f64::from(OFFSETS / 2);
        let frequency = (1.0 + ppm * 1e-6) / period;
        let weights = window.weights(frequency);
        let powers: Vec<f64> =
            (1..=HARMONICS).map(|harmonic| window.power(&weights, harmonic)).collect();
        (powers.iter().sum::<f64>(), frequency, powers)
    });
    let (_, frequency, powers) = around.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let mut common = 0;
    let mut strongest: f64 = 0.0;
    for (harmonic, power) in (1..).zip(powers) {
        // Power that is not even unusual by itself needs no look around.
        if power < -per_trial().ln() / 2.0 {
            continue;
        }
        let ratio = power / window.usual(frequency * f64::from(harmonic)).max(1.0);
        if false_alarm(ratio) < per_trial() {
            common = greatest_common_divisor(common, harmonic);
            strongest = strongest.max(ratio);
        }
    }
    (common > 0).then(|| {
        let frequency = window.sharpest(f64::from(common) / period);
        folded(&window, frequency, strongest)
    })
}

/// The probability of one harmonic's power to be so many times the mean of those around it.
fn false_alarm(ratio: f64) -> f64 {
    let around = f64::from(NEIGHBOURS);
    (1.0 + ratio / around).powf(-around)
}

/// What that may be at most.
fn per_trial() -> f64 {
    FALSE_ALARM / (HERTZ.len() * HARMONICS) as f64 / f64::from(OFFSETS)
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// What comes with a period: what the bins that hold trains have more than the others.
fn folded(window: &Window, frequency: f64, power: f64) -> Found {
    let phases = Phases::of(window, frequency);
    let bins = phases.taken.len();
    let all: f64 = phases.taken.iter().sum();
    let is_above = phases.above();
    // A train begins and ends in the bins beside those.
    let is_train =
        |at: usize| (at + bins - 1..=at + bins + 1).any(|at| is_above[at % bins]);
    let usual: Vec<f64> =
        (0..bins).filter(|at| !is_train(*at)).map(|at| phases.taken[at]).collect();
    let usual = usual.iter().sum::<f64>() / usual.len().max(1) as f64;
    let more = |at: usize| phases.taken[at % bins] - usual;
    let share = (0..bins).filter(|at| is_train(*at)).map(more).sum::<f64>().max(0.0);
    let begins =
        (0..bins).filter(|at| is_above[*at] && !is_above[(at + bins - 1) % bins]);
    let of_train = |begin: usize| {
        let rest = (begin..begin + bins).take_while(|at| is_above[at % bins]);
        rest.map(more).sum::<f64>()
    };
    let trains: Vec<f64> =
        begins.map(of_train).filter(|train| *train >= TRAIN * all).collect();
    let squares: f64 = trains.iter().map(|train| train * train).sum();
    let pulses = trains.iter().sum::<f64>().powi(2) / squares.max(1.0) * frequency * 1e9;
    let period = Period {
        period_ns: nanos(1.0 / frequency),
        hz: PerSecond::new(frequency * 1e9),
        share_ppm: Ppm::new(if all > 0.0 { share / all * 1e6 } else { 0.0 }),
        trains: u64::try_from(trains.len()).unwrap_or(0),
        power,
    };
    Found { period, pulses }
}

/// How many times, and what was taken, at each phase of a frequency.
struct Phases {
    counts: Vec<f64>,
    taken: Vec<f64>,
}

impl Phases {
    /// In fewer bins for fewer times: a bin of a train must have some.
    fn of(window: &Window, frequency: f64) -> Self {
        let few = (BINS * TIMES_A_BIN).div_ceil(window.times.len());
        let few = few.next_power_of_two().min(BINS / 16);
        let empty = vec![0.0; BINS / few];
        let mut phases = Self { counts: empty.clone(), taken: empty };
        for (time, ns) in window.times.iter().zip(&window.taken) {
            let at = bin(time * frequency) / few;
            phases.counts[at] += 1.0;
            phases.taken[at] += ns;
        }
        phases
    }

    /// Which bins have more times than the median's chance.
    fn above(&self) -> Vec<bool> {
        let mut sorted = self.counts.clone();
        sorted.sort_by(f64::total_cmp);
        let median = sorted[sorted.len() / 2];
        let limit = median + DEVIATIONS * median.max(1.0).sqrt();
        self.counts.iter().map(|count| *count > limit).collect()
    }
}

fn nanos(length: f64) -> Nanos {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a period is some nanoseconds and less than a day"
    )]
    let whole = length.round() as u64;
    Nanos::from_nanos(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random, the same in each run (xorshift64*).
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

        /// Nearly normal, with a deviation of 1.
        fn normal(&mut self) -> f64 {
            (0..12).map(|_| self.next()).sum::<f64>() - 6.0
        }
    }

    fn random(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Times a second on average, at random, for so many seconds.
    fn poisson(random: &mut Random, rate: f64, seconds: f64, ns: u64) -> Vec<Taken> {
        let mut taken = Vec::new();
        let mut now = random.exponential() / rate;
        while now < seconds {
            taken.push((nanos(now * 1e9), Nanos::from_nanos(ns)));
            now += random.exponential() / rate;
        }
        taken
    }

    /// A train of that period and jitter, from a phase on.
    fn train(
        random: &mut Random,
        (period, phase, jitter): (f64, f64, f64),
        seconds: f64,
        ns: u64,
    ) -> Vec<Taken> {
        let mut taken = Vec::new();
        let mut number = 1.0;
        while (number + phase) * period < seconds * 1e9 {
            let at = (number + phase) * period + jitter * random.normal();
            taken.push((nanos(at), Nanos::from_nanos(ns)));
            number += 1.0;
        }
        taken
    }

    fn together(parts: &[Vec<Taken>]) -> Vec<Taken> {
        let mut all = parts.concat();
        all.sort_unstable();
        all
    }

    fn is_near(found: f64, expected: f64, part: f64) -> bool {
        (found - expected).abs() <= expected * part
    }

    /// Check that two trains with jitter are found among random gaps, with their period on a clock
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
            assert!(
                is_near(found.period_ns.get() as f64, 10_000_400.0, 2e-5),
                "{found:?}"
            );
            let (periodic, other) = (1_000.0 * 43.0, 15_000.0 * 2.0);
            let share = periodic / (periodic + other) * 1e6;
            assert!(is_near(found.share_ppm.get(), share, 0.02), "{found:?} {share}");
            assert_eq!(found.trains, 2, "{found:?}");
        }
    }

    /// Check that a train that is one of twenty gaps, but most of the time, is found, with a weak
    /// one beside it that folds onto it with half of the period.
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

    /// Check that of two trains of different periods the one that takes more is the period.
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

    /// Check that a period is neither doubled nor halved, for each candidate, alone and among as
    /// many others.
    #[test]
    fn periods_are_exact() {
        for (seed, hertz) in (1..).zip(HERTZ) {
            let random = &mut random(seed);
            let period = 1e9 / hertz;
            let seconds = 400.0 / hertz;
            let alone = train(random, (period, 0.3, period * 0.01), seconds, 1_000);
            let others = poisson(random, hertz, seconds, 1_000);
            for taken in [alone.clone(), together(&[alone, others])] {
                let found = Period::find(&taken).unwrap();
                assert!(
                    is_near(found.period_ns.get() as f64, period, 1.5e-4),
                    "{found:?}"
                );
                assert_eq!(found.trains, 1, "{hertz}: {found:?}");
            }
        }
    }

    /// Check that times at random are not called periodic, nor those that come in bursts, nor where
    /// a few are much longer than the others: of 600 at most two, where 0.6 are to be expected.
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
                .filter_map(|taken| Period::find(taken))
                .count();
        }
        assert!(found <= 2, "{found} of 600");
    }

    /// Check that few times and short runs have no period, and that nothing has none.
    #[test]
    fn too_little() {
        assert_eq!(Period::find(&[]), None);
        let random = &mut random(7);
        let tick = (10e6, 0.0, 0.0);
        assert_eq!(Period::find(&train(random, tick, 0.4, 1_000)), None);
        let same = vec![(Nanos::from_secs(1), Nanos::from_secs(1)); 100];
        assert_eq!(Period::find(&same), None);
    }
}
