//! Metrics as lines of comma-separated values (RFC 4180).

use std::fmt::Write;

use recording::Recording;
use stats::Unit;
use summary::{BenchmarkKey, Summary};

/// The head of the table.
pub const CSV_HEAD: &str = "file,taken,metric,cpu,unit,value\n";

/// The metrics of a recording, a line each.
pub fn metrics_csv(file: &str, recording: &Recording) -> String {
    let mut text = String::new();
    let (file, taken) = (quoted(file), quoted(&recording.taken));
    for metric in summary::metrics(&Summary::of(recording)) {
        let cpu = metric.cpu.map_or(String::new(), |cpu| cpu.to_string());
        let (key, unit) =
            (quoted(&metric.key), quoted(unit_of(&metric.key, metric.about.unit)));
        // Writing to a string does not fail.
        let _ = writeln!(text, "{file},{taken},{key},{cpu},{unit},{}", metric.value);
    }
    text
}

/// The unit of a metric for programs; of a benchmark, that of its tool.
pub(crate) fn unit_of(key: &str, of: Unit) -> &str {
    BenchmarkKey::of(key).map_or_else(|| unit(of), |key| key.unit)
}

/// The name of a unit for programs; empty for counts.
pub(crate) fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Ns => "ns",
        Unit::Ppm => "ppm",
        Unit::Hz => "Hz",
        Unit::Instructions => "instructions",
        Unit::Count => "",
    }
}

/// A field, in quotes where the format needs them.
fn quoted(field: &str) -> String {
    match field.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", field.replace('"', "\"\"")),
        false => field.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::*;
    use crate::example::{self, GUEST};

    /// Check the columns, and that a name with a comma and quotes is one field.
    #[test]
    fn noise() {
        assert_snapshot!(metrics_csv("a,\"b\".json", &example::noise(GUEST, 1)), @r#"
        "a,""b"".json",2026-11-20T06:30:12Z,noise_ppm,0,ppm,1112.055
        "a,""b"".json",2026-11-20T06:30:12Z,gap_ns_p50,0,ns,4450
        "a,""b"".json",2026-11-20T06:30:12Z,gap_ns_p99,0,ns,5800
        "a,""b"".json",2026-11-20T06:30:12Z,gap_ns_max,0,ns,5800
        "a,""b"".json",2026-11-20T06:30:12Z,gaps_hz,0,Hz,249.9
        "#);
    }
}
