//! The recording's file: reading any input ends in a recording or an error.
//!
//! A recording that was read is the same after it is written and read again. An error names the
//! file.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use recording::Recording;

const FILE: &str = "fuzz.json";

fuzz_target!(|text: &str| {
    let file = Path::new(FILE);
    match Recording::from_json(text, file) {
        Ok(read) => {
            let written = read.to_json().expect("what was read can be written");
            let again = Recording::from_json(&written, file);
            assert_eq!(again.expect("what was written can be read"), read);
        }
        Err(error) => assert!(error.to_string().contains(FILE), "{error}"),
    }
});
