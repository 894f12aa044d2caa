//! Tracing facilities of the kernel: tracefs and BPF.
//!
//! From tracefs (since 4.1; before that in debugfs), which only root can access; BPF from the
//! kernel's configuration and this process's capabilities. Of the thousands of tracepoints, only
//! those that identify sources of OS noise are listed.
//!
//! A security module may still prevent loading a BPF program.

use crate::absence::{self, Needs};
use crate::fact::{Fact, Unknown, Why, group};
use crate::format::mounts::{self, Mounts};
use crate::group::security::{self, Security};
use crate::sources::Sources;

const BTF: &str = "/sys/kernel/btf/vmlinux";
const UNPRIVILEGED: &str = "/proc/sys/kernel/unprivileged_bpf_disabled";
const JIT: &str = "/proc/sys/net/core/bpf_jit_enable";
const JIT_ALWAYS: &str = "BPF_JIT_ALWAYS_ON";

/// Tracepoints that identify sources of OS noise; `*` matches any text. The interrupts of x86 are
/// in `irq_vectors`, other architectures have only `ipi`.
const TRACEPOINTS: [&str; 18] = [
    "irq_vectors:*_entry",
    "irq_vectors:*_exit",
    "irq:irq_handler_entry",
    "irq:irq_handler_exit",
    "irq:softirq_entry",
    "irq:softirq_exit",
    "nmi:nmi_handler",
    "ipi:*",
    "csd:*",
    "tlb:tlb_flush",
    "sched:sched_switch",
    "sched:sched_waking",
    "timer:hrtimer_expire_entry",
    "timer:hrtimer_expire_exit",
    "timer:tick_stop",
    "workqueue:workqueue_execute_start",
    "workqueue:workqueue_execute_end",
    "osnoise:*",
];

group! {
    /// Tracing.
    "tracing" Tracing {
        /// The mount point of tracefs.
        tracefs: String,
        /// The available tracers.
        tracers: Vec<String>,
        /// The available tracepoints, of those that identify sources of OS noise.
        tracepoints: Vec<String>,
        /// Whether this process can load BPF programs and attach them to tracepoints.
        bpf: bool,
        /// Whether BPF programs are compiled (JIT).
        bpf_jit: bool,
        /// Whether the kernel has BTF type information (`/sys/kernel/btf/vmlinux`).
        btf: bool,
        /// Whether BPF is disabled for processes without capabilities.
        bpf_unprivileged: String,
    }
}

impl Tracing {
    pub(crate) fn read(sources: &Sources) -> Self {
        let tracefs = tracefs(sources);
        Self {
            tracers: tracers(sources, &tracefs),
            tracepoints: listed(sources, &tracefs, "available_events", tracepoints),
            tracefs,
            bpf: bpf(sources),
            bpf_jit: bpf_jit(sources),
            btf: btf(sources),
            bpf_unprivileged: bpf_unprivileged(sources),
        }
    }
}

/// The available tracers.
pub(crate) fn tracers(sources: &Sources, tracefs: &Fact<String>) -> Fact<Vec<String>> {
    listed(sources, tracefs, "available_tracers", words)
}

/// The mount point of tracefs, or its automatic mount below debugfs.
pub(crate) fn tracefs(sources: &Sources) -> Fact<String> {
    let place = Mounts::read(sources.root).and_then(|mounts| {
        let place = |kind: &str| {
            let mut places = mounts.of_kind(kind).map(|mount| mount.directory.clone());
            places.next()
        };
        let below = || place("debugfs").map(|debugfs| format!("{debugfs}/tracing"));
        place("tracefs").or_else(below).ok_or_else(|| {
            let unknown = Unknown::new(Why::Absent, "not mounted");
            let needs = Needs::options(&["TRACING"]);
            match sources.why(&unknown, &needs) {
                why if why.code == Why::Absent => absence::not_mounted("tracefs"),
                why => why,
            }
        })
    });
    Fact::of(place, mounts::FILE)
}

