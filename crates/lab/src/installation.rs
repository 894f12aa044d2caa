//! What the lab needs to be installed, and the variables that say where it is.

use std::env;
use std::ffi::OsString;

/// What `cargo xtask guest` and `make install` call the agent and the counter.
pub(crate) const AGENT: &str = "noisefloor-agent";
pub(crate) const COUNTER: &str = "noisefloor-counter.so";
/// The variable that names another folder of theirs.
pub(crate) const PARTS_VARIABLE: &str = "NOISEFLOOR_PARTS";
/// How to install QEMU.
pub(crate) const QEMU_PACKAGE: &str = "install the package qemu-system-x86 (Debian, Ubuntu; on Debian 12 from backports), \
     qemu-system-x86-core (Fedora) or qemu-x86 (SUSE)";

/// What a variable is set to, unless it is empty.
pub(crate) fn given(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}
