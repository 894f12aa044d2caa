//! Two commands as text, and the words that are executed. What a shell would interpret is left to one: then both
//! commands are run by `/bin/sh -c`, so that its start is part of both times.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use crate::outcome::Failure;

/// The characters, besides letters, digits and those that are not ASCII, that no shell interprets.
const PLAIN: &[u8] = b"-_./,:+@%^=";

/// The words of both commands.
///
/// # Errors
/// A usage error: one of them is empty.
pub(crate) fn words(commands: [&OsStr; 2]) -> Result<[Vec<OsString>; 2], Failure> {
    if commands.iter().any(|command| own_words(command).is_empty()) {
        return Err(Failure::usage("--duet: a command is empty"));
    }
    let words = match commands.into_iter().all(is_plain) {
        true => commands.map(own_words),
        false => commands
            .map(|command| vec!["/bin/sh".into(), "-c".into(), command.to_owned()]),
    };
    Ok(words)
}

fn own_words(command: &OsStr) -> Vec<OsString> {
    let words = command.as_bytes().split(u8::is_ascii_whitespace);
    let words = words.filter(|word| !word.is_empty());
    words.map(|word| OsString::from_vec(word.to_vec())).collect()
}

/// Whether a shell would split it at its spaces, and do nothing else. `NAME=VALUE` before a program sets a variable.
fn is_plain(command: &OsStr) -> bool {
    let is_plain = |byte: &u8| {
        byte.is_ascii_alphanumeric() || !byte.is_ascii() || PLAIN.contains(byte)
    };
    let words = own_words(command);
    let sets_variable = words.first().is_some_and(|word| word.as_bytes().contains(&b'='));
    !sets_variable
        && !command.as_bytes().contains(&b'\n')
        && words.iter().flat_map(|word| word.as_bytes()).all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(a: &str, b: &str) -> [Vec<OsString>; 2] {
        words([a, b].map(OsStr::new)).unwrap()
    }

    fn strings(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    /// Check that plain commands are split at spaces, and that a shell runs both if one needs it.
    #[test]
    fn shells() {
        let plain = of(" ./a  --size=8 x,y ", "b");
        assert_eq!(plain, [strings(&["./a", "--size=8", "x,y"]), strings(&["b"])]);
        let commands =
            ["a | b", "a 'b c'", "X=1 a", "a >f", "a $X", "a *.c", "a; b", "a\nb"];
        for needs_shell in commands {
            let shell = |command: &str| strings(&["/bin/sh", "-c", command]);
            assert_eq!(of("true", needs_shell), [shell("true"), shell(needs_shell)]);
            assert_eq!(of(needs_shell, "true")[1], shell("true"));
        }
    }

    /// Check that an empty command is a usage error.
    #[test]
    fn empty() {
        for command in ["", "  "] {
            assert!(words(["true", command].map(OsStr::new)).is_err());
        }
    }
}
