//! What can be tried against one source of noise, by its name.

use recording::CulpritKind;

/// What avoids a source of noise, or says more about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Against {
    /// A partition of cpusets, which keeps other programs off the CPUs.
    Partition,
    /// Moving the interrupts of devices to other CPUs.
    Irqs,
    /// Moving unbound workqueues to other CPUs.
    Workqueues,
    /// The threads that wake up most often: those that the kernel binds to a CPU cannot be moved, but work
    /// that wakes them can.
    Wakers,
    /// Nothing that is known: the kernel's own work on the CPU, a CPU quota, the hypervisor, and unexplained time.
    Unknown,
}

/// Threads that the kernel binds to a CPU, by the begin of their names.
const BOUND: [&str; 6] =
    ["kworker/", "ksoftirqd/", "migration/", "cpuhp/", "idle_inject/", "rcuc/"];
/// Workers that are bound to no CPU.
const UNBOUND: &str = "kworker/u";

/// What can be tried against a source.
pub fn against(kind: CulpritKind, name: &str) -> Against {
    match kind {
        CulpritKind::Irq => Against::Irqs,
        CulpritKind::Thread if name.starts_with(UNBOUND) => Against::Workqueues,
        CulpritKind::Thread if BOUND.iter().any(|begin| name.starts_with(begin)) => {
            Against::Wakers
        }
        CulpritKind::Thread => Against::Partition,
        CulpritKind::Timer
        | CulpritKind::Ipi
        | CulpritKind::Softirq
        | CulpritKind::Nmi
        | CulpritKind::Quota
        | CulpritKind::Steal
        | CulpritKind::Firmware
        | CulpritKind::Unexplained => Against::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check threads of the kernel with and without a CPU, and one of a program.
    #[test]
    fn threads() {
        let of = |name| against(CulpritKind::Thread, name);
        assert_eq!(of("kworker/u8"), Against::Workqueues);
        assert_eq!(of("kworker/3"), Against::Wakers);
        assert_eq!(of("rustc"), Against::Partition);
        assert_eq!(against(CulpritKind::Irq, "nvme0q1"), Against::Irqs);
        assert_eq!(against(CulpritKind::Steal, "hypervisor"), Against::Unknown);
    }
}
