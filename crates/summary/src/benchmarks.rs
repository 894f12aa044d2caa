//! The summary of benchmarks that another tool has run.
//!
//! Numbers are computed from the values, if a file contains them; otherwise they are what the tool computed.

use std::collections::BTreeMap;

use recording::{
    Benchmark, BenchmarksSeries, BenchmarksSpec, BetterValues, ValueStatistics, ValueUnit,
};
use serde::Serialize;
use stats::{Better, RunSpread, Sample, Unit};
use units::Ppm;

/// Benchmarks that another tool has run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BenchmarksSummary {
    /// The tool and its version.
    pub measured_by: String,
    /// What the file says about the runtime, the build and the machine.
    pub environment: BTreeMap<String, String>,
    /// What was measured, in the order of the file.
    pub benchmarks: Vec<BenchmarkSummary>,
}

/// One quantity of one benchmark; what is unknown is null.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BenchmarkSummary {
    /// Its name.
    pub name: String,
    /// The unit of the numbers below: `ns` for times.
    pub unit: ValueUnit,
    /// Which values are better.
    pub better: BetterValues,
    /// Whether the file contains single values: the others are statistics of the tool.
    pub has_values: bool,
    /// The number of values.
    pub count: Option<u64>,
    /// The smallest.
    pub min: Option<f64>,
    /// The median.
    pub median: Option<f64>,
    /// The interval that contains the true median with a probability of at least 95 %; null with fewer than
    /// 6 values.
    pub median_interval: Option<[f64; 2]>,
    /// The mean.
    pub mean: Option<f64>,
    /// The standard deviation, of a sample.
    pub stddev: Option<f64>,
    /// The same in parts of the mean; null if that is 0.
    pub stddev_ppm: Option<Ppm>,
    /// The largest.
    pub max: Option<f64>,
}

impl BenchmarksSummary {
    /// Summarizes the results of benchmarks.
    pub fn of(spec: &BenchmarksSpec, series: &BenchmarksSeries) -> Self {
        Self {
            measured_by: spec.measured_by.clone(),
            environment: spec.environment.clone(),
            benchmarks: series.benchmarks.iter().map(BenchmarkSummary::of).collect(),
        }
    }
}

impl BenchmarkSummary {
    fn of(input: &Benchmark) -> Self {
        let sample = Sample {
            quantity: (),
            unit: Unit::Count,
            better: Better::Neither,
            values: input.values.clone(),
        };
        let spread = RunSpread::of(&sample);
        let of_values = spread.as_ref().map(|of| ValueStatistics {
            count: Some(of.runs as u64),
            min: Some(of.min),
            median: Some(of.median),
            mean: Some(of.mean),
            stddev: of.stddev,
            max: Some(of.max),
        });
        let ValueStatistics { count, min, median, mean, stddev, max } =
            of_values.unwrap_or(input.statistics);
        let part = |stddev: f64, mean: f64| {
            (mean != 0.0).then(|| Ppm::new(stddev / mean.abs() * 1e6))
        };
        Self {
            name: input.name.clone(),
            unit: input.unit.clone(),
            better: input.better,
            has_values: spread.is_some(),
            count,
            min,
            median,
            median_interval: spread.and_then(|of| of.median_interval),
            mean,
            stddev,
            stddev_ppm: stddev.zip(mean).and_then(|(stddev, mean)| part(stddev, mean)),
            max,
        }
    }

    /// The number that stands for it: the median, or else the mean.
    pub fn center(&self) -> Option<f64> {
        self.median.or(self.mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn benchmark(values: &[f64]) -> Benchmark {
        Benchmark {
            name: "sort".to_owned(),
            unit: ValueUnit::Ns,
            better: BetterValues::Less,
            values: values.to_vec(),
            statistics: ValueStatistics { mean: Some(7.0), ..Default::default() },
        }
    }

    /// Check that numbers are those of the values, and without values those of the tool.
    #[test]
    fn values_come_first() {
        let found = BenchmarkSummary::of(&benchmark(&[4.0, 1.0, 2.0, 3.0]));
        assert_eq!((found.count, found.min, found.max), (Some(4), Some(1.0), Some(4.0)));
        assert_eq!((found.median, found.mean), (Some(2.5), Some(2.5)));
        assert!((found.stddev.unwrap() - 1.290_994).abs() < 1e-6);
        assert!((found.stddev_ppm.unwrap().get() - 516_397.8).abs() < 1.0);
        assert_eq!(found.median_interval, None);
        let of_tool = BenchmarkSummary::of(&benchmark(&[]));
        assert_eq!((of_tool.has_values, of_tool.center()), (false, Some(7.0)));
        assert_eq!((of_tool.count, of_tool.median), (None, None));
    }
}
