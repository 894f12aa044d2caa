//! The last line of a program's output, for the reason why it failed.

/// A longer line of output is cut, in characters.
const LINE_MAX: usize = 200;

/// The last line with text, without control characters; a long one is cut.
pub(crate) fn last_line(output: &str) -> Option<String> {
    let text = |line: &str| {
        let plain: String = line.chars().filter(|c| !c.is_control()).collect();
        let plain = plain.trim().to_owned();
        match plain.char_indices().nth(LINE_MAX) {
            Some((end, _)) => format!("{}…", &plain[..end]),
            None => plain,
        }
    };
    output.lines().rev().map(text).find(|line| !line.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the reason has a line that can be read, whatever a program writes.
    #[test]
    fn last_lines() {
        assert_eq!(last_line("one\n two \n\n\0\0\n").as_deref(), Some("two"));
        assert_eq!(last_line("\x1b[1mred\r\n").as_deref(), Some("[1mred"));
        assert_eq!(last_line("\0\n"), None);
        let long = last_line(&"x".repeat(10_000)).unwrap();
        assert_eq!(long.chars().count(), LINE_MAX + 1);
    }
}
