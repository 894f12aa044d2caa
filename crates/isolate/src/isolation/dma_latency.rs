//! The PM QoS limit on the exit latency of idle states.
//!
//! A process writes a limit in microseconds, 32 bits, to `/dev/cpu_dma_latency`; it is in force as
//! long as the file is open (`Documentation/power/pm_qos_interface.rst`), so nothing has to be
//! restored. It applies to all CPUs, and increases their power consumption. Reading the file
//! returns the lowest limit of all processes.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};

use facts::{Root, resume_limit_us};
use units::Cpu;

use crate::error::{Error, Kind};

const DEVICE: &str = "/dev/cpu_dma_latency";

/// The current limit on the exit latency of a CPU in microseconds: the lower of the global limit
/// and the CPU's own, as in idle governors (`cpuidle_governor_latency_req` in
/// `drivers/cpuidle/governor.c`). 2,000,000,000 if there is no limit; `None` if it cannot be read,
/// which requires root.
pub fn wake_limit_us(cpu: Cpu) -> Option<u32> {
    let mut held = [0; size_of::<u32>()];
    File::open(DEVICE).and_then(|mut device| device.read_exact(&mut held)).ok()?;
    let held = u32::from_ne_bytes(held);
    Some(resume_limit_us(&Root::live(), cpu).map_or(held, |own| held.min(own)))
}

/// Sets a global limit until the file is dropped.
pub(crate) fn hold(microseconds: u32) -> Result<File, Error> {
    let open = OpenOptions::new().write(true).open(DEVICE);
    let held = open.and_then(|mut device| {
        device.write_all(&microseconds.to_ne_bytes())?;
        Ok(device)
    });
    held.map_err(|error| {
        let is_missing = error.kind() == ErrorKind::NotFound;
        let kind = if is_missing { Kind::NoSetting } else { Kind::Privilege };
        let text = format!("failed to limit idle states through {DEVICE}");
        Error::new(kind, text).caused_by(error)
    })
}
