//! A run, reduced to the numbers that are compared: what the history of a machine stores.

use recording::{Doubt, Recording};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stats::Unit;

use crate::comparison::observation::{CulpritNumber, MetricNumber, Observation};
use crate::comparison::variants;
use crate::metrics::benchmark_key::BenchmarkKey;
use crate::metrics::definition;
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

impl RunNumbers {
    /// The numbers of a recording, whose summary may be known.
    pub fn of(recording: &Recording, summary: Option<&Summary>) -> Self {
        let Observation { metrics, culprits } = Observation::of(recording, summary);
        Self {
            taken: recording.taken.clone(),
            metrics,
            culprits,
            facts: variants::facts(&recording.facts),
            parameters: variants::parameters(recording),
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
        match BenchmarkKey::of(metric) {
            Some(key) => Some(key.metric_unit()),
            None => definition(metric).map(|about| about.unit),
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
        let numbers = RunNumbers::of(&recording, Some(&Summary::of(&recording)));
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
        assert_eq!(RunNumbers::unit("BM_Sort/8:ns"), Some(Unit::Ns));
        assert_eq!(RunNumbers::unit("x_ns_p50:B/op"), Some(Unit::Count));
    }
}
