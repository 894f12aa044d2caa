//! The installed files that the lab needs, and the variables with their folders.

use std::env;
use std::ffi::OsString;

/// The file names of the agent and the counter.
pub(crate) const AGENT: &str = "noisefloor-agent";
pub(crate) const COUNTER: &str = "noisefloor-counter.so";
/// The file name of the agent of arm64 guests, which is optional.
pub(crate) const AGENT_ARM64: &str = "noisefloor-agent-arm64";
/// The library for programs written for Intel's TIF: its file, and the name by which programs need it
/// (its soname: `tif/build.rs`).
pub(crate) const TIF: &str = "libtif.so";
pub(crate) const TIF_SONAME: &str = "libtif.so.0";
/// The variable with another folder of them.
pub(crate) const PARTS_VARIABLE: &str = "NOISEFLOOR_PARTS";
/// How to install QEMU.
pub(crate) const QEMU_PACKAGE: &str = "install the package qemu-system-x86 (Debian, \
    Ubuntu; on Debian 12 from backports), qemu-system-x86-core (Fedora) or qemu-x86 \
    (SUSE)";

/// How to install QEMU for arm64 guests.
pub(crate) const QEMU_ARM64_PACKAGE: &str = "install the package qemu-system-arm (Debian, \
    Ubuntu; on Debian 12 from backports), qemu-system-aarch64-core (Fedora) or qemu-arm \
    (SUSE)";

/// The value of a variable, unless it is empty.
pub(crate) fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|value| !value.is_empty())
}
