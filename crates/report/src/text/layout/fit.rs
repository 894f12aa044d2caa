//! Tables that would be wider than the terminal: names give way to numbers.

use std::ops::RangeInclusive;

use crate::text::layout::paragraph::WIDTH;
use crate::text::layout::table::columns;

/// The text that `build` makes when names get as much room as lets every line fit; where
/// none does, the one with the least.
pub(crate) fn fitted(
    room: RangeInclusive<usize>,
    build: impl Fn(usize) -> String,
) -> String {
    let least = *room.start();
    room.rev().map(&build).find(|text| fits(text)).unwrap_or_else(|| build(least))
}

/// Whether every line fits the terminal.
pub(crate) fn fits(text: &str) -> bool {
    text.lines().all(|line| columns(line) <= WIDTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that names get all the room there is, and no more, and some in any case.
    #[test]
    fn as_much_as_fits() {
        let beside = |numbers: usize| move |name: usize| "x".repeat(numbers + name);
        assert_eq!(fitted(6..=20, beside(10)).len(), 30);
        assert_eq!(fitted(6..=20, beside(70)).len(), 80);
        assert_eq!(fitted(6..=20, beside(90)).len(), 96);
    }
}
