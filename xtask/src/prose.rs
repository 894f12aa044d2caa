//! The words of a file's text, with their lines.
//!
//! The text of Rust and C is comments and string literals; that of other files is everything. Code
//! in backticks on one line is omitted, and so are the names in `{}` of a string: both are
//! identifiers. Cannot see text that macros build from tokens.

/// The kind of a file, which determines its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    /// Comments and string literals are text.
    Code,
    /// Everything is text.
    Plain,
}

/// A word in lower case, and its line, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    pub(crate) text: String,
    pub(crate) line: usize,
}

/// The words of a file's text, in order.
pub(crate) fn words(text: &str, language: Language) -> Vec<Word> {
    let text = match language {
        Language::Code => of_code(text),
        Language::Plain => text.to_owned(),
    };
    let lines = text.lines().map(without_code).zip(1..);
    lines.flat_map(|(text, line)| split(&text, line)).collect()
}

fn split(text: &str, line: usize) -> Vec<Word> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '_');
    text.split(|c| !is_part(c))
        .map(|word| word.trim_matches('\'').to_lowercase())
        .filter(|word| !word.is_empty())
        .map(|text| Word { text, line })
        .collect()
}

/// A line without its spans in backticks; one that is not closed is text.
fn without_code(line: &str) -> String {
    let parts: Vec<&str> = line.split('`').collect();
    let closed = parts.len() % 2 == 1;
    let is_text = |at: &usize| at % 2 == 0 || (!closed && *at == parts.len() - 1);
    let text = (0..parts.len()).filter(is_text).map(|at| parts[at]);
    text.collect::<Vec<_>>().join(" ")
}

/// Source code with every character outside of comments and strings replaced by a space, except line
/// feeds.
fn of_code(code: &str) -> String {
    let mut text = String::with_capacity(code.len());
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let (length, is_text) = next_piece(rest, first);
        let (piece, after) = rest.split_at(length);
        match is_text {
            true if first == '/' => text.push_str(piece),
            true => text
                .push_str(&without_arguments(piece.trim_start_matches(['b', 'c', 'r']))),
            false => text.extend(piece.chars().map(|c| if c == '\n' { c } else { ' ' })),
        }
        rest = after;
    }
    text
}

/// The length of the comment, literal, word or character at the start of the code, and whether it
/// is text.
fn next_piece(code: &str, first: char) -> (usize, bool) {
    let end = |found: Option<usize>| found.unwrap_or(code.len());
    match first {
        '/' if code.starts_with("//") => (end(code.find('\n')), true),
        '/' if code.starts_with("/*") => (end(code.find("*/").map(|at| at + 2)), true),
        '"' => (end_of_string(code), true),
        'r' | 'b' | 'c' if raw_quote(code).is_some() => {
            let (start, quote) = raw_quote(code).unwrap_or_default();
            (end(code[start..].find(&quote).map(|at| start + at + quote.len())), true)
        }
        '\'' => (end_of_char(code), false),
        c if c.is_alphanumeric() || c == '_' => {
            (end(code.find(|c: char| !c.is_alphanumeric() && c != '_')), false)
        }
        c => (c.len_utf8(), false),
    }
}

/// The start of the text of a raw string, and its end delimiter.
fn raw_quote(code: &str) -> Option<(usize, String)> {
    let hashes = code.trim_start_matches(['b', 'c']).strip_prefix('r')?;
    let quoted = hashes.trim_start_matches('#').strip_prefix('"')?;
    let count = hashes.len() - quoted.len() - 1;
    Some((code.len() - quoted.len(), format!("\"{}", "#".repeat(count))))
}

fn end_of_string(code: &str) -> usize {
    let mut escaped = false;
    for (at, c) in code.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    code.len()
}

/// The end of a character literal; a lifetime is only its quote.
fn end_of_char(code: &str) -> usize {
    let mut characters = code.char_indices().skip(1);
    match (characters.next(), characters.next()) {
        (Some((_, '\\')), Some((at, _))) => {
            let closed = code[at + 1..].find('\'');
            closed.map_or(code.len(), |more| at + 1 + more + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

/// A string literal without the arguments of a format string.
fn without_arguments(literal: &str) -> String {
    let mut text = String::with_capacity(literal.len());
    let mut parts = literal.split('{');
    text.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let after = part.split_once('}').filter(|(name, _)| !name.contains('\n'));
        text.push(' ');
        text.push_str(after.map_or(part, |(_, after)| after));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str, language: Language) -> Vec<String> {
        words(text, language).into_iter().map(|word| word.text).collect()
    }

    /// Check that comments and strings of code are text, but not names and characters.
    #[test]
    fn code() {
        let code = "/// One\nfn two<'a>(three: &'a str) { f('\"', '\\'', \"four {five} {}\") } /* six */";
        assert_eq!(texts(code, Language::Code), ["one", "four", "six"]);
        let raw = "let a = r#\"seven \"eight\" \"#; let b = br\"nine\"; ten";
        assert_eq!(texts(raw, Language::Code), ["seven", "eight", "nine"]);
        assert_eq!(texts("\"a \\\" b\" c", Language::Code), ["a", "b"]);
    }

    /// Check the lines of words, in code, too.
    #[test]
    fn lines() {
        let code = "fn a() {\n    // One\n    b(\"two\n three\");\n}\n";
        let lines: Vec<usize> =
            words(code, Language::Code).iter().map(|word| word.line).collect();
        assert_eq!(lines, [2, 3, 4]);
    }

    /// Check that code in backticks is omitted, and that an apostrophe is part of a word.
    #[test]
    fn documents() {
        assert_eq!(
            texts("One `two` Intel's 'x'", Language::Plain),
            ["one", "intel's", "x"]
        );
        assert_eq!(texts("one ` two", Language::Plain), ["one", "two"]);
    }
}
