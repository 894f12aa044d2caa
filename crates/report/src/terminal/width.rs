//! The width of the terminal that the report is for.

use std::borrow::Cow;
use std::cell::Cell;

use crate::fitting::columns::columns;
use crate::fitting::lines::wrapped;

/// Reports are not wider than this on any terminal.
pub(crate) const WIDEST: usize = 80;
/// A table of names and numbers does not fit fewer columns.
const NARROWEST: usize = 40;

thread_local! {
    static WIDTH: Cell<usize> = const { Cell::new(WIDEST) };
}

/// Sets the width of the reports that this thread makes: from 40 to 80 columns, by default 80.
pub fn set_width(columns: usize) {
    WIDTH.set(columns.clamp(NARROWEST, WIDEST));
}

/// The width of a report.
pub fn width() -> usize {
    WIDTH.get()
}

/// Whether the terminal is narrower than that which reports are designed for.
pub(crate) fn is_narrow() -> bool {
    width() < WIDEST
}

/// The text with all lines broken that are wider than a narrow terminal: those that are neither part
/// of a paragraph nor of a table.
pub fn folded(text: &str) -> Cow<'_, str> {
    let is_wide = |line: &str| columns(line) > width();
    if !is_narrow() || !text.lines().any(is_wide) {
        return Cow::Borrowed(text);
    }
    let mut folded = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let content = line.trim_start_matches(' ');
        if !is_wide(line.trim_end()) {
            folded.push_str(line);
            continue;
        }
        let indent = (line.len() - content.len()).min(width() / 2);
        for part in wrapped(content, width() - indent) {
            folded.push_str(&" ".repeat(indent));
            folded.push_str(&part);
            folded.push('\n');
        }
        if !line.ends_with('\n') {
            folded.pop();
        }
    }
    Cow::Owned(folded)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that lines are broken on narrow terminals only, with their indentation and without a
    /// lost word, and that there is a least width.
    #[test]
    fn narrow() {
        let text = "  one two three four five six seven eight nine ten\nshort\n\n  a";
        assert_eq!(folded(text), text);
        set_width(1);
        assert_eq!(width(), NARROWEST);
        let expected =
            "  one two three four five six seven\n  eight nine ten\nshort\n\n  a";
        assert_eq!(folded(text), expected);
        set_width(300);
        assert_eq!(width(), WIDEST);
    }
}
