//! Untrusted text, escaped for display: names of threads and devices, kernel messages, files.
//!
//! Every user may give a thread any name (`prctl(PR_SET_NAME)`), and a recording may come from any
//! source. Characters that a terminal or a browser does not display are escaped: control
//! characters (`\x1b`), and those Unicode characters that change the direction of text, end a line
//! or have no width (`\u{202e}`; Unicode's Default_Ignorable_Code_Point without variation
//! selectors, and UAX #9, 2.).

use std::borrow::Cow;

/// Escapes text for one line: line feeds and tabs are escaped, too.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, is_hidden)
}

/// Escapes text of several lines: line feeds and tabs are not escaped.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| is_hidden(c) && !matches!(c, '\n' | '\t'))
}

/// Escapes a character: `\x1b`, `\u{202e}`.
pub fn escape(c: char) -> String {
    let number = u32::from(c);
    if number < 0x100 { format!("\\x{number:02x}") } else { format!("\\u{{{number:x}}}") }
}

/// Whether a character is a control character or invisible.
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
    let mut output = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match is_hidden(c) {
            true => output.push_str(&escape(c)),
            false => output.push(c),
        }
    }
    Cow::Owned(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that control sequences are escaped, and other text is unchanged.
    #[test]
    fn escapes() {
        for (text, expected) in [
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
            assert_eq!(printable(text), expected);
        }
        assert_eq!(printable_lines("a\n\tb\x1b"), "a\n\tb\\x1b");
    }
}
