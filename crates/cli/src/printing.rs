//! Output to standard output and standard error; no other module of this crate writes there.
//!
//! Names of threads, devices and files, kernel messages and errors can contain any character,
//! including escape sequences. Text passes one filter here: of the characters that a terminal
//! interprets or does not show, line feeds and tabs are left, and all others are written as
//! escapes ([`units::printable_lines`]); colours are added after it. Line feeds in names are escaped by `report`, and by the
//! code that creates an error's text. If the locale is not UTF-8, the text is ASCII.
//!
//! JSON keeps its value: in strings such characters become `\u` escapes.

use std::borrow::Cow;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::pipe::PIPE_BUF;
use units::{escape, is_hidden, printable, printable_lines};

use report::{Document, Role, View, terminal_parts, terminal_text};

use crate::outcome::Failure;

/// The least width of a terminal for pictures.
const WIDE: usize = 60;

/// Sets the width of reports to that of the terminal, or to `COLUMNS` if that is set. `run` prints
/// its report to standard error.
pub(crate) fn fit_terminal(is_on_stderr: bool) {
    let set = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let size = || match is_on_stderr {
        true => terminal_size::terminal_size_of(io::stderr()),
        false => terminal_size::terminal_size_of(io::stdout()),
    };
    let columns = set.or_else(|| size().map(|(width, _)| usize::from(width.0)));
    // A terminal of unknown width has none.
    if let Some(columns) = columns.filter(|&columns| columns > 0) {
        ::report::set_width(columns);
    }
}

/// Prints text to standard output; returns whether it is still read.
pub(crate) fn print(text: &str) -> Result<bool, Failure> {
    print_exactly(&for_people(&::report::folded(text), is_ascii_only()))
}

/// Prints a report to standard output, of the requested size.
pub(crate) fn print_document(document: &Document, view: View) -> Result<bool, Failure> {
    let (is_ascii, has_colours) = (is_ascii_only(), has_colours());
    let parts = terminal_parts(document, view).into_iter().map(|part| {
        let lines = for_people(&::report::folded(&part.lines), is_ascii).into_owned();
        if has_colours { coloured(part.role, &lines) } else { lines }
    });
    print_exactly(&parts.collect::<String>())
}

/// Whether standard output shows colours, unless `NO_COLOR` is set (no-color.org).
fn has_colours() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_none_or(|terminal| terminal == "dumb");
    io::stdout().is_terminal() && !is_dumb && !is_set("NO_COLOR")
}

/// The lines in bold or in the colour of their role, which each line ends.
fn coloured(role: Role, lines: &str) -> String {
    let begin = match role {
        Role::Plain => return lines.to_owned(),
        Role::Title => "\x1b[1m",
        Role::Command => "\x1b[36m",
        Role::Doubt => "\x1b[1;33m",
    };
    lines.lines().map(|line| format!("{begin}{line}\x1b[0m\n")).collect()
}

/// Whether standard output is a terminal that is wide enough for pictures.
pub(crate) fn has_wide_terminal() -> bool {
    io::stdout().is_terminal() && ::report::width() >= WIDE
}

/// Prints a report to standard error.
pub(crate) fn say_document(document: &Document, view: View) {
    say_lines(&terminal_text(document, View { has_pictures: false, ..view }));
}

/// Prints a JSON object to standard output.
pub(crate) fn print_json(json: &str) -> Result<(), Failure> {
    print_exactly(&escaped_json(json, is_ascii_only()))?;
    print_exactly("\n").map(drop)
}

/// Prints the content of a file to standard output: unchanged, but filtered on a terminal.
pub(crate) fn print_content(text: &str) -> Result<bool, Failure> {
    match io::stdout().is_terminal() {
        true => print_exactly(&for_people(text, is_ascii_only())),
        false => print_exactly(text),
    }
}

fn print_exactly(text: &str) -> Result<bool, Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::refused(format!("standard output: {error}"))),
    }
}

/// Prints a message to standard error. Further lines are indented, so that none of them looks
/// like a message.
pub(crate) fn say(text: impl std::fmt::Display) {
    say_lines(&message(text));
}

