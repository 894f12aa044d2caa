//! Scripts: the interpreter in their first line (execve(2)).

/// The part of a first line that the kernel reads (`BINPRM_BUF_SIZE`).
const LINE_MAX: usize = 256;
/// The program that looks for another one in `PATH`.
const ENV: &str = "env";

/// The programs that a script needs: its interpreter, and the one that `env` starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interpreter {
    pub(super) path: String,
    pub(super) started: Option<String>,
}

/// The interpreter of a script; `None` if these bytes are none.
pub(super) fn interpreter(bytes: &[u8]) -> Option<Interpreter> {
    let line = bytes.strip_prefix(b"#!")?;
    let line = &line[..line.len().min(LINE_MAX - 2)];
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
    // With CR LF, the CR is a part of the name.
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split([' ', '\t']).filter(|word| !word.is_empty());
    let path = words.next()?.to_owned();
    let is_env = path.rsplit('/').next() == Some(ENV);
    let is_program = |word: &&str| !word.starts_with('-') && !word.contains('=');
    let started = words.find(is_program).filter(|_| is_env).map(str::to_owned);
    Some(Interpreter { path, started })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that interpreters are found as the kernel and `env` find them.
    #[test]
    fn interpreters() {
        let read = |text: &str| {
            let found = interpreter(text.as_bytes())?;
            Some((found.path, found.started.unwrap_or_default()))
        };
        let pair =
            |path: &str, started: &str| Some((path.to_owned(), started.to_owned()));
        assert_eq!(read("#!/bin/sh\nexit"), pair("/bin/sh", ""));
        assert_eq!(read("#! /usr/bin/perl -w"), pair("/usr/bin/perl", ""));
        assert_eq!(read("#!/usr/bin/env python3\n"), pair("/usr/bin/env", "python3"));
        assert_eq!(read("#!/bin/sh\r\n"), pair("/bin/sh\r", ""));
        assert_eq!(read("#!/usr/bin/env sh\r\n"), pair("/usr/bin/env", "sh\r"));
        assert_eq!(read("#!/usr/bin/env -S A=b awk -f\n"), pair("/usr/bin/env", "awk"));
        for none in ["", "#!", "#!\n/bin/sh", "# !/bin/sh", "\x7fELF"] {
            assert_eq!(read(none), None, "{none}");
        }
    }
}
