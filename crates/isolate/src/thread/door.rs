//! The way of one thread into the isolated partition of some CPUs.

use std::ffi::CString;

use units::CpuSet;

/// Where the v2 hierarchy is mounted.
pub(crate) const MOUNTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

/// The name of the partition of these CPUs.
pub(crate) fn name(cpus: &CpuSet) -> String {
    format!("noisefloor-{cpus}")
}

/// The way into the partition of some CPUs, for the calling thread alone.
#[derive(Debug)]
pub(crate) struct Door(Vec<CString>);

impl Door {
    /// Where it is, should there be one.
    pub(crate) fn of(cpus: &CpuSet) -> Self {
        let file = |place| format!("{place}/{}/cgroup.threads", name(cpus));
        Self(
            MOUNTS
                .map(file)
                .into_iter()
                .filter_map(|file| CString::new(file).ok())
                .collect(),
        )
    }

    /// Goes in; whether there is one. Async-signal-safe.
    pub(crate) fn enter(&self) -> bool {
        self.0.iter().any(|file| {
            // SAFETY: the path ends with a zero and outlives the call.
            let door =
                unsafe { libc::open(file.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC) };
            if door < 0 {
                return false;
            }
            // 0 is the thread that writes.
            // SAFETY: one byte is read, of a text that lives for ever.
            let written = unsafe { libc::write(door, c"0".as_ptr().cast(), 1) };
            // SAFETY: it was opened above, and has no other owner.
            unsafe { libc::close(door) };
            written == 1
        })
    }
}
