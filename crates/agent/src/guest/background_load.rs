//! Background load: threads that compete with the measurement, as ordinary tasks that never sleep.
//!
//! They run until the guest powers off. Their loop has no `pause`: emulators would run another CPU
//! then.

use std::hint::black_box;
use std::sync::mpsc::{Sender, channel};
use std::thread::Builder;

use recording::BackgroundLoad;
use units::Cpu;

use crate::error::Error;

/// Starts them, and returns once each is on its CPU.
///
/// # Errors
/// Which CPU is not available, and why.
pub(crate) fn start(loads: &[BackgroundLoad]) -> Result<(), Error> {
    for BackgroundLoad { cpu, spinners } in loads {
        for _ in 0..*spinners {
            start_one(*cpu)?;
        }
    }
    Ok(())
}

fn start_one(cpu: Cpu) -> Result<(), Error> {
    let what = || format!("failed to keep CPU {cpu} busy");
    let (seated, is_seated) = channel();
    let thread = Builder::new().name(format!("company/{cpu}"));
    let started = thread.spawn(move || spin(cpu, &seated));
    started.map_err(|why| Error::new(what(), why))?;
    let pinned = is_seated.recv().map_err(|why| Error::new(what(), why))?;
    pinned.map_err(|why| Error::new(what(), why))
}

fn spin(cpu: Cpu, seated: &Sender<Result<(), isolate::Error>>) {
    let pinned = isolate::pin(cpu);
    let stays = pinned.is_ok();
    // The starting thread waits only for this.
    let _ = seated.send(pinned);
    while black_box(stays) {}
}
