//! QEMU's side: its plugin interface, what versions of QEMU have of it, and the plugin itself.

pub(crate) mod api;
mod clock;
pub(crate) mod interface;
mod places;
mod plugin;
pub(crate) mod translation;
