//! The JSON object that each measuring command prints with `--json`.
//!
//! The summary is always computed from the series. With `--series` the object is a recording
//! that can be read again.

use facts::Facts;
use recording::{Body, Doubt, FORMAT, HardwareCounts, Moments, Recording, Repeat};
use serde::Serialize;
use summary::{HardwareSummary, Summary};

use crate::json::metrics::Metrics;
use crate::measurements::check::actions::advice;
use crate::measurements::check::findings::{FindingText, findings};

pub(crate) mod advice;
pub(crate) mod cells;
pub(crate) mod explanations;
pub(crate) mod metrics;
pub(crate) mod trace;

/// What all objects begin with.
#[derive(Serialize)]
struct Object<'a, T> {
    format: u32,
    kind: &'a str,
    #[serde(flatten)]
    content: T,
}

/// The content as a JSON object of this kind.
pub(crate) fn object(kind: &str, content: impl Serialize) -> serde_json::Result<String> {
    serde_json::to_string_pretty(&Object { format: FORMAT, kind, content })
}

#[derive(Serialize)]
struct Measured<'a, Spec, Series> {
    taken: &'a str,
    tool: &'a str,
    facts: &'a Facts,
    spec: &'a Spec,
    summary: SummaryJson<'a>,
    metrics: Metrics,
    #[serde(skip_serializing_if = "Option::is_none")]
    series: Option<&'a Series>,
    doubts: &'a [Doubt],
    #[serde(flatten)]
    moments: &'a Moments,
    #[serde(skip_serializing_if = "Option::is_none")]
    hardware: Option<HardwareJson<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeat: &'a Option<Repeat>,
}

#[derive(Serialize)]
struct HardwareJson<'a> {
    #[serde(flatten)]
    counts: &'a HardwareCounts,
    all: HardwareSummary,
}

#[derive(Serialize)]
struct FactsOnly<'a> {
    taken: &'a str,
    tool: &'a str,
    facts: &'a Facts,
    doubts: &'a [Doubt],
}

#[derive(Serialize)]
struct SummaryJson<'a> {
    #[serde(flatten)]
    summary: &'a Summary,
    /// For `check` only.
    #[serde(skip_serializing_if = "Option::is_none")]
    findings: Option<Vec<FindingText>>,
}

