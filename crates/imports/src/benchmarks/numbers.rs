//! Plain numbers, one a line, with or without a unit: `12.5`, `12.5 ms`. Lines that begin with `#` are comments.
//!
//! Nothing is known of numbers without a unit, so that no value is better than another.

use recording::BetterValues;

use crate::benchmarks::unit::Measured;
use crate::benchmarks::{BenchmarkFile, shown};
use crate::import::{Failure, corrupt};

/// The name of the only series.
const NAME: &str = "values";
/// The unit of numbers without one.
const UNIT: &str = "number";

/// A number, and what follows it.
pub(crate) fn number(line: &str) -> Option<(f64, &str)> {
    let line = line.trim();
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, '.' | '-' | '+');
    let is_exponent = |at: usize| {
        line[at + 1..].starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+'))
    };
    let end = line.char_indices().find(|(at, c)| {
        !(is_part(*c) || matches!(c, 'e' | 'E') && *at > 0 && is_exponent(*at))
    });
    let (digits, rest) = line.split_at(end.map_or(line.len(), |(at, _)| at));
    let has_digit = digits.contains(|c: char| c.is_ascii_digit());
    Some((digits.parse().ok().filter(|_| has_digit)?, rest.trim()))
}

/// Whether a line is a number with at most one word behind it.
pub(crate) fn is_number(line: &str) -> bool {
    number(line)
        .is_some_and(|(_, unit)| unit.len() <= 16 && !unit.contains([' ', ',', ';']))
}

/// Whether a line has no number: an empty one, or a comment.
pub(crate) fn is_comment(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with('#')
}

pub(crate) fn parse(text: &str) -> Result<BenchmarkFile, Failure> {
    let mut found = BenchmarkFile::by("numbers");
    let mut first: Option<&str> = None;
    let mut values = Vec::new();
    for (line, at) in text.lines().zip(1..).filter(|(line, _)| !is_comment(line)) {
        let (value, unit) = number(line).ok_or_else(|| {
            corrupt(format!("line {at}: '{}' is no number", shown(line)))
        })?;
        let first = *first.get_or_insert(unit);
        if unit != first {
            let (unit, first) = (shown(unit), shown(first));
            return Err(corrupt(format!(
                "line {at}: the unit is '{unit}', and '{first}' before: units are mixed"
            )));
        }
        values.push(value);
    }
    let measured = match first {
        None | Some("") => Measured::other(UNIT, BetterValues::Unknown),
        Some(unit) => Measured::named(unit),
    };
    if !values.is_empty() {
        found.add(NAME, &measured, &values)?;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check numbers with signs, exponents and units, and what is none.
    #[test]
    fn lines() {
        for (text, expected) in [
            ("12", Some((12.0, ""))),
            (" -1.5e3 ", Some((-1500.0, ""))),
            ("12.5ms", Some((12.5, "ms"))),
            ("3 elements", Some((3.0, "elements"))),
            ("3e", Some((3.0, "e"))),
            ("1e5µs", Some((1e5, "µs"))),
            ("", None),
            ("-", None),
            ("nan", None),
            ("inf", None),
            ("e5", None),
            ("1.2.3", None),
        ] {
            assert_eq!(number(text), expected, "{text}");
        }
    }
}
