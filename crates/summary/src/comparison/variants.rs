//! The facts and parameters of a set of runs: what differs between two sets explains most
//! differences of their numbers.

use facts::{Entry, Facts};
use itertools::Itertools;
use recording::{Body, Recording, Source, StepSetting};
use serde::Serialize;
use serde_json::{Map, Value};

/// The groups of facts about the noisefloor process rather than the machine, and of those that change all
/// the time; and single facts that do.
const NOT_COMPARED: [&str; 3] = ["security", "tracing", "pressure"];
const COUNTS: [&str; 2] = ["cgroup.throttling", "power.dma_latency_holders"];

/// The shortest gap that was stored, and the factor within which it is the same: it is calibrated before
/// each run, and differs a little each time.
const THRESHOLD: &str = "gap_threshold_ns";
const CALIBRATED_WITHIN: f64 = 2.0;

/// The distinct values of each key in a set of runs, in the order in which they first occur. A value
/// that is unknown is not one of them.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Variants {
    /// Keys in the order of output, with their values.
    pub keys: Vec<(String, Vec<Value>)>,
}

impl Variants {
    /// The prefix of the keys of settings that were changed for a run.
    pub const SETTING: &'static str = "settings.";

    /// Adds the values of a run.
    pub(crate) fn add(&mut self, values: &[(String, Value)]) {
        for (key, value) in values {
            match self.keys.iter_mut().find(|(known, _)| known == key) {
                Some((_, own)) if own.contains(value) => {}
                Some((_, own)) => own.push(value.clone()),
                None => self.keys.push((key.clone(), vec![value.clone()])),
            }
        }
    }

    /// The values of a key; empty if they are unknown.
    pub fn of(&self, key: &str) -> &[Value] {
        let own = self.keys.iter().find(|(known, _)| known == key);
        own.map_or(&[], |(_, values)| values)
    }

    /// The facts that do not have the same values in all sets, in order of output. One that is unknown in
    /// one of them is not listed.
    pub fn differing_facts<'a>(sets: &[&'a Self]) -> Vec<&'a str> {
        Self::differing(sets, |values| !values.is_empty())
    }

    /// The same for parameters. One that a set does not have has no value there.
    pub fn differing_parameters<'a>(sets: &[&'a Self]) -> Vec<&'a str> {
        Self::differing(sets, |_| true)
    }

    /// The keys that differ, of the sets in which they are compared.
    fn differing<'a>(
        sets: &[&'a Self],
        is_compared: fn(&[Value]) -> bool,
    ) -> Vec<&'a str> {
        let differs = |key: &str| {
            let values = sets.iter().map(|set| set.of(key));
            let compared: Vec<&[Value]> =
                values.filter(|values| is_compared(values)).collect();
            compared.windows(2).any(|pair| !is_same(pair[0], pair[1]))
                && !is_calibrated(key, &compared)
        };
        let keys = sets.iter().flat_map(|set| &set.keys).map(|(key, _)| key.as_str());
        keys.unique().filter(|key| differs(key)).collect()
    }

    /// The keys with several values within the set.
    pub fn varying(&self) -> impl Iterator<Item = &str> {
        let several = self.keys.iter().filter(|(key, values)| {
            values.len() > 1 && !is_calibrated(key, &[values.as_slice()])
        });
        several.map(|(key, _)| key.as_str())
    }
}

/// Whether both have the same values, in any order; no value is as good as null.
fn is_same(a: &[Value], b: &[Value]) -> bool {
    let are_in = |own: &[Value], other: &[Value]| {
        own.iter()
            .all(|value| other.contains(value) || (value.is_null() && other.is_empty()))
    };
    are_in(a, b) && are_in(b, a)
}

/// Whether these are thresholds that differ by their calibration only.
fn is_calibrated(key: &str, sets: &[&[Value]]) -> bool {
    let all: Option<Vec<f64>> =
        sets.iter().copied().flatten().map(Value::as_f64).collect();
    let ends = all.and_then(|all| all.into_iter().minmax().into_option());
    key == THRESHOLD
        && sets.iter().all(|values| !values.is_empty())
        && ends.is_some_and(|(least, most)| most <= least * CALIBRATED_WITHIN)
}

