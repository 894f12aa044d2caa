//! The width of text on a terminal, and texts that are cut to one.

/// The width of a text on the terminal. Every character counts as one column: names of interrupts
/// and threads are ASCII, and the reports themselves contain no wide characters.
pub(crate) fn columns(text: &str) -> usize {
    text.chars().count()
}

/// The text, cut to `width` columns if it is longer.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let start: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{}…", start.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that cut texts have the width and end with an ellipsis.
    #[test]
    fn cuts() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "ab…");
        assert_eq!(cut("ab cd", 4), "ab…");
    }
}
