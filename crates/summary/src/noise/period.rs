//! Periodic events: the period, and the share of the time of events that is periodic.
//!
//! The start times are folded with each candidate period: each gets a phase, its position in the
//! period. Its weight w is the square root of its length: a few long events can be most of the time,
//! but a single event much longer than all others is not periodic. If the times are independent of the
//! period, the power of each harmonic k of the phases, |sum of w exp(2 pi i k phase)|^2 / sum of w^2,
//! is exponentially distributed with mean 1 (Rayleigh's test; N. I. Fisher, Statistical Analysis of
//! Circular Data, 1993, 4.3). Bursts increase the power at all frequencies. So the power of a harmonic
//! is divided by the mean power of the `NEIGHBOURS` frequencies around it: the ratio of one
//! exponential variable to the mean of K others exceeds x with probability (1 + x / K)^-K. A harmonic
//! is significant if this is at most [`FALSE_ALARM`], divided by the number of all candidates, offsets
//! and harmonics that are tested (Bonferroni).
//!
//! Candidates are the periods of timers. Two clocks never run equally fast, so each candidate is also
//! tested up to `OFFSET_PPM` longer and shorter. The significant harmonics of the best offset have a
//! greatest common divisor, which is the number of equidistant pulses per candidate period; the period
//! is that fraction of the candidate. It is then refined by epoch folding, and the time of the trains,
//! the narrow ranges of phases with many more events than others, is its share. Cannot see other
//! periods, those that drift, and events with fewer than `CYCLES_MIN` cycles.

use std::f64::consts::TAU;
use std::sync::LazyLock;

use serde::Serialize;
use units::{Nanos, PerSecond, Ppm};

/// The probability that any candidate is found in times that are not periodic.
const FALSE_ALARM: f64 = 1e-3;

/// Candidates in hertz: the values of `CONFIG_HZ`, and usual periods of programs.
const HERTZ: [f64; 11] =
    [1_000.0, 500.0, 300.0, 250.0, 200.0, 100.0, 60.0, 50.0, 20.0, 10.0, 1.0];
/// The clock of the events may be so much faster or slower.
const OFFSET_PPM: f64 = 100.0;
/// The number of tested offsets: over `CYCLES_MAX` cycles, the highest harmonic of two adjacent ones
/// differs by half a period.
const OFFSETS: i32 = 7;
/// The number of tested harmonics: those of a pulse of an eighth of the period.
const HARMONICS: usize = 8;
/// The number of frequencies around a harmonic whose mean power is the usual one there, and the
/// distance of the first from it, in steps of the resolution.
const NEIGHBOURS: i32 = 16;
const FIRST_NEIGHBOUR: i32 = 3;
/// The smallest number of events and cycles for a period.
const TIMES_MIN: usize = 64;
const CYCLES_MIN: f64 = 50.0;
/// Only so many cycles and events are examined, the first ones.
const CYCLES_MAX: f64 = 2_000.0;
const TIMES_MAX: usize = 32_768;
/// The number of bins of phases: a multiple of the harmonics.
const BINS: usize = 128;
/// With fewer events per bin on average, bins are merged.
const TIMES_A_BIN: usize = 8;
/// A bin is part of a train if its count exceeds the median by so many standard deviations.
const DEVIATIONS: f64 = 6.0;
/// A train has at least this share of the time.
const TRAIN: f64 = 0.02;
/// Candidates compete if their share is at least this part of the largest one. Of those, the period is
/// the shortest with at most `AS_FEW` times the fewest pulses per second: a train is also a train if
/// folded with an integer fraction of its period (more pulses), and if folded with a multiple of it
/// (several trains, as many pulses).
const AS_MUCH: f64 = 0.8;
const AS_FEW: f64 = 1.1;

/// The period of events.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Period {
    /// The period.
    pub period_ns: Nanos,
    /// Periods per second.
    pub hz: PerSecond,
    /// The periodic share of the events' time, in the examined cycles.
    pub share_ppm: Ppm,
    /// The number of trains: of phases with periodic events, each with at least 2 % of the time.
    pub trains: u64,
    /// The power of the strongest harmonic divided by the power around it; at least about 20.
    pub power: f64,
}

/// The start and the length of an event; starts are in ascending order.
pub(crate) type Event = (Nanos, Nanos);

