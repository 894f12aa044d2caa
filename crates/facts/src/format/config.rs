//! The kernel's build configuration.
//!
//! From `/proc/config.gz` (with `CONFIG_IKCONFIG_PROC`), `/boot/config-RELEASE`,
//! `/lib/modules/RELEASE/config` or `/usr/lib/modules/RELEASE/config` (the only one on Debian since
//! 7.2). Only the first is guaranteed to be that of the running kernel; the others are of the same
//! release. Changes by boot parameters are not included.

use std::collections::HashMap;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

use flate2::read::GzDecoder;

use crate::fact::{Unknown, Why};
use crate::format::release::Release;
use crate::tree::root::Root;

/// The kernel's own copy of its configuration.
pub(crate) const OWN: &str = "/proc/config.gz";
/// Several times the size of any configuration: limits the memory for a malicious file.
const UNPACKED_MAX: u64 = 4 << 20;

/// A kernel's configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    file: String,
    values: Arc<HashMap<String, String>>,
}

impl Config {
    /// Parses a configuration, optionally compressed with gzip; `file` is used in messages.
    ///
    /// # Errors
    /// A line is neither a comment nor `CONFIG_NAME=value` (with its number), the file sets no
    /// option, or it cannot be decompressed.
    pub fn parse(bytes: &[u8], file: &str) -> Result<Self, Unknown> {
        Self::parse_text(&text_of(bytes, file)?, file)
    }

    fn parse_text(text: &str, file: &str) -> Result<Self, Unknown> {
        let mut values = HashMap::new();
        for (number, line) in text.lines().enumerate() {
            let line = line.trim_end();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let Some((name, value)) = option(line) else {
                let expected = "a comment or CONFIG_NAME=value";
                return Err(Unknown::garbage(file, number + 1, line, expected));
            };
            values.insert(name.to_owned(), value.to_owned());
        }
        if values.is_empty() {
            // Otherwise every option would appear to be off.
            let expected = "a kernel configuration: nothing is set in it";
            let first = text.lines().next().unwrap_or("");
            return Err(Unknown::garbage(file, 1, first, expected));
        }
        Ok(Self { file: file.to_owned(), values: Arc::new(values) })
    }

    /// Parses a configuration, or returns that of the same bytes parsed last: what is measured several
    /// times has the same each time, and to parse it takes a millisecond, and the caches from what is
    /// measured.
    fn parse_again(bytes: &[u8], file: &str) -> Result<Self, Unknown> {
        static LAST: Mutex<Option<(Vec<u8>, Config)>> = Mutex::new(None);
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, config)) =
            last.as_ref().filter(|(read, config)| read == bytes && config.file == file)
        {
            return Ok(config.clone());
        }
        let config = Self::parse(bytes, file)?;
        *last = Some((bytes.to_owned(), config.clone()));
        Ok(config)
    }

    /// Finds the configuration of the kernel with this release.
    ///
    /// # Errors
    /// The paths, and why the configuration was not found there.
    pub(crate) fn find(root: &Root, release: Option<&Release>) -> Result<Self, Unknown> {
        let places = places(release);
        let mut refused = None;
        for place in &places {
            match root.bytes(place) {
                Ok(bytes) => return Self::parse_again(&bytes, place),
                Err(unknown) if unknown.code == Why::Absent => {}
                Err(unknown) => refused = refused.or(Some(unknown)),
            }
        }
        Err(refused.unwrap_or_else(|| {
            let text = format!("no kernel configuration in {}", places.join(", "));
            Unknown::new(Why::Absent, text)
        }))
    }

    /// Whether the option is `y` or `m`. The name has no `CONFIG_`.
    pub fn is_set(&self, name: &str) -> bool {
        matches!(self.value(name), Some("y" | "m"))
    }

    /// The option's value without quotes; `None` if it is not set.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// The file the configuration was read from.
    pub fn file(&self) -> &str {
        &self.file
    }
}

/// A configuration as text; it may be compressed with gzip.
///
/// # Errors
/// It cannot be decompressed.
pub(crate) fn text_of(bytes: &[u8], file: &str) -> Result<String, Unknown> {
    match bytes.starts_with(&[0x1f, 0x8b]) {
        true => unpack(bytes, file),
        false => Ok(String::from_utf8_lossy(bytes).into_owned()),
    }
}