/// A recording and its summary as one JSON object, with its raw series only if requested.
///
/// # Errors
/// Serialisation does not fail for these types.
pub fn json(
    recording: &Recording,
    summary: &Summary,
    with_series: bool,
) -> serde_json::Result<String> {
    let findings = if let Summary::Check(check) = summary {
        let facts = &recording.facts;
        Some(findings(facts, advise::findings(facts, check, &advice(facts, check))))
    } else {
        None
    };
    let hardware = recording.hardware.as_ref();
    let hardware =
        hardware.map(|counts| HardwareJson { counts, all: HardwareSummary::of(counts) });
    macro_rules! object {
        ($($(#[$_about:meta])* $kind:ident $_name:literal $($_type:ident)*;)*) => {
            match &recording.body {
                $(Body::$kind { spec, series } => {
                    let series = with_series.then_some(series);
                    object(recording.body.kind(), Measured {
                        taken: &recording.taken,
                        tool: &recording.tool,
                        facts: &recording.facts,
                        spec,
                        summary: SummaryJson { summary, findings },
                        metrics: Metrics(summary::metrics(summary)),
                        series,
                        doubts: &recording.doubts,
                        moments: &recording.moments,
                        hardware,
                        repeat: &recording.repeat,
                    })
                })*
            }
        };
    }
    recording::kinds!(object)
}

/// Facts as one JSON object; `taken` and `tool` are those of a recording made now.
///
/// # Errors
/// Serialisation does not fail for these types.
pub fn facts_json(facts: &Facts, taken: &str, tool: &str) -> serde_json::Result<String> {
    object("facts", FactsOnly { taken, tool, facts, doubts: &[] })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::Value;

    use super::*;
    use crate::example::latency as latency_example;
    use crate::example::{self, GUEST};

    fn keys(value: &Value) -> Vec<&str> {
        value.as_object().unwrap().keys().map(String::as_str).collect()
    }

    fn parsed(recording: &Recording, with_series: bool) -> Value {
        serde_json::from_str(
            &json(recording, &Summary::of(recording), with_series).unwrap(),
        )
        .unwrap()
    }

    /// Check the top level of every kind, and that the series is there only if requested.
    #[test]
    fn top_level() {
        let recordings = [
            example::noise(GUEST, 2),
            example::ticks(GUEST, 2, 2),
            example::check(GUEST, 2),
            example::calls(GUEST),
            latency_example::latency(GUEST, 2),
            example::run(GUEST),
            example::wakers(GUEST, 20),
            example::guests(GUEST, 20),
            example::watch::watch(GUEST),
            example::jitter(GUEST),
            example::slices(GUEST, true),
        ];
        for recording in &recordings {
            let object = parsed(recording, false);
            let expected = [
                "doubts", "facts", "format", "kind", "metrics", "spec", "summary",
                "taken", "tool",
            ];
            let mut found = keys(&object);
            found.sort_unstable();
            assert_eq!(found, expected);
            assert_eq!(object["format"], 1);
            assert_eq!(object["kind"], recording.body.kind());
            assert_eq!(object["facts"]["tick"]["hz"], 250);
            assert!(parsed(recording, true)["series"].is_object());
        }
    }

    /// Check the order of the keys.
    #[test]
    fn order() {
        let recording = example::noise(GUEST, 1);
        let text = json(&recording, &Summary::of(&recording), true).unwrap();
        let order = [
            "format", "kind", "taken", "tool", "facts", "spec", "summary", "metrics",
            "series", "doubts",
        ];
        let places: Vec<usize> = order
            .iter()
            .map(|key| text.find(&format!("\n  \"{key}\"")).unwrap())
            .collect();
        assert!(places.is_sorted(), "{places:?}");
    }

    /// Check that an object with its series is a recording that can be read again.
    #[test]
    fn loads_again() {
        let recordings = [
            example::noise(GUEST, 2),
            example::check(GUEST, 2),
            example::calls(GUEST),
            latency_example::latency(GUEST, 2),
            example::run(GUEST),
            example::wakers(GUEST, 20),
            example::guests(GUEST, 20),
            example::watch::watch(GUEST),
            example::jitter(GUEST),
            example::slices(GUEST, true),
        ];
        for recording in recordings {
            let text = json(&recording, &Summary::of(&recording), true).unwrap();
            let again = Recording::from_json(&text, Path::new("again.json")).unwrap();
            assert_eq!(again, recording);
        }
    }

    /// Check that `check` has both summaries and the findings.
    #[test]
    fn check_has_findings() {
        let object = parsed(&example::check(GUEST, 2), false);
        assert_eq!(keys(&object["summary"]), ["findings", "noise", "rest", "verdict"]);
        let first = &object["summary"]["findings"][0];
        assert_eq!(keys(first), ["action", "code", "next", "numbers", "text"]);
        assert_eq!(first["code"], "tick");
        assert_eq!(first["numbers"]["hz"], 250);
        assert_eq!(object["summary"]["rest"]["cpus"][0]["timer_hz"], 11.0);
        let cpu = &object["summary"]["noise"]["cpus"][1];
        assert_eq!(cpu["gap_ns"]["max"], 1_704_567);
        assert_eq!(cpu["proc"]["interrupts"][2]["name"], "virtio1-req.0");
        assert_eq!(cpu["culprits"][0]["ns"], cpu["noise_ns"]);
        assert_eq!(object["doubts"][0]["code"], "too_short");
    }

    /// Check that the names in the summary of `calls` are the same as in its specification.
    #[test]
    fn calls_have_their_names() {
        let object = parsed(&example::calls(GUEST), false);
        let calls = object["summary"]["calls"].as_array().unwrap();
        let names: Vec<&Value> = calls.iter().map(|call| &call["name"]).collect();
        let requested: Vec<&Value> =
            object["spec"]["calls"].as_array().unwrap().iter().collect();
        assert_eq!((names.len(), names), (8, requested));
        assert_eq!(object["summary"]["cpu"], 1);
        assert_eq!(calls[0]["step_ns"]["p50"], 73);
    }

    /// Check the object of `facts`.
    #[test]
    fn facts_alone() {
        let text = facts_json(
            &example::facts(GUEST),
            "2026-11-20T06:30:12Z",
            "noisefloor 0.1.0",
        );
        let object: Value = serde_json::from_str(&text.unwrap()).unwrap();
        assert_eq!(object["kind"], "facts");
        assert_eq!(object["doubts"], serde_json::json!([]));
        assert_eq!(
            object["facts"]["unknown"]["sched.base_slice_ns"]["code"],
            "needs_root"
        );
    }
}
