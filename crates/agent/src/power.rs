//! The end of a guest.
//!
//! Without ACPI a PC has no way to power off, and the kernel would halt for good. QEMU
//! is run with `-no-reboot`, which makes restarting as good.

use std::path::Path;

use rustix::system::{RebootCommand, reboot};

/// Where the kernel shows ACPI's tables, if it uses them.
const ACPI: &str = "/sys/firmware/acpi";

/// Powers off; returns only where the kernel refuses.
pub(crate) fn off() {
    let can_power_off = Path::new(ACPI).exists();
    let command =
        if can_power_off { RebootCommand::PowerOff } else { RebootCommand::Restart };
    if let Err(error) = reboot(command) {
        eprintln!("noisefloor-agent: power off: {error}");
    }
}