/// The paths of a configuration, the preferred one first.
fn places(release: Option<&Release>) -> Vec<String> {
    let mut places = vec![OWN.to_owned()];
    if let Some(release) = release {
        let release = release.text();
        places.push(format!("/boot/config-{release}"));
        places.push(format!("/lib/modules/{release}/config"));
        places.push(format!("/usr/lib/modules/{release}/config"));
    }
    places
}

fn unpack(bytes: &[u8], file: &str) -> Result<String, Unknown> {
    let garbage = |text: String| Unknown::new(Why::Garbage, format!("{file}: {text}"));
    let mut unpacked = Vec::new();
    let read = GzDecoder::new(bytes).take(UNPACKED_MAX + 1).read_to_end(&mut unpacked);
    let length = read.map_err(|error| garbage(format!("cannot be unpacked: {error}")))?;
    if length as u64 > UNPACKED_MAX {
        return Err(garbage("unpacks to more than any kernel configuration".to_owned()));
    }
    Ok(String::from_utf8_lossy(&unpacked).into_owned())
}

/// Splits a line `CONFIG_NAME=value`.
fn option(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.strip_prefix("CONFIG_")?.split_once('=')?;
    let fits = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    if name.is_empty() || value.is_empty() || !name.bytes().all(fits) {
        return None;
    }
    match value.strip_prefix('"') {
        Some(quoted) => Some((name, quoted.strip_suffix('"')?)),
        None => Some((name, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::io::Write;

    const TEXT: &str = "#\n# Linux/x86 6.12.1 Kernel Configuration\n#\nCONFIG_HZ=250\n\
                        CONFIG_NO_HZ_FULL=y\n# CONFIG_NO_HZ_IDLE is not set\n\
                        CONFIG_FOO=m\nCONFIG_LOCALVERSION=\"\"\nCONFIG_CC=\"gcc (a=b)\"\n";

    fn packed(text: &str) -> Vec<u8> {
        let mut out =
            flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        out.write_all(text.as_bytes()).unwrap();
        out.finish().unwrap()
    }

    /// Check values, modules, quotes and options that are not set, compressed and uncompressed.
    #[test]
    fn reads_a_configuration() {
        for bytes in [TEXT.as_bytes().to_vec(), packed(TEXT)] {
            let config = Config::parse(&bytes, "/boot/config-6.12.1").unwrap();
            assert_eq!(config.value("HZ"), Some("250"));
            assert!(config.is_set("NO_HZ_FULL") && config.is_set("FOO"));
            assert!(!config.is_set("NO_HZ_IDLE") && !config.is_set("HZ"));
            assert_eq!(config.value("LOCALVERSION"), Some(""));
            assert_eq!(config.value("CC"), Some("gcc (a=b)"));
            assert_eq!(config.file(), "/boot/config-6.12.1");
        }
    }

    /// Check that invalid contents are reported with file, line and text.
    #[test]
    fn reports_invalid_lines() {
        let error = Config::parse(b"CONFIG_HZ=250\nhello\n", "f").unwrap_err();
        assert_eq!(error.code, Why::Garbage);
        assert!(error.text.starts_with("f: line 2: 'hello' is not"), "{error}");
        for bad in ["CONFIG_=y", "CONFIG_A", "CONFIG_A=", "CONFIG_A B=y", "CONFIG_A=\"x"]
        {
            assert!(Config::parse(bad.as_bytes(), "f").is_err(), "{bad}");
        }
    }

    /// Check that an empty, truncated or too large file is an error, and not a configuration with
    /// all options off.
    #[test]
    fn refuses_broken_files() {
        let whole = packed(TEXT);
        let bomb = packed(&"#".repeat(5 << 20));
        for bytes in [&b""[..], b"# nothing\n", &whole[..whole.len() / 2], &bomb] {
            assert_eq!(Config::parse(bytes, "f").unwrap_err().code, Why::Garbage);
        }
    }

    proptest! {
        /// Check that parsing never panics, compressed or not.
        #[test]
        fn never_panics(
            mut bytes in prop::collection::vec(any::<u8>(), 0..200),
            gz in any::<bool>(),
        ) {
            if gz {
                bytes.splice(0..0, [0x1f, 0x8b, 8, 0]);
            }
            let _ = Config::parse(&bytes, "f");
        }

        /// Check that a serialized option is parsed.
        #[test]
        fn reads_what_was_written(name in "[A-Z0-9_]{1,20}", value in "[a-z0-9 =]{1,20}") {
            let text = format!("CONFIG_{name}=\"{value}\"");
            let config = Config::parse(text.as_bytes(), "f").unwrap();
            prop_assert_eq!(config.value(&name), Some(value.as_str()));
        }
    }
}
