//! Rules for boot parameters without effect; `boot` applies them.
//!
//! Each rule has the conditions under which a parameter has no effect, in terms of the kernel's
//! version and configuration. The sources are `Documentation/admin-guide/kernel-parameters.txt` and
//! the place in the kernel's source where the parameter is registered, which is built only with a
//! certain option. A rule applies only if all of its conditions are known to be true; a parameter
//! without a rule is never reported.
//!
//! Changes by distributions are not covered here; `boot` also checks the kernel's messages.

pub(crate) mod cpu_list;
pub(crate) mod divider;
pub(crate) mod inert;

use crate::format::command_line::{Parameter, parse_bool, same_name};
use crate::parameters::Condition::{Before, NotKnown, NotRt, Rt, Since, With, Without};
use crate::parameters::Value::{Any, Flag, Is, IsNot, NotBool};
use crate::parameters::inert::WhyInert;
use crate::sources::Sources;

/// The values of a parameter to which a rule applies.
#[derive(Debug)]
pub(crate) enum Value {
    Any,
    Is(&'static [&'static str]),
    IsNot(&'static [&'static str]),
    /// Comma-separated values that include this flag.
    Flag(&'static str),
    /// Values that are not booleans.
    NotBool,
}

/// A condition of a rule.
#[derive(Debug)]
pub(crate) enum Condition {
    /// The kernel is built with this option.
    With(&'static str),
    /// The kernel is built with none of these options.
    Without(&'static [&'static str]),
    Since(u32, u32),
    Before(u32, u32),
    Rt,
    NotRt,
    /// The kernel's messages do not show that it knows the parameter.
    NotKnown,
}

/// A case in which a parameter has no effect.
#[derive(Debug)]
pub(crate) struct Rule {
    name: &'static str,
    value: Value,
    when: &'static [Condition],
    pub(crate) why: WhyInert,
    pub(crate) text: &'static str,
}

const fn rule(
    name: &'static str,
    value: Value,
    when: &'static [Condition],
    why: WhyInert,
    text: &'static str,
) -> Rule {
    Rule { name, value, when, why, text }
}

/// A parameter that is registered only if the kernel is built with an option.
const fn needs(
    name: &'static str,
    when: &'static [Condition],
    text: &'static str,
) -> Rule {
    rule(name, Any, when, WhyInert::Unsupported, text)
}

