//! Proof of advice: what was measured of a change here, and what follows.
//!
//! A setting is compared with the current ones by `stats`: runs in balanced order, an interval of the difference, and
//! a correction for the number of settings in a batch. A boot parameter is compared in guests, whose numbers are
//! exact. What was not measured states why, and stays with its expected gain.
//!
//! Cannot see: what did not happen during the runs, and a gain that is no noise, no delay and no tick.

pub(crate) mod method;
pub(crate) mod plan;

use std::cmp::Ordering;
use std::fmt;

use recording::Cell;
use serde::{Serialize, Serializer};
use stats::{BetterSet, Conclusion, Spread, VALUES_MIN, relative};
use summary::{CellDifference, CellSummary, CellsComparison, Compared, definition};
use units::Ppm;

use crate::proof::method::{Method, TICKS_INSTRUCTIONS};

/// Smaller exact differences are of no interest: a gain of that size is nowhere noticed.
const EXACT_SMALLEST: Ppm = Ppm::new(10_000.0);

/// What a proof has shown of a change.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ProofOutcome {
    /// It was measured.
    Proven(Proven),
    /// It was not.
    NotProven(Barrier),
}

/// A change that was measured.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Proven {
    /// The name of its rule.
    pub rule: &'static str,
    /// The measurement.
    pub method: Method,
    /// Its command line; of a guest, what ran there.
    pub measurement: String,
    /// The kernel of the guests; null if it was measured on this machine.
    pub kernel: Option<String>,
    /// The difference.
    pub measured: MeasuredDifference,
    /// What follows.
    pub conclusion: Effect,
}

/// By how much a metric differs with the change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasuredDifference {
    /// The metric's key.
    pub metric: String,
    /// The number of runs without and with the change; in guests, whose numbers are exact, one.
    pub runs: [usize; 2],
    /// The median or mean without and with it.
    pub values: [f64; 2],
    /// By how much it is larger with the change.
    pub difference: f64,
    /// The interval of the true difference (95 %); of an exact one, by how much it may differ in another guest.
    pub interval: [f64; 2],
    /// The difference in parts of the value without the change; null if that is 0.
    pub difference_ppm: Option<Ppm>,
    /// The interval in the same parts.
    pub interval_ppm: Option<[Ppm; 2]>,
}

/// What follows from a difference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// The change helps.
    Better,
    /// It makes the metric worse.
    Worse,
    /// The interval includes zero: there is no larger difference than this, in parts of the value without the
    /// change; null if that is 0.
    NoLargerDifference(Option<Ppm>),
    /// There may be a difference, but it can be chance, too.
    Unclear,
}

/// Why a change was not measured.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Barrier {
    /// There was no time for it.
    Budget,
    /// The proof ended before it had enough runs.
    Interrupted,
    /// It cannot be made here: why.
    Refused(String),
    /// It is made at boot, and cannot be tried in a guest: why.
    NoGuest(String),
    /// It needs another kernel; a command that shows the effect.
    Build(String),
    /// It is no setting.
    Action,
    /// No measurement of this program shows its effect.
    NoMeasurement,
}

impl Barrier {
    /// Its stable name.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Budget => "budget",
            Self::Interrupted => "interrupted",
            Self::Refused(_) => "refused",
            Self::NoGuest(_) => "no_guest",
            Self::Build(_) => "build",
            Self::Action => "action",
            Self::NoMeasurement => "no_measurement",
        }
    }
}

impl fmt::Display for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Budget => f.write_str("did not fit the budget"),
            Self::Interrupted => f.write_str("the proof ended early"),
            Self::Refused(why) | Self::NoGuest(why) => f.write_str(why),
            Self::Build(command) => write!(f, "needs another kernel: {command}"),
            Self::Action => f.write_str("no setting that can be tried"),
            Self::NoMeasurement => f.write_str("no measurement shows its effect"),
        }
    }
}

impl Serialize for Barrier {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Shown {
            code: &'static str,
            text: String,
        }
        Shown { code: self.code(), text: self.to_string() }.serialize(serializer)
    }
}

