//! Options of a kernel's configuration: as requested, with a few words for choices of several
//! options, and as Kconfig assigns them.
//!
//! Kconfig offers four values of `HZ`, as a choice; any other is a default that precedes those
//! of `kernel/Kconfig.hz` (`crate::build::configure`).

use std::fmt;
use std::path::Path;

const PREFIX: &str = "CONFIG_";
/// The longest line that a message quotes, in characters.
const LINE_MAX: usize = 80;
/// The values of `HZ` that `kernel/Kconfig.hz` offers.
const OFFERED_HZ: [u32; 4] = [100, 250, 300, 1000];
/// `NO_HZ` by its words.
const NO_HZ: [(&str, &str); 3] =
    [("off", "HZ_PERIODIC"), ("idle", "NO_HZ_IDLE"), ("full", "NO_HZ_FULL")];
/// `PREEMPT` by its words.
const PREEMPT: [(&str, &str); 4] = [
    ("none", "PREEMPT_NONE"),
    ("voluntary", "PREEMPT_VOLUNTARY"),
    ("full", "PREEMPT"),
    ("lazy", "PREEMPT_LAZY"),
];

/// Why an option cannot have a value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// The value of an option that has words: the option, the value, and the words.
    #[error("{0}={1}: {0} must be {2}")]
    Word(&'static str, String, &'static str),
    /// A value of more than one line, or with another control character: the option.
    #[error("{0}: the value must not have control characters")]
    Control(String),
    /// An option that would be a module.
    #[error("{0}=m: guests load no modules; hint: write {0}=y")]
    Module(String),
}

/// An option, and its requested value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionValue {
    /// Its name, without `CONFIG_`.
    pub name: String,
    /// Its value: `y`, `n`, a number, a string without quotes; a word.
    pub value: String,
}

/// A value that the configuration must have in the end, and who asks for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) name: String,
    pub(crate) value: String,
    /// The file and line, or the option as it was written.
    pub(crate) origin: String,
}

impl OptionValue {
    /// Parses an option; `None` if the name is not one of Kconfig's form.
    ///
    /// # Errors
    /// The value is not one of the option's words, or a module.
    pub fn parse(name: &str, value: &str) -> Result<Option<Self>, OptionError> {
        let name = name.strip_prefix(PREFIX).unwrap_or(name);
        if !is_name(name) {
            return Ok(None);
        }
        let no = |name, words| Err(OptionError::Word(name, value.to_owned(), words));
        match name {
            _ if value.contains(char::is_control) => {
                return Err(OptionError::Control(name.to_owned()));
            }
            "HZ" => {
                return match value.parse::<u32>().ok().filter(|hz| *hz > 0) {
                    Some(hz) => Ok(Some(Self::new(name, &hz.to_string()))),
                    None => no("HZ", "a number of ticks per second"),
                };
            }
            // The old option of that name is another one: without it, the tick still stops.
            "NO_HZ" if value == "n" || !is_word(value, &NO_HZ) => {
                return no("NO_HZ", "off, idle or full");
            }
            "PREEMPT" if !is_word(value, &PREEMPT) => {
                return no("PREEMPT", "none, voluntary, full or lazy");
            }
            _ if value == "m" => return Err(OptionError::Module(name.to_owned())),
            _ => {}
        }
        Ok(Some(Self::new(name, &unquoted(value))))
    }

    fn new(name: &str, value: &str) -> Self {
        Self { name: name.to_owned(), value: value.to_owned() }
    }

    /// What Kconfig is to assign.
    pub(crate) fn wanted(&self) -> Wanted {
        let Self { name, value } = self;
        let words: &[(&str, &str)] = match name.as_str() {
            "NO_HZ" => &NO_HZ,
            "PREEMPT" => &PREEMPT,
            _ => &[],
        };
        let origin = self.to_string();
        match words.iter().find(|(word, _)| word == value) {
            Some((_, option)) => {
                Wanted { name: (*option).to_owned(), value: "y".to_owned(), origin }
            }
            None => Wanted { name: name.clone(), value: value.clone(), origin },
        }
    }
}

impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

impl Wanted {
    /// The lines for Kconfig; `is_string` if the option is a string.
    pub(crate) fn line(&self, is_string: bool) -> String {
        let Self { name, value, .. } = self;
        match value.as_str() {
            "n" if !is_string => format!("# {PREFIX}{name} is not set\n"),
            _ if is_string => {
                let value = value.replace('\\', "\\\\").replace('"', "\\\"");
                format!("{PREFIX}{name}=\"{value}\"\n")
            }
            _ => format!("{PREFIX}{name}={value}\n"),
        }
    }

    /// The value of `HZ` that it asks for, as Kconfig's own option if that offers it.
    pub(crate) fn hz(&self) -> Option<Hz> {
        let hz = self.value.parse().ok().filter(|_| self.name == "HZ")?;
        Some(if is_offered_hz(hz) { Hz::Offered(hz) } else { Hz::Other(hz) })
    }
}

/// Whether Kconfig has an option for that frequency of the tick.
pub(crate) fn is_offered_hz(hz: u32) -> bool {
    OFFERED_HZ.contains(&hz)
}

/// A requested frequency of the tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hz {
    /// Kconfig has an option for it.
    Offered(u32),
    /// Kconfig has none.
    Other(u32),
}

