//! The name of this machine.

use std::fs;

/// The host name; empty if it cannot be read.
pub(crate) fn name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}
