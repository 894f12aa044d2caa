//! By how much a step of a program takes longer because of gaps, and the longest of many such delays.
//!
//! A step begins at a random moment and needs a certain CPU time; the gaps that it meets delay it, also those
//! that begin in the time by which earlier ones made it longer, and the rest of a gap in which it begins.
//! The gaps of a window are repeated without end. The distribution is exact but for the width of its bins
//! (3 %), and for moments within gaps, of which some of each are taken. If many CPUs wait for the slowest
//! one after each step, and their gaps are independent, the mean of the longest delay follows from it.
//!
//! Cannot see gaps that are rarer than the window is long: of more CPUs than that, the longest delay tends to
//! the longest one that was seen.

use std::borrow::Cow;

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng;
use units::{Nanos, Ppm, Span};

use crate::random::below;

/// The moments of a gap that stand for all of it, and those of one that is longer than the step: more steps
/// begin in it than before it.
const MOMENTS: [u64; 2] = [8, 64];
/// The seed of resamples.
const SEED: u64 = 1;
/// Bins for each power of two, as a power of two.
const FINE: u32 = 5;

/// The delays of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StepDelays {
    /// In rising order of delays.
    bins: Vec<DelayBin>,
}

/// Similar delays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct DelayBin {
    /// The time from whose moments on a step has such a delay.
    starts: u64,
    /// The delays, each times its starts.
    sum: u128,
}

impl DelayBin {
    fn mean(self) -> u64 {
        let mean =
            (self.sum + u128::from(self.starts / 2)).checked_div(self.starts.into());
        u64::try_from(mean.unwrap_or(0)).unwrap_or(u64::MAX)
    }
}

impl StepDelays {
    /// The delays of a step of that CPU time. The starts of window and gaps have the same origin; gaps may be
    /// in any order, overlap or exceed the window. `None` if nothing of the window is free, or if the step
    /// has no length.
    pub fn of(window: Span, gaps: &[Span], step: Nanos) -> Option<Self> {
        let gaps = ordered(window, gaps);
        let all = gaps.iter().map(|gap| gap.length.get()).sum();
        let free = window.length.get().checked_sub(all).filter(|free| *free > 0)?;
        if step.is_zero() {
            return None;
        }
        let mut found = Self::default();
        let every = (step.get() / free).saturating_mul(all);
        Sweep::new(&gaps, window.start.get(), free, step.get() % free).each(
            |delay, starts| {
                found.count(delay.saturating_add(every), starts);
            },
        );
        Some(found)
    }

    /// The delays as they are stored: each with the time from whose moments on a step has it.
    pub fn from_parts(parts: impl IntoIterator<Item = (Nanos, Nanos)>) -> Self {
        let mut found = Self::default();
        parts
            .into_iter()
            .for_each(|(delay, starts)| found.count(delay.get(), starts.get()));
        found
    }

    /// The delays in rising order, each with the time from whose moments on a step has it.
    pub fn parts(&self) -> impl Iterator<Item = (Nanos, Nanos)> {
        let known = self.bins.iter().filter(|bin| bin.starts > 0);
        known.map(|bin| (Nanos::from_nanos(bin.mean()), Nanos::from_nanos(bin.starts)))
    }

    /// Adds those of another CPU, or of another time.
    pub fn add(&mut self, other: &Self) {
        if self.bins.len() < other.bins.len() {
            self.bins.resize(other.bins.len(), DelayBin::default());
        }
        for (own, other) in self.bins.iter_mut().zip(&other.bins) {
            own.starts = own.starts.saturating_add(other.starts);
            own.sum = own.sum.saturating_add(other.sum);
        }
    }

    /// The time of all moments: that of the windows.
    pub fn time(&self) -> Nanos {
        Nanos::from_nanos(
            self.bins.iter().map(|bin| bin.starts).fold(0, u64::saturating_add),
        )
    }

