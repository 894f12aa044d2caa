//! Clocks: which the kernel reads, and what the CPU promises about its counter.

use units::TscHz;

use crate::fact::group;

group! {
    /// Clocks.
    "clock" Clock {
        /// The clock source in use.
        source: String,
        /// The clock sources that could be used.
        available: Vec<String>,
        /// What the CPU promises about its time stamp counter (`constant_tsc`,
        /// `nonstop_tsc`, ...).
        tsc_flags: Vec<String>,
        /// The counter's frequency as the kernel found it at boot.
        tsc_hz: TscHz,
    }
}