#[rustfmt::skip]
const RULES: &[Rule] = &[
    needs("nohz_full", &[Without(&["NO_HZ_FULL"])], "the kernel is built without NO_HZ_FULL"),
    rule("isolcpus", Flag("nohz"), &[Since(4, 15), Without(&["NO_HZ_FULL"])], WhyInert::Unsupported, "the kernel is built without NO_HZ_FULL and drops the whole parameter, not only its nohz"),
    needs("isolcpus", &[Since(4, 15), Without(&["CPU_ISOLATION"])], "the kernel is built without CPU_ISOLATION"),
    needs("nohz", &[Without(&["NO_HZ_COMMON", "NO_HZ"])], "the kernel is built without NO_HZ_COMMON: its tick never stops anyway"),
    rule("nohz", NotBool, &[], WhyInert::Refused, "the value is neither on nor off"),
    needs("highres", &[Without(&["HIGH_RES_TIMERS"])], "the kernel is built without HIGH_RES_TIMERS"),
    rule("highres", NotBool, &[With("HIGH_RES_TIMERS")], WhyInert::Refused, "the value is neither on nor off"),
    needs("rcu_nocbs", &[Without(&["RCU_NOCB_CPU"])], "the kernel is built without RCU_NOCB_CPU"),
    needs("rcu_nocb_poll", &[Without(&["RCU_NOCB_CPU"])], "the kernel is built without RCU_NOCB_CPU"),
    needs("rcutree.enable_rcu_lazy", &[Without(&["RCU_LAZY"])], "the kernel is built without RCU_LAZY"),
    rule("rcutree.nohz_full_patience_delay", Any, &[Before(6, 11)], WhyInert::Unrecognised, "kernels have it since 6.11"),
    needs("preempt", &[Without(&["PREEMPT_DYNAMIC"])], "the kernel is built without PREEMPT_DYNAMIC: its preemption model is fixed"),
    rule("preempt", IsNot(&["none", "voluntary", "full", "lazy", "laziest"]), &[With("PREEMPT_DYNAMIC")], WhyInert::Refused, "there is no such preemption model"),
    rule("preempt", Is(&["none", "voluntary"]), &[With("PREEMPT_DYNAMIC"), With("ARCH_HAS_PREEMPT_LAZY"), Since(7, 0)], WhyInert::Refused, "since 7.0 there are only preempt=lazy and preempt=full"),
    rule("preempt", Is(&["none", "voluntary"]), &[With("PREEMPT_DYNAMIC"), Since(6, 13), Rt], WhyInert::Refused, "a PREEMPT_RT kernel takes only preempt=lazy and preempt=full"),
    rule("preempt", Is(&["lazy"]), &[With("PREEMPT_DYNAMIC"), Without(&["ARCH_HAS_PREEMPT_LAZY", "PREEMPT_LAZY"]), NotRt], WhyInert::Refused, "this kernel has no lazy preemption (x86 has it since 6.13)"),
    rule("kthread_cpus", Any, &[NotRt, NotKnown], WhyInert::Unrecognised, "no mainline kernel has it: it is part of a patch set; use taskset on the kernel's threads, or isolcpus="),
    rule("tick_divider", Any, &[NotKnown], WhyInert::OtherAge, "a typing error for RHEL 5's divider= in an old manual"),
    rule("elevator", Any, &[Since(5, 0)], WhyInert::OtherAge, "since 5.0 each disk has its own I/O scheduler, set in /sys/block/*/queue/scheduler"),
    needs("threadirqs", &[Rt], "a PREEMPT_RT kernel runs handlers as threads anyway"),
    needs("threadirqs", &[Without(&["IRQ_FORCED_THREADING"])], "the kernel is built without IRQ_FORCED_THREADING"),
    needs("nowatchdog", &[Without(&["LOCKUP_DETECTOR"])], "the kernel is built without LOCKUP_DETECTOR: there is no watchdog to switch off"),
    needs("nosoftlockup", &[Without(&["SOFTLOCKUP_DETECTOR", "LOCKUP_DETECTOR", "DETECT_SOFTLOCKUP"])], "the kernel is built without SOFTLOCKUP_DETECTOR: there is nothing to switch off"),
    needs("noautogroup", &[Without(&["SCHED_AUTOGROUP"])], "the kernel is built without SCHED_AUTOGROUP: there is nothing to switch off"),
    needs("rt_group_sched", &[Without(&["RT_GROUP_SCHED"])], "the kernel is built without RT_GROUP_SCHED"),
    needs("sched_proxy_exec", &[Without(&["SCHED_PROXY_EXEC"])], "the kernel is built without SCHED_PROXY_EXEC"),
    needs("psi", &[Without(&["PSI"])], "the kernel is built without PSI"),
    needs("numa_balancing", &[Without(&["NUMA_BALANCING"])], "the kernel is built without NUMA_BALANCING"),
    needs("transparent_hugepage", &[Without(&["TRANSPARENT_HUGEPAGE"])], "the kernel is built without TRANSPARENT_HUGEPAGE"),
    needs("audit", &[Without(&["AUDIT"])], "the kernel is built without AUDIT"),
    needs("intel_pstate", &[Without(&["X86_INTEL_PSTATE"])], "the kernel is built without X86_INTEL_PSTATE"),
    needs("amd_pstate", &[Without(&["X86_AMD_PSTATE"])], "the kernel is built without X86_AMD_PSTATE (it came with 5.17)"),
    needs("cpuidle_haltpoll.force", &[Without(&["HALTPOLL_CPUIDLE"])], "the kernel is built without HALTPOLL_CPUIDLE"),
    needs("haltpoll.guest_halt_poll_ns", &[Without(&["CPU_IDLE_GOV_HALTPOLL"])], "the kernel is built without CPU_IDLE_GOV_HALTPOLL"),
    rule("workqueue.default_affinity_scope", Any, &[Before(6, 6)], WhyInert::Unrecognised, "kernels have it since 6.6"),
];