    /// The mean delay; `None` without a window.
    pub fn mean(&self) -> Option<Nanos> {
        let sum = self.bins.iter().map(|bin| bin.sum).fold(0, u128::saturating_add);
        let mean = sum.checked_div(u128::from(self.time().get()))?;
        Some(Nanos::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)))
    }

    /// The longest delay; `None` without a window.
    pub fn longest(&self) -> Option<Nanos> {
        self.parts().last().map(|(delay, _)| delay)
    }

    /// The probability that at least one of so many CPUs is delayed: 1-(1-p)^n.
    pub fn hit(&self, cpus: u64) -> Option<Ppm> {
        let none = self.bins.first().map_or(0, |bin| bin.starts) as f64;
        let time = self.time();
        let all = time.get() as f64;
        (!time.is_zero()).then(|| Ppm::new((1.0 - power(none / all, cpus)) * 1e6))
    }

    /// The mean of the longest delay of so many CPUs; `None` without a window.
    pub fn mean_of_longest(&self, cpus: u64) -> Option<Nanos> {
        let all = self.time().get() as f64;
        let (mut below, mut before, mut mean) = (0.0, 0.0, 0.0);
        for (delay, starts) in self.parts() {
            below += starts.get() as f64;
            // The longest is at most this one if each of them is.
            let up_to = power(below / all, cpus);
            mean += delay.get() as f64 * (up_to - before);
            before = up_to;
        }
        (all > 0.0).then(|| nanos(mean))
    }

    /// The same if the delays of those that are delayed were exponential with the same mean: it grows by that
    /// mean times the harmonic number of how many are delayed.
    pub fn exponential_longest(&self, cpus: u64) -> Option<Nanos> {
        let hit = self.hit(1)?.get() / 1e6;
        let mean = self.mean()?.get() as f64;
        let delayed = hit * cpus as f64;
        if delayed < 1.0 {
            return Some(nanos(mean * cpus as f64));
        }
        Some(nanos(mean / hit * harmonic(delayed)))
    }

    /// With gaps of that length that were not seen: so many in the time of all windows.
    #[must_use]
    pub fn with_unseen(&self, number: u64, gap: Nanos, step: Nanos) -> Self {
        let mut all = self.clone();
        let starts = gap.saturating_add(step).saturating_mul(number);
        all.count(gap.get(), starts.get().min(self.time().get()));
        all
    }

    /// The delays of several windows together.
    pub fn sum<'a>(parts: impl Iterator<Item = &'a Self>) -> Self {
        parts.fold(Self::default(), |mut sum, part| {
            sum.add(part);
            sum
        })
    }

    /// Resamples: each is the sum of as many parts as there are, with repetition.
    pub fn resamples(parts: &[Self], count: usize) -> Vec<Self> {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(SEED);
        let mut resample =
            || Self::sum(parts.iter().map(|_| &parts[below(&mut random, parts.len())]));
        (0..count).map(|_| resample()).collect()
    }

    fn count(&mut self, delay: u64, starts: u64) {
        let index = index(delay);
        if index >= self.bins.len() {
            self.bins.resize(index + 1, DelayBin::default());
        }
        if let Some(bin) = self.bins.get_mut(index) {
            bin.starts = bin.starts.saturating_add(starts);
            let product = u128::from(delay) * u128::from(starts);
            bin.sum = bin.sum.saturating_add(product);
        }
    }
}

/// The bin of a delay: 0 has its own.
fn index(delay: u64) -> usize {
    let exponent = delay.checked_ilog2().unwrap_or(0);
    let index = match exponent.checked_sub(FINE) {
        // Small ones have a bin each.
        None => delay,
        Some(shift) => (u64::from(shift) << FINE) + (delay >> shift),
    };
    usize::try_from(index).unwrap_or(usize::MAX)
}

fn nanos(value: f64) -> Nanos {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a time, not negative; larger ones saturate"
    )]
    Nanos::from_nanos(value.round() as u64)
}

/// A power, by multiplications only: the same on every machine.
fn power(base: f64, mut exponent: u64) -> f64 {
    let (mut result, mut square) = (1.0, base.min(1.0));
    while exponent > 0 {
        if exponent % 2 == 1 {
            result *= square;
        }
        square *= square;
        exponent /= 2;
    }
    result
}

/// The harmonic number, also between whole numbers.
fn harmonic(number: f64) -> f64 {
    const EULER: f64 = 0.577_215_664_901_532_9;
    let (mut number, mut sum) = (number, 0.0);
    while number < 16.0 {
        number += 1.0;
        sum -= 1.0 / number;
    }
    sum + number.ln() + EULER + 1.0 / (2.0 * number) - 1.0 / (12.0 * number * number)
}

