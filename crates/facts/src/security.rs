//! What this process may ask of this kernel.

use crate::fact::group;

group! {
    /// What this process may do.
    "security" Security {
        /// `none`, `integrity`, `confidentiality`.
        lockdown: String,
        /// The user this process acts for.
        uid: u32,
        /// Its capabilities, of those that matter here (`sys_nice`, `bpf`, ...).
        capabilities: Vec<String>,
    }
}
