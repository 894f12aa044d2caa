//! How long CPUs may take to wake up: while it is held, none sleeps deeper.
//!
//! `/dev/cpu_dma_latency` takes a number of microseconds, 32 bits, for as long as it is open
//! (`Documentation/power/pm_qos_interface.rst`): so nothing has to be put back. It is for all
//! CPUs, and costs power on all of them.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};

use crate::error::{Error, Kind};

const DEVICE: &str = "/dev/cpu_dma_latency";

/// Lets no CPU sleep so deep that waking takes longer, until the file is dropped.
pub(crate) fn hold(microseconds: u32) -> Result<File, Error> {
    let open = OpenOptions::new().write(true).open(DEVICE);
    let held = open.and_then(|mut device| {
        device.write_all(&microseconds.to_ne_bytes())?;
        Ok(device)
    });
    held.map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            let text =
                format!("idle states stay as deep as they are: there is no {DEVICE}");
            Error::new(Kind::NoSetting, text)
        }
        _ => {
            let text = format!("idle states stay as deep as they are: {DEVICE}: {error}");
            Error::new(Kind::Privilege, text)
        }
    })
}
