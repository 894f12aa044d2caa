//! Text from outside, as it may be shown: names of threads and devices, words of kernels, files.
//!
//! Every user may name a thread anything (`prctl(PR_SET_NAME)`), and a recording may come from
//! anywhere. A character that a terminal or a browser does not show as a character of its own is
//! written as an escape: control characters (`\x1b`), and those of Unicode that change the
//! direction of text, end a line or take no room (`\u{202e}`; Unicode's Default_Ignorable_Code_Point
//! without variation selectors, and UAX #9, 2.).

use std::borrow::Cow;

/// The text in one line: line feeds and tabs are written as escapes, too.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, is_hidden)
}

/// The same for text of several lines, whose line feeds and tabs stay.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_hidden(c) && !matches!(c, '\n' | '\t'))
}

/// The character as an escape: `\x1b`, `\u{202e}`.
pub fn escape(c: char) -> String {
    let number = u32::from(c);
    if number < 0x100 { format!("\\x{number:02x}") } else { format!("\\u{{{number:x}}}") }
}

/// Whether a character is not shown as one: it controls, or cannot be seen.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}'
            | '\u{17b5}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

fn escaped(text: &str, is_hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_hidden(c) {
            true => shown.push_str(&escape(c)),
            false => shown.push(c),
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that what a terminal would act on is escaped, and everything else stays.
    #[test]
    fn escapes() {
        for (text, shown) in [
            ("kworker/0:1-events", "kworker/0:1-events"),
            ("\x1b[2J\x07", "\\x1b[2J\\x07"),
            ("a\nb\tc\r", "a\\x0ab\\x09c\\x0d"),
            ("\u{9b}31m\u{7f}", "\\x9b31m\\x7f"),
            ("\u{202e}gpj\u{2066}", "\\u{202e}gpj\\u{2066}"),
            (
                "a\u{200b}b\u{2028}\u{feff}\u{e0041}",
                "a\\u{200b}b\\u{2028}\\u{feff}\\u{e0041}",
            ),
            ("µs … → 漢字 ﷺ é", "µs … → 漢字 ﷺ é"),
        ] {
            assert_eq!(printable(text), shown);
        }
        assert_eq!(printable_lines("a\n\tb\x1b"), "a\n\tb\\x1b");
    }
}
