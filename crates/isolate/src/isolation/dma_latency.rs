//! How long CPUs may take to wake up: while it is held, none sleeps deeper.
//!
//! `/dev/cpu_dma_latency` takes a number of microseconds, 32 bits, for as long as it is open
//! (`Documentation/power/pm_qos_interface.rst`): so nothing has to be put back. It is for all
//! CPUs, and costs power on all of them. What is read there is the least that anybody holds.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};

use facts::{Root, resume_limit_us};
use units::Cpu;

use crate::error::{Error, Kind};

const DEVICE: &str = "/dev/cpu_dma_latency";

/// How long waking that CPU may take just now, in microseconds: the least of what is held for all
/// CPUs and of its own limit, as idle governors have it (`cpuidle_governor_latency_req` in
/// `drivers/cpuidle/governor.c`). 2,000,000,000 where there is no limit; `None` where it cannot be
/// read, which takes root.
pub fn wake_limit_us(cpu: Cpu) -> Option<u32> {
    let mut held = [0; size_of::<u32>()];
    File::open(DEVICE).and_then(|mut device| device.read_exact(&mut held)).ok()?;
    let held = u32::from_ne_bytes(held);
    Some(resume_limit_us(&Root::live(), cpu).map_or(held, |own| held.min(own)))
}

/// Lets no CPU sleep so deep that waking takes longer, until the file is dropped.
pub(crate) fn hold(microseconds: u32) -> Result<File, Error> {
    let open = OpenOptions::new().write(true).open(DEVICE);
    let held = open.and_then(|mut device| {
        device.write_all(&microseconds.to_ne_bytes())?;
        Ok(device)
    });
    held.map_err(|error| {
        let kind = match error.kind() {
            ErrorKind::NotFound => Kind::NoSetting,
            _ => Kind::Privilege,
        };
        let text = format!("failed to limit idle states through {DEVICE}");
        Error::new(kind, text).caused_by(error)
    })
}
