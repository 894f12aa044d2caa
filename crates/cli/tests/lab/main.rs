//! The lab on the machine that runs the tests: real kernels in real guests.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod arm64;
mod beside;
mod builds;
mod c_programs;
mod cache;
mod calls;
mod counter;
mod expected;
mod figures;
mod firmware;
mod gate;
mod guest_program;
mod guests;
#[path = "../shared/install.rs"]
mod install;
mod isolated;
mod lean;
mod lists;
mod locked_down;
mod lost;
mod nohz;
mod observed;
mod packages;
mod programs;
mod proven;
mod qemus;
mod repeats;
mod rtla;
mod schedulers;
mod site;
mod slices;
mod slurm;
mod trim;
mod variations;
mod watched;
