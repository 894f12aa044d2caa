//! Whether a measurement has any measured value at all.
//!
//! A count of zero is a value: a thread that nothing woke, a CPU without a gap. A measurement without
//! a value ended before its first one was complete.

use units::Nanos;

use crate::{Body, CheckSeries, Code, Doubt, JitterSeries, NoiseSeries, SlicesSeries};

impl Body {
    /// Whether there is a measured value.
    pub fn has_values(&self) -> bool {
        match self {
            Self::Noise { series, .. } => has_noise(series),
            Self::Ticks { series, .. } => !series.samples.is_empty(),
            Self::Check { series: CheckSeries { rest, noise }, .. } => {
                !rest.samples.is_empty() || has_noise(noise)
            }
            Self::Calls { series, .. } => {
                series.calls.iter().any(|call| !call.step_ns.is_empty())
            }
            Self::Latency { series, .. } => {
                let mut cpus = series.cpus.iter();
                cpus.any(|cpu| !cpu.wakeups.is_empty() || cpu.lost.is_some())
            }
            Self::NohzTest { series, .. } | Self::NohzStress { series, .. } => {
                !series.tries.is_empty()
            }
            Self::Jitter { series, .. } => has_tests(series),
            Self::Slices { series, .. } => has_slices(series),
            Self::Top { series, .. } => !series.samples.is_empty(),
            Self::Imported { series, .. } => !series.lengths.is_empty(),
            Self::Benchmarks { series, .. } => !series.benchmarks.is_empty(),
            Self::Scale { series, .. } => {
                let mut runs = series.counts.iter().flat_map(|count| &count.runs);
                runs.any(|one| !one.run_ns.is_empty())
            }
            // Counts over any time, and the end of a program with its usage, are values.
            Self::Wakers { .. }
            | Self::Watch { .. }
            | Self::Guests { .. }
            | Self::Run { .. }
            | Self::Program { .. } => true,
        }
    }

    /// The doubt of a measurement without a value, unless another one says so already.
    pub(crate) fn nothing_measured(&self, doubts: &[Doubt]) -> Option<Doubt> {
        let is_known = doubts.iter().any(|doubt| doubt.code == Code::NothingMeasured);
        (!is_known && !self.has_values()).then(|| {
            let text =
                "nothing was measured: the measurement ended before its first value";
            Doubt::new(Code::NothingMeasured, text)
        })
    }
}

fn has_noise(series: &NoiseSeries) -> bool {
    series.cpus.iter().any(|cpu| cpu.elapsed_ns > Nanos::ZERO)
}

fn has_tests(series: &JitterSeries) -> bool {
    !series.tests.is_empty() || series.lost.is_some()
}

/// Whether any process has run in a sample.
fn has_slices(series: &SlicesSeries) -> bool {
    let samples = series.turns.iter().flat_map(|turn| &turn.samples);
    samples.flat_map(|sample| &sample.tasks).any(|task| task.cpu_ns > Nanos::ZERO)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Recording;

    /// The places of the values of each kind, below `series`, and what they are without a value.
    const VALUES: [(&str, &[&str], &str); 10] = [
        ("benchmarks", &["/benchmarks"], "[]"),
        ("calls", &["/calls"], "[]"),
        ("check", &["/rest/samples", "/noise/cpus"], "[]"),
        ("imported", &["/lengths"], "[]"),
        ("jitter", &["/tests"], "[]"),
        ("latency", &["/cpus/0/wakeups"], "[]"),
        ("noise", &["/cpus/0/elapsed_ns"], "0"),
        ("slices", &["/turns/0/samples"], "[]"),
        ("ticks", &["/samples"], "[]"),
        ("nohz_test", &["/tries"], "[]"),
    ];

    fn example(kind: &str) -> serde_json::Value {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
        let file = |kind| std::fs::read_to_string(folder.join(kind)).unwrap();
        if kind != "nohz_test" {
            return serde_json::from_str(&file(format!("{kind}-1.json"))).unwrap();
        }
        let mut whole = example("jitter");
        whole["kind"] = kind.into();
        whole["spec"] = serde_json::json!({"cpu": 1, "tries": 1, "limit_ns": 5,
            "forced": false, "fifo": 99, "observe_ns": 1});
        whole["series"] = serde_json::json!({"elapsed_ns": 5, "kept_by": null,
            "observed": null, "tries": [{"entered": false, "wait_ns": 5, "left": 0}]});
        whole
    }

    fn doubt(whole: &serde_json::Value, doubts: &[Doubt]) -> Option<Code> {
        let read = Recording::from_json(&whole.to_string(), Path::new("my.json"));
        read.unwrap().body.nothing_measured(doubts).map(|doubt| doubt.code)
    }

    /// Check that a recording of each kind has values, and that one without them has one grave doubt.
    #[test]
    fn nothing_is_a_doubt() {
        for (kind, places, without) in VALUES {
            let mut whole = example(kind);
            assert_eq!(doubt(&whole, &[]), None, "{kind}");
            for list in ["turns", "cpus"] {
                if let Some(list) = whole["series"][list].as_array_mut() {
                    list.truncate(1);
                }
            }
            for place in places {
                assert_eq!(doubt(&whole, &[]), None, "{kind}: {place}");
                let value = whole["series"].pointer_mut(place).unwrap();
                *value = serde_json::from_str(without).unwrap();
            }
            assert_eq!(doubt(&whole, &[]), Some(Code::NothingMeasured), "{kind}");
            let known = Doubt::new(Code::NothingMeasured, "no test was complete");
            assert!(known.is_grave());
            assert_eq!(doubt(&whole, &[known]), None, "{kind}");
        }
    }
}
