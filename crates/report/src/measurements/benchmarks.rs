//! The report of benchmarks that another tool has run: a table for each unit.

use itertools::Itertools;
use recording::{BenchmarksSeries, BenchmarksSpec, Recording, ValueUnit};
use summary::{BenchmarkSummary, BenchmarksSummary};

use crate::document::Document;
use crate::document::list::{Item, List};
use crate::document::table::{Column, Table};
use crate::document::text::{Text, text};
use crate::measurements::program::beginning;
use crate::number;

/// Of more benchmarks in a unit, a screen has the first ones.
const SHOWN: usize = 40;
/// Larger numbers without a unit of time have three digits.
const LARGE: f64 = 1e6;

pub(crate) fn benchmarks(
    recording: &Recording,
    spec: &BenchmarksSpec,
    series: &BenchmarksSeries,
    summary: &BenchmarksSummary,
) -> Document {
    let title = Item {
        commands: series.command.iter().map(|command| beginning(command)).collect(),
        ..Item::new(title(recording, spec))
    };
    let units = summary.benchmarks.iter().map(|one| &one.unit).unique();
    let tables = units.map(|unit| {
        let of_unit = summary.benchmarks.iter().filter(|one| one.unit == *unit);
        Document::section(about(unit), table(&of_unit.collect::<Vec<_>>()))
    });
    let environment = Table::terms(
        spec.environment
            .iter()
            .map(|(name, value)| [Text::name(name), Text::name(value)]),
    );
    Document::from(List::lines([title]))
        .add_all(tables)
        .add_full(Document::section("What the file says about the run", environment))
}

fn title(recording: &Recording, spec: &BenchmarksSpec) -> Text {
    let mut title = text!("Benchmarks of {}", Text::name(&spec.measured_by));
    if let Some(release) = recording.facts.kernel.release.get() {
        title.push(text!(", Linux {}", Text::name(release)));
    }
    text!("{}, at {}.", title, Text::name(&recording.taken))
}

fn about(unit: &ValueUnit) -> Text {
    match unit {
        ValueUnit::Ns => "Times".into(),
        ValueUnit::Other(name) if name == "count" => "Counts".into(),
        ValueUnit::Other(name) if name == "number" => "Values".into(),
        ValueUnit::Other(name) => text!("In {}", Text::name(name)),
    }
}

fn table(benchmarks: &[&BenchmarkSummary]) -> Table {
    let listed = &benchmarks[..benchmarks.len().min(SHOWN)];
    let is_of_tool = listed.iter().any(|one| !one.has_values);
    let of_tool = " Without \"values\", the file has statistics of the tool only.";
    let legend = text!(
        "\"±\": the standard deviation in parts of the mean.{}",
        if is_of_tool { of_tool } else { "" }
    );
    Table::of(listed)
        .column(Column::name("benchmark", 12..=34), |one| Text::name(&one.name))
        .number("values", |one| match (one.has_values, one.count) {
            (true, Some(count)) => number::count(count),
            _ => number::NONE.into(),
        })
        .numbers(["min", "median", "mean", "max"], |one| {
            [one.min, one.median, one.mean, one.max].map(|value| known(one, value))
        })
        .number("±", |one| number::any(one.stddev_ppm.map(number::ratio)))
        .table
        .legend(legend)
        .rest(number::more(benchmarks.len() - listed.len(), "more"))
}

fn known(of: &BenchmarkSummary, value: Option<f64>) -> Text {
    let print = |value: f64| match of.unit {
        ValueUnit::Ns => number::in_unit(value, stats::Unit::Ns),
        ValueUnit::Other(_) if value >= LARGE => {
            number::rounded(value, number::short_count)
        }
        ValueUnit::Other(_) => number::in_unit(value, stats::Unit::Count),
    };
    number::any(value.map(print))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::{Body, Recording};

    use crate::measurements::text_of;

    fn example() -> Recording {
        let golden = include_str!("../../../recording/tests/golden/benchmarks-1.json");
        Recording::from_json(golden, "benchmarks.json".as_ref()).unwrap()
    }

    /// Check times below a nanosecond, other units, and benchmarks of which only statistics are known.
    #[test]
    fn units() {
        assert_snapshot!(text_of(&example()));
    }

    /// Check that long names fit, that escape sequences are none, and that a screen has a part of many rows.
    #[test]
    fn many() {
        let mut recording = example();
        let Body::Benchmarks { series, .. } = &mut recording.body else { panic!() };
        let first = series.benchmarks[0].clone();
        for number in 0..50 {
            let name = format!("\x1b[31m{}{number}", "long name ".repeat(9));
            series.benchmarks.push(recording::Benchmark { name, ..first.clone() });
        }
        let text = text_of(&recording);
        assert!(!text.contains('\x1b'), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("13 more: see --json"), "{text}");
    }
}
