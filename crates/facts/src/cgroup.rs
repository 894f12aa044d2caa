//! Control groups: which hierarchy owns the CPUs, and what this process got of them.

use units::CpuSet;

use crate::fact::group;

group! {
    /// Control groups.
    "cgroup" Cgroup {
        /// `v1`, `v2`, `hybrid`, `none`.
        layout: String,
        /// The directory of the cpuset this process is in.
        cpuset: String,
        /// The CPUs that cpuset grants.
        cpus: CpuSet,
        /// What kind of partition it is (`member`, `root`, `isolated`).
        partition: String,
    }
}
