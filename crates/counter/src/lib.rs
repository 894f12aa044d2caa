//! A QEMU plugin: exact instruction counts per CPU, privilege, interruption and function.
//!
//! ```text
//! plugin ── decode, symbols ──▶ watcher ──▶ cpu ──▶ walk ──▶ tree
//!   │ QEMU's side                  ├─▶ phase ──▶ output       read by the lab
//!   │                              └─▶ whole       a whole phase, thread by thread
//!   ├─▶ interface  differences between versions of QEMU
//!   └─▶ places     counts of each CPU, and which CPU executes
//! ```
//!
//! An instruction is counted when it begins. One that faults begins again, and is counted
//! again; the guest's own clock (`-icount`) counts it once.
//!
//! Licence: GPL-2.0-or-later, as QEMU's plugin interface.

#[cfg(not(test))]
mod api;
mod cpu;
mod decode;
mod episode;
#[cfg(not(test))]
mod interface;
mod kinds;
mod output;
mod phase;
#[cfg(not(test))]
mod places;
#[cfg(not(test))]
mod plugin;
mod symbols;
#[cfg(not(test))]
mod translation;
mod tree;
mod walk;
mod watcher;
mod whole;
mod whole_fold;
