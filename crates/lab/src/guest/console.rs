//! The messages of a guest's kernel on its console.
//!
//! With `quiet` a healthy kernel prints almost nothing: a message is a sign of a problem.

use std::fs;
use std::path::Path;

use recording::{Code, Doubt};

use crate::guest::command_line::CONSOLE;

/// The messages of kernels about errors of their own (kernel/panic.c, lib/bug.c,
/// kernel/watchdog.c, kernel/rcu/tree_stall.h).
const COMPLAINTS: &[&str] = &[
    "WARNING: ",
    "BUG: ",
    "Oops: ",
    "general protection",
    "rcu_sched self-detected stall",
];
/// The last message of a decompressor that fails.
pub(crate) const HALTED: &str = "-- System halted";
/// Its messages about the reason (arch/x86/boot/compressed/misc.c, lib/decompress_*.c).
const DAMAGE: &[&str] = &[
    HALTED,
    "ran out of input data",
    "data is corrupt",
    "data probably corrupt",
    "Decoding failed",
    "invalid magic",
    "uncompression error",
    "Destination buffer is too small",
];
/// The first message of a kernel that was unpacked.
const BANNER: &str = "Linux version ";
/// The agent's message that it cannot answer (`channel` in `agent`).
const NO_CHANNEL: &str = "noisefloor-agent: no channel is available: ";
/// The hint for that, if the kernel has no configuration.
const CHANNEL_HINT: &str = "the kernel denies programs the I/O port: it is locked down, \
    or was built with neither CONFIG_X86_IOPL_IOPERM nor CONFIG_DEVPORT; hint: put its \
    configuration beside the image (config-NAME beside vmlinuz-NAME), so that the guest \
    gets a second serial port";
/// How many of the last lines of a boot log are shown.
const LINES: usize = 4;
/// The message of a kernel that can start no program (init/main.c).
pub(crate) const NO_INIT: &str = "No working init found";
/// The message of a kernel that could not create all files (init/initramfs.c).
const NOT_UNPACKED: &str = "Initramfs unpacking failed: ";
const PANIC: &str = "Kernel panic - not syncing: ";

/// A guest's console.
#[derive(Debug, Default)]
pub(crate) struct Console {
    text: String,
}

impl Console {
    /// Reads the console of the boot in `folder`; what cannot be read is empty.
    pub(crate) fn read(folder: &Path) -> Self {
        let bytes = fs::read(folder.join(CONSOLE)).unwrap_or_default();
        Self { text: String::from_utf8_lossy(&bytes).into_owned() }
    }

    /// The reason of a kernel panic, if there was one.
    pub(crate) fn panic(&self) -> Option<&str> {
        let line = self.text.lines().find(|line| line.contains(PANIC))?;
        line.split(PANIC).nth(1).map(str::trim)
    }

    /// Why the kernel could not create all files of the guest, if it could not.
    pub(crate) fn not_unpacked(&self) -> Option<&str> {
        let line = self.text.lines().find(|line| line.contains(NOT_UNPACKED))?;
        line.split(NOT_UNPACKED).nth(1).map(str::trim)
    }

    /// A doubt if the kernel printed an error and continued.
    pub(crate) fn doubt(&self) -> Option<Doubt> {
        let complains = |line: &&str| COMPLAINTS.iter().any(|words| line.contains(words));
        let line = self.text.lines().find(complains)?;
        let text = format!("the guest's kernel printed an error: {}", line.trim());
        Some(Doubt::new(Code::KernelComplained, text))
    }

    /// A description of the boot log of a kernel that did not come up, or did so this time.
    pub(crate) fn boot_log(&self, came_up: bool) -> String {
        let damaged = |line: &&str| DAMAGE.iter().any(|words| line.contains(words));
        let lines = self.text.lines().map(str::trim).filter(|line| !line.is_empty());
        let lines: Vec<&str> = lines.collect();
        let from = lines.len().saturating_sub(LINES);
        let last = lines[from..].join(" | ");
        if lines.is_empty() {
            return "it prints nothing at all either: the image is damaged, or is of no \
                    kernel that boots on this machine"
                .to_owned();
        }
        if !self.text.contains(BANNER) && lines.iter().any(damaged) {
            return format!("it cannot unpack itself, the image is damaged: {last}");
        }
        if let Some(line) = lines.iter().find(|line| line.starts_with(NO_CHANNEL)) {
            return format!(
                "its agent ran but could not answer: {CHANNEL_HINT} ({line})"
            );
        }
        if came_up {
            return format!("it came up; the last lines of its console: {last}");
        }
        format!("the last lines of its boot log are: {last}")
    }

    /// Its last line.
    pub(crate) fn last_line(&self) -> Option<&str> {
        self.text.lines().map(str::trim).rfind(|line| !line.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn console(text: &str) -> Console {
        Console { text: text.to_owned() }
    }

    /// Check that a damaged image, one without output, and a kernel that stopped half-way are
    /// distinguished.
    #[test]
    fn boot_logs() {
        let damaged =
            "early console\n\nZSTD-compressed data is corrupt\n\n -- System halted";
        let said = console(damaged).boot_log(false);
        assert!(said.starts_with("it cannot unpack itself"), "{said}");
        assert!(said.ends_with("data is corrupt | -- System halted"), "{said}");
        assert!(console("\n").boot_log(false).contains("prints nothing at all"));
        let log = "Linux version 6.1\na\nb\nc -- System halted\nd\n";
        let said = console(log).boot_log(false);
        assert_eq!(
            said,
            "the last lines of its boot log are: a | b | c -- System halted | d"
        );
        assert!(console(log).boot_log(true).starts_with("it came up"));
    }

    /// Check that the message of an agent without a channel names a remedy.
    #[test]
    fn no_channel() {
        let log = "Linux version 6.12\nnoisefloor-agent: no channel is available: \
                   port\nreboot: off\n";
        let said = console(log).boot_log(false);
        assert!(said.starts_with("its agent ran but could not answer: "), "{said}");
        assert!(said.contains("hint: put its configuration beside the image"), "{said}");
        assert!(
            said.ends_with("(noisefloor-agent: no channel is available: port)"),
            "{said}"
        );
    }

    /// Check that the reason of a panic is found.
    #[test]
    fn panics() {
        let text = "[    1.2] Kernel panic - not syncing: No working init found.  Try\n[";
        assert_eq!(console(text).panic(), Some("No working init found.  Try"));
        assert_eq!(console("[    2.0] reboot: Power down\n").panic(), None);
    }

    /// Check that error messages become a doubt, and usual ones do not.
    #[test]
    fn complaints() {
        let text = "[    1.2] WARNING: CPU: 0 PID: 1 at kernel/x.c:3\r\nmore";
        let doubt = console(text).doubt().unwrap();
        assert!(
            doubt.text.ends_with("WARNING: CPU: 0 PID: 1 at kernel/x.c:3"),
            "{doubt}"
        );
        assert_eq!(console("[    2.0] reboot: Power down\n").doubt(), None);
        assert_eq!(console("a\n\n").last_line(), Some("a"));
    }
}
