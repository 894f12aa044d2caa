//! A run, reduced to the numbers that are compared: what the history of a machine stores.

use recording::{CulpritKind, Doubt, Recording};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stats::Unit;
use units::{Cpu, Ppm};

use crate::comparison::observation::Observation;
use crate::comparison::quantity::Quantity;
use crate::comparison::variants;
use crate::metrics::definition;
use crate::metrics::definition::Metric;
use crate::summary::Summary;

/// The numbers of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunNumbers {
    /// When it was taken: RFC 3339, UTC.
    pub taken: String,
    /// Its metrics.
    pub metrics: Vec<MetricNumber>,
    /// The time that it lost to each source of noise; null if single events were not traced.
    pub culprits: Option<Vec<CulpritNumber>>,
    /// The facts that are known, those of this process and its tracing excepted.
    pub facts: Vec<(String, Value)>,
    /// The parameters of the measurement.
    pub parameters: Vec<(String, Value)>,
    /// Reasons not to trust a number.
    pub doubts: Vec<Doubt>,
}

/// A metric of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricNumber {
    /// Its key.
    pub metric: String,
    /// The CPU; null for a metric that is not of a CPU.
    pub cpu: Option<Cpu>,
    /// Its value.
    pub value: f64,
}

/// The share of its time that a run lost to a culprit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CulpritNumber {
    /// The kind of event.
    pub kind: CulpritKind,
    /// The name of the interrupt, the thread, ...
    pub name: String,
    /// The share.
    pub ppm: Ppm,
}

impl RunNumbers {
    /// The numbers of a recording with this summary.
    pub fn of(recording: &Recording, summary: &Summary) -> Self {
        let Observation { metrics, culprits } =
            Observation::with_summary(recording, summary);
        let known = |values: Vec<(String, Option<Value>)>| {
            values.into_iter().filter_map(|(key, value)| Some((key, value?))).collect()
        };
        Self {
            taken: recording.taken.clone(),
            metrics: metrics.into_iter().map(MetricNumber::of).collect(),
            culprits: culprits
                .map(|all| all.into_iter().filter_map(CulpritNumber::of).collect()),
            facts: known(variants::facts(&recording.facts)),
            parameters: known(variants::parameters(recording)),
            doubts: recording.doubts.clone(),
        }
    }

    /// The value of a metric on the worst CPU: the largest one.
    pub fn worst(&self, metric: &str) -> Option<f64> {
        let own = self.metrics.iter().filter(|one| one.metric == metric);
        own.map(|one| one.value).reduce(f64::max)
    }

    /// The unit of a metric, if there is such a metric.
    pub fn unit(metric: &str) -> Option<Unit> {
        definition(metric).map(|about| about.unit)
    }

    pub(crate) fn observation(&self) -> Observation {
        let metric = |one: &MetricNumber| {
            let about = definition(&one.metric)?;
            let (key, cpu, value) = (one.metric.clone(), one.cpu, one.value);
            Some(Metric { key, cpu, value, tolerance: 0.0, about })
        };
        let culprit = |one: &CulpritNumber| {
            let (kind, name) = (one.kind, one.name.clone());
            (Quantity::Culprit { kind, name }, one.ppm)
        };
        Observation {
            metrics: self.metrics.iter().filter_map(metric).collect(),
            culprits: self.culprits.as_ref().map(|all| all.iter().map(culprit).collect()),
        }
    }
}

impl MetricNumber {
    fn of(metric: Metric) -> Self {
        Self { metric: metric.key, cpu: metric.cpu, value: metric.value }
    }
}

impl CulpritNumber {
    fn of((quantity, ppm): (Quantity, Ppm)) -> Option<Self> {
        match quantity {
            Quantity::Culprit { kind, name } => Some(Self { kind, name, ppm }),
            Quantity::Metric { .. } => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comparison::run_set::RunSet;

    /// Check that stored numbers make the same set as the recording, and that they can be read again.
    #[test]
    fn the_same_set() {
        let text = include_str!("../../../recording/tests/golden/noise-1.json");
        let recording = Recording::from_json(text, "noise.json".as_ref()).unwrap();
        let numbers = RunNumbers::of(&recording, &Summary::of(&recording));
        let stored = serde_json::to_string(&numbers).unwrap();
        let read: RunNumbers = serde_json::from_str(&stored).unwrap();
        assert_eq!(read, numbers);
        let [mut one, mut other] = [RunSet::default(), RunSet::default()];
        one.add(&recording);
        other.add_numbers(&read);
        assert_eq!(one.spreads(), other.spreads());
        assert_eq!(one.culprit_spreads(), other.culprit_spreads());
        assert_eq!((one.taken, one.doubts), (other.taken, other.doubts));
        assert!(numbers.worst("noise_ppm").is_some_and(|value| value > 0.0));
        assert_eq!(RunNumbers::unit("noise_ppm"), Some(Unit::Ppm));
        assert_eq!(RunNumbers::unit("getpid_ns_p50"), Some(Unit::Ns));
        assert_eq!(RunNumbers::unit("no_such_metric"), None);
    }
}
