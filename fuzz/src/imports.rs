//! Files of other tools: reading any input ends in a recording or an error that names the file, and a
//! recording can be written and read again.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use recording::Recording;

const FILE: &str = "fuzz.txt";

fuzz_target!(|bytes: &[u8]| {
    let file = Path::new(FILE);
    match imports::read(bytes, file) {
        Ok(read) => {
            let written = read.to_json().expect("what was read can be written");
            let again = Recording::from_json(&written, file);
            assert_eq!(again.expect("what was written can be read"), read);
        }
        Err(error) => assert!(error.to_string().contains(FILE), "{error}"),
    }
});
