//! The kernel's command line, `/proc/cmdline`, parsed by the kernel's rules (`kernel/params.c`).
//!
//! Parameters are separated by white space outside double quotes, `-` and `_` are equivalent in
//! names, and arguments after `--` belong to init. If most parameters are repeated, the last value
//! takes effect. With a boot configuration (`/proc/bootconfig`), the file includes its parameters.
//!
//! Whether a parameter had an effect is not shown there.

/// The file.
pub(crate) const FILE: &str = "/proc/cmdline";

/// A parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The name in its original spelling.
    pub name: String,
    /// The text after `=`, without quotes; `None` without `=`.
    pub value: Option<String>,
}

impl Parameter {
    /// Whether the parameter has this name, spelt with `-` or `_`.
    pub fn is(&self, name: &str) -> bool {
        same_name(&self.name, name)
    }
}

/// The kernel's command line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandLine {
    parameters: Vec<Parameter>,
}

impl CommandLine {
    /// Parses a command line. Any text is valid.
    pub fn parse(text: &str) -> Self {
        let mut rest = text;
        let mut parameters = Vec::new();
        while let Some((word, after)) = next_word(rest) {
            let parameter = parameter(word);
            if parameter.name == "--" && parameter.value.is_none() {
                break;
            }
            parameters.push(parameter);
            rest = after;
        }
        Self { parameters }
    }

    /// The last parameter with this name.
    pub fn last(&self, name: &str) -> Option<&Parameter> {
        self.parameters.iter().rev().find(|parameter| parameter.is(name))
    }

    /// The value of the last parameter with this name; `None` if there is no such parameter, or it
    /// has no value.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.last(name)?.value.as_deref()
    }

    /// Whether a parameter exists, with or without a value.
    pub fn has(&self, name: &str) -> bool {
        self.last(name).is_some()
    }

    /// The parameters with this name, in order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Parameter> {
        self.parameters.iter().filter(move |parameter| parameter.is(name))
    }

    /// Whether it requests `nohz_full` CPUs.
    pub(crate) fn requests_nohz_full(&self) -> bool {
        let nohz = |given: &Parameter| {
            let flags = given.value.as_deref().unwrap_or_default();
            flags.split(',').any(|flag| flag == "nohz")
        };
        self.has("nohz_full") || self.all("isolcpus").any(nohz)
    }

    /// All parameters for the kernel, in order.
    pub fn parameters(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter()
    }
}

/// Whether two names are equivalent to the kernel.
pub(crate) fn same_name(one: &str, other: &str) -> bool {
    let plain = |byte: u8| if byte == b'-' { b'_' } else { byte };
    one.len() == other.len() && one.bytes().map(plain).eq(other.bytes().map(plain))
}

/// Parses a boolean as the kernel does (`kstrtobool`): by the first letter, and if that is an `o`,
/// by the second.
pub(crate) fn parse_bool(value: &str) -> Option<bool> {
    let mut letters = value.bytes().map(|letter| letter.to_ascii_lowercase());
    match letters.next()? {
        b'y' | b't' | b'1' => Some(true),
        b'n' | b'f' | b'0' => Some(false),
        b'o' => match letters.next()? {
            b'n' => Some(true),
            b'f' => Some(false),
            _ => None,
        },
        _ => None,
    }
}

fn is_space(c: char) -> bool {
    c.is_ascii_whitespace() || c == '\u{b}'
}

/// The first word, including quotes, and the remaining text.
fn next_word(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start_matches(is_space);
    if text.is_empty() {
        return None;
    }
    let mut quoted = false;
    let end = text.find(|c: char| {
        quoted ^= c == '"';
        !quoted && is_space(c)
    });
    Some(text.split_at(end.unwrap_or(text.len())))
}

/// Splits a word as the kernel's `next_arg` does: a quote may open before the name or before the
/// value, and only a quote at the end closes it.
fn parameter(word: &str) -> Parameter {
    let (word, opened) = match word.strip_prefix('"') {
        Some(word) => (word, true),
        None => (word, false),
    };
    let unquote = |text: &str| text.strip_suffix('"').unwrap_or(text).to_owned();
    // A name is never empty: a leading '=' is part of it.
    let Some((equals, _)) = word.match_indices('=').find(|&(at, _)| at > 0) else {
        let name = if opened { unquote(word) } else { word.to_owned() };
        return Parameter { name, value: None };
    };
    let (name, value) = (&word[..equals], &word[equals + 1..]);
    let value = match value.strip_prefix('"') {
        Some(value) => unquote(value),
        None if opened => unquote(value),
        None => value.to_owned(),
    };
    Parameter { name: name.to_owned(), value: Some(value) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pairs(text: &str) -> Vec<(String, Option<String>)> {
        let line = CommandLine::parse(text);
        line.parameters().map(|p| (p.name.clone(), p.value.clone())).collect()
    }

    fn pair(name: &str, value: Option<&str>) -> (String, Option<String>) {
        (name.to_owned(), value.map(str::to_owned))
    }

    /// Check quotes in all positions that the kernel accepts.
    #[test]
    fn quotes() {
        let text = "a=\"b c\" \"d=e f\" g=h=i \"j\" k= =l =m=n\n";
        let expected = [
            pair("a", Some("b c")),
            pair("d", Some("e f")),
            pair("g", Some("h=i")),
            pair("j", None),
            pair("k", Some("")),
            pair("=l", None),
            pair("=m", Some("n")),
        ];
        assert_eq!(pairs(text), expected);
    }

    /// Check that `-` and `_` are equivalent only in names, and that the last value takes effect.
    #[test]
    fn names_and_order() {
        let line = CommandLine::parse("nohz-full=1-2 quiet nohz_full=3-4 x");
        assert_eq!(line.value("nohz_full"), Some("3-4"));
        assert_eq!(line.value("nohz-full"), Some("3-4"));
        assert_eq!(line.all("nohz_full").count(), 2);
        assert!(line.has("quiet") && !line.has("qui_et") && !line.has("3-4"));
        assert_eq!(line.value("quiet"), None);
    }

    /// Check booleans.
    #[test]
    fn yes_and_no() {
        for (text, expected) in [
            ("off", Some(false)),
            ("On", Some(true)),
            ("0", Some(false)),
            ("yes", Some(true)),
        ] {
            assert_eq!(parse_bool(text), expected, "{text}");
        }
        for text in ["", "o", "oops", "2"] {
            assert_eq!(parse_bool(text), None, "{text}");
        }
    }

    /// Check that arguments of init are ignored.
    #[test]
    fn init_arguments() {
        assert_eq!(pairs("a --b -- c=d"), [pair("a", None), pair("--b", None)]);
        assert_eq!(pairs(" \n"), []);
    }

    proptest! {
        /// Check that parsing never panics, and that every parameter is part of the text.
        #[test]
        fn never_panics(text in "[ a-c=\"_\\-\\\\\u{e9}\n]{0,40}") {
            let line = CommandLine::parse(&text);
            for parameter in line.parameters() {
                prop_assert!(text.contains(&parameter.name));
                prop_assert!(line.has(&parameter.name));
            }
        }
    }
}
