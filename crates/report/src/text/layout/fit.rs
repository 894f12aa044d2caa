//! Tables that would be wider than the terminal: names are cut, numbers are not.

use std::ops::RangeInclusive;

use crate::text::layout::paragraph::WIDTH;
use crate::text::layout::table::columns;

/// The text that `build` makes with the largest width for names with which every line fits; with
/// the smallest one if none fits.
pub(crate) fn fitted(
    widths: RangeInclusive<usize>,
    build: impl Fn(usize) -> String,
) -> String {
    let least = *widths.start();
    widths.rev().map(&build).find(|text| fits(text)).unwrap_or_else(|| build(least))
}

/// Whether every line fits the terminal.
pub(crate) fn fits(text: &str) -> bool {
    text.lines().all(|line| columns(line) <= WIDTH)
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
