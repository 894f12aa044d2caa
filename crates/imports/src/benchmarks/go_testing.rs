//! The text of Go's benchmarks (`go test -bench`), also within the JSON of `go test -json`.
//!
//! The format is that of <https://golang.org/design/14313-benchmark-format>: a name, a number of iterations, and
//! pairs of a value and its unit. Lines of one name are runs of one benchmark (`-count`). Which values of a unit
//! are better is known of Go's own, and of those that a line `Unit NAME better=lower` describes.

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;

use recording::{BetterValues, Code, Doubt};
use serde::Deserialize;

use crate::benchmarks::unit::Measured;
use crate::benchmarks::{BenchmarkFile, whole_lines};
use crate::import::{Failure, corrupt, of_json};

/// Keys of lines that describe the machine and the package.
const ENVIRONMENT: [&str; 3] = ["goos", "goarch", "cpu"];
const PACKAGE: &str = "pkg";
/// What every name begins with.
const PREFIX: &str = "Benchmark";

/// A line of `go test -json`.
#[derive(Deserialize)]
struct Event {
    #[serde(rename = "Action")]
    action: String,
    #[serde(rename = "Output", default)]
    output: String,
}

/// Whether a line is the result of a benchmark.
pub(crate) fn is_result(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_name = words.next().is_some_and(|word| word.starts_with(PREFIX));
    let is_number = |word: Option<&str>, is: fn(&str) -> bool| word.is_some_and(is);
    is_name
        && is_number(words.next(), |word| word.parse::<u64>().is_ok())
        && is_number(words.next(), |word| word.parse::<f64>().is_ok())
        && words.next().is_some()
}

/// The output of all tests in the JSON.
pub(crate) fn parse_json(text: &str) -> Result<BenchmarkFile, Failure> {
    let mut output = String::new();
    let (lines, is_cut) = whole_lines(text);
    for (_, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let event: Event = serde_json::from_str(line).map_err(of_json)?;
        if event.action == "output" {
            output.push_str(&event.output);
        }
    }
    let mut found = parse(&output)?;
    if is_cut {
        found.doubts.push(cut());
    }
    Ok(found)
}

fn cut() -> Doubt {
    Doubt::new(Code::Interrupted, "the last line is cut off, and was left out")
}

pub(crate) fn parse(text: &str) -> Result<BenchmarkFile, Failure> {
    let packages = text.lines().filter_map(|line| of_key(line, PACKAGE));
    let packages: BTreeSet<&str> = packages.collect();
    let mut found = BenchmarkFile::by("go test");
    let mut package = "";
    let mut directions = HashMap::new();
    let (lines, is_cut) = whole_lines(text);
    for (number, line) in lines {
        if is_result(line) {
            let prefix = if packages.len() > 1 { package } else { "" };
            add(&mut found, prefix, line, &directions)
                .map_err(|(kind, why)| (kind, format!("line {number}: {why}")))?;
        } else if let Some(own) = of_key(line, PACKAGE) {
            package = own;
            found.environment(PACKAGE, (packages.len() == 1).then_some(own));
        } else if let Some(rest) = line.strip_prefix("Unit ") {
            directions.extend(direction(rest));
        } else {
            for key in ENVIRONMENT {
                found.environment(key, of_key(line, key));
            }
        }
    }
    if is_cut {
        found.doubts.push(cut());
    }
    Ok(found)
}

/// The value of a line `key: value`.
fn of_key<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    Some(line.strip_prefix(key)?.strip_prefix(':')?.trim())
}

/// The unit and its direction in `allocs/op better=lower`.
fn direction(text: &str) -> Option<(String, BetterValues)> {
    let mut words = text.split_whitespace();
    let unit = words.next()?;
    let better = match words.find_map(|word| word.strip_prefix("better="))? {
        "lower" => BetterValues::Less,
        "higher" => BetterValues::More,
        _ => return None,
    };
    Some((unit.to_owned(), better))
}

/// Adds the values of a line.
fn add(
    found: &mut BenchmarkFile,
    package: &str,
    line: &str,
    directions: &HashMap<String, BetterValues>,
) -> Result<(), Failure> {
    let mut words = line.split_whitespace();
    let mut name = String::new();
    let separator = if package.is_empty() { "" } else { "." };
    // Writing to a string does not fail.
    let _ = write!(name, "{package}{separator}{}", words.next().unwrap_or_default());
    words.next(); // the number of iterations
    while let Some(value) = words.next() {
        let unit =
            words.next().ok_or_else(|| corrupt(format!("'{value}' has no unit")))?;
        let value: f64 =
            value.parse().map_err(|_| corrupt(format!("'{value}' is not a number")))?;
        let mut measured = Measured::named(unit);
        if let Some(better) = directions.get(unit) {
            measured.better = *better;
        }
        found.add(&name, &measured, &[value])?;
    }
    Ok(())
}
