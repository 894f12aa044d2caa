//! The metrics of benchmarks, whose names and units are those of another tool.
//!
//! A key is `NAME:UNIT`: `BM_Sort/64:ns`, `BenchmarkSort-8:B/op`. No other key has a colon, and a unit has
//! none, so that the last colon separates both.

use recording::{BetterValues, ValueUnit};
use stats::{Better, Unit};

use crate::benchmarks::{BenchmarkSummary, BenchmarksSummary};
use crate::metrics::definition::{Definition, Metric};

const SEPARATOR: char = ':';

/// The definition of times, and those of other values by their direction.
const fn definition(key: &'static str, unit: Unit, better: Better) -> Definition {
    Definition {
        key,
        name: "benchmark",
        unit,
        better,
        of: "benchmarks",
        help: "median of the benchmark's values in a file, or their mean if the median is unknown",
    }
}
const TIME: Definition = definition("NAME:ns", Unit::Ns, Better::Less);
const LESS: Definition = definition("NAME:UNIT", Unit::Count, Better::Less);
const MORE: Definition = definition("NAME:UNIT", Unit::Count, Better::More);
const UNKNOWN: Definition = definition("NAME:UNIT", Unit::Count, Better::Neither);
static ALL: [Definition; 4] = [TIME, LESS, MORE, UNKNOWN];

/// The parts of the key of a benchmark's metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BenchmarkKey<'a> {
    /// The name of the benchmark.
    pub name: &'a str,
    /// The unit: `ns` for times.
    pub unit: &'a str,
}

impl<'a> BenchmarkKey<'a> {
    /// The parts of a key; `None` for the key of another metric.
    pub fn of(key: &'a str) -> Option<Self> {
        let (name, unit) = key.rsplit_once(SEPARATOR)?;
        Some(Self { name, unit })
    }

    /// The key of a quantity of a benchmark.
    pub(crate) fn text(name: &str, unit: &ValueUnit) -> String {
        format!("{name}{SEPARATOR}{}", unit.name().replace(SEPARATOR, "_"))
    }

    /// Whether its values are times.
    pub fn is_time(self) -> bool {
        self.unit == ValueUnit::Ns.name()
    }

    /// The unit of its values.
    pub fn metric_unit(self) -> Unit {
        if self.is_time() { Unit::Ns } else { Unit::Count }
    }
}

/// The metrics of benchmarks.
pub(crate) fn metrics(summary: &BenchmarksSummary) -> Vec<Metric> {
    summary.benchmarks.iter().filter_map(metric).collect()
}

fn metric(benchmark: &BenchmarkSummary) -> Option<Metric> {
    let [time, less, more, unknown] = &ALL;
    let about = match (&benchmark.unit, benchmark.better) {
        (ValueUnit::Ns, _) => time,
        (ValueUnit::Other(_), BetterValues::Less) => less,
        (ValueUnit::Other(_), BetterValues::More) => more,
        (ValueUnit::Other(_), BetterValues::Unknown) => unknown,
    };
    Some(Metric {
        key: BenchmarkKey::text(&benchmark.name, &benchmark.unit),
        cpu: None,
        value: benchmark.center()?,
        tolerance: 0.0,
        varied: None,
        about,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::definitions;

    /// Check that a name may contain colons, and that no key of another metric has one.
    #[test]
    fn parts() {
        let unit = ValueUnit::Other("a:b".to_owned());
        let key = BenchmarkKey::text("f<std::less>", &unit);
        let parts = BenchmarkKey::of(&key).unwrap();
        assert_eq!((parts.name, parts.unit), ("f<std::less>", "a_b"));
        assert_eq!(parts.metric_unit(), Unit::Count);
        let time = BenchmarkKey::text("", &ValueUnit::Ns);
        assert!(BenchmarkKey::of(&time).unwrap().is_time());
        assert!(definitions().all(|about| BenchmarkKey::of(about.key).is_none()));
    }
}
