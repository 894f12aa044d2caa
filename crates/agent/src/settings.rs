//! Kernel settings that an order asks for, written before anything is measured.
//!
//! Nothing is given back, and there is no journal: the guest is gone afterwards.

use std::fs::OpenOptions;
use std::io::Write;

use agent::Setting;

/// Writes them in their order.
///
/// # Errors
/// Which one could not be written, and why.
pub(crate) fn write(settings: &[Setting]) -> Result<(), String> {
    for Setting { path, value } in settings {
        // Not `fs::write`, which would first try to create what is not there.
        let opened = OpenOptions::new().write(true).open(path);
        let written = opened.and_then(|mut file| file.write_all(value.as_bytes()));
        written.map_err(|error| format!("write {value} to {path}: {error}"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(path: &str, value: &str) -> Result<(), String> {
        write(&[Setting { path: path.to_owned(), value: value.to_owned() }])
    }

    /// Check that a setting that is not there is named, with the kernel's reason.
    #[test]
    fn failures_name_the_setting() {
        assert_eq!(written("/dev/null", "1"), Ok(()));
        let error = written("/proc/sys/kernel/no_such_setting", "1").unwrap_err();
        assert!(error.contains("1 to /proc/sys/kernel/no_such_setting:"), "{error}");
        assert!(error.contains("os error 2"), "{error}");
    }
}
