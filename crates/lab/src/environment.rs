//! Environment variables that say where things are.

use std::env;
use std::ffi::OsString;

/// What a variable is set to, where that is something.
pub(crate) fn given(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}
