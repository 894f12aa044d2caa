//! The end of what a program writes.

use std::fs::File;
use std::io::Read;

/// As much as a reader of a message may want, in bytes.
const KEPT: usize = 16 << 10;

/// Reads until everyone has closed the other end; returns the last part.
pub(crate) fn read_end(mut pipe: File) -> Vec<u8> {
    let (mut kept, mut buffer) = (Vec::new(), vec![0; KEPT]);
    while let Ok(read @ 1..) = pipe.read(&mut buffer) {
        kept.extend(&buffer[..read]);
        kept.drain(..kept.len().saturating_sub(KEPT));
    }
    kept
}