/// The same, but not if it would have to wait: for a reader, or for a thread that waits for one.
pub(crate) fn say_without_waiting(text: impl std::fmt::Display) {
    let (error, text) = (io::stderr(), message(text));
    let mut writable = [PollFd::new(&error, PollFlags::OUT)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    if let Ok(1) = poll(&mut writable, Some(&now)) {
        let text = for_people(&text, is_ascii_only());
        let text = text.as_bytes();
        // A pipe that is writable has space for that many bytes.
        let _ = rustix::io::write(&error, &text[..text.len().min(PIPE_BUF)]);
    }
}

/// A message to standard error, with its line feed.
fn message(text: impl std::fmt::Display) -> String {
    let text = text.to_string();
    let mut message = String::from("noisefloor:");
    for (at, line) in text.lines().enumerate() {
        let begin = match at {
            0 => " ",
            _ if line.starts_with("  ") => "\n",
            _ => "\n  ",
        };
        message += begin;
        message += line;
    }
    message + "\n"
}

/// Prints lines of text to standard error.
pub(crate) fn say_lines(text: &str) {
    say_exactly(&for_people(&::report::folded(text), is_ascii_only()));
}

/// Prints a JSON object to standard error.
pub(crate) fn say_json(json: &str) {
    say_exactly(&escaped_json(json, is_ascii_only()));
    say_exactly("\n");
}

/// Replaces the last line, or only erases it.
pub(crate) fn draw_line(text: Option<&str>) {
    let text = text.map_or(Cow::default(), |text| for_people(text, is_ascii_only()));
    say_exactly(&format!("\r\x1b[K{text}"));
}

/// Errors are ignored: if standard error is closed, they cannot be reported.
fn say_exactly(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Whether the locale has no UTF-8 (`locale(7)`): the first that is set of three variables.
fn is_ascii_only() -> bool {
    static ASCII_ONLY: OnceLock<bool> = OnceLock::new();
    *ASCII_ONLY.get_or_init(|| {
        let set = |name: &&str| std::env::var(name).is_ok_and(|value| !value.is_empty());
        let name = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find(set);
        let locale = name.and_then(|name| std::env::var(name).ok()).unwrap_or_default();
        let locale = locale.to_ascii_lowercase();
        !locale.contains("utf-8") && !locale.contains("utf8")
    })
}

/// Text of one line as a terminal can show it.
pub(crate) fn for_terminal(text: &str) -> String {
    for_people(&printable(text), is_ascii_only()).into_owned()
}

fn for_people(text: &str, ascii_only: bool) -> Cow<'_, str> {
    let text = printable_lines(text);
    if !ascii_only || text.is_ascii() {
        return text;
    }
    let mut ascii = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            c if c.is_ascii() => ascii.push(c),
            // As wide as the original, so that columns stay aligned.
            'µ' => ascii.push('u'),
            '×' => ascii.push('x'),
            '±' => ascii.push('+'),
            '→' => ascii.push('>'),
            '…' => ascii.push('~'),
            '─' => ascii.push('-'),
            char::REPLACEMENT_CHARACTER => ascii.push('?'),
            c => match ::report::ascii_for(c) {
                Some(drawn) => ascii.push(drawn),
                None => ascii.push_str(&escape(c)),
            },
        }
    }
    Cow::Owned(ascii)
}

/// The same JSON, with escapes for characters that are hidden or not ASCII; outside of strings
/// these are line feeds only.
fn escaped_json(json: &str, ascii_only: bool) -> Cow<'_, str> {
    let is_escaped =
        |c: char| (is_hidden(c) && c != '\n') || (ascii_only && !c.is_ascii());
    if !json.contains(is_escaped) {
        return Cow::Borrowed(json);
    }
    let mut escaped = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        match is_escaped(c) {
            false => escaped.push(c),
            true => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    escaped += &format!("\\u{unit:04x}");
                }
            }
        }
    }
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that layout is preserved, and that characters which a terminal interprets are not.
    #[test]
    fn people() {
        let shown = |text, ascii_only| for_people(text, ascii_only).into_owned();
        let text = "a\n\tb\x1b[2J\u{9b}\u{202e}µ…\r";
        assert_eq!(shown(text, false), "a\n\tb\\x1b[2J\\x9b\\u{202e}µ…\\x0d");
        assert_eq!(shown(text, true), "a\n\tb\\x1b[2J\\x9b\\u{202e}u~\\x0d");
        assert_eq!(shown("2 × é", true), "2 x \\xe9");
        assert_eq!(shown("▕▁▄▇█▓ ├·•●┤│", true), "|.:|#% [.oO]|");
    }

    /// Check that each line has its colour and ends it, so that a pager can begin anywhere.
    #[test]
    fn colours() {
        assert_eq!(coloured(Role::Title, "a\nb\n"), "\x1b[1ma\x1b[0m\n\x1b[1mb\x1b[0m\n");
        assert_eq!(coloured(Role::Plain, "a\nb\n"), "a\nb\n");
    }

    /// Check that JSON with escapes is the same value.
    #[test]
    fn json_stays_exact() {
        let value =
            serde_json::json!({"a\u{7f}": ["\u{9b}\x1b\n\u{202e}", "µ𝄞\u{e0041}"]});
        let json = serde_json::to_string_pretty(&value).unwrap();
        for ascii_only in [false, true] {
            let escaped = escaped_json(&json, ascii_only);
            assert_eq!(
                serde_json::from_str::<serde_json::Value>(&escaped).unwrap(),
                value
            );
            assert!(!escaped.contains(|c| is_hidden(c) && c != '\n'), "{escaped}");
            assert_eq!(escaped.is_ascii(), ascii_only);
        }
    }
}
