//! Metrics for github-action-benchmark (`tool: customSmallerIsBetter`): a list of objects with name,
//! unit, value, range and a further text.
//!
//! Metrics of which larger values are better, or neither, are left out: a file has one direction.

use serde::Serialize;
use stats::Better;
use summary::{Quantity, RunSet, RunSpread};

use crate::export::csv::unit_of;

#[derive(Serialize)]
struct Entry {
    name: String,
    unit: String,
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<String>,
    extra: String,
}

impl Entry {
    /// `None` of a metric without a direction, or with the other one.
    fn of(spread: &RunSpread) -> Option<Self> {
        let Quantity::Metric { metric, cpu } = &spread.quantity else { return None };
        if spread.better != Better::Less {
            return None;
        }
        let cpu = cpu.map_or(String::new(), |cpu| format!(" of CPU {cpu}"));
        let range = || format!("{} to {}", spread.min, spread.max);
        Some(Self {
            name: format!("{metric}{cpu}"),
            unit: unit_of(metric, spread.unit).to_owned(),
            value: spread.median,
            range: (spread.runs > 1).then(range),
            extra: match spread.runs {
                1 => "1 run".to_owned(),
                runs => format!("median of {runs} runs"),
            },
        })
    }
}

/// The medians of a set of runs.
///
/// # Errors
/// None that is known: all fields can be written.
pub fn benchmark_action_json(set: &RunSet) -> serde_json::Result<String> {
    let entries: Vec<Entry> = set.spreads().iter().filter_map(Entry::of).collect();
    serde_json::to_string_pretty(&entries)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::example::{self, GUEST};

    /// Check that a set has its median and range, and that a metric in which more is better is left out.
    #[test]
    fn two_runs() {
        let mut set = RunSet::default();
        set.add(&example::noise(GUEST, 1));
        set.add(&example::noise(GUEST, 1));
        assert_snapshot!(benchmark_action_json(&set).unwrap(), @r#"
        [
          {
            "name": "noise_ppm of CPU 0",
            "unit": "ppm",
            "value": 1112.055,
            "range": "1112.055 to 1112.055",
            "extra": "median of 2 runs"
          },
          {
            "name": "gap_ns_p50 of CPU 0",
            "unit": "ns",
            "value": 4450.0,
            "range": "4450 to 4450",
            "extra": "median of 2 runs"
          },
          {
            "name": "gap_ns_p99 of CPU 0",
            "unit": "ns",
            "value": 5800.0,
            "range": "5800 to 5800",
            "extra": "median of 2 runs"
          },
          {
            "name": "gap_ns_max of CPU 0",
            "unit": "ns",
            "value": 5800.0,
            "range": "5800 to 5800",
            "extra": "median of 2 runs"
          },
          {
            "name": "gaps_hz of CPU 0",
            "unit": "Hz",
            "value": 249.9,
            "range": "249.9 to 249.9",
            "extra": "median of 2 runs"
          }
        ]
        "#);
    }
}
