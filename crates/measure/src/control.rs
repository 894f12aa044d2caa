//! Control of a measurement from outside: its observer, the order to stop, signals, moments.

pub(crate) mod hotplug;
pub(crate) mod moments;
pub(crate) mod observer;
pub(crate) mod relay;
pub(crate) mod stop;
pub(crate) mod wait;
pub(crate) mod watchdog;
