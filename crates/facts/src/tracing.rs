//! Tracing: what this kernel can tell about itself while it runs.

use crate::fact::group;

group! {
    /// Tracing.
    "tracing" Tracing {
        /// Where tracefs is mounted.
        tracefs: String,
        /// The tracers the kernel has.
        tracers: Vec<String>,
        /// The tracepoints it has, of those that name what takes time.
        tracepoints: Vec<String>,
        /// Whether BPF programs can be loaded and attached to tracepoints.
        bpf: bool,
        /// Whether the kernel describes its own types (`/sys/kernel/btf/vmlinux`).
        btf: bool,
        /// Whether BPF is closed to those without a capability.
        bpf_unprivileged: String,
    }
}
