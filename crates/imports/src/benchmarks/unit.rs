//! The units of values by their names in files, and which values are better.

use recording::{Benchmark, BetterValues, ValueUnit};

use crate::benchmarks::shown;
use crate::import::{Failure, corrupt};

/// Times by the names that tools give them, in nanoseconds.
const TIMES: [(&str, f64); 23] = [
    ("ns", 1.0),
    ("nsec", 1.0),
    ("nanosecond", 1.0),
    ("nanoseconds", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("μs", 1e3),
    ("usec", 1e3),
    ("microsecond", 1e3),
    ("microseconds", 1e3),
    ("ms", 1e6),
    ("msec", 1e6),
    ("millisecond", 1e6),
    ("milliseconds", 1e6),
    ("s", 1e9),
    ("sec", 1e9),
    ("secs", 1e9),
    ("second", 1e9),
    ("seconds", 1e9),
    ("min", 60e9),
    ("minutes", 60e9),
    ("h", 3600e9),
    ("hours", 3600e9),
];
/// Costs of one operation, of which less is better.
const COSTS: [&str; 2] = ["B/op", "allocs/op"];
/// Times are rounded to so many parts of a nanosecond, short ones and others: 0.020237995 s are 20237995 ns.
const PARTS: [f64; 2] = [1e6, 1e3];
/// What is short, in nanoseconds.
const SHORT: f64 = 1e6;

/// How the values of a quantity are read: their unit, its size, and which are better.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Measured {
    pub(crate) unit: ValueUnit,
    /// What a value in the file is multiplied by.
    factor: f64,
    pub(crate) better: BetterValues,
}

impl Measured {
    /// Values of a benchmark, in its unit.
    pub(crate) fn of(benchmark: &Benchmark) -> Self {
        let (unit, better) = (benchmark.unit.clone(), benchmark.better);
        Self { unit, factor: 1.0, better }
    }

    /// Values in seconds.
    pub(crate) fn seconds() -> Self {
        Self::time(1e9)
    }

    /// Values in nanoseconds.
    pub(crate) fn nanoseconds() -> Self {
        Self::time(1.0)
    }

    fn time(factor: f64) -> Self {
        Self { unit: ValueUnit::Ns, factor, better: BetterValues::Less }
    }

    /// Values in a unit of that name: a time, a time per operation (`ns/op`), or any other.
    pub(crate) fn named(unit: &str) -> Self {
        let time = unit.strip_suffix("/op").unwrap_or(unit);
        if let Some(factor) = time_factor(time) {
            return Self::time(factor);
        }
        let is_rate = ["/s", "/sec", "_per_second"].iter().any(|end| unit.ends_with(end));
        let better = match is_rate {
            true => BetterValues::More,
            false if COSTS.contains(&unit) => BetterValues::Less,
            false => BetterValues::Unknown,
        };
        Self::other(unit, better)
    }

    /// Values in a unit that is no time.
    pub(crate) fn other(unit: &str, better: BetterValues) -> Self {
        Self { unit: ValueUnit::Other(unit.to_owned()), factor: 1.0, better }
    }

    /// Operations per unit of time, as operations per second.
    pub(crate) fn throughput(time: &str) -> Option<Self> {
        let factor = 1e9 / time_factor(time)?;
        let all = Self::other("ops/s", BetterValues::More);
        Some(Self { factor, ..all })
    }

    /// A value in the unit. Its benchmark is for the message.
    pub(crate) fn scaled(&self, value: f64, name: &str) -> Result<f64, Failure> {
        let is_time = self.unit == ValueUnit::Ns;
        let scaled = value * self.factor;
        if !value.is_finite() || !scaled.is_finite() {
            return Err(corrupt(format!("{value} in '{}' is not a number", shown(name))));
        }
        if is_time && value < 0.0 {
            let name = shown(name);
            return Err(corrupt(format!("{value} in '{name}': no time is negative")));
        }
        let parts = PARTS[usize::from(scaled.abs() > SHORT)];
        let rounded = (scaled * parts).round() / parts;
        let is_lost = rounded == 0.0 || !rounded.is_finite();
        Ok(if self.factor == 1.0 || is_lost { scaled } else { rounded })
    }
}

/// The nanoseconds of a unit of time; `None` if it is none.
pub(crate) fn time_factor(unit: &str) -> Option<f64> {
    TIMES.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check units of time, rates and others, and that values that no run can have are refused.
    #[test]
    fn units() {
        let time = Measured::named("us/op");
        assert_eq!((time.unit.clone(), time.better), (ValueUnit::Ns, BetterValues::Less));
        assert_eq!(time.scaled(1.5, "x").unwrap(), 1500.0);
        assert_eq!(Measured::seconds().scaled(0.020_237_995, "x").unwrap(), 20_237_995.0);
        assert_eq!(Measured::seconds().scaled(1e-16, "x").unwrap(), 1e-7);
        for (unit, better) in [
            ("B/op", BetterValues::Less),
            ("MB/s", BetterValues::More),
            ("items_per_second", BetterValues::More),
            ("elements/op", BetterValues::Unknown),
            ("ns/GC", BetterValues::Unknown),
        ] {
            let found = Measured::named(unit);
            assert_eq!((found.unit.name(), found.better), (unit, better));
            assert_eq!(found.scaled(-0.25, "x").unwrap(), -0.25);
        }
        let rate = Measured::throughput("us").unwrap();
        assert_eq!(rate.scaled(2.5, "x").unwrap(), 2.5e6);
        assert_eq!(Measured::throughput("parsec"), None);
        for wrong in [f64::NAN, f64::INFINITY, -1.0, 1e308] {
            assert!(Measured::seconds().scaled(wrong, "x").is_err(), "{wrong}");
        }
    }
}
