//! A command line: words of any bytes but zero.
//!
//! In files a word is a string if it is UTF-8, and a list of bytes otherwise.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use serde::{Deserialize, Serialize};
use units::printable;

/// The words of a command line, the program first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Word>", into = "Vec<Word>")]
pub struct Words(Vec<OsString>);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Word {
    Text(String),
    Bytes(Vec<u8>),
}

impl Words {
    /// These words.
    pub fn new(words: impl IntoIterator<Item = OsString>) -> Self {
        Self(words.into_iter().collect())
    }

    /// The program; `None` if there is no word.
    pub fn program(&self) -> Option<&OsStr> {
        self.0.first().map(OsString::as_os_str)
    }

    /// The program's arguments.
    pub fn arguments(&self) -> &[OsString] {
        self.0.get(1..).unwrap_or_default()
    }
}

impl fmt::Display for Words {
    /// Nothing is quoted, and invalid UTF-8 is replaced. The text is printable, because
    /// what renders text does not see characters in bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.0.iter().map(|word| word.to_string_lossy()).collect();
        f.write_str(&printable(&words.join(" ")))
    }
}

impl From<Vec<Word>> for Words {
    fn from(words: Vec<Word>) -> Self {
        let word = |word| match word {
            Word::Text(text) => OsString::from(text),
            Word::Bytes(bytes) => OsString::from_vec(bytes),
        };
        Self(words.into_iter().map(word).collect())
    }
}

impl From<Words> for Vec<Word> {
    fn from(words: Words) -> Self {
        let word = |word: OsString| {
            word.into_string()
                .map_or_else(|word| Word::Bytes(word.as_bytes().to_vec()), Word::Text)
        };
        words.0.into_iter().map(word).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that any words can be written and read, and how they are displayed.
    #[test]
    fn any_words() {
        let odd = OsString::from_vec(vec![b'a', 0xff]);
        let words = Words::new(["make".into(), "-j 4".into(), odd]);
        let expected = serde_json::json!(["make", "-j 4", [97, 255]]);
        assert_eq!(serde_json::to_value(&words).unwrap(), expected);
        assert_eq!(serde_json::from_value::<Words>(expected).unwrap(), words);
        assert_eq!(words.to_string(), "make -j 4 a\u{fffd}");
        assert_eq!(
            (words.program(), words.arguments().len()),
            (Some("make".as_ref()), 2)
        );
        assert_eq!(Words::new([]).program(), None);
        let hostile = Words::new([OsString::from_vec(vec![0xff, b'\n', 0x1b])]);
        assert_eq!(hostile.to_string(), "\u{fffd}\\x0a\\x1b");
    }
}
