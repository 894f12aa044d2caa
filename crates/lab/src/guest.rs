//! One boot of a guest: its files, its QEMU, and its output.

pub(crate) mod accelerator;
pub(crate) mod boot;
pub(crate) mod command_line;
pub(crate) mod console;
pub(crate) mod exit;
pub(crate) mod initramfs;
mod process_time;
pub(crate) mod qemu;
pub(crate) mod request;
pub(crate) mod thread_ordering;
