//! What is known to have happened comes back: noise under its right name, and why tasks had to go.
//!
//! One program, which guests run as well. All of it needs root; where a test cannot run, it says so
//! and is skipped.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod injector;
mod noise;
mod osnoise;
mod own_mounts;
mod seen;
mod switches;

use std::sync::Mutex;

/// Tests that have a CPU to themselves take turns.
static CPU: Mutex<()> = Mutex::new(());
