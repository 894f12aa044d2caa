//! Conditions on differences, as options state them: `noise_ppm > +10%`.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use stats::{Better, Conclusion, Unit, VALUES_MIN};
use units::{Nanos, Ppm};

use crate::comparison::cells::{CellDifference, CellsComparison};
use crate::comparison::{Compared, Comparison};

/// A condition on the difference of a metric, in any CPU and any set.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    text: String,
    metric: String,
    is_above: bool,
    bound: Bound,
}

/// The bound of a difference.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Bound {
    /// In percent of the base.
    Percent(f64),
    /// In the metric's unit.
    Value(f64),
    /// In nanoseconds, for metrics that are times.
    Nanos(f64),
}

/// Whether a condition holds for a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Judged {
    /// It does not.
    False,
    /// It does.
    True,
    /// The difference is not known well enough.
    Undecided,
}

/// A text that is not a condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a condition such as 'noise_ppm > +10%' or 'gap_ns_max < -5us'")]
pub struct ConditionError {
    text: String,
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Condition {
    type Err = ConditionError;

    /// Parses a metric, `>` or `<`, and a difference: its sign, a number, and `%`, a unit of time, or
    /// nothing for the unit of the metric.
    fn from_str(text: &str) -> Result<Self, ConditionError> {
        let refuse = || ConditionError { text: text.to_owned() };
        // Names of benchmarks may contain both.
        let at = text.rfind(['<', '>']).ok_or_else(refuse)?;
        let (metric, bound) = (text[..at].trim(), text[at + 1..].trim());
        let is_signed = bound.starts_with(['+', '-']);
        if metric.is_empty() || !is_signed {
            return Err(refuse());
        }
        let is_above = text[at..].starts_with('>');
        let bound = bound_of(bound).ok_or_else(refuse)?;
        Ok(Self {
            text: text.trim().to_owned(),
            metric: metric.to_owned(),
            is_above,
            bound,
        })
    }
}

fn bound_of(text: &str) -> Option<Bound> {
    let (sign, rest) = text.split_at(1);
    let signed = |value: f64| if sign == "-" { -value } else { value };
    let rest = rest.trim();
    let is_number =
        |text: &str| text.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let number = |text: &str| {
        let text = text.trim();
        let value: f64 = text.parse().ok().filter(|_| is_number(text))?;
        value.is_finite().then_some(signed(value))
    };
    if let Some(percent) = rest.strip_suffix('%') {
        return number(percent).map(Bound::Percent);
    }
    let time: Option<Nanos> = rest.parse().ok();
    let time = time.map(|time| Bound::Nanos(signed(time.get() as f64)));
    time.or_else(|| number(rest).map(Bound::Value))
}

impl Condition {
    /// The condition that a metric is worse by more than this part of the base; `None` if no value is better.
    pub(crate) fn worse(metric: &str, better: Better, by: Ppm) -> Option<Self> {
        let sign = match better {
            Better::Less => 1.0,
            Better::More => -1.0,
            Better::Neither => return None,
        };
        let percent = sign * by.get() / 1e4;
        Some(Self {
            text: format!("{metric} worse by {percent} %"),
            metric: metric.to_owned(),
            is_above: better == Better::Less,
            bound: Bound::Percent(percent),
        })
    }

    /// The key of its metric.
    pub fn metric(&self) -> &str {
        &self.metric
    }

    /// Whether it is a condition on metrics of that unit: a time is none on a rate.
    pub fn fits(&self, unit: Unit) -> bool {
        !matches!(self.bound, Bound::Nanos(_)) || unit == Unit::Ns
    }

    /// Whether it holds for any CPU: for a difference that is reported, and for none if it includes
    /// that (`> -5%`: not lower by 5 %). It is undecided if the interval of a difference that is not
    /// reported reaches beyond the bound.
    pub fn judge(&self, comparison: &Comparison) -> Judged {
        let own = comparison.metrics.iter();
        let own = own.filter(|one| one.quantity.metric() == Some(self.metric()));
        Judged::any(own.map(|one| self.of_compared(one)))
    }

    /// Whether it holds for exact values.
    pub fn judge_cells(&self, comparison: &CellsComparison) -> Judged {
        let own = comparison.metrics.iter().filter(|one| one.metric == self.metric);
        let holds = |one: &CellDifference| {
            Some(self.exceeds(one.difference?, one.difference_ppm.map(Ppm::get)))
        };
        Judged::any(own.filter_map(holds).map(Judged::known))
    }

