//! Tables that would be wider than the terminal: names are cut, numbers are not.

use std::ops::RangeInclusive;

use crate::text::layout::table::columns;
use crate::text::layout::width::{is_narrow, width};

/// The text that `build` makes with the largest width for names with which every line fits; with
/// the smallest one if none fits.
pub(crate) fn fitted(
    widths: RangeInclusive<usize>,
    build: impl Fn(usize) -> String,
) -> String {
    let least = *widths.start();
    if is_narrow() {
        // Its tables are divided, so that they fit with any width of names.
        return build(least);
    }
    widths.rev().map(&build).find(|text| fits(text)).unwrap_or_else(|| build(least))
}

/// Whether every line fits the terminal.
pub(crate) fn fits(text: &str) -> bool {
    text.lines().all(|line| columns(line) <= width())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that names get all of the remaining width, and never less than the smallest.
    #[test]
    fn as_much_as_fits() {
        let beside = |numbers: usize| move |name: usize| "x".repeat(numbers + name);
        assert_eq!(fitted(6..=20, beside(10)).len(), 30);
        assert_eq!(fitted(6..=20, beside(70)).len(), 80);
        assert_eq!(fitted(6..=20, beside(90)).len(), 96);
    }
}
