//! Results of benchmarks that another tool has run: repeated values, or what the tool computed of them.
//!
//! Times are nanoseconds, with a fraction: a pass of a loop may take less than one. All other values stay
//! in the unit of the tool. All values are finite; files with others are refused when they are imported.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// What is known of how benchmarks were run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BenchmarksSpec {
    /// The tool and its version: `JMH 1.37`.
    pub measured_by: String,
    /// What the file says about it besides, by the tool's own names: the runtime, the build, the machine.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
}

/// The results.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchmarksSeries {
    /// The command line; `None` if the file does not contain it.
    pub command: Option<String>,
    /// What was measured, in the order of the file. No two have the same name and unit.
    pub benchmarks: Vec<Benchmark>,
}

/// One quantity of one benchmark.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Benchmark {
    /// Its name.
    pub name: String,
    /// The unit of its values.
    pub unit: ValueUnit,
    /// Which values are better.
    pub better: BetterValues,
    /// The values in the order of measurement; empty if the file contains statistics only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<f64>,
    /// What the tool computed.
    #[serde(default)]
    pub statistics: ValueStatistics,
}

/// Statistics that a tool computed, in the unit of the values; what a file does not contain is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ValueStatistics {
    /// The number of values.
    pub count: Option<u64>,
    /// The smallest.
    pub min: Option<f64>,
    /// The median.
    pub median: Option<f64>,
    /// The mean.
    pub mean: Option<f64>,
    /// The standard deviation, of a sample.
    pub stddev: Option<f64>,
    /// The largest.
    pub max: Option<f64>,
}

/// The unit of a benchmark's values.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ValueUnit {
    /// Nanoseconds: `ns`.
    Ns,
    /// Any other, by the tool's name: `B/op`, `ops/s`; `count` of events, `number` if it is unknown.
    Other(String),
}

/// Which values of a benchmark are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BetterValues {
    /// Smaller ones, as of times.
    Less,
    /// Larger ones, as of throughput.
    More,
    /// Unknown.
    Unknown,
}

impl ValueUnit {
    /// The name of nanoseconds.
    const NS: &'static str = "ns";

    /// Its name: `ns`, `B/op`.
    pub fn name(&self) -> &str {
        match self {
            Self::Ns => Self::NS,
            Self::Other(name) => name,
        }
    }
}

impl From<String> for ValueUnit {
    fn from(name: String) -> Self {
        if name == Self::NS { Self::Ns } else { Self::Other(name) }
    }
}

impl From<ValueUnit> for String {
    fn from(unit: ValueUnit) -> Self {
        unit.name().to_owned()
    }
}

impl fmt::Display for ValueUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check the keys and the form of every value in files, and that statistics may be missing.
    #[test]
    fn contract() {
        let spec = BenchmarksSpec {
            measured_by: "JMH 1.37".to_owned(),
            environment: [("jvm".to_owned(), "17".to_owned())].into(),
        };
        let statistics =
            ValueStatistics { count: Some(2), mean: Some(1.5), ..Default::default() };
        let benchmark = Benchmark {
            name: "sort".to_owned(),
            unit: ValueUnit::Ns,
            better: BetterValues::Less,
            values: vec![0.25, 2.75],
            statistics,
        };
        let rate = Benchmark {
            unit: ValueUnit::Other("ops/s".to_owned()),
            better: BetterValues::More,
            values: Vec::new(),
            ..benchmark.clone()
        };
        let series =
            BenchmarksSeries { command: None, benchmarks: vec![benchmark, rate] };
        let about = serde_json::json!({
            "measured_by": "JMH 1.37", "environment": {"jvm": "17"},
        });
        let known = serde_json::json!({
            "count": 2, "min": null, "median": null, "mean": 1.5, "stddev": null, "max": null,
        });
        let found = serde_json::json!({"command": null, "benchmarks": [
            {"name": "sort", "unit": "ns", "better": "less", "values": [0.25, 2.75],
                "statistics": known},
            {"name": "sort", "unit": "ops/s", "better": "more", "statistics": known},
        ]});
        assert_eq!(serde_json::to_value(&spec).unwrap(), about);
        assert_eq!(serde_json::from_value::<BenchmarksSpec>(about).unwrap(), spec);
        assert_eq!(serde_json::to_value(&series).unwrap(), found);
        assert_eq!(serde_json::from_value::<BenchmarksSeries>(found).unwrap(), series);
        let least = r#"{"name": "a", "unit": "number", "better": "unknown"}"#;
        let least: Benchmark = serde_json::from_str(least).unwrap();
        assert_eq!((least.values.len(), least.statistics.count), (0, None));
    }
}