/// The parsed contents of a file in tracefs.
fn listed(
    sources: &Sources,
    tracefs: &Fact<String>,
    name: &str,
    pick: impl Fn(&str) -> Vec<String>,
) -> Fact<Vec<String>> {
    let place = match tracefs.value() {
        Ok(place) => place,
        Err(unknown) => {
            let source = format!("/sys/kernel/tracing/{name}");
            return Fact::unknown(unknown.clone(), source);
        }
    };
    let file = format!("{place}/{name}");
    Fact::of(sources.root.text(&file).map(|text| pick(&text)), file)
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn tracepoints(text: &str) -> Vec<String> {
    let wanted = |name: &&str| TRACEPOINTS.iter().any(|pattern| matches(pattern, name));
    let mut names: Vec<String> =
        text.lines().map(str::trim).filter(wanted).map(str::to_owned).collect();
    names.sort();
    names
}

/// Whether a name matches a pattern with at most one `*`.
fn matches(pattern: &str, name: &str) -> bool {
    let Some((begin, end)) = pattern.split_once('*') else { return pattern == name };
    name.len() >= begin.len() + end.len()
        && name.starts_with(begin)
        && name.ends_with(end)
}

fn bpf(sources: &Sources) -> Fact<bool> {
    let config = match &sources.config {
        Ok(config) => config,
        Err(unknown) => return Fact::unknown(unknown.clone(), "CONFIG_BPF_SYSCALL"),
    };
    for option in ["BPF_SYSCALL", "BPF_EVENTS"] {
        if !config.is_set(option) {
            return Fact::known(false, sources.option_source(option));
        }
    }
    let allowed = Security::read(sources).capabilities;
    let source = format!("{}, {}", sources.option_source("BPF_EVENTS"), allowed.source());
    let held = match allowed.value() {
        Ok(held) => held,
        Err(unknown) => return Fact::unknown(unknown.clone(), source),
    };
    let has = |name: &str| held.iter().any(|other| other == name);
    if !(has("sys_admin") || has("bpf") && has("perfmon")) {
        let text = "loading BPF programs for tracepoints needs the capabilities bpf and \
                    perfmon (until 5.7 sys_admin)";
        return Fact::unknown(Unknown::new(Why::NeedsRoot, text), source);
    }
    let lockdown = security::lockdown(sources);
    if lockdown.get().is_some_and(|level| level == "confidentiality") {
        let text = "the kernel is locked down to confidentiality: tracing is refused";
        return Fact::unknown(Unknown::new(Why::Lockdown, text), lockdown.source());
    }
    Fact::known(true, source)
}

/// Whether the configuration forces it, or else the sysctl, which only root can read.
fn bpf_jit(sources: &Sources) -> Fact<bool> {
    if sources.is_set(JIT_ALWAYS) == Some(true) {
        return Fact::known(true, sources.option_source(JIT_ALWAYS));
    }
    let fact = sources.number::<u8>(JIT).map(|mode| mode != 0);
    sources.explain(&fact, &Needs::since("3.0").with(&["BPF_JIT"]))
}

fn btf(sources: &Sources) -> Fact<bool> {
    // Recorded trees have an empty file: it is large, and never read here.
    Fact::of(sources.root.exists(BTF), BTF)
}

fn bpf_unprivileged(sources: &Sources) -> Fact<String> {
    let number = sources.number::<u8>(UNPRIVILEGED);
    let words = number.value().map_err(Clone::clone).and_then(|&number| match number {
        0 => Ok("open to all users".to_owned()),
        1 => Ok("closed until the next boot".to_owned()),
        2 => Ok("closed, but root may open it".to_owned()),
        other => Err(Unknown::garbage(UNPRIVILEGED, 1, &other.to_string(), "0, 1 or 2")),
    });
    let needs = Needs::since("4.4").with(&["BPF_SYSCALL"]);
    sources.explain(&Fact::of(words, UNPRIVILEGED), &needs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::{tree, tree_refusing};

    const MOUNTED: (&str, &str) =
        (mounts::FILE, "tracefs /sys/kernel/tracing tracefs rw,nosuid 0 0\n");
    const RELEASE: (&str, &str) = ("/proc/sys/kernel/osrelease", "6.18.44");
    const CONFIG: &str = "/boot/config-6.18.44";
    const BUILT: &str = "CONFIG_BPF_SYSCALL=y\nCONFIG_BPF_EVENTS=y\nCONFIG_BPF_JIT=y\n";

    fn read(files: &[(&str, &str)]) -> Tracing {
        Tracing::read(&tree(files).sources())
    }

    fn code<T>(fact: &Fact<T>) -> Option<Why> {
        fact.value().err().map(|unknown| unknown.code)
    }

    /// Check that only tracepoints that identify sources of OS noise are listed.
    #[test]
    fn tracers_and_tracepoints() {
        let events = "irq_vectors:local_timer_entry\nirq_vectors:vector_alloc\n\
                      irq:softirq_raise\nirq:irq_handler_exit\nsched:sched_switch\n\
                      sched:sched_wakeup\ntimer:hrtimer_expire_entry\ncsd:csd_queue_cpu\n\
                      ipi:ipi_send_cpu\nnmi:nmi_handler\nkvm:kvm_exit\n";
        let tracing = read(&[
            MOUNTED,
            ("/sys/kernel/tracing/available_tracers", "blk function nop\n"),
            ("/sys/kernel/tracing/available_events", events),
        ]);
        assert_eq!(tracing.tracefs.get().unwrap(), "/sys/kernel/tracing");
        assert_eq!(tracing.tracers.get().unwrap(), &["blk", "function", "nop"]);
        let expected = [
            "csd:csd_queue_cpu",
            "ipi:ipi_send_cpu",
            "irq:irq_handler_exit",
            "irq_vectors:local_timer_entry",
            "nmi:nmi_handler",
            "sched:sched_switch",
            "timer:hrtimer_expire_entry",
        ];
        assert_eq!(tracing.tracepoints.get().unwrap(), &expected);
    }

    /// Check that tracefs below debugfs is found, and that the reason has the mount command if it
    /// is not mounted.
    #[test]
    fn mount_points_of_tracefs() {
        let debugfs = (mounts::FILE, "debugfs /sys/kernel/debug debugfs rw 0 0\n");
        let tracers = ("/sys/kernel/debug/tracing/available_tracers", "nop\n");
        let tracing = read(&[debugfs, tracers]);
        assert_eq!(tracing.tracefs.get().unwrap(), "/sys/kernel/debug/tracing");
        assert_eq!(tracing.tracers.get().unwrap(), &["nop"]);

        let nothing = (mounts::FILE, "proc /proc proc rw 0 0\n");
        let tracing = read(&[nothing]);
        assert_eq!(code(&tracing.tracefs), Some(Why::NotMounted));
        assert_eq!(code(&tracing.tracepoints), Some(Why::NotMounted));
        assert!(tracing.tracers.value().unwrap_err().text.contains("mount -t tracefs"));
        let unbuilt = read(&[nothing, RELEASE, (CONFIG, "CONFIG_HZ=250\n")]);
        assert_eq!(code(&unbuilt.tracefs), Some(Why::NotConfigured));
    }

    /// Check the reasons for files of tracefs that cannot be read.
    #[test]
    fn inaccessible_tracefs() {
        let refused = [
            ("/sys/kernel/tracing/available_tracers", Why::NeedsRoot),
            ("/sys/kernel/tracing/available_events", Why::Lockdown),
        ];
        let tracing = Tracing::read(&tree_refusing(&[MOUNTED], &refused).sources());
        assert_eq!(code(&tracing.tracers), Some(Why::NeedsRoot));
        assert_eq!(code(&tracing.tracepoints), Some(Why::Lockdown));
    }

    /// Check which capabilities and options BPF requires.
    #[test]
    fn bpf_by_configuration_and_capability() {
        let bpf = |config: &str, mask: &str, lockdown: &str| {
            let status = format!("CapEff:\t{mask}\n");
            let files = [
                RELEASE,
                (CONFIG, config),
                ("/proc/self/status", &status),
                ("/sys/kernel/security/lockdown", lockdown),
            ];
            read(&files).bpf.value().copied().map_err(|unknown| unknown.code)
        };
        let (root, none) = ("000001ffffffffff", "0000000000000000");
        let (open, closed) =
            ("none [integrity] confidentiality", "none [confidentiality]");
        assert_eq!(bpf(BUILT, root, open), Ok(true));
        assert_eq!(bpf(BUILT, "000000c000000000", open), Ok(true));
        assert_eq!(bpf(BUILT, "0000008000000000", open), Err(Why::NeedsRoot));
        assert_eq!(bpf(BUILT, none, open), Err(Why::NeedsRoot));
        assert_eq!(bpf(BUILT, root, closed), Err(Why::Lockdown));
        assert_eq!(bpf("CONFIG_BPF_SYSCALL=y\n", root, open), Ok(false));
        assert_eq!(code(&read(&[RELEASE]).bpf), Some(Why::Absent));
    }

    /// Check the JIT: forced by the configuration, or by sysctl.
    #[test]
    fn bpf_compiler() {
        let jit = |config: &str, mode: &str| {
            read(&[RELEASE, (CONFIG, config), (JIT, mode)]).bpf_jit.get().copied()
        };
        assert_eq!(jit("CONFIG_BPF_JIT_ALWAYS_ON=y\n", "x"), Some(true));
        assert_eq!(jit(BUILT, "0\n"), Some(false));
        assert_eq!(jit(BUILT, "1\n"), Some(true));
        let unbuilt = read(&[RELEASE, (CONFIG, "CONFIG_BPF_SYSCALL=y\n")]).bpf_jit;
        assert_eq!(code(&unbuilt), Some(Why::NotConfigured));
    }

    /// Check the text of the sysctl, and BTF.
    #[test]
    fn unprivileged_and_types() {
        let tracing = read(&[(UNPRIVILEGED, "2\n"), (BTF, "")]);
        assert_eq!(
            tracing.bpf_unprivileged.get().unwrap(),
            "closed, but root may open it"
        );
        assert_eq!(tracing.btf.get(), Some(&true));
        let tracing = read(&[(UNPRIVILEGED, "3\n")]);
        assert_eq!(code(&tracing.bpf_unprivileged), Some(Why::Garbage));
        assert_eq!(tracing.btf.get(), Some(&false));
    }
}