    pub(crate) fn of_compared(&self, compared: &Compared) -> Judged {
        if has_too_few_values(compared) {
            return Judged::Undecided;
        }
        // Then it is the opposite of a condition that no difference fulfils.
        let includes_none = self.exceeds(0.0, Some(0.0));
        let beyond =
            |at, part: Option<Ppm>| self.exceeds(at, part.map(Ppm::get)) != includes_none;
        let judged = match compared.conclusion {
            Conclusion::Lower | Conclusion::Higher => {
                let at = compared.difference;
                let is_beyond = at.is_some_and(|at| beyond(at, compared.difference_ppm));
                Judged::known(is_beyond)
            }
            Conclusion::Equal => Judged::False,
            Conclusion::NoLargerDifference { .. } | Conclusion::NotEnoughData { .. } => {
                let Some(interval) = compared.interval else { return Judged::Undecided };
                let parts = compared.interval_ppm.map(|bounds| bounds.map(Some));
                let mut bounds = interval.into_iter().zip(parts.unwrap_or([None; 2]));
                match bounds.any(|(at, part)| beyond(at, part)) {
                    true => Judged::Undecided,
                    false => Judged::False,
                }
            }
        };
        if includes_none { judged.opposite() } else { judged }
    }

    /// Whether a difference is beyond the bound. One from zero is beyond any percentage in its direction.
    pub(crate) fn exceeds(&self, difference: f64, ppm: Option<f64>) -> bool {
        let (value, bound) = match self.bound {
            Bound::Percent(bound) => {
                let endless = || {
                    difference.signum()
                        * if difference == 0.0 { 0.0 } else { f64::INFINITY }
                };
                (ppm.map_or_else(endless, |ppm| ppm / 1e4), bound)
            }
            Bound::Value(bound) | Bound::Nanos(bound) => (difference, bound),
        };
        if self.is_above { value > bound } else { value < bound }
    }
}

/// Whether there is no conclusion because of too few values: the interval of two or three values is
/// too narrow to judge by.
fn has_too_few_values(compared: &Compared) -> bool {
    let is_open = matches!(compared.conclusion, Conclusion::NotEnoughData { .. });
    is_open && compared.values.iter().any(|count| *count < VALUES_MIN)
}

impl Judged {
    pub(crate) fn known(holds: bool) -> Self {
        if holds { Self::True } else { Self::False }
    }

    fn opposite(self) -> Self {
        match self {
            Self::False => Self::True,
            Self::True => Self::False,
            Self::Undecided => Self::Undecided,
        }
    }

    /// True if one of them is, else undecided if one of them is.
    pub fn any(all: impl IntoIterator<Item = Self>) -> Self {
        all.into_iter().fold(Self::False, Self::or)
    }

    fn or(self, other: Self) -> Self {
        match (self, other) {
            (Self::True, _) | (_, Self::True) => Self::True,
            (Self::Undecided, _) | (_, Self::Undecided) => Self::Undecided,
            (Self::False, Self::False) => Self::False,
        }
    }
}

#[cfg(test)]
mod tests {
    use stats::Statistic;

    use super::*;
    use crate::comparison::quantity::Quantity;

    fn bound(text: &str) -> Option<(bool, Bound)> {
        let condition: Condition = text.parse().ok()?;
        assert_eq!(condition.metric(), "gap_ns_max");
        Some((condition.is_above, condition.bound))
    }

    /// Check conditions in percent, in a unit of time and in that of the metric, and what is none.
    #[test]
    fn parsing() {
        assert_eq!(bound("gap_ns_max > +10%"), Some((true, Bound::Percent(10.0))));
        assert_eq!(bound(" gap_ns_max<-2.5 % "), Some((false, Bound::Percent(-2.5))));
        assert_eq!(bound("gap_ns_max>+5us"), Some((true, Bound::Nanos(5_000.0))));
        assert_eq!(bound("gap_ns_max > -300"), Some((true, Bound::Value(-300.0))));
        for wrong in [
            "",
            "gap_ns_max",
            "gap_ns_max > 10%",
            "gap_ns_max = +1",
            "> +1",
            "gap_ns_max > +",
            "gap_ns_max > +%",
            "gap_ns_max > ++1",
            "gap_ns_max >= +1",
            "gap_ns_max > +inf",
            "gap_ns_max > +nan%",
            "gap_ns_max > +1 parsec",
            "gap_ns_max > +é",
        ] {
            assert_eq!(
                wrong.parse::<Condition>().map(|found| found.bound).ok(),
                None,
                "{wrong}"
            );
        }
        let benchmark: Condition = "f<a, b>:ns > +5us".parse().unwrap();
        assert_eq!(benchmark.metric(), "f<a, b>:ns");
        let time: Condition = "noise_ppm > +1us".parse().unwrap();
        assert!(time.fits(Unit::Ns) && !time.fits(Unit::Ppm));
    }

