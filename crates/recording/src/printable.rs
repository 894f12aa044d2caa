//! Recordings with printable strings: without characters that control a terminal or are invisible
//! ([`units::printable`]).
//!
//! Names come from threads, devices, the kernel's messages, and files of other machines. All
//! strings of a value are examined while it is serialised, so that none is missed; if one has to
//! be changed, the value is deserialised from the changed text. Files and JSON output have the
//! original strings.

use std::borrow::Cow;
use std::cell::Cell;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Serializer;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter};
use units::{escape, is_hidden};

use crate::Recording;

/// The value with printable strings.
pub fn printable<T: Clone + Serialize + DeserializeOwned>(value: &T) -> Cow<'_, T> {
    let changed = changed(value).and_then(|json| serde_json::from_slice(&json).ok());
    changed.map_or(Cow::Borrowed(value), Cow::Owned)
}

impl Recording {
    /// The recording with printable strings.
    pub fn printable(&self) -> Cow<'_, Self> {
        let json = changed(self).and_then(|json| String::from_utf8(json).ok());
        let changed = json.and_then(|json| Self::from_json(&json, Path::new("")).ok());
        changed.map_or(Cow::Borrowed(self), Cow::Owned)
    }
}

/// The value as JSON with printable strings; `None` if all strings are printable.
fn changed<T: Serialize>(value: &T) -> Option<Vec<u8>> {
    let is_changed = Cell::new(false);
    write(value, &is_changed, &mut io::sink())?;
    if !is_changed.get() {
        return None;
    }
    let mut json = Vec::new();
    write(value, &is_changed, &mut json)?;
    Some(json)
}

/// Takes a stream of any type, so that this code is compiled once for each type of value.
fn write<T: Serialize>(
    value: &T,
    is_changed: &Cell<bool>,
    to: &mut dyn Write,
) -> Option<()> {
    let mut to = Serializer::with_formatter(to, Printable(is_changed));
    value.serialize(&mut to).ok()
}

/// Writes strings without hidden characters, and notes whether there was one.
struct Printable<'a>(&'a Cell<bool>);

impl Printable<'_> {
    fn write_hidden<W: Write + ?Sized>(&self, to: &mut W, c: char) -> io::Result<()> {
        self.0.set(true);
        // The escape's backslash is a character of the new string.
        write!(to, "\\{}", escape(c))
    }
}

impl Formatter for Printable<'_> {
    fn write_string_fragment<W: Write + ?Sized>(
        &mut self,
        to: &mut W,
        mut text: &str,
    ) -> io::Result<()> {
        while let Some((at, c)) = text.char_indices().find(|&(_, c)| is_hidden(c)) {
            to.write_all(&text.as_bytes()[..at])?;
            self.write_hidden(to, c)?;
            text = &text[at + c.len_utf8()..];
        }
        to.write_all(text.as_bytes())
    }

    fn write_char_escape<W: Write + ?Sized>(
        &mut self,
        to: &mut W,
        character: CharEscape,
    ) -> io::Result<()> {
        let control = match character {
            CharEscape::Backspace => '\x08',
            CharEscape::FormFeed => '\x0c',
            CharEscape::LineFeed => '\n',
            CharEscape::CarriageReturn => '\r',
            CharEscape::Tab => '\t',
            CharEscape::AsciiControl(byte) => char::from(byte),
            CharEscape::Quote | CharEscape::ReverseSolidus | CharEscape::Solidus => {
                return CompactFormatter.write_char_escape(to, character);
            }
        };
        self.write_hidden(to, control)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that every string of a value, keys included, is examined, and that a value without
    /// hidden characters is not copied.
    #[test]
    fn all_strings() {
        let value = |a: &str, b: &str| serde_json::json!({a: [b, 1, null, {"c": b}]});
        let hostile = value("a\x1b", "\"\\b\n\u{202e}\u{9b}\u{7f}");
        let shown = value("a\\x1b", "\"\\b\\x0a\\u{202e}\\x9b\\x7f");
        assert_eq!(*printable(&hostile), shown);
        assert!(matches!(printable(&shown), Cow::Borrowed(_)));
    }
}
