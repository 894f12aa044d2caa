//! The guest as a machine: what it needs before and after a measurement.

pub(crate) mod background_load;
pub(crate) mod channel;
pub(crate) mod environment;
pub(crate) mod mounts;
#[cfg(not(target_arch = "aarch64"))]
pub(crate) mod port;
pub(crate) mod power;
pub(crate) mod quiescence;
pub(crate) mod services;
pub(crate) mod settings;
pub(crate) mod unthrottled;
