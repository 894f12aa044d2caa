//! The end of a guest.
//!
//! Without ACPI a PC cannot power off, and the kernel would halt forever. QEMU runs with
//! `-no-reboot`, so that it also ends on a restart. The board of arm64 guests can always power off
//! (PSCI, Arm's power state coordination interface).

use std::path::Path;

use rustix::system::{RebootCommand, reboot};

/// The kernel's folder for ACPI's tables, if it uses them.
const ACPI: &str = "/sys/firmware/acpi";

/// Powers off; returns only if the kernel refuses.
pub(crate) fn off() {
    let can_power_off = cfg!(target_arch = "aarch64") || Path::new(ACPI).exists();
    let command =
        if can_power_off { RebootCommand::PowerOff } else { RebootCommand::Restart };
    if let Err(error) = reboot(command) {
        eprintln!("noisefloor-agent: power off: {error}");
    }
}
