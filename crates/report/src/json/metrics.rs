//! The object `metrics` of the JSON: the numbers that limits and baselines read, by their keys.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use summary::Metric;

/// Metrics by key: a number, or an object with the number of each CPU.
pub(crate) struct Metrics(pub(crate) Vec<Metric>);

impl Serialize for Metrics {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        let mut keys: Vec<&str> = Vec::new();
        for Metric { key, cpu, value, .. } in &self.0 {
            match cpu {
                None => map.serialize_entry(key, &Number(*value))?,
                Some(_) if keys.contains(&key.as_str()) => {}
                Some(_) => {
                    keys.push(key);
                    map.serialize_entry(key, &OfCpus(&self.0, key))?;
                }
            }
        }
        map.end()
    }
}

/// One metric of each CPU.
struct OfCpus<'a>(&'a [Metric], &'a str);

impl Serialize for OfCpus<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let own = self.0.iter().filter(|metric| metric.key == self.1);
        to.collect_map(own.filter_map(|metric| Some((metric.cpu?, Number(metric.value)))))
    }
}

/// Counts have no decimal point.
struct Number(f64);

impl Serialize for Number {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be a whole number that an f64 has exactly"
    )]
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            whole if whole.fract() == 0.0 && (0.0..9e15).contains(&whole) => {
                to.serialize_u64(whole as u64)
            }
            value => to.serialize_f64(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use summary::{Summary, metrics, metrics_of};

    use super::*;
    use crate::example::cell::tick_cost;
    use crate::example::{self, GUEST};

    fn of(metrics: Vec<Metric>) -> serde_json::Value {
        serde_json::to_value(Metrics(metrics)).unwrap()
    }

    /// Check that metrics of CPUs are objects, that others are numbers, and that counts are whole.
    #[test]
    fn contract() {
        let noise = of(metrics(&Summary::of(&example::noise(GUEST, 2))));
        assert_eq!(noise["gap_ns_max"]["1"], 1_704_567);
        assert!(noise["noise_ppm"]["0"].is_f64(), "{noise}");
        let cell =
            example::cell::cell("other", example::cell::OLD, tick_cost(&[2584], &[]));
        assert_eq!(of(metrics_of(&cell))["tick_instructions"], 2584);
    }
}
