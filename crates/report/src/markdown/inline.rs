//! Text in a block of Markdown: what a parser of CommonMark, or of GitHub, reads is exactly the text as
//! [`printable`] shows it.
//!
//! Names and commands are code. So are words that GitHub would replace by links (`@user`, `#1`) or
//! formulas. Characters that could begin markup are escaped everywhere, whatever is before them; those
//! that a code span or a cell cannot contain are references (`&#124;`).

use units::printable;

use crate::document::text::{Mark, Text};

/// The text in one line, without line feeds.
pub(crate) fn inline(text: &Text) -> String {
    let mut markdown = String::new();
    for (is_code, piece) in pieces(text) {
        markdown.push_str(&if is_code { code(&piece) } else { words(&piece) });
    }
    guard_edges(markdown)
}

/// The same at the begin of a line.
pub(crate) fn line(text: &Text) -> String {
    at_begin(inline(text))
}

/// Markdown that begins no list, heading or rule at the begin of a line.
pub(crate) fn at_begin(mut markdown: String) -> String {
    let digits = markdown.bytes().take_while(u8::is_ascii_digit).count();
    let is_item = digits > 0 && markdown[digits..].starts_with(['.', ')']);
    if is_item || markdown.starts_with(['+', '-', '=', ':', '>']) {
        markdown.insert(digits, '\\');
    }
    markdown
}

/// A block of lines that are shown as they are.
pub(crate) fn fenced(language: &str, lines: &str) -> String {
    let mut fence = "```".to_owned();
    while lines.contains(&fence) {
        fence.push('`');
    }
    let end = if lines.ends_with('\n') { "" } else { "\n" };
    format!("{fence}{language}\n{lines}{end}{fence}\n")
}

/// The printable text, divided into code and words, which alternate.
fn pieces(text: &Text) -> Vec<(bool, String)> {
    let mut pieces: Vec<(bool, String)> = Vec::new();
    let mut push = |is_code: bool, piece: &str| match pieces.last_mut() {
        Some((was_code, last)) if *was_code == is_code => last.push_str(piece),
        _ if piece.is_empty() => {}
        _ => pieces.push((is_code, piece.to_owned())),
    };
    for part in text.parts() {
        let printable = printable(&part.text);
        if matches!(part.mark, Mark::Name | Mark::Command) {
            push(true, &printable);
            continue;
        }
        for word in printable.split_inclusive(' ') {
            let bare = word.trim_end_matches(' ');
            push(is_replaced(bare), bare);
            push(false, &word[bare.len()..]);
        }
    }
    pieces
}

/// Whether GitHub would replace a part of this word by a link or a formula.
fn is_replaced(word: &str) -> bool {
    let refers = word
        .split('#')
        .skip(1)
        .any(|after| after.starts_with(|c: char| c.is_ascii_digit()));
    let lower = word.to_ascii_lowercase();
    refers || word.contains(['@', '$']) || lower.contains("://") || lower.contains("www.")
}

/// Code spans, and between them the characters that they cannot contain.
fn code(text: &str) -> String {
    let mut markdown = String::new();
    for piece in text.split_inclusive(['`', '|']) {
        let span = piece.trim_end_matches(['`', '|']);
        // One space at both ends is not part of the span.
        let is_trimmed = span.starts_with(' ')
            && span.ends_with(' ')
            && !span.trim_matches(' ').is_empty();
        let space = if is_trimmed { " " } else { "" };
        if !span.is_empty() {
            markdown.push_str(&format!("`{space}{span}{space}`"));
        }
        markdown.extend(piece[span.len()..].chars().map(reference));
    }
    markdown
}

fn words(text: &str) -> String {
    let mut markdown = String::new();
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let is_alphanumeric = |c: char| c.is_ascii_alphanumeric();
        match c {
            '`' | '|' => markdown.push_str(&reference(c)),
            '_' if is_alphanumeric(before)
                && rest.peek().is_some_and(|&c| is_alphanumeric(c)) =>
            {
                markdown.push(c);
            }
            '\\' | '*' | '_' | '[' | ']' | '<' | '#' | '&' | '~' => {
                markdown.extend(['\\', c])
            }
            c => markdown.push(c),
        }
        before = c;
    }
    markdown
}

/// The text with references for spaces at its ends, which a parser would remove.
fn guard_edges(mut markdown: String) -> String {
    if let Some(last) = markdown.chars().next_back().filter(|c| c.is_whitespace()) {
        markdown.truncate(markdown.len() - last.len_utf8());
        markdown.push_str(&reference(last));
    }
    match markdown.chars().next().filter(|c| c.is_whitespace()) {
        Some(first) => reference(first) + &markdown[first.len_utf8()..],
        None => markdown,
    }
}

fn reference(c: char) -> String {
    format!("&#{};", u32::from(c))
}
