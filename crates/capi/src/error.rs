//! The last error of a thread.

use std::ffi::c_char;

/// Why the last failed call of this thread failed, and what would help; empty if none has failed.
/// The text is valid until another call of this thread fails.
#[unsafe(no_mangle)]
pub extern "C" fn nf_last_error() -> *const c_char {
    ffi::last_error()
}
