//! Patterns in the names of output files: `out/%h.json` is a file for each host.
//!
//! `%h` is the host name, `%p` the process ID, `%t` the time as `20261130T061502Z`, and `%%` a percent sign.
//! Another letter after `%` is an error, and any other character is left as it is. The folder of a name with a
//! pattern is created if it does not exist: each host of many may be the first one. That of a name without a
//! pattern is not, since it may be a typing mistake.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use clap::builder::{OsStringValueParser, TypedValueParser};
use recording::Recording;
use units::{Cause, chain};

use crate::destination::create_folder;
use crate::host;

/// A parser of file names, of which patterns are replaced.
pub(crate) fn file_name() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|name| expanded(&name))
}

fn expanded(name: &OsStr) -> Result<PathBuf, Cause> {
    let host = || safe(&host::name());
    let pid = || std::process::id().to_string();
    let time = || Recording::moment().replace(['-', ':'], "");
    let name = name.as_bytes();
    let new = replaced(name, |letter| match letter {
        b'h' => Some(host()),
        b'p' => Some(pid()),
        b't' => Some(time()),
        b'%' => Some("%".to_owned()),
        _ => None,
    })?;
    let path = PathBuf::from(OsString::from_vec(new));
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder.filter(|_| path.as_os_str().as_bytes() != name) {
        Some(folder) if !folder.exists() => {
            create_folder(folder).map_err(|why| Cause::from(chain(&why)))?;
            Ok(path)
        }
        _ => Ok(path),
    }
}

/// The name with patterns replaced.
fn replaced(name: &[u8], value: impl Fn(u8) -> Option<String>) -> Result<Vec<u8>, Cause> {
    let mut new = Vec::with_capacity(name.len());
    let mut rest = name;
    while let Some((first, after)) = rest.split_first() {
        let letter = after.first().filter(|_| *first == b'%').copied();
        match letter.map(|letter| (letter, value(letter))) {
            Some((_, Some(text))) => {
                new.extend(text.bytes());
                rest = &after[1..];
            }
            Some((letter, None)) if letter.is_ascii_alphabetic() => {
                let letter = char::from(letter);
                return Err(format!(
                    "%{letter} has no meaning: %h is the host name, %p the process ID, %t the time, and \
                     %% a percent sign"
                )
                .into());
            }
            _ => {
                new.push(*first);
                rest = after;
            }
        }
    }
    Ok(new)
}

/// A host name that is part of a file name: no other folder, and no hidden file.
fn safe(host: &str) -> String {
    let is_safe = |c: char| c.is_ascii_alphanumeric() || ['-', '_', '.'].contains(&c);
    let name: String = host.chars().map(|c| if is_safe(c) { c } else { '_' }).collect();
    match name.strip_prefix('.') {
        Some(rest) => format!("_{rest}"),
        None if name.is_empty() => "unknown".to_owned(),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str) -> Result<String, String> {
        let value = |letter| match letter {
            b'h' => Some("n1".to_owned()),
            b'%' => Some("%".to_owned()),
            _ => None,
        };
        let new = replaced(name.as_bytes(), value).map_err(|why| why.to_string())?;
        Ok(String::from_utf8(new).unwrap())
    }

    /// Check that patterns are replaced, that a percent sign can be written, and that other letters are refused.
    #[test]
    fn patterns() {
        for (name, new) in [
            ("%h.json", "n1.json"),
            ("a/%h/%h.json", "a/n1/n1.json"),
            ("100%%h", "100%h"),
            ("100%", "100%"),
            ("50%-1", "50%-1"),
            ("-", "-"),
            ("", ""),
        ] {
            assert_eq!(of(name).as_deref(), Ok(new), "{name}");
        }
        assert!(of("%H.json").unwrap_err().contains("%h is the host name"));
        assert_eq!(expanded(OsStr::new("x.json")).unwrap(), PathBuf::from("x.json"));
        assert_ne!(expanded(OsStr::new("%h.json")).unwrap(), PathBuf::from("%h.json"));
    }

    /// Check that a host name stays in its folder, and is not hidden.
    #[test]
    fn hosts() {
        for (host, name) in [
            ("n1.site-a", "n1.site-a"),
            ("../../etc/passwd", "_._.._etc_passwd"),
            ("..", "_."),
            ("", "unknown"),
            ("a b\x1b[2J\n", "a_b__2J_"),
            ("é", "_"),
        ] {
            assert_eq!(safe(host), name, "{host}");
        }
    }
}
