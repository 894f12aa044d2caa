//! A QEMU plugin: exact instruction counts per CPU, privilege, interruption and function.
//!
//! ```text
//! plugin ── decode, symbols ──▶ watcher ──▶ cpu ──▶ walk ──▶ tree
//!   │ QEMU's side                  ├─▶ phase ──▶ output       read by the lab
//!   │                              ├─▶ whole       a whole phase, thread by thread
//!   │                              ├─▶ idle        halts
//!   │                              └─▶ borders     instead of cpu and whole, less detailed:
//!   │                                              contexts, functions, groups of threads
//!   ├─▶ interface  differences between versions of QEMU (with plugin in qemu/)
//!   └─▶ places     counts of each CPU, and which CPU executes
//! ```
//!
//! An instruction is counted when it begins. One that faults begins again, and is counted
//! again; the guest's own clock (`-icount`) counts it once.
//!
//! Licence: GPL-2.0-or-later, as QEMU's plugin interface.

mod borders;
mod contexts;
mod cpu;
mod decode;
mod episode;
mod functions;
mod groups;
mod idle;
mod kinds;
mod output;
mod phase;
#[cfg(not(test))]
mod qemu;
mod symbols;
mod tree;
mod walk;
mod watcher;
mod whole;