/// Parameters of which the last occurrence takes effect.
pub(crate) const LAST_COUNTS: &[&str] = &[
    "nohz",
    "highres",
    "preempt",
    "rcu_nocbs",
    "skew_tick",
    "irqaffinity",
    "clocksource",
    "psi",
    "numa_balancing",
    "processor.max_cstate",
    "intel_idle.max_cstate",
    "rcutree.enable_rcu_lazy",
    "divider",
];

/// Parameters, in addition to those of rules, with values that are not secret: those that affect
/// timing, and common is_public ones.
const PUBLIC: &[&str] = &[
    "divider",
    "rcu_nocbs",
    "skew_tick",
    "irqaffinity",
    "tsc",
    "clocksource",
    "idle",
    "nohlt",
    "mitigations",
    "nosmt",
    "nmi_watchdog",
    "watchdog_thresh",
    "softlockup_panic",
    "mce",
    "hpet",
    "nolapic_timer",
    "split_lock_detect",
    "init_on_alloc",
    "init_on_free",
    "cpufreq.default_governor",
    "cpuidle.off",
    "cpuidle.governor",
    "rcu_expedited",
    "maxcpus",
    "nr_cpus",
    "possible_cpus",
    "mem",
    "hugepages",
    "hugepagesz",
    "default_hugepagesz",
    "crashkernel",
    "iommu",
    "intel_iommu",
    "amd_iommu",
    "acpi",
    "apic",
    "pci",
    "console",
    "loglevel",
    "panic",
    "reboot",
    "quiet",
    "ro",
    "rw",
    "lockdown",
    "selinux",
    "apparmor",
    "security",
    "cgroup_no_v1",
    "cgroup_enable",
    "cgroup_disable",
    "swapaccount",
    "swiotlb",
    "spectre_v2",
    "pti",
    "l1tf",
    "mds",
    "random.trust_cpu",
    "net.ifnames",
    "kvmclock_periodic_sync",
    "lapic_timer_advance",
    "systemd.unified_cgroup_hierarchy",
    "relax_domain_level",
    "sched_verbose",
    "nohz",
    "kfence.deferrable",
    "kmemleak",
    "lapic",
    "no-kvmclock",
    "no-kvmclock-vsyscall",
    "no-steal-acc",
    "no-vmw-sched-clock",
    "nopvspin",
    "notsc",
    "page_poison",
    "slab_debug",
    "slab_nomerge",
    "slub_debug",
    "sysctl.kernel.sched_min_granularity_ns",
    "xen_nopvspin",
    "zswap.zpool",
    "amd_pstate.shared_mem",
    "dm_mod.use_blk_mq",
    "intremap",
    "irqfixup",
    "irqpoll",
    "noapic",
    "noirqbalance",
    "nopti",
    "nospectre_v2",
    "nvme.poll_queues",
    "scsi_mod.use_blk_mq",
    "hardened_usercopy",
    "kernel.nmi_watchdog",
    "pcie_aspm",
    "rcu_nocbs_poll",
    "debug",
    "earlyprintk",
    "ftrace",
    "ignore_loglevel",
    "keep_bootcon",
    "no_debug_objects",
    "nodelayacct",
    "trace_event",
    "noibpb",
    "noibrs",
    "sched_min_granularity_ns",
    "sysctl.kernel.sched_latency_ns",
    "sysctl.kernel.sched_migration_cost_ns",
    "sysctl.kernel.sched_wakeup_granularity_ns",
];

/// Prefixes of further parameters with values that are not secret.
const PUBLIC_PREFIXES: &[&str] = &[
    "rcutree.",
    "rcupdate.",
    "workqueue.",
    "haltpoll.",
    "cpuidle_haltpoll.",
    "intel_idle.",
    "processor.",
    "kvm.",
    "kvm_intel.",
    "kvm_amd.",
];