    /// Check that a difference equal to the bound is not beyond it, and that any difference from zero is
    /// beyond a percentage in its direction.
    #[test]
    fn bounds() {
        let condition: Condition = "noise_ppm > +10%".parse().unwrap();
        assert!(!condition.exceeds(1.0, Some(1e5)));
        assert!(condition.exceeds(1.0, Some(1.01e5)));
        assert!(condition.exceeds(1.0, None));
        assert!(!condition.exceeds(-1.0, None));
        assert!(!condition.exceeds(0.0, None));
        let below: Condition = "noise_ppm < -3".parse().unwrap();
        assert!(below.exceeds(-3.5, None) && !below.exceeds(-3.0, None));
    }

    /// A comparison with a base of 100: a difference and its interval are percent, too.
    fn compared(conclusion: Conclusion, difference: f64, interval: [f64; 2]) -> Compared {
        let ppm = |percent: f64| Ppm::new(percent * 1e4);
        Compared {
            quantity: Quantity::Metric { metric: "noise_ppm".to_owned(), cpu: None },
            values: [8; 2],
            nonzero: [8; 2],
            block: None,
            statistic: Statistic::Median,
            centers: [Some(100.0), Some(100.0 + difference)],
            difference: Some(difference),
            interval: Some(interval),
            difference_ppm: Some(ppm(difference)),
            interval_ppm: Some(interval.map(ppm)),
            p_value: 1.0,
            adjusted_p_value: 1.0,
            conclusion,
            unit: Unit::Ppm,
            better: Better::Less,
        }
    }

    /// Check each verdict with conditions that no difference fulfils, and with those that it does not.
    #[test]
    fn verdicts() {
        use Judged::{False, True, Undecided};
        let higher = |by| compared(Conclusion::Higher, by, [1.0, 90.0]);
        let lower = |by| compared(Conclusion::Lower, by, [-90.0, -1.0]);
        let equal = || compared(Conclusion::Equal, 0.0, [0.0; 2]);
        let largest_ppm = Ppm::new(1e5);
        let small = |interval| {
            compared(Conclusion::NoLargerDifference { largest_ppm }, 0.0, interval)
        };
        let unclear = |interval| {
            compared(Conclusion::NotEnoughData { more_runs: None }, 0.0, interval)
        };
        for (condition, compared, expected) in [
            ("noise_ppm > +10%", higher(20.0), True),
            ("noise_ppm > +10%", higher(8.0), False),
            ("noise_ppm > +10%", lower(-20.0), False),
            ("noise_ppm > +10%", equal(), False),
            ("noise_ppm > +10%", unclear([-5.0, 12.0]), Undecided),
            ("noise_ppm > +10%", unclear([-5.0, 8.0]), False),
            ("noise_ppm > +5%", small([-5.0, 8.0]), Undecided),
            ("noise_ppm > +8", small([-5.0, 8.0]), False),
            ("noise_ppm > -5%", lower(-8.0), False),
            ("noise_ppm > -5%", lower(-3.0), True),
            ("noise_ppm > -5%", higher(8.0), True),
            ("noise_ppm > -5%", equal(), True),
            ("noise_ppm > -5%", small([-4.0, 3.0]), True),
            ("noise_ppm > -5%", small([-7.0, 3.0]), Undecided),
            ("noise_ppm > -5%", unclear([5.0, 44.0]), True),
            ("noise_ppm < +5", equal(), True),
            ("noise_ppm < +5", higher(20.0), False),
            ("noise_ppm < +0%", equal(), False),
        ] {
            let condition: Condition = condition.parse().unwrap();
            let conclusion = compared.conclusion;
            let found = condition.of_compared(&compared);
            assert_eq!(found, expected, "{condition}: {conclusion:?}");
        }
        let mut single = unclear([0.0; 2]);
        single.interval = None;
        let condition: Condition = "noise_ppm > -5%".parse().unwrap();
        assert_eq!(condition.of_compared(&single), Undecided);
        // Two or three values each have an interval, too: it may lack the true difference.
        for values in [[3, 8], [8, 3], [2, 2]] {
            let few = Compared { values, ..unclear([-5.0, 8.0]) };
            for text in ["noise_ppm > +10%", "noise_ppm > -10%"] {
                let condition: Condition = text.parse().unwrap();
                assert_eq!(condition.of_compared(&few), Undecided, "{text} {values:?}");
            }
        }
        let few = Compared { values: [3, 3], ..equal() };
        assert_eq!(condition.of_compared(&few), True);
    }
}
