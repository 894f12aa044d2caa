//! Kernel settings of an order, written before the measurement.
//!
//! Nothing is restored, and there is no journal: the guest ends afterwards.
//!
//! Linux 5.13 moved the scheduler's features and tunables to `/sys/kernel/debug/sched/`. A setting
//! with a path there is written to its earlier path on an earlier kernel.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};

use recording::GuestSetting;

use crate::error::Error;

/// Writes them in order.
///
/// # Errors
/// Which one could not be written, and why.
pub(crate) fn write(settings: &[GuestSetting]) -> Result<(), Error> {
    for GuestSetting { path, value } in settings {
        // Not `fs::write`, which would try to create a missing file.
        let open = |path: &str| OpenOptions::new().write(true).open(path);
        let opened = match (open(path), isolate::path_before_5_13(path)) {
            (Err(error), Some(earlier)) if error.kind() == ErrorKind::NotFound => {
                open(&earlier).map_err(|_| error)
            }
            (opened, _) => opened,
        };
        let written = opened.and_then(|mut file| file.write_all(value.as_bytes()));
        written.map_err(|why| {
            Error::new(format!("failed to write {value} to {path}"), why)
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(path: &str, value: &str) -> Result<(), Error> {
        write(&[GuestSetting { path: path.to_owned(), value: value.to_owned() }])
    }

    /// Check that the error for a missing setting names it, with the kernel's reason.
    #[test]
    fn failures_name_the_setting() {
        written("/dev/null", "1").unwrap();
        let error = written("/proc/sys/kernel/no_such_setting", "1").unwrap_err();
        let error = units::chain(&error);
        assert!(error.contains("1 to /proc/sys/kernel/no_such_setting:"), "{error}");
        assert!(error.contains("os error 2"), "{error}");
    }
}
