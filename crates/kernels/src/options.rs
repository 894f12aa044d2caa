//! The build options that a guest's kernel needs.
//!
//! Each of these is built in in every distribution kernel examined; a kernel built by hand may
//! lack one, and then boots without output. They are read from its configuration: without one,
//! nothing is known until it boots.

use facts::Config;

use crate::architecture::Architecture;

/// The options that must be built in, and the reasons.
const NEEDED: &[(&str, &str)] = &[
    ("64BIT", "guests are 64-bit"),
    ("BLK_DEV_INITRD", "its only program comes in an initial RAM disk"),
    ("BINFMT_ELF", "that program is an ELF file"),
    ("PROC_FS", "that program reads /proc"),
    ("SYSFS", "that program reads /sys"),
    ("UNIX", "that program uses local sockets"),
];

/// The option of the driver of the serial port, and the reason.
fn console(architecture: Architecture) -> (&'static str, &'static str) {
    let option = match architecture {
        Architecture::X86_64 => "SERIAL_8250_CONSOLE",
        Architecture::Arm64 => "SERIAL_AMBA_PL011_CONSOLE",
    };
    (option, "its messages come over a serial port")
}

/// All options that must be built in, and the reasons.
fn needed(
    architecture: Architecture,
) -> impl Iterator<Item = (&'static str, &'static str)> {
    let (first, others) = NEEDED.split_at(1);
    first.iter().copied().chain([console(architecture)]).chain(others.iter().copied())
}

/// The options that a kernel was built without.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("built without {options} ({file})")]
pub struct MissingOptions {
    /// The options, and what each is needed for.
    options: String,
    /// The file with its configuration.
    file: String,
}

/// Checks that nothing is missing.
pub(crate) fn check(
    config: &Config,
    architecture: Architecture,
) -> Result<(), MissingOptions> {
    let missing =
        needed(architecture).filter(|(name, _)| config.value(name) != Some("y"));
    let missing: Vec<_> =
        missing.map(|(name, why)| format!("CONFIG_{name} ({why})")).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(MissingOptions { options: missing.join(", "), file: config.file().to_owned() })
}

/// A configuration with everything needed but that.
#[cfg(test)]
pub(crate) fn synthetic_without(without: &str) -> String {
    let lines = needed(Architecture::X86_64).filter(|(name, _)| *name != without);
    lines.map(|(name, _)| format!("CONFIG_{name}=y\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_text(text: &str) -> Result<(), String> {
        let config = Config::parse(text.as_bytes(), "the config").unwrap();
        check(&config, Architecture::X86_64).map_err(|missing| missing.to_string())
    }

    /// Check that a kernel with everything passes, and that one option less is named.
    #[test]
    fn names_what_is_missing() {
        check_text(&synthetic_without("")).unwrap();
        for (name, _) in needed(Architecture::X86_64) {
            let error = check_text(&synthetic_without(name)).unwrap_err();
            assert!(
                error.starts_with(&format!("built without CONFIG_{name} (")),
                "{error}"
            );
            assert!(error.ends_with("(the config)"), "{error}");
            assert_eq!(error.matches("CONFIG_").count(), 1, "{error}");
        }
    }

    /// Check that arm64 kernels need the driver of their own serial port.
    #[test]
    fn consoles() {
        let text = synthetic_without("");
        let config = Config::parse(text.as_bytes(), "the config").unwrap();
        let error = check(&config, Architecture::Arm64).unwrap_err().to_string();
        assert!(error.starts_with("built without CONFIG_SERIAL_AMBA_PL011_CONSOLE ("));
        let text = text.replace("SERIAL_8250_CONSOLE", "SERIAL_AMBA_PL011_CONSOLE");
        let config = Config::parse(text.as_bytes(), "the config").unwrap();
        check(&config, Architecture::Arm64).unwrap();
    }

    /// Check that a module does not count: nothing can load it before the guest runs.
    #[test]
    fn modules_are_not_enough() {
        let text = synthetic_without("BINFMT_ELF") + "CONFIG_BINFMT_ELF=m\n";
        assert!(check_text(&text).unwrap_err().contains("CONFIG_BINFMT_ELF"));
    }
}