/// Parameters that are not meant for the kernel: boot loaders add them, and init or the initial RAM
/// file system reads them. `nokaslr` has an effect, but it is parsed by the x86 decompressor, and
/// unknown to the kernel.
const NOT_FOR_KERNEL: &[&str] = &[
    "nokaslr",
    "BOOT_IMAGE",
    "initrd",
    "splash",
    "single",
    "s",
    "S",
    "1",
    "2",
    "3",
    "4",
    "5",
    "emergency",
    "rescue",
    "auto",
    "fastboot",
    "forcefsck",
    "noresume",
    "resume",
    "boot",
    "ds",
    "ip",
    "vga",
    "toram",
    "cryptdevice",
    "nomodule",
];

/// The first rule by which the parameter has no effect on this kernel.
pub(crate) fn find_rule(
    name: &str,
    value: &str,
    sources: &Sources,
) -> Option<&'static Rule> {
    RULES.iter().find(|rule| {
        same_name(rule.name, name)
            && rule.value.matches(value)
            && rule.when.iter().all(|condition| condition.holds(name, sources))
    })
}

impl Value {
    fn matches(&self, value: &str) -> bool {
        match self {
            Any => true,
            Is(values) => values.contains(&value),
            IsNot(values) => !values.contains(&value),
            Flag(flag) => value.split(',').any(|part| part == *flag),
            NotBool => parse_bool(value).is_none(),
        }
    }
}

impl Condition {
    /// Whether the condition is known to be true.
    fn holds(&self, name: &str, sources: &Sources) -> bool {
        let set = |option: &str| sources.is_set(option);
        let rt =
            || set("PREEMPT_RT").map(|rt| rt || set("PREEMPT_RT_FULL") == Some(true));
        match *self {
            With(option) => set(option) == Some(true),
            Without(options) => options.iter().all(|option| set(option) == Some(false)),
            Since(major, minor) => sources.at_least(major, minor) == Some(true),
            Before(major, minor) => sources.at_least(major, minor) == Some(false),
            Rt => rt() == Some(true),
            NotRt => rt() == Some(false),
            NotKnown => sources.knows(name) != Some(true),
        }
    }
}

/// Whether the parameter is not meant for the kernel.
pub(crate) fn is_for_user_space(name: &str) -> bool {
    NOT_FOR_KERNEL.contains(&name) || name.contains('/')
}

/// The parameter for display and storage: with its value if that is known not to be secret, or else
/// as `name=...`. Redacting the result again does not change it.
pub(crate) fn redact(parameter: &Parameter) -> String {
    let name = &parameter.name;
    let known = RULES.iter().map(|rule| rule.name).chain(PUBLIC.iter().copied());
    let is_public = |name: &str| {
        known.clone().any(|known| same_name(known, name))
            || PUBLIC_PREFIXES.iter().any(|part| {
                name.get(..part.len()).is_some_and(|start| same_name(start, part))
            })
    };
    match &parameter.value {
        None => name.clone(),
        Some(value) if !is_public(name) && !value.is_empty() => format!("{name}=..."),
        Some(value) if value.contains(|c: char| c.is_whitespace()) => {
            format!("{name}=\"{value}\"")
        }
        Some(value) => format!("{name}={value}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::command_line::CommandLine;

    /// Check that values that may be secret are hidden, and that redaction is idempotent.
    #[test]
    fn hides_what_may_be_secret() {
        let text = "root=UUID=1 nohz-full=1-3 rd.luks.key=abc quiet \
                    workqueue.power-efficient=1 tsc=\"a b\" empty=";
        let show = |text: &str| -> Vec<String> {
            CommandLine::parse(text).parameters().map(redact).collect()
        };
        let redacted = show(text);
        let expected = [
            "root=...",
            "nohz-full=1-3",
            "rd.luks.key=...",
            "quiet",
            "workqueue.power-efficient=1",
            "tsc=\"a b\"",
            "empty=",
        ];
        assert_eq!(redacted, expected);
        assert_eq!(show(&redacted.join(" ")), expected);
    }

    /// Check that every rule has a text that is a fragment.
    #[test]
    fn rules_have_texts() {
        for rule in RULES {
            assert!(!rule.text.is_empty() && !rule.text.ends_with('.'), "{rule:?}");
            assert!(!rule.when.is_empty() || matches!(rule.value, NotBool), "{rule:?}");
        }
    }
}
