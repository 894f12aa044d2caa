//! What can be tried against one source of noise, by its name, and the rules against one that slows a program down.

use recording::CulpritKind;

use crate::machine::Machine;

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

/// More than any rule asks for, in ppm: that the source matters is known from the program.
const MUCH: &str = "1000000";
/// How threads of the kernel are called that take time from programs.
const KERNEL: [&str; 5] = ["kworker", "ksoftirqd", "rcu", "migration", "kswapd"];

impl Machine<'_> {
    /// The same machine, on which that source takes time from the program in question.
    #[must_use]
    pub fn slowed_by(self, kind: CulpritKind, name: &str) -> Self {
        subjects(kind, name)
            .iter()
            .fold(self, |machine, subject| machine.assuming(subject, MUCH))
    }
}

/// The subjects of conditions about a source.
fn subjects(kind: CulpritKind, name: &str) -> &'static [&'static str] {
    match kind {
        CulpritKind::Timer => &["noise.timer"],
        CulpritKind::Irq => &["noise.irq"],
        CulpritKind::Ipi => &["noise.ipi"],
        CulpritKind::Nmi => &["noise.nmi"],
        CulpritKind::Softirq if name == "NET_RX" => {
            &["noise.softirq:NET_RX", "noise.softirq"]
        }
        CulpritKind::Softirq => &["noise.softirq"],
        CulpritKind::Quota => &["noise.quota"],
        CulpritKind::Steal => &["noise.steal"],
        CulpritKind::Thread if name.starts_with(UNBOUND) => {
            &["noise.thread:kworker/u*", "noise.thread:kworker/*", "noise.kernel-threads"]
        }
        CulpritKind::Thread if KERNEL.iter().any(|start| name.starts_with(start)) => {
            &["noise.thread:kworker/*", "noise.kernel-threads"]
        }
        CulpritKind::Thread => &["noise.programs"],
        CulpritKind::Firmware | CulpritKind::Unexplained => &[],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::findings::tests::{golden, on};
    use crate::{Advice, Goal};

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

    /// Check that rules against a source hold because of the program, which the facts do not tell.
    #[test]
    fn rules_against_it() {
        let known =
            [("kernel.release", json!("6.18.1")), ("cgroup.partitions", json!("/sys"))];
        let (facts, _) = on(&golden(), &known);
        let names = |machine: Machine| {
            let items = Advice::of(&machine, &Goal::Latency.into()).items.into_iter();
            items.map(|item| item.rule.name).collect::<Vec<_>>()
        };
        let plain = || Machine::new(&facts, None, None);
        let slowed = names(plain().slowed_by(CulpritKind::Thread, "rustc"));
        assert!(slowed.contains(&"partition-for-isolation"), "{slowed:?}");
        assert!(!names(plain()).contains(&"partition-for-isolation"));
        let irq = names(plain().slowed_by(CulpritKind::Irq, "eth0"));
        assert!(irq.contains(&"irqs-on-measured-cpus"), "{irq:?}");
    }
}
