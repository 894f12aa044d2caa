//! Known events are found: noise under its right name, and the reasons of context switches.
//!
//! One program, which guests run as well. All of it needs root; a test that cannot run is skipped
//! with a message.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

#[cfg(target_arch = "x86_64")]
mod firmware;
mod injector;
mod late;
mod noise;
mod noise_run;
mod osnoise;
mod own_mounts;
mod switches;

use std::sync::Mutex;

/// Tests that need a CPU for themselves run one at a time.
static CPU: Mutex<()> = Mutex::new(());