/// The gaps of the window in order, without overlaps.
fn ordered(window: Span, gaps: &[Span]) -> Cow<'_, [Span]> {
    let is_good = |pair: &[Span]| pair[0].end() <= pair[1].start;
    let is_inside = |gap: &Span| gap.start >= window.start && gap.end() <= window.end();
    if gaps.iter().all(is_inside) && gaps.windows(2).all(is_good) {
        return Cow::Borrowed(gaps);
    }
    let mut sorted = gaps.to_vec();
    sorted.sort_unstable();
    let mut end = window.start;
    for gap in &mut sorted {
        let last = gap.end().min(window.end()).max(end);
        let start = gap.start.max(end).min(last);
        *gap = Span { start, length: last.saturating_sub(start) };
        end = last;
    }
    Cow::Owned(sorted)
}

/// A step that begins ever later, by the time outside of gaps.
struct Sweep<'a> {
    gaps: &'a [Span],
    origin: u64,
    free: u64,
    step: u64,
    /// The gaps from which on it has not begun and not ended.
    begin: Edge,
    end: Edge,
    delay: u64,
}

/// A gap, and the time without gaps before it in all repetitions.
#[derive(Clone, Copy, Default)]
struct Edge {
    index: usize,
    /// The time of gaps before it in this repetition, and the free time of earlier repetitions.
    gaps: u64,
    earlier: u64,
}

impl Edge {
    /// The free time before the gap.
    fn at(&self, gaps: &[Span], origin: u64) -> u64 {
        self.earlier + gaps[self.index].start.get() - origin - self.gaps
    }

    /// The next gap; returns the length of this one.
    fn next(&mut self, gaps: &[Span], free: u64) -> u64 {
        let length = gaps[self.index].length.get();
        self.index += 1;
        self.gaps += length;
        if self.index == gaps.len() {
            *self = Self { index: 0, gaps: 0, earlier: self.earlier + free };
        }
        length
    }
}

impl<'a> Sweep<'a> {
    fn new(gaps: &'a [Span], origin: u64, free: u64, step: u64) -> Self {
        Self {
            gaps,
            origin,
            free,
            step,
            begin: Edge::default(),
            end: Edge::default(),
            delay: 0,
        }
    }

    /// Calls `found` with each delay, and the time from whose moments on a step has it.
    fn each(mut self, mut found: impl FnMut(u64, u64)) {
        if self.gaps.is_empty() {
            return found(0, self.free);
        }
        while self.end.at(self.gaps, self.origin) < self.step {
            self.delay += self.end.next(self.gaps, self.free);
        }
        let mut at = 0;
        for _ in 0..self.gaps.len() {
            let begin = self.begin.at(self.gaps, self.origin);
            // Gaps that the end of the step reaches before its beginning leaves this one.
            loop {
                let end =
                    self.end.at(self.gaps, self.origin).saturating_sub(self.step).max(at);
                if end >= begin {
                    break;
                }
                found(self.delay, end - at);
                at = end;
                self.delay += self.end.next(self.gaps, self.free);
            }
            found(self.delay, begin - at);
            at = begin;
            let length = self.leave();
            self.inside(length, &mut found);
        }
        self.rest(at, &mut found);
    }

    /// The step begins after the next gap, which delays it no longer, if it ended after it.
    fn leave(&mut self) -> u64 {
        let is_inside =
            (self.begin.earlier, self.begin.index) < (self.end.earlier, self.end.index);
        let length = self.begin.next(self.gaps, self.free);
        match is_inside {
            true => self.delay -= length,
            // A step without length at the gap.
            false => self.end = self.begin,
        }
        length
    }

    /// Steps that begin in the gap.
    fn inside(&self, length: u64, found: &mut impl FnMut(u64, u64)) {
        let moments = MOMENTS[usize::from(length > self.step)];
        let mut from = 0;
        for moment in 0..moments {
            let until = length * (moment + 1) / moments;
            if until > from {
                found(self.delay + length - (from + until) / 2, until - from);
            }
            from = until;
        }
    }

    /// Steps that begin after the last gap.
    fn rest(&mut self, mut at: u64, found: &mut impl FnMut(u64, u64)) {
        while at < self.free {
            let end = self
                .end
                .at(self.gaps, self.origin)
                .saturating_sub(self.step)
                .clamp(at, self.free);
            found(self.delay, end - at);
            at = end;
            if at < self.free {
                self.delay += self.end.next(self.gaps, self.free);
            }
        }
    }
}

#[cfg(test)]
mod tests;
