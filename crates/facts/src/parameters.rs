//! What is known about boot parameters: knowledge, apart from the mechanism in `boot`.
//!
//! Each rule says when one parameter does nothing, as far as the kernel's version and
//! configuration decide it. The truth comes from `Documentation/admin-guide/
//! kernel-parameters.txt` and from the place in the kernel's source where each parameter
//! is registered, which is built under the option named. A rule speaks only where all
//! its conditions are known to hold; a parameter without a rule is never called inert.
//!
//! Cannot see what distributions add: `boot` asks the kernel's messages about that.

pub(crate) mod divider;
pub(crate) mod inert;

use crate::format::command_line::{Parameter, same_name, truth};
use crate::parameters::Condition::{Before, NotRt, NotSaid, Rt, Since, With, Without};
use crate::parameters::Value::{Any, Flag, Is, IsNot, NoTruth};
use crate::parameters::inert::WhyInert;
use crate::sources::Sources;

/// Which values of a parameter a rule speaks of.
#[derive(Debug)]
pub(crate) enum Value {
    Any,
    Is(&'static [&'static str]),
    IsNot(&'static [&'static str]),
    /// The name is among the parts of the value.
    Flag(&'static str),
    /// Neither a yes nor a no.
    NoTruth,
}

/// What must be so for a rule to speak.
#[derive(Debug)]
pub(crate) enum Condition {
    /// Built with this option.
    With(&'static str),
    /// Built with none of these options.
    Without(&'static [&'static str]),
    Since(u32, u32),
    Before(u32, u32),
    Rt,
    NotRt,
    /// The kernel's messages do not show that it knows the parameter after all.
    NotSaid,
}

/// When a parameter does nothing, and why.
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

/// A parameter that is registered only where the kernel is built with an option.
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
    rule("isolcpus", Flag("nohz"), &[Since(5, 10), Without(&["NO_HZ_FULL"])], WhyInert::Unsupported, "the kernel is built without NO_HZ_FULL and drops the whole parameter, not only its nohz"),
    needs("isolcpus", &[Since(4, 15), Without(&["CPU_ISOLATION"])], "the kernel is built without CPU_ISOLATION"),
    needs("nohz", &[Without(&["NO_HZ_COMMON", "NO_HZ"])], "the kernel is built without NO_HZ_COMMON: its tick never stops anyway"),
    rule("nohz", NoTruth, &[], WhyInert::Refused, "the value is neither on nor off"),
    needs("highres", &[Without(&["HIGH_RES_TIMERS"])], "the kernel is built without HIGH_RES_TIMERS"),
    rule("highres", NoTruth, &[With("HIGH_RES_TIMERS")], WhyInert::Refused, "the value is neither on nor off"),
    needs("rcu_nocbs", &[Without(&["RCU_NOCB_CPU"])], "the kernel is built without RCU_NOCB_CPU"),
    needs("rcu_nocb_poll", &[Without(&["RCU_NOCB_CPU"])], "the kernel is built without RCU_NOCB_CPU"),
    needs("rcutree.enable_rcu_lazy", &[Without(&["RCU_LAZY"])], "the kernel is built without RCU_LAZY"),
    rule("rcutree.nohz_full_patience_delay", Any, &[Before(6, 9)], WhyInert::Unrecognised, "kernels of this age do not have it yet"),
    needs("preempt", &[Without(&["PREEMPT_DYNAMIC"])], "the kernel is built without PREEMPT_DYNAMIC: its preemption model is fixed"),
    rule("preempt", IsNot(&["none", "voluntary", "full", "lazy", "laziest"]), &[With("PREEMPT_DYNAMIC")], WhyInert::Refused, "there is no such preemption model"),
    rule("preempt", Is(&["none", "voluntary"]), &[With("PREEMPT_DYNAMIC"), With("ARCH_HAS_PREEMPT_LAZY"), Since(7, 0)], WhyInert::Refused, "since 7.0 there are only preempt=lazy and preempt=full"),
    rule("preempt", Is(&["none", "voluntary"]), &[With("PREEMPT_DYNAMIC"), Since(6, 13), Rt], WhyInert::Refused, "a PREEMPT_RT kernel takes only preempt=lazy and preempt=full"),
    rule("preempt", Is(&["lazy"]), &[With("PREEMPT_DYNAMIC"), Without(&["ARCH_HAS_PREEMPT_LAZY", "PREEMPT_LAZY"]), NotRt], WhyInert::Refused, "this kernel has no lazy preemption (x86 has it since 6.13)"),
    rule("kthread_cpus", Any, &[NotRt, NotSaid], WhyInert::Unrecognised, "no mainline kernel has it: it is part of a patch set; use taskset on the kernel's threads, or isolcpus="),
    rule("tick_divider", Any, &[NotSaid], WhyInert::OtherAge, "a misprint of RHEL 5's divider= in an old manual"),
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
    rule("workqueue.default_affinity_scope", Any, &[Before(6, 6)], WhyInert::Unrecognised, "it came with 6.6"),
];