impl MeasuredDifference {
    /// That of runs; `None` with too few of them.
    pub fn of_runs(compared: &Compared) -> Option<Self> {
        if compared.values.iter().any(|runs| *runs < VALUES_MIN) {
            return None;
        }
        let [base, other] = compared.centers;
        Some(Self {
            metric: compared.quantity.metric()?.to_owned(),
            runs: compared.values,
            values: [base?, other?],
            difference: compared.difference?,
            interval: compared.interval?,
            difference_ppm: compared.difference_ppm,
            interval_ppm: compared.interval_ppm,
        })
    }

    /// That of two guests; `None` if one of them does not have the metric.
    pub fn of_guests(method: Method, base: &Cell, other: &Cell) -> Option<Self> {
        match method.guest_metric() {
            Some(metric) => {
                let metrics = CellsComparison::of(base, other).metrics;
                Self::of_metric(metrics.iter().find(|one| one.metric == metric)?)
            }
            None => Some(Self::of_ticks(&ticks(base)?, &ticks(other)?)),
        }
    }

    /// That of the timer interrupts of busy loops: the phase of the tick decides whether there is one more.
    fn of_ticks(base: &Spread, other: &Spread) -> Self {
        let sum = |spread: &Spread| {
            let each = spread.values.iter();
            each.map(|(one, count)| one.get() as f64 * *count as f64).sum::<f64>()
        };
        let largest = |spread: &Spread| spread.values.last().map(|(one, _)| one.get());
        let tolerance = largest(base).max(largest(other)).unwrap_or(0) as f64;
        let values = [base, other].map(sum);
        Self::exact(TICKS_INSTRUCTIONS, values, tolerance)
    }

    fn of_metric(found: &CellDifference) -> Option<Self> {
        let values = [found.values[0]?, found.values[1]?];
        Some(Self::exact(&found.metric, values, found.tolerance))
    }

    fn exact(metric: &str, [base, other]: [f64; 2], tolerance: f64) -> Self {
        let difference = other - base;
        let interval = [difference - tolerance, difference + tolerance];
        let [low, high] = interval.map(|bound| relative(base + bound, base));
        Self {
            metric: metric.to_owned(),
            runs: [1, 1],
            values: [base, other],
            difference,
            interval,
            difference_ppm: relative(other, base),
            interval_ppm: low.zip(high).map(|(low, high)| [low, high]),
        }
    }

    /// The effect of an exact difference.
    pub fn exact_effect(&self) -> Effect {
        let less_is_better = definition(&self.metric)
            .is_none_or(|about| about.better == stats::Better::Less);
        if self.largest().is_some_and(|largest| largest <= EXACT_SMALLEST) {
            return self.no_larger();
        }
        match self.direction() {
            Ordering::Equal => self.no_larger(),
            Ordering::Less if less_is_better => Effect::Better,
            Ordering::Greater if !less_is_better => Effect::Better,
            Ordering::Less | Ordering::Greater => Effect::Worse,
        }
    }

    /// The effect of a difference of runs.
    pub fn effect(&self, compared: &Compared) -> Effect {
        match (compared.better_set(), compared.conclusion) {
            (Some(BetterSet::Other), _) => Effect::Better,
            (Some(BetterSet::Base), _) => Effect::Worse,
            (_, Conclusion::Equal) => self.no_larger(),
            _ if self.direction() == Ordering::Equal => self.no_larger(),
            _ => Effect::Unclear,
        }
    }

    /// The side of zero on which the interval is; `Equal` if it includes zero.
    fn direction(&self) -> Ordering {
        let [low, high] = self.interval;
        match (high < 0.0, low > 0.0) {
            (true, _) => Ordering::Less,
            (_, true) => Ordering::Greater,
            (false, false) => Ordering::Equal,
        }
    }

    /// The larger end of the interval.
    fn largest(&self) -> Option<Ppm> {
        let [low, high] = self.interval_ppm?.map(|bound| bound.get().abs());
        Some(Ppm::new(low.max(high)))
    }

    fn no_larger(&self) -> Effect {
        Effect::NoLargerDifference(self.largest())
    }
}