impl Period {
    /// The period with the largest share of the time; `None` without one.
    pub fn find(events: &[Event]) -> Option<Self> {
        let found = HERTZ.iter().filter_map(|hertz| candidate(events, 1e9 / hertz));
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

/// A candidate with a significant period.
struct Found {
    period: Period,
    /// Pulses per second, as the effective number of trains per period, (sum of shares)^2 / sum of
    /// squares: a strong and a weak train count as little more than one.
    pulses: f64,
}

/// Sine and cosine of each bin.
static TURN: LazyLock<[(f64, f64); BINS]> = LazyLock::new(|| {
    std::array::from_fn(|bin| (TAU * bin as f64 / BINS as f64).sin_cos())
});

/// Events, in nanoseconds from the start of the first one.
struct Window {
    times: Vec<f64>,
    lengths: Vec<f64>,
    /// The weights: the roots of the lengths.
    roots: Vec<f64>,
    /// The sum of the lengths, which are the squares of the weights.
    all: f64,
    length: f64,
}

impl Window {
    /// The first cycles of that period; `None` if there are too few.
    fn of(events: &[Event], period: f64) -> Option<Self> {
        let first = events.first()?.0;
        let nanos = |nanos: Nanos| nanos.get() as f64;
        let since = |(time, _): &Event| nanos(time.saturating_sub(first));
        let is_near = |event: &&Event| since(event) < period * CYCLES_MAX;
        let near = events.iter().take(TIMES_MAX).take_while(is_near);
        let times: Vec<f64> = near.clone().map(since).collect();
        let length = *times.last()?;
        if times.len() < TIMES_MIN || length < period * CYCLES_MIN {
            return None;
        }
        let lengths: Vec<f64> = near.map(|(_, length)| nanos(*length)).collect();
        let roots = lengths.iter().map(|ns| ns.sqrt()).collect();
        let all = lengths.iter().sum();
        Some(Self { times, lengths, roots, all, length })
    }

    /// The sum of the weights in each bin of phases of a frequency, in cycles per nanosecond.
    fn weights(&self, frequency: f64) -> [f64; BINS] {
        let mut weights = [0.0; BINS];
        for (time, root) in self.times.iter().zip(&self.roots) {
            weights[bin(time * frequency)] += root;
        }
        weights
    }

    /// The power of one harmonic of the weights.
    fn power(&self, weights: &[f64; BINS], harmonic: usize) -> f64 {
        let turn = &*TURN;
        let (mut real, mut imaginary) = (0.0, 0.0);
        for (at, weight) in weights.iter().enumerate() {
            let (sine, cosine) = turn[at * harmonic % BINS];
            real += weight * cosine;
            imaginary += weight * sine;
        }
        (real * real + imaginary * imaginary) / self.all.max(1.0)
    }

    /// The frequency around that one with the largest sum of the bins' squared weights: there the
    /// events fall into the fewest bins (epoch folding; D. A. Leahy and others, Astrophysical Journal
    /// 266, 1983).
    fn sharpest(&self, frequency: f64) -> f64 {
        let most = OFFSET_PPM * 1e-6;
        // A step moves the last event by one bin.
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

/// The bin of a time in turns, which are fewer than 2^53. This is the innermost function: casts are
/// single instructions, `f64::fract` is a function call.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "turns are at least 0, their fraction is less than 1"
)]
fn bin(turns: f64) -> usize {
    let part = turns - (turns as i64) as f64;
    ((part * BINS as f64) as usize).min(BINS - 1)
}

/// Tests a candidate; the result has about that period, or an integer fraction of it.
fn candidate(events: &[Event], period: f64) -> Option<Found> {
    let window = Window::of(events, period)?;
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
        // Power that is not even unusual by itself is not compared with that around it.
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

/// The probability that the power of a harmonic of random times is so many times the mean around it.
fn false_alarm(ratio: f64) -> f64 {
    let around = f64::from(NEIGHBOURS);
    (1.0 + ratio / around).powf(-around)
}

/// The largest such probability of a significant harmonic.
fn per_trial() -> f64 {
    FALSE_ALARM / (HERTZ.len() * HARMONICS) as f64 / f64::from(OFFSETS)
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// The trains of a period, and their share: the time in the bins of trains beyond that in the others.
fn folded(window: &Window, frequency: f64, power: f64) -> Found {
    let phases = Phases::of(window, frequency);
    let bins = phases.ns.len();
    let all: f64 = phases.ns.iter().sum();
    let is_above = phases.above();
    // A train extends into the bins beside those.
    let is_train =
        |at: usize| (at + bins - 1..=at + bins + 1).any(|at| is_above[at % bins]);
    let usual: Vec<f64> =
        (0..bins).filter(|at| !is_train(*at)).map(|at| phases.ns[at]).collect();
    let usual = usual.iter().sum::<f64>() / usual.len().max(1) as f64;
    let more = |at: usize| phases.ns[at % bins] - usual;
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

/// The number of events, and their time, in each bin of phases of a frequency.
struct Phases {
    counts: Vec<f64>,
    ns: Vec<f64>,
}

impl Phases {
    /// Bins are merged for few events, so that a bin of a train has enough of them.
    fn of(window: &Window, frequency: f64) -> Self {
        let few = (BINS * TIMES_A_BIN).div_ceil(window.times.len());
        let few = few.next_power_of_two().min(BINS / 16);
        let empty = vec![0.0; BINS / few];
        let mut phases = Self { counts: empty.clone(), ns: empty };
        for (time, ns) in window.times.iter().zip(&window.lengths) {
            let at = bin(time * frequency) / few;
            phases.counts[at] += 1.0;
            phases.ns[at] += ns;
        }
        phases
    }

    /// Whether each bin has significantly more events than the median (Poisson's deviation).
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
mod tests;
