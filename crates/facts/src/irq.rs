//! Device interrupts: where they go.

use units::CpuSet;

use crate::fact::group;

group! {
    /// Device interrupts.
    "irq" Irq {
        /// Where a new interrupt goes (`/proc/irq/default_smp_affinity`).
        default_affinity: CpuSet,
        /// Whether handlers run as threads.
        threaded: bool,
    }
}
