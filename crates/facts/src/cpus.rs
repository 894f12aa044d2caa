//! CPUs: which there are, which do what, and how they share hardware.

use serde::{Deserialize, Serialize};
use units::CpuSet;

use crate::fact::group;

/// Simultaneous multithreading.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Smt {
    /// `on`, `off`, `forceoff`, `notsupported`, `notimplemented`.
    pub control: String,
    /// Whether two threads share a core now.
    pub active: bool,
}

group! {
    /// CPUs.
    "cpus" Cpus {
        /// CPUs the kernel could ever have.
        possible: CpuSet,
        /// CPUs that are there.
        present: CpuSet,
        /// CPUs that run.
        online: CpuSet,
        /// CPUs this process may run on now.
        allowed: CpuSet,
        /// CPUs the scheduler keeps ordinary tasks off (`isolcpus=`, isolated cpusets).
        isolated: CpuSet,
        /// Online CPUs that do the kernel's chores: neither isolated nor `nohz_full`.
        housekeeping: CpuSet,
        /// Simultaneous multithreading.
        smt: Smt,
        /// CPUs that share a core, core by core.
        cores: Vec<CpuSet>,
        /// CPUs of each socket.
        packages: Vec<CpuSet>,
        /// CPUs of each memory node.
        nodes: Vec<CpuSet>,
    }
}
