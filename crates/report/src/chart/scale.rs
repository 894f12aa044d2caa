//! Scales: the places of numbers on an axis, and round numbers for its labels.

use itertools::Itertools;
use stats::Unit;

use crate::document::chart::{Axis, Measure, Scale};

/// An axis with the numbers at its ends, and their places.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ruler {
    is_log: bool,
    pub(crate) domain: [f64; 2],
    pub(crate) range: [f64; 2],
}

/// Steps between labels of times in seconds, from which on days and hours are no powers of ten.
const LONG_STEPS: [u32; 13] =
    [15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21_600, 43_200, 86_400, 604_800];

impl Ruler {
    /// The axis for values, which may be infinite.
    pub(crate) fn of(axis: &Axis, values: impl Iterator<Item = f64>) -> Self {
        let is_log = axis.scale == Scale::Log;
        let usable = |value: &f64| value.is_finite() && (!is_log || *value > 0.0);
        let ends = values.filter(usable).minmax_by(f64::total_cmp).into_option();
        let domain = match (&axis.scale, ends) {
            (Scale::Bands(names), _) => [0.0, names.len().max(1) as f64],
            (Scale::Log, Some((low, high))) if low == high => [low / 2.0, high * 2.0],
            (Scale::Log, None) => [1.0, 10.0],
            (_, Some((low, high))) if low != high => [low, high],
            (_, Some((one, _))) if one != 0.0 => [one.min(0.0), one.max(0.0)],
            _ => [0.0, 1.0],
        };
        Self { is_log, domain, range: [0.0, 1.0] }
    }

    /// The same axis up to the next label, and for counts on a logarithmic scale down to less than the
    /// smallest, which would have no height.
    pub(crate) fn rounded(mut self, axis: &Axis, most: usize) -> Self {
        let [low, high] = self.domain;
        match &axis.scale {
            Scale::Bands(_) => {}
            Scale::Log => self.domain = [low / 2.0, high * 1.5],
            Scale::Linear => {
                let step = step(axis.measure, (high - low) / most as f64);
                let up = (high / step).ceil() * step;
                let down = (low / step).floor() * step;
                if up.is_finite() && down.is_finite() {
                    self.domain = [down, up];
                }
            }
        }
        self
    }

    /// The place of a number; that of the nearer end if it is not on the axis.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let [low, high] = self.domain;
        let number = |value: f64| if self.is_log { value.ln() } else { value };
        let part = number(value.clamp(low, high)) - number(low);
        let part = (part / (number(high) - number(low))).clamp(0.0, 1.0);
        let [from, to] = self.range;
        from + part * (to - from)
    }

    /// Round numbers on the axis, about that many at most.
    pub(crate) fn ticks(&self, measure: Measure, most: usize) -> Vec<f64> {
        let [low, high] = self.domain;
        if self.is_log {
            return log_ticks(low, high, most);
        }
        let step = step(measure, (high - low) / most.max(1) as f64);
        let first = (low / step).ceil();
        let ticks = (0..=most + 1).map(|at| (first + at as f64) * step);
        ticks.take_while(|tick| *tick <= high + step * 1e-6).collect()
    }
}

/// The next larger round number: 1, 2 or 5 times a power of ten, or a round time.
fn step(measure: Measure, least: f64) -> f64 {
    const SECOND: f64 = 1e9;
    let long = LONG_STEPS.map(|seconds| f64::from(seconds) * SECOND);
    let is_long = measure == Measure::In(Unit::Ns) && least > 10.0 * SECOND;
    if let Some(step) = long.into_iter().find(|step| is_long && *step >= least) {
        return step;
    }
    let power = 10_f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= least);
    let step = factor.unwrap_or(10.0) * power;
    if step.is_finite() && step > 0.0 { step } else { f64::INFINITY }
}

/// Powers of ten, with 2 and 5 between them if there are few, and every few of them if there are many.
fn log_ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    const DECADES: std::ops::Range<i32> = -30..31;
    let on_axis = |tick: &f64| (low..=high).contains(tick);
    let decade = |at: i32| 10_f64.powi(at);
    let decades: Vec<f64> = DECADES.map(decade).filter(on_axis).collect();
    let with_between = DECADES.flat_map(|at| [1.0, 2.0, 5.0].map(|by| by * decade(at)));
    let fine: Vec<f64> = with_between.filter(on_axis).collect();
    if fine.len() <= most {
        return fine;
    }
    let each = decades.len().div_ceil(most.max(1)).max(1);
    decades.into_iter().step_by(each).collect()
}
