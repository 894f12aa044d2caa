//! Virtualisation: who is below this kernel, and whether it says what it takes.

use crate::fact::group;

group! {
    /// Virtualisation.
    "virt" Virt {
        /// The hypervisor; `None`: the kernel runs on the machine itself.
        hypervisor: Option<String>,
        /// What the firmware calls the machine.
        product: String,
        /// Whether stolen time is counted in `/proc/stat`.
        steal_clock: bool,
    }
}
