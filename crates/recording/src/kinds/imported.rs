//! Lengths of time that another tool measured, as its file has them: counts by length, or statistics.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use units::{Cpu, CpuSet, Nanos};

use crate::tuple::tuple_form;

/// What is known of the parameters of another tool's measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedSpec {
    /// The tool and its version: `cyclictest 2.40`.
    pub measured_by: String,
    /// The measured CPUs; empty if the file does not name them.
    pub cpus: CpuSet,
    /// The shortest gap that the tool counts; `None` of other lengths, or if it is unknown.
    pub threshold_ns: Option<Nanos>,
    /// The width of the bins in which lengths were counted; `None` if it is not the same for all.
    pub resolution_ns: Option<Nanos>,
}

/// The measured values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedSeries {
    /// The tool's command line; `None` if the file does not contain it.
    pub command: Option<String>,
    /// The lengths, by CPU and kind.
    pub lengths: Vec<ImportedLengths>,
}

/// Lengths of one kind on one CPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportedLengths {
    /// What they are.
    pub kind: LengthKind,
    /// The CPU; `None` if the file does not name it.
    pub cpu: Option<Cpu>,
    /// The tag that a log has for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// The time in which they were measured.
    pub elapsed_ns: Option<Nanos>,
    /// Their number.
    pub count: Option<u64>,
    /// Their sum.
    pub sum_ns: Option<Nanos>,
    /// The shortest.
    pub min_ns: Option<Nanos>,
    /// The longest.
    pub max_ns: Option<Nanos>,
    /// Quantiles that the tool computed: millionths of the values, and the length that they do not
    /// exceed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quantiles: Vec<(u32, Nanos)>,
    /// The counts by length, in rising order; those beyond the last bin are in none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bins: Vec<Bin>,
    /// The same by the time of the measurement, of logs, which have them instead of `bins`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<BinnedInterval>,
}

/// What a length of time is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LengthKind {
    /// From a timer's expiry to the beginning of its interrupt handler.
    TimerInterruptLatency,
    /// From a timer's expiry until the thread that waited for it runs.
    WakeupLatency,
    /// From a timer's expiry until the thread runs in user mode again.
    UserLatency,
    /// Time in which a busy loop did not run.
    Gap,
    /// Anything: a log does not tell.
    Value,
}

/// How many lengths are at least `from_ns` and less than `until_ns`. Written as the triple
/// `[from_ns, until_ns, count]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(Nanos, Nanos, u64)", into = "(Nanos, Nanos, u64)")]
pub struct Bin {
    /// The shortest length.
    pub from_ns: Nanos,
    /// The next length that is not in it.
    pub until_ns: Nanos,
    /// The number of lengths.
    pub count: u64,
}

tuple_form!(Bin { from_ns: Nanos, until_ns: Nanos, count: u64 });

impl Bin {
    /// The number of lengths in some bins.
    pub fn total<'a>(bins: impl IntoIterator<Item = &'a Self>) -> u64 {
        bins.into_iter().map(|bin| bin.count).fold(0, u64::saturating_add)
    }

    /// Bins of several lists as one list in rising order, in which each bin occurs once.
    pub fn merged<'a>(bins: impl IntoIterator<Item = &'a Self>) -> Vec<Self> {
        let mut counts: BTreeMap<(Nanos, Nanos), u64> = BTreeMap::new();
        for bin in bins {
            let count = counts.entry((bin.from_ns, bin.until_ns)).or_default();
            *count = count.saturating_add(bin.count);
        }
        let bin = |((from_ns, until_ns), count)| Self { from_ns, until_ns, count };
        counts.into_iter().map(bin).collect()
    }
}

/// The lengths of a part of the measurement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BinnedInterval {
    /// Its beginning, from the log's.
    pub start_ns: Nanos,
    /// Its duration.
    pub length_ns: Nanos,
    /// The counts by length, in rising order.
    pub bins: Vec<Bin>,
}

impl ImportedLengths {
    /// Lengths of which nothing else is known.
    pub fn new(kind: LengthKind, cpu: Option<Cpu>) -> Self {
        Self {
            kind,
            cpu,
            tag: None,
            elapsed_ns: None,
            count: None,
            sum_ns: None,
            min_ns: None,
            max_ns: None,
            quantiles: Vec::new(),
            bins: Vec::new(),
            intervals: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that equal bins are added up, bins with another end are not, and that the order is
    /// rising and no length is lost.
    #[test]
    fn bins_of_two_lists() {
        let bins = |bins: &[(u64, u64, u64)]| -> Vec<Bin> {
            let bin = |&(from, until, count): &(u64, u64, u64)| {
                Bin::from((Nanos::from_nanos(from), Nanos::from_nanos(until), count))
            };
            bins.iter().map(bin).collect()
        };
        let first = bins(&[(0, 10, 2), (20, 30, u64::MAX)]);
        let second = bins(&[(10, 20, 4), (20, 25, 1), (20, 30, 5)]);
        let merged = Bin::merged(first.iter().chain(&second));
        let expected = [(0, 10, 2), (10, 20, 4), (20, 25, 1), (20, 30, u64::MAX)];
        assert_eq!(merged, bins(&expected));
        assert_eq!(Bin::total(&second), 10);
        assert_eq!(Bin::total(&merged), u64::MAX);
    }

    /// Check the keys and the form of every value in files.
    #[test]
    fn contract() {
        let spec = ImportedSpec {
            measured_by: "cyclictest 2.40".to_owned(),
            cpus: "0-1".parse().unwrap(),
            threshold_ns: None,
            resolution_ns: Some(Nanos::from_micros(1)),
        };
        let [five, six, nine] = [5, 6, 9].map(Nanos::from_micros);
        let bins = vec![Bin { from_ns: five, until_ns: six, count: 7 }];
        let lengths = ImportedLengths {
            tag: Some("a".to_owned()),
            elapsed_ns: Some(nine),
            count: Some(8),
            sum_ns: Some(nine),
            min_ns: Some(five),
            max_ns: Some(nine),
            quantiles: vec![(990_000, six)],
            bins: bins.clone(),
            intervals: vec![BinnedInterval { start_ns: five, length_ns: nine, bins }],
            ..ImportedLengths::new(LengthKind::WakeupLatency, Some(Cpu::new(1)))
        };
        let series = ImportedSeries { command: None, lengths: vec![lengths] };
        let about = serde_json::json!({
            "measured_by": "cyclictest 2.40", "cpus": "0,1", "threshold_ns": null,
            "resolution_ns": 1_000,
        });
        let seen = serde_json::json!({
            "command": null, "lengths": [{
                "kind": "wakeup_latency", "cpu": 1, "tag": "a", "elapsed_ns": 9_000, "count": 8,
                "sum_ns": 9_000, "min_ns": 5_000, "max_ns": 9_000,
                "quantiles": [[990_000, 6_000]], "bins": [[5_000, 6_000, 7]],
                "intervals": [{"start_ns": 5_000, "length_ns": 9_000,
                    "bins": [[5_000, 6_000, 7]]}],
            }],
        });
        assert_eq!(serde_json::to_value(&spec).unwrap(), about);
        assert_eq!(serde_json::from_value::<ImportedSpec>(about).unwrap(), spec);
        assert_eq!(serde_json::to_value(&series).unwrap(), seen);
        assert_eq!(serde_json::from_value::<ImportedSeries>(seen).unwrap(), series);
    }
}