/// The options in the text of a configuration or fragment; modules are `m`.
///
/// # Errors
/// The number of a line that is neither a comment nor an option, and the line.
pub(crate) fn read(text: &str, file: &Path) -> Result<Vec<Wanted>, (usize, String)> {
    let mut all = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        let (name, value) = match line.strip_prefix('#') {
            Some(comment) => {
                let Some(name) = comment.trim().strip_suffix(" is not set") else {
                    continue;
                };
                let Some(name) = name.strip_prefix(PREFIX) else { continue };
                (name, "n")
            }
            None if line.is_empty() => continue,
            None => line.split_once('=').unwrap_or((line, "")),
        };
        let name = name.strip_prefix(PREFIX).unwrap_or(name);
        if !is_name(name) || value.is_empty() {
            return Err((number, quoted(line)));
        }
        let option = OptionValue::parse(name, value);
        let wanted = match option {
            Ok(Some(option)) => option.wanted(),
            // Kconfig's own PREEMPT=y, and modules.
            _ => Wanted {
                name: name.to_owned(),
                value: unquoted(value),
                origin: String::new(),
            },
        };
        let origin = format!("{}:{number}", file.display());
        all.push(Wanted { origin, ..wanted });
    }
    Ok(all)
}

/// A line for a message, which need not be text.
fn quoted(line: &str) -> String {
    match line.char_indices().nth(LINE_MAX) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line.to_owned(),
    }
}

/// Whether it has the form of an option's name.
fn is_name(text: &str) -> bool {
    let known = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.contains(|c: char| c.is_ascii_uppercase() || c.is_ascii_digit())
        && text.chars().all(known)
}

/// Whether it is one of the words of an option, or a value of Kconfig's own.
fn is_word(value: &str, words: &[(&str, &str)]) -> bool {
    matches!(value, "y" | "n") || words.iter().any(|(word, _)| *word == value)
}

/// A value without quotes, within which Kconfig has escapes.
fn unquoted(value: &str) -> String {
    let inner = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    inner.map_or_else(|| value.to_owned(), unescaped)
}

/// A string of a configuration, in which a backslash precedes quotes and backslashes.
pub(crate) fn unescaped(text: &str) -> String {
    let mut characters = text.chars();
    let mut next = || match characters.next() {
        Some('\\') => characters.next(),
        other => other,
    };
    std::iter::from_fn(&mut next).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(name: &str, value: &str) -> (String, String) {
        let Wanted { name, value, .. } =
            OptionValue::parse(name, value).unwrap().unwrap().wanted();
        (name, value)
    }

    /// Check that words stand for options of Kconfig's, and that its own are left alone.
    #[test]
    fn words() {
        for (name, value, option, set) in [
            ("NO_HZ", "off", "HZ_PERIODIC", "y"),
            ("NO_HZ", "full", "NO_HZ_FULL", "y"),
            ("NO_HZ", "y", "NO_HZ", "y"),
            ("PREEMPT", "full", "PREEMPT", "y"),
            ("PREEMPT", "none", "PREEMPT_NONE", "y"),
            ("CONFIG_AUDIT", "n", "AUDIT", "n"),
            ("CMDLINE", "\"a b\"", "CMDLINE", "a b"),
            ("CMDLINE", "\"a=\\\"b\\\\\"", "CMDLINE", "a=\"b\\"),
            ("CMDLINE", "a\"b", "CMDLINE", "a\"b"),
            ("HZ", "+040", "HZ", "40"),
        ] {
            assert_eq!(wanted(name, value), (option.to_owned(), set.to_owned()));
        }
        for (name, value) in
            [("NO_HZ", "n"), ("A", "a\nCONFIG_B=y"), ("HZ", "4294967296")]
        {
            assert!(OptionValue::parse(name, value).is_err(), "{name}={value}");
        }
        let hz = |hz| OptionValue::parse("HZ", hz).unwrap().unwrap().wanted().hz();
        assert_eq!((hz("250"), hz("40")), (Some(Hz::Offered(250)), Some(Hz::Other(40))));
    }

    /// Check the lines for Kconfig.
    #[test]
    fn lines() {
        let line = |value: &str, is_string| {
            let (name, origin) = ("X".to_owned(), String::new());
            Wanted { name, value: value.to_owned(), origin }.line(is_string)
        };
        assert_eq!(line("y", false), "CONFIG_X=y\n");
        assert_eq!(line("n", false), "# CONFIG_X is not set\n");
        assert_eq!(line("n", true), "CONFIG_X=\"n\"\n");
        assert_eq!(line("a\"b", true), "CONFIG_X=\"a\\\"b\"\n");
        assert_eq!(line("0x10", false), "CONFIG_X=0x10\n");
    }

    /// Check that a fragment is read as Kconfig does, and that a line that is none is named.
    #[test]
    fn fragments() {
        let text = "# a comment\nCONFIG_A=y\n\n# CONFIG_B is not set\nHZ=40\n\
                    CONFIG_C=m\nCONFIG_PREEMPT=y\nCONFIG_D=\"x\"\n";
        let all = read(text, Path::new("f")).unwrap();
        let all: Vec<_> =
            all.iter().map(|w| format!("{}={} {}", w.name, w.value, w.origin)).collect();
        let expected =
            ["A=y f:2", "B=n f:4", "HZ=40 f:5", "C=m f:6", "PREEMPT=y f:7", "D=x f:8"];
        assert_eq!(all, expected);
        let error = read("CONFIG_A=y\nnonsense\n", Path::new("f")).unwrap_err();
        assert_eq!(error, (2, "nonsense".to_owned()));
    }
}