/// Parameters of which the last one given counts.
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

/// Parameters whose values are no secrets, beside those with a rule: the ones that
/// matter to time, and common harmless ones.
const SHOWN: &[&str] = &[
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
];

/// The same for parameters of parts of the kernel: everything that begins like this.
const SHOWN_PARTS: &[&str] = &[
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

/// Parameters that are not the kernel's and are meant not to be: boot loaders leave
/// them, and the first process or the initial file system reads them. `nokaslr` works,
/// but it is the x86 decompressor that reads it, and the kernel disowns it.
const OTHERS: &[&str] = &[
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

/// The first rule by which the parameter does nothing to this kernel.
pub(crate) fn applying(
    name: &str,
    value: &str,
    sources: &Sources,
) -> Option<&'static Rule> {
    RULES.iter().find(|rule| {
        same_name(rule.name, name)
            && rule.value.speaks_of(value)
            && rule.when.iter().all(|condition| condition.holds(name, sources))
    })
}

impl Value {
    fn speaks_of(&self, value: &str) -> bool {
        match self {
            Any => true,
            Is(values) => values.contains(&value),
            IsNot(values) => !values.contains(&value),
            Flag(flag) => value.split(',').any(|part| part == *flag),
            NoTruth => truth(value).is_none(),
        }
    }
}

impl Condition {
    /// Whether the condition is known to hold.
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
            NotSaid => sources.knows(name) != Some(true),
        }
    }
}

/// Whether the parameter is meant for somebody else than the kernel.
pub(crate) fn is_others(name: &str) -> bool {
    OTHERS.contains(&name) || name.contains('/')
}

/// The parameter as it may be shown and kept: with its value where that is known to be
/// no secret, else as `name=...`. What was shown once is shown the same again.
pub(crate) fn shown(parameter: &Parameter) -> String {
    let name = &parameter.name;
    let known = RULES.iter().map(|rule| rule.name).chain(SHOWN.iter().copied());
    let harmless = |name: &str| {
        known.clone().any(|known| same_name(known, name))
            || SHOWN_PARTS.iter().any(|part| {
                name.get(..part.len()).is_some_and(|start| same_name(start, part))
            })
    };
    match &parameter.value {
        None => name.clone(),
        Some(value) if !harmless(name) && !value.is_empty() => format!("{name}=..."),
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

    /// Check that values that may be secrets are not shown, and that showing what was
    /// shown changes nothing.
    #[test]
    fn hides_what_may_be_secret() {
        let text = "root=UUID=1 nohz-full=1-3 rd.luks.key=abc quiet \
                    workqueue.power-efficient=1 tsc=\"a b\" empty=";
        let show = |text: &str| -> Vec<String> {
            CommandLine::parse(text).parameters().map(shown).collect()
        };
        let shown = show(text);
        let expected = [
            "root=...",
            "nohz-full=1-3",
            "rd.luks.key=...",
            "quiet",
            "workqueue.power-efficient=1",
            "tsc=\"a b\"",
            "empty=",
        ];
        assert_eq!(shown, expected);
        assert_eq!(show(&shown.join(" ")), expected);
    }

    /// Check that every rule says in words why, as a fragment.
    #[test]
    fn rules_have_texts() {
        for rule in RULES {
            assert!(!rule.text.is_empty() && !rule.text.ends_with('.'), "{rule:?}");
            assert!(!rule.when.is_empty() || matches!(rule.value, NoTruth), "{rule:?}");
        }
    }
}