/// The known facts about the machine.
pub(crate) fn facts(facts: &Facts) -> Vec<(String, Value)> {
    let page = facts.page();
    let entries = page.entries().iter();
    let is_compared = |entry: &&Entry| {
        !NOT_COMPARED.contains(&entry.group()) && !COUNTS.contains(&entry.key)
    };
    let compared = entries.filter(is_compared);
    let known =
        compared.filter_map(|one| Some((one.key, one.value.as_ref().ok()?.clone())));
    known.map(|(key, value)| (key.to_owned(), value)).collect()
}

/// The parameters of a measurement, with its kind, the source of its events, the shortest gap that was
/// stored, which may be calibrated, and the settings that were changed for it.
pub(crate) fn parameters(recording: &Recording) -> Vec<(String, Value)> {
    let body = &recording.body;
    let kind = ("kind".to_owned(), Value::from(body.kind()));
    let events = ("events".to_owned(), Value::from(body.source().map(Source::name)));
    let threshold = body.noise().map(|noise| Value::from(noise.threshold_ns.get()));
    let threshold = threshold.map(|threshold| (THRESHOLD.to_owned(), threshold));
    let mut spec =
        if let Ok(Value::Object(spec)) = spec(body) { spec } else { Map::new() };
    // What the file of a benchmark says about its run, each for itself.
    let environment = match spec.remove("environment") {
        Some(Value::Object(environment)) => environment,
        Some(_) | None => Map::new(),
    };
    let settings = recording.repeat.iter().flat_map(|repeat| &repeat.settings);
    let settings = settings.map(|StepSetting { name, value }| {
        (format!("{}{name}", Variants::SETTING), Value::from(value.as_str()))
    });
    let known = [kind, events].into_iter().chain(threshold);
    known.chain(spec).chain(environment).chain(settings).collect()
}

fn spec(body: &Body) -> serde_json::Result<Value> {
    macro_rules! spec {
        ($($(#[$_about:meta])* $kind:ident $_name:literal $($_type:ident)*;)*) => {
            match body { $(Body::$kind { spec, .. } => serde_json::to_value(spec),)* }
        };
    }
    recording::kinds!(spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(runs: &[(&str, &[Option<u64>])]) -> Variants {
        let mut set = Variants::default();
        for (key, values) in runs {
            for value in *values {
                let known = value.map(|value| ((*key).to_owned(), Value::from(value)));
                set.add(known.as_slice());
            }
        }
        set
    }

    /// Check that a key differs if its values do, whatever their order; that what is unknown does not, but
    /// that a parameter that is only there in one of both does.
    #[test]
    fn differences() {
        let a = set(&[
            ("same", &[Some(1), Some(2)]),
            ("other", &[Some(1)]),
            ("more", &[Some(1), Some(1)]),
            ("unknown", &[Some(1)]),
            ("missing", &[Some(1)]),
        ]);
        let b = set(&[
            ("same", &[Some(2), Some(1)]),
            ("other", &[Some(3)]),
            ("more", &[Some(1), Some(4)]),
            ("unknown", &[None]),
        ]);
        assert_eq!(Variants::differing_facts(&[&a, &b]), ["other", "more"]);
        let parameters = ["other", "more", "unknown", "missing"];
        assert_eq!(Variants::differing_parameters(&[&a, &b]), parameters);
        assert_eq!(Variants::differing_parameters(&[&b, &a]).len(), 4);
        assert_eq!(Variants::differing_parameters(&[&a, &a]), [""; 0]);
        assert!(is_same(&[Value::Null], &[]) && !is_same(&[Value::from(1)], &[]));
        assert_eq!(a.varying().collect::<Vec<_>>(), ["same"]);
    }

    /// Check that thresholds differ only if it is by more than their calibration.
    #[test]
    fn thresholds() {
        let of = |values: &[Option<u64>]| set(&[(THRESHOLD, values)]);
        let [usual, near, far, none] =
            [&[Some(648), Some(724)][..], &[Some(686)], &[Some(1_400)], &[]].map(of);
        assert_eq!(Variants::differing_parameters(&[&usual, &near]), [""; 0]);
        for other in [&far, &none] {
            assert_eq!(Variants::differing_parameters(&[&usual, other]), [THRESHOLD]);
        }
        assert_eq!(usual.varying().count(), 0);
        let wide = of(&[Some(648), Some(1_400)]);
        assert_eq!(wide.varying().collect::<Vec<_>>(), [THRESHOLD]);
    }
}
