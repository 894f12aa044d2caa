//! A kernel's configuration, compressed or not.
//!
//! Every option of a plain text is looked up, and must have the value of the last line that sets
//! it. An error names the file.
#![no_main]

use std::collections::HashMap;

use facts::Config;
use libfuzzer_sys::fuzz_target;

const FILE: &str = "/boot/config-fuzz";

fuzz_target!(|bytes: &[u8]| {
    let config = match Config::parse(bytes, FILE) {
        Ok(config) => config,
        Err(unknown) => return assert!(unknown.text.starts_with(FILE), "{unknown}"),
    };
    assert_eq!(config.file(), FILE);
    if bytes.starts_with(&[0x1f, 0x8b]) {
        return;
    }
    let text = String::from_utf8_lossy(bytes);
    let set = options(&text);
    assert!(!set.is_empty(), "nothing is set, and yet it was read");
    for (name, value) in set {
        assert_eq!(config.value(name), Some(value), "{name}");
        assert_eq!(config.is_set(name), value == "y" || value == "m", "{name}");
    }
});

/// The options that a text sets, parsed in the simplest way.
fn options(text: &str) -> HashMap<&str, &str> {
    let pairs = text.lines().filter_map(|line| {
        let (name, value) = line.strip_prefix("CONFIG_")?.split_once('=')?;
        let value = value.trim_end();
        let bare = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
        Some((name, bare.unwrap_or(value)))
    });
    pairs.collect()
}