/// The timer interrupts of a busy loop in a guest.
fn ticks(cell: &Cell) -> Option<Spread> {
    if let CellSummary::TickCost(cost) = CellSummary::of(cell)? {
        cost.kernel_instructions
    } else {
        None
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;
    use units::Instructions;

    use super::*;

    /// A difference in parts of 1000, with its interval.
    fn difference(difference: f64, interval: [f64; 2]) -> MeasuredDifference {
        let ppm = |value: f64| Ppm::new(value * 1e3);
        MeasuredDifference {
            metric: "noise_ppm".to_owned(),
            runs: [8, 8],
            values: [1_000.0, 1_000.0 + difference],
            difference,
            interval,
            difference_ppm: Some(ppm(difference)),
            interval_ppm: Some(interval.map(ppm)),
        }
    }

    pub(crate) fn proven(of: f64, interval: [f64; 2]) -> ProofOutcome {
        let measured = difference(of, interval);
        ProofOutcome::Proven(Proven {
            rule: "rule",
            method: Method::Noise,
            measurement: "noise".to_owned(),
            kernel: None,
            conclusion: measured.exact_effect(),
            measured,
        })
    }

    /// Check that more of a metric of which more is better is a gain, and that an exact difference within the tolerance is
    /// none.
    #[test]
    fn exact() {
        let found = CellDifference {
            metric: "noise_ppm".to_owned(),
            values: [Some(200.0), Some(150.0)],
            difference: Some(-50.0),
            difference_ppm: Some(Ppm::new(-250_000.0)),
            tolerance: 6.0,
            none_above_ppm: None,
        };
        let measured = MeasuredDifference::of_metric(&found).unwrap();
        assert_eq!(measured.interval, [-56.0, -44.0]);
        let [low, high] = measured.interval_ppm.unwrap().map(Ppm::get);
        assert!((low + 280_000.0).abs() < 1e-6 && (high + 220_000.0).abs() < 1e-6);
        assert_eq!(measured.exact_effect(), Effect::Better);
        let more =
            MeasuredDifference { metric: "idle_stretch_ns_mean".to_owned(), ..measured };
        assert_eq!(more.exact_effect(), Effect::Worse);
        let equal = CellDifference { tolerance: 60.0, ..found };
        let equal = MeasuredDifference::of_metric(&equal).unwrap().exact_effect();
        assert_eq!(equal, Effect::NoLargerDifference(Some(Ppm::new(550_000.0))));
    }

    /// Check that a tick which no longer occurs is a gain of all of its instructions, within one tick.
    #[test]
    fn ticks_that_stop() {
        let spread = |values: &[(u64, u64)]| {
            let one = |(value, count): &(u64, u64)| (Instructions::new(*value), *count);
            Spread::phased([values.iter().map(one).collect::<Vec<_>>()])
        };
        let base = spread(&[(2_000, 124), (6_000, 1)]);
        let measured = MeasuredDifference::of_ticks(&base, &spread(&[]));
        assert_eq!(measured.values, [254_000.0, 0.0]);
        assert_eq!(measured.interval, [-260_000.0, -248_000.0]);
        assert_eq!(measured.exact_effect(), Effect::Better);
        let none = MeasuredDifference::of_ticks(&spread(&[]), &spread(&[]));
        assert_eq!(none.exact_effect(), Effect::NoLargerDifference(None));
    }

    /// Check that one nanosecond more is not worse, in guests that measure it exactly.
    #[test]
    fn small_exact_differences() {
        let measured = difference(0.1, [0.1, 0.1]);
        let expected = Effect::NoLargerDifference(Some(Ppm::new(100.0)));
        assert_eq!(measured.exact_effect(), expected);
        assert_eq!(difference(11.0, [11.0, 11.0]).exact_effect(), Effect::Worse);
    }

    /// Check the keys of the JSON contract.
    #[test]
    fn contract() {
        let json = |outcome| serde_json::to_value::<ProofOutcome>(outcome).unwrap();
        assert_eq!(
            json(ProofOutcome::NotProven(Barrier::Budget)),
            json!({"state": "not_proven", "code": "budget", "text": "did not fit the budget"})
        );
        let proven = json(proven(0.0, [-9.0, 8.0]));
        assert_eq!(proven["state"], "proven");
        assert_eq!(proven["conclusion"], json!({"no_larger_difference": 9_000.0}));
        for key in ["rule", "method", "measurement", "measured"] {
            assert!(!proven[key].is_null(), "{key}: {proven:#}");
        }
    }
}
