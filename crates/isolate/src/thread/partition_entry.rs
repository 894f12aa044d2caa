//! Moving one thread into an isolated partition.

use std::ffi::CString;
use std::path::Path;

use units::CpuSet;

/// The mount points of the v2 hierarchy.
pub(crate) const MOUNTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// The name of a partition's cgroup.
pub(crate) fn name(cpus: &CpuSet) -> String {
    format!("noisefloor-{cpus}")
}

/// Whether there is a partition of exactly these CPUs.
pub(crate) fn has_partition(cpus: &CpuSet) -> bool {
    MOUNTS.iter().any(|mount| Path::new(mount).join(name(cpus)).is_dir())
}

/// The `cgroup.threads` file of a partition, prepared so that writing to it does not allocate.
#[derive(Debug)]
pub(crate) struct PartitionEntry(Vec<CString>);

impl PartitionEntry {
    /// The entry of the partition of these CPUs, which need not exist.
    pub(crate) fn of(cpus: &CpuSet) -> Self {
        let file = |mount| CString::new(format!("{mount}/{}/cgroup.threads", name(cpus)));
        Self(MOUNTS.into_iter().flat_map(file).collect())
    }

    /// Moves the calling thread into the partition; returns whether it exists. Async-signal-safe.
    pub(crate) fn enter(&self) -> bool {
        self.0.iter().any(|file| {
            // SAFETY: the path is NUL-terminated and outlives the call.
            let fd =
                unsafe { libc::open(file.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
            if fd < 0 {
                return false;
            }
            // 0 is the calling thread.
            // SAFETY: reads one byte of a static string.
            let written = unsafe { libc::write(fd, c"0".as_ptr().cast(), 1) };
            // SAFETY: it was opened above, and has no other owner.
            unsafe { libc::close(fd) };
            written == 1
        })
    }
}
