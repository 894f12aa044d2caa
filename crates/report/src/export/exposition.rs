//! Prometheus' text format: <https://prometheus.io/docs/instrumenting/exposition_formats/>.

use std::borrow::Cow;
use std::fmt::Write;

/// What a family's values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetricType {
    /// They only grow, until the process ends.
    Counter,
    /// They can be any.
    Gauge,
    /// Counts of lengths, by upper bound.
    Histogram,
}

/// The values of one name.
pub(crate) struct Family {
    pub(crate) name: Cow<'static, str>,
    pub(crate) kind: MetricType,
    pub(crate) help: &'static str,
    pub(crate) values: Vec<Value>,
}

/// A value, with what follows the name, and its labels.
pub(crate) struct Value {
    pub(crate) suffix: &'static str,
    pub(crate) labels: String,
    pub(crate) value: f64,
}

impl Value {
    /// A value of the name itself.
    pub(crate) fn new(labels: String, value: f64) -> Self {
        Self { suffix: "", labels, value }
    }
}

/// The families that have values.
pub(crate) fn text(families: impl Iterator<Item = Family>) -> String {
    let mut text = String::new();
    for family in families.filter(|family| !family.values.is_empty()) {
        add(&mut text, &family);
    }
    text
}

// Writing to a string does not fail.
fn add(text: &mut String, family: &Family) {
    let Family { name, kind, help, values } = family;
    let kind = match kind {
        MetricType::Counter => "counter",
        MetricType::Gauge => "gauge",
        MetricType::Histogram => "histogram",
    };
    let help = help.replace('\\', "\\\\").replace('\n', " ");
    let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    for Value { suffix, labels, value } in values {
        let _ = writeln!(text, "{name}{suffix}{labels} {value}");
    }
}

/// Labels with their values; none without any.
pub(crate) fn labels(all: &[(&str, &str)]) -> String {
    let label = |(name, value): &(&str, &str)| format!("{name}=\"{}\"", escaped(value));
    match all {
        [] => String::new(),
        all => format!("{{{}}}", all.iter().map(label).collect::<Vec<_>>().join(",")),
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
