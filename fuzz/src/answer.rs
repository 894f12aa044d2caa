//! The bytes that a guest sends: reading any input ends in an answer or an error.
//!
//! An answer that was read is the same after it is sent and read again. Inflated data is text, or
//! an error.
#![no_main]

use agent::{Answer, Symbols};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // Otherwise most inputs would fail at the first byte.
    if let Ok(read) = Answer::from_bytes(&[Answer::GREETING, bytes].concat()) {
        let sent = read.to_frames().expect("what was read can be sent");
        let again = Answer::from_bytes(&[Answer::GREETING, &sent].concat());
        assert_eq!(again.expect("what was sent can be read"), read);
    }
    let _ = Symbols::from_deflated(bytes.to_vec()).text();
});
