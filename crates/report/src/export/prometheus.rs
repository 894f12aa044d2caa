//! Metrics in Prometheus' text format, for the textfile collector of node_exporter.
//!
//! <https://prometheus.io/docs/instrumenting/exposition_formats/>; names and base units follow
//! <https://prometheus.io/docs/practices/naming/>: seconds and ratios, with the unit last.

use std::collections::BTreeMap;
use std::fmt::Write;

use recording::Recording;
use stats::{Metric, Summary, Unit};

/// The metrics of a recording with this summary, and when it was taken.
pub fn prometheus_text(recording: &Recording, summary: &Summary) -> String {
    let mut text = String::new();
    let metrics = stats::metrics(summary);
    let mut groups: BTreeMap<String, Vec<&Metric>> = BTreeMap::new();
    for metric in &metrics {
        groups.entry(name(metric)).or_default().push(metric);
    }
    for (name, metrics) in &groups {
        let help = metrics.first().map_or("", |metric| metric.about.help);
        head(&mut text, name, help);
        for metric in metrics {
            let cpu =
                metric.cpu.map_or(String::new(), |cpu| format!("{{cpu=\"{cpu}\"}}"));
            // Writing to a string does not fail.
            let _ = writeln!(text, "{name}{cpu} {}", value(metric));
        }
    }
    if let Some(taken) = recording.taken_seconds() {
        let name = "noisefloor_taken_timestamp_seconds";
        head(&mut text, name, "when the measurement was taken");
        let _ = writeln!(text, "{name} {taken}");
    }
    text
}

fn head(text: &mut String, name: &str, help: &str) {
    let help = help.replace('\\', "\\\\").replace('\n', " ");
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
}

/// `gap_ns_max` becomes `noisefloor_gap_max_seconds`.
fn name(metric: &Metric) -> String {
    let (own, unit, _) = base_unit(metric.about.unit);
    let words = metric.key.split('_').filter(|word| *word != own);
    format!("noisefloor_{}{unit}", words.collect::<Vec<_>>().join("_"))
}

/// The value in the base unit.
fn value(metric: &Metric) -> f64 {
    let (_, _, parts) = base_unit(metric.about.unit);
    metric.value / parts
}

/// The unit in our keys, the base unit at the end of names, and how many of ours are one of it.
fn base_unit(unit: Unit) -> (&'static str, &'static str, f64) {
    match unit {
        Unit::Ns => ("ns", "_seconds", 1e9),
        Unit::Ppm => ("ppm", "_ratio", 1e6),
        Unit::Hz => ("hz", "_hertz", 1.0),
        Unit::Instructions | Unit::Count => ("", "", 1.0),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::example::{self, GUEST};

    /// Check names, units, labels and values.
    #[test]
    fn noise() {
        let noise = example::noise(GUEST, 2);
        assert_snapshot!(prometheus_text(&noise, &Summary::of(&noise)), @r#"
        # HELP noisefloor_gap_max_seconds longest gap
        # TYPE noisefloor_gap_max_seconds gauge
        noisefloor_gap_max_seconds{cpu="0"} 0.0000058
        noisefloor_gap_max_seconds{cpu="1"} 0.001704567
        # HELP noisefloor_gap_p50_seconds median length of the gaps
        # TYPE noisefloor_gap_p50_seconds gauge
        noisefloor_gap_p50_seconds{cpu="0"} 0.00000445
        noisefloor_gap_p50_seconds{cpu="1"} 0.000004511
        # HELP noisefloor_gap_p99_seconds length that 99 % of the gaps do not exceed
        # TYPE noisefloor_gap_p99_seconds gauge
        noisefloor_gap_p99_seconds{cpu="0"} 0.0000058
        noisefloor_gap_p99_seconds{cpu="1"} 0.000005861
        # HELP noisefloor_gaps_hertz gaps per second
        # TYPE noisefloor_gaps_hertz gauge
        noisefloor_gaps_hertz{cpu="0"} 249.9
        noisefloor_gaps_hertz{cpu="1"} 250.5
        # HELP noisefloor_noise_ratio OS noise
        # TYPE noisefloor_noise_ratio gauge
        noisefloor_noise_ratio{cpu="0"} 0.001112055
        noisefloor_noise_ratio{cpu="1"} 0.0020000391
        # HELP noisefloor_taken_timestamp_seconds when the measurement was taken
        # TYPE noisefloor_taken_timestamp_seconds gauge
        noisefloor_taken_timestamp_seconds 1795156212
        "#);
    }
}
