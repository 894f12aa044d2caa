//! The text of an experiment, and places in it: `tick.toml:12:3`.
//!
//! Lines and columns count from 1; a column is a character, as editors count. The places
//! themselves are the byte ranges that the `toml` crate reports.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::error::{Error, Place};

/// The range of an entry that is not from the text.
pub(crate) const NOWHERE: Range<usize> = usize::MAX..usize::MAX;

/// A TOML text and the name of the file it is from.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    file: String,
    text: String,
}

impl Source {
    pub(crate) fn new(file: &str, text: &str) -> Self {
        Self { file: file.to_owned(), text: text.to_owned() }
    }

    /// The text.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The folder of the file; empty for the current one.
    pub(crate) fn folder(&self) -> PathBuf {
        Path::new(&self.file).parent().map(Path::to_owned).unwrap_or_default()
    }

    /// The parsed text; an error has the place of the mistake.
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T, Error> {
        toml::from_str(&self.text).map_err(|error| {
            self.refuse(error.span().unwrap_or_default(), error.message())
        })
    }

    /// An error at a place in the text.
    pub(crate) fn refuse(&self, span: Range<usize>, why: impl Into<String>) -> Error {
        Error::Text(self.place(&span), why.into())
    }

    /// The place of a range of the text: `tick.toml:12:3`; only the file for an entry that is not
    /// from the text.
    pub(crate) fn place(&self, span: &Range<usize>) -> Place {
        let file = self.file.clone();
        if *span == NOWHERE {
            return Place { file, line_and_column: None };
        }
        let before = self.text.get(..span.start).unwrap_or(&self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.matches('\n').count() + 1;
        let column = before[line_start..].chars().count() + 1;
        Place { file, line_and_column: Some((line, column)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that lines and columns count from 1, and columns in characters.
    #[test]
    fn counts_as_editors_do() {
        let source = Source::new("a.toml", "x = 1\nö = 2\n");
        assert_eq!(source.place(&(0..1)).to_string(), "a.toml:1:1");
        assert_eq!(source.place(&(6..8)).to_string(), "a.toml:2:1");
        assert_eq!(source.place(&(9..10)).to_string(), "a.toml:2:3");
        assert_eq!(source.place(&(99..100)).to_string(), "a.toml:3:1");
        assert_eq!(source.place(&NOWHERE).to_string(), "a.toml");
    }

    /// Check that invalid TOML is refused at the place of its first error.
    #[test]
    fn tells_where_toml_ends() {
        let source = Source::new("a.toml", "x = 1\ny = = 2\n");
        let error = source.read::<toml::Table>().unwrap_err();
        assert!(error.to_string().starts_with("a.toml:2:5: "), "{error}");
    }
}
