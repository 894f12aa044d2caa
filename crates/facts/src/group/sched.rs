//! The scheduler: its algorithm, the lengths of time slices, and throttling.
//!
//! From `/proc/sys/kernel/sched_*`; debugfs `sched/` since 5.13, of which only `sched/debug` is
//! readable with lockdown; `/sys/kernel/sched_ext` since 6.12 (`sched_ext`). Existing files take
//! precedence over the release. CFS until 6.5, EEVDF since 6.6.
//!
//! The time slices of single tasks (`sched_setattr`, since 6.12) are not included.

use std::collections::BTreeMap;

use units::Nanos;

use crate::absence::{self, Needs};
use crate::fact::{Fact, Unknown, group};
use crate::format::command_line;
use crate::group::sched_debug::SchedDebug;
use crate::group::{sched_ext, sched_features};
use crate::sources::{RELEASE, Sources};

const RT_RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
const RT_PERIOD: &str = "/proc/sys/kernel/sched_rt_period_us";
const AUTOGROUP: &str = "/proc/sys/kernel/sched_autogroup_enabled";
const RR_TIMESLICE: &str = "/proc/sys/kernel/sched_rr_timeslice_ms";
const FAIR_SERVER: &str = "/sys/kernel/debug/sched/fair_server";

/// A tunable time of the scheduler: its files since 5.13 and before.
struct Tunable {
    debugfs: &'static str,
    sysctl: &'static str,
    header: &'static str,
    needs: Needs,
}

const CFS: Needs = Needs::since("2.6.23").until("6.5").on("debugfs");
const BASE_SLICE: Tunable = Tunable {
    debugfs: "/sys/kernel/debug/sched/base_slice_ns",
    sysctl: "",
    header: "sysctl_sched_base_slice",
    needs: Needs::since("6.6").on("debugfs"),
};
const LATENCY: Tunable = Tunable {
    debugfs: "/sys/kernel/debug/sched/latency_ns",
    sysctl: "/proc/sys/kernel/sched_latency_ns",
    header: "sysctl_sched_latency",
    needs: CFS,
};
const MIN_GRANULARITY: Tunable = Tunable {
    debugfs: "/sys/kernel/debug/sched/min_granularity_ns",
    sysctl: "/proc/sys/kernel/sched_min_granularity_ns",
    header: "sysctl_sched_min_granularity",
    needs: CFS,
};
const WAKEUP_GRANULARITY: Tunable = Tunable {
    debugfs: "/sys/kernel/debug/sched/wakeup_granularity_ns",
    sysctl: "/proc/sys/kernel/sched_wakeup_granularity_ns",
    header: "sysctl_sched_wakeup_granularity",
    needs: CFS,
};

/// The kernel option of bandwidth groups of real-time tasks.
const RT_GROUP: &str = "RT_GROUP_SCHED";
const RT_GROUP_OFF: &str = "RT_GROUP_SCHED_DEFAULT_DISABLED";
const RT_GROUP_PARAMETER: &str = "rt_group_sched";

group! {
    /// The scheduler.
    "sched" Sched {
        /// `o1` (until 2.6.22), `cfs`, `eevdf`, or the name of a loaded sched_ext scheduler.
        policy: String,
        /// Whether the kernel is built with sched_ext, whose schedulers are BPF programs (since 6.12).
        ext_class: bool,
        /// The state of sched_ext: `disabled`, `enabling`, `enabled` or `disabling`.
        ext_state: String,
        /// The name of the loaded sched_ext scheduler, with what it adds, such as its version.
        ext_ops: String,
        /// Whether a sched_ext scheduler has all ordinary tasks; otherwise it has those of `SCHED_EXT`.
        ext_switch_all: bool,
        /// The number of tasks that the loaded sched_ext scheduler refused.
        ext_nr_rejected: u64,
        /// The number of sched_ext schedulers that were enabled since boot.
        ext_enable_seq: u64,
        /// The time in each period in which real-time tasks may run, in microseconds; -1 means no
        /// limit. Since 6.12, it applies only to deadline tasks unless the kernel has
        /// `RT_GROUP_SCHED`.
        rt_runtime_us: i64,
        /// The period, in microseconds.
        rt_period_us: i64,
        /// Whether groups of real-time tasks have separate limits (`RT_GROUP_SCHED`); then
        /// `rt_runtime_us` applies to real-time tasks also since 6.12.
        rt_group: bool,
        /// The time that is guaranteed to ordinary tasks in each period (one second by default)
        /// while real-time tasks are runnable (the fair server, since 6.12): one number if all CPUs
        /// have the same, otherwise one for each possible CPU.
        fair_server_runtime_ns: Vec<Nanos>,
        /// EEVDF's time slice (since 6.6).
        base_slice_ns: Nanos,
        /// CFS's period (until 6.5).
        latency_ns: Nanos,
        /// CFS's minimum time slice (until 6.5).
        min_granularity_ns: Nanos,
        /// CFS's minimum vruntime difference for a waking task to preempt (until 6.5).
        wakeup_granularity_ns: Nanos,
        /// Enabled scheduler features.
        features: Vec<String>,
        /// Whether tasks are grouped by session (autogroup).
        autogroup: bool,
        /// The time slice of `SCHED_RR`, in milliseconds.
        rr_timeslice_ms: u64,
    }
}

impl Sched {
    pub(crate) fn read(sources: &Sources) -> Self {
        let throttling = Needs::since("2.6.25");
        Self {
            policy: policy(sources),
            ext_class: sched_ext::is_built(sources),
            ext_state: sched_ext::state(sources),
            ext_ops: sched_ext::ops(sources),
            ext_switch_all: sched_ext::switch_all(sources),
            ext_nr_rejected: sched_ext::rejected(sources),
            ext_enable_seq: sched_ext::enable_seq(sources),
            rt_runtime_us: sources.explain(&sources.number(RT_RUNTIME), &throttling),
            rt_period_us: sources.explain(&sources.number(RT_PERIOD), &throttling),
            rt_group: rt_group(sources),
            fair_server_runtime_ns: fair_server(sources),
            base_slice_ns: tunable(sources, &BASE_SLICE),
            latency_ns: tunable(sources, &LATENCY),
            min_granularity_ns: tunable(sources, &MIN_GRANULARITY),
            wakeup_granularity_ns: tunable(sources, &WAKEUP_GRANULARITY),
            features: sched_features::read(sources),
            autogroup: autogroup(sources),
            rr_timeslice_ms: sources
                .explain(&sources.number(RR_TIMESLICE), &Needs::since("3.9")),
        }
    }
}

fn policy(sources: &Sources) -> Fact<String> {
    sched_ext::policy(sources)
        .or_else(|| by_tunables(sources))
        .unwrap_or_else(|| by_release(sources))
}

/// The algorithm by the existing tunables.
fn by_tunables(sources: &Sources) -> Option<Fact<String>> {
    let fact = |name: &str, source: &str| Fact::known(name.to_owned(), source);
    [("eevdf", &BASE_SLICE), ("cfs", &LATENCY)].into_iter().find_map(|(name, tunable)| {
        let found = self::tunable(sources, tunable);
        found.get().map(|_| fact(name, found.source()))
    })
}

/// The algorithm by the kernel's release.
fn by_release(sources: &Sources) -> Fact<String> {
    let name = sources.release.as_ref().map(|release| {
        if !absence::older(release, "6.6") {
            return "eevdf".to_owned();
        }
        if absence::older(release, "2.6.23") { "o1".to_owned() } else { "cfs".to_owned() }
    });
    Fact::of(name.map_err(Clone::clone), RELEASE)
}

fn tunable(sources: &Sources, tunable: &Tunable) -> Fact<Nanos> {
    let read = |path: &str| sources.number(path).map(Nanos::from_nanos);
    let old = sources.at_least(5, 13) == Some(false) && !tunable.sysctl.is_empty();
    let fact = read(if old { tunable.sysctl } else { tunable.debugfs });
    if fact.get().is_some() {
        return fact;
    }
    if let Ok(debug) = SchedDebug::read(sources) {
        if let Some(time) = debug.time(tunable.header) {
            return Fact::known(time, debug.source(tunable.header));
        }
    }
    let needs =
        if old { Needs { filesystem: None, ..tunable.needs } } else { tunable.needs };
    let options = match sources.at_least(6, 15) {
        Some(false) if old => &["SCHED_DEBUG"][..],
        Some(false) => &["SCHED_DEBUG", "DEBUG_FS"],
        _ => &["DEBUG_FS"],
    };
    sources.explain(&fact, &needs.with(options))
}

/// The kernel option; since 6.15, it can be built to require `rt_group_sched=1`, and
/// `rt_group_sched=0` disables it.
fn rt_group(sources: &Sources) -> Fact<bool> {
    let requested = sources.command_line.as_ref().ok();
    let requested = requested.and_then(|line| line.value(RT_GROUP_PARAMETER));
    let built = sources.config.as_ref().map(|config| {
        let on = requested.and_then(command_line::parse_bool);
        let default = !config.is_set(RT_GROUP_OFF);
        config.is_set(RT_GROUP) && on.unwrap_or(default)
    });
    Fact::of(built.map_err(Clone::clone), sources.option_source(RT_GROUP))
}

fn fair_server(sources: &Sources) -> Fact<Vec<Nanos>> {
    let source = format!("{FAIR_SERVER}/cpu*/runtime");
    let needs = Needs::since("6.12").with(&["DEBUG_FS"]).on("debugfs");
    let runtimes = runtimes(sources).map_err(|unknown| sources.why(&unknown, &needs));
    Fact::of(runtimes, source)
}

/// The runtime of each possible CPU, or one if all are the same.
fn runtimes(sources: &Sources) -> Result<Vec<Nanos>, Unknown> {
    let runtime = |cpu: u32| {
        let file = format!("{FAIR_SERVER}/cpu{cpu}/runtime");
        sources.root.parsed(&file, "a number").map(Nanos::from_nanos)
    };
    // In a recorded tree, the reason is that of the file, not of the directory.
    let first = runtime(0)?;
    let mut runtimes = BTreeMap::from([(0, first)]);
    for name in sources.root.list(FAIR_SERVER)? {
        if let Some(cpu) = name.strip_prefix("cpu").and_then(|number| number.parse().ok())
        {
            runtimes.insert(cpu, runtime(cpu)?);
        }
    }
    if runtimes.values().all(|&runtime| runtime == first) {
        return Ok(vec![first]);
    }
    Ok(runtimes.into_values().collect())
}

fn autogroup(sources: &Sources) -> Fact<bool> {
    let needs = Needs::since("2.6.38").with(&["SCHED_AUTOGROUP"]);
    sources.explain(&sources.boolean(AUTOGROUP), &needs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Why;
    use crate::test_tree::{tree, tree_refusing};

    const RELEASE_FILE: &str = "/proc/sys/kernel/osrelease";

    fn read(files: &[(&str, &str)]) -> Sched {
        Sched::read(&tree(files).sources())
    }

    fn code<T>(fact: &Fact<T>) -> Option<Why> {
        fact.value().err().map(|unknown| unknown.code)
    }

    /// Check when groups of real-time tasks have separate limits.
    #[test]
    fn groups_of_real_time() {
        let config = "/boot/config-6.18.0";
        let with = |options: &str, line: &str| {
            let files =
                [(RELEASE_FILE, "6.18.0"), (config, options), ("/proc/cmdline", line)];
            read(&files).rt_group.get().copied()
        };
        let on = "CONFIG_RT_GROUP_SCHED=y\n";
        let off = &format!("{on}CONFIG_RT_GROUP_SCHED_DEFAULT_DISABLED=y\n");
        assert_eq!(with("CONFIG_HZ=250\n", ""), Some(false));
        assert_eq!(with(on, "quiet"), Some(true));
        assert_eq!(with(on, "rt_group_sched=0"), Some(false));
        assert_eq!(with(off, ""), Some(false));
        assert_eq!(with(off, "rt_group_sched=1"), Some(true));
        assert_eq!(read(&[(RELEASE_FILE, "6.18.0")]).rt_group.get(), None);
    }

    /// Check the algorithm by release.
    #[test]
    fn policy_by_release() {
        for (release, policy) in [
            ("2.6.18-308.el5", "o1"),
            ("2.6.23", "cfs"),
            ("6.5.13", "cfs"),
            ("6.6.0", "eevdf"),
            ("7.3-rc7", "eevdf"),
        ] {
            let sched = read(&[(RELEASE_FILE, release)]);
            assert_eq!(sched.policy.get().unwrap(), policy, "{release}");
        }
        assert_eq!(code(&read(&[]).policy), Some(Why::Absent));
    }

    /// Check that existing tunables take precedence over the release, because of backports.
    #[test]
    fn policy_by_what_is_there() {
        let slice = "/sys/kernel/debug/sched/base_slice_ns";
        let sched = read(&[(RELEASE_FILE, "5.14.0-1.el9"), (slice, "3000000\n")]);
        assert_eq!(sched.policy, Fact::known("eevdf".to_owned(), slice));
        assert_eq!(sched.base_slice_ns.get(), Some(&Nanos::from_millis(3)));
    }

    /// Check the files of CFS's times until 5.12, and since.
    #[test]
    fn times_of_cfs() {
        for (release, latency) in [
            ("5.10.0", "/proc/sys/kernel/sched_latency_ns"),
            ("6.1.0", "/sys/kernel/debug/sched/latency_ns"),
        ] {
            let sched = read(&[(RELEASE_FILE, release), (latency, "12000000\n")]);
            assert_eq!(sched.latency_ns, Fact::known(Nanos::from_millis(12), latency));
            assert_eq!(code(&sched.base_slice_ns), Some(Why::TooOld));
            assert_eq!(code(&sched.min_granularity_ns), Some(Why::Absent));
        }
    }

    /// Check that with lockdown, the time slice is read from the debug file's header.
    #[test]
    fn slice_under_lockdown() {
        let debug = "/sys/kernel/debug/sched/debug";
        let files = [
            (RELEASE_FILE, "6.18.44"),
            (debug, "  .sysctl_sched_base_slice                 : 1.400000\n"),
        ];
        let refused = [(BASE_SLICE.debugfs, Why::Lockdown)];
        let tree = tree_refusing(&files, &refused);
        let sched = Sched::read(&tree.sources());
        assert_eq!(sched.base_slice_ns.get(), Some(&Nanos::from_nanos(1_400_000)));
        assert!(sched.base_slice_ns.source().starts_with(debug));
        assert_eq!(code(&sched.latency_ns), Some(Why::TooNew));
    }

    /// Check that equal runtimes of the fair server are one number, and others are in the order of
    /// CPUs.
    #[test]
    fn fair_server_of_each_cpu() {
        let file = |cpu| format!("{FAIR_SERVER}/cpu{cpu}/runtime");
        let (first, second, tenth) = (file(0), file(2), file(10));
        let runtimes = |last: &str| {
            let files = [
                (RELEASE_FILE, "6.12.1"),
                (first.as_str(), "50000000\n"),
                (second.as_str(), "50000000\n"),
                (tenth.as_str(), last),
            ];
            read(&files).fair_server_runtime_ns.get().cloned().unwrap()
        };
        let full = Nanos::from_millis(50);
        assert_eq!(runtimes("50000000\n"), [full]);
        assert_eq!(runtimes("0\n"), [full, full, Nanos::ZERO]);
    }

    /// Check the reasons for an unknown fair server.
    #[test]
    fn fair_server_unknown() {
        let refused =
            [("/sys/kernel/debug/sched/fair_server/cpu0/runtime", Why::Lockdown)];
        let closed = tree_refusing(&[(RELEASE_FILE, "6.18.1")], &refused);
        let sched = Sched::read(&closed.sources());
        assert_eq!(code(&sched.fair_server_runtime_ns), Some(Why::Lockdown));

        let sched = read(&[(RELEASE_FILE, "6.11.1")]);
        assert_eq!(code(&sched.fair_server_runtime_ns), Some(Why::TooOld));

        let mounts = ("/proc/self/mounts", "proc /proc proc rw 0 0\n");
        let sched = read(&[(RELEASE_FILE, "6.18.1"), mounts]);
        assert_eq!(code(&sched.fair_server_runtime_ns), Some(Why::NotMounted));
        assert_eq!(code(&sched.features), Some(Why::NotMounted));
    }

    /// Check the sysctls, including a negative and an invalid one.
    #[test]
    fn sysctls() {
        let sched = read(&[
            (RELEASE_FILE, "6.1.0"),
            (RT_RUNTIME, "-1\n"),
            (RT_PERIOD, "1000000\n"),
            (RR_TIMESLICE, "soon\n"),
            (AUTOGROUP, "2\n"),
        ]);
        assert_eq!(sched.rt_runtime_us.get(), Some(&-1));
        assert_eq!(sched.rt_period_us.get(), Some(&1_000_000));
        assert_eq!(code(&sched.rr_timeslice_ms), Some(Why::Garbage));
        assert_eq!(code(&sched.autogroup), Some(Why::Garbage));
    }

    /// Check that the reason for missing autogroup is the release or configuration.
    #[test]
    fn autogroup_absent() {
        let config = ("/boot/config-6.1.0", "CONFIG_HZ=250\n");
        let sched = read(&[(RELEASE_FILE, "6.1.0"), config]);
        assert_eq!(code(&sched.autogroup), Some(Why::NotConfigured));
        let sched = read(&[(RELEASE_FILE, "2.6.18-308.el5")]);
        assert_eq!(code(&sched.autogroup), Some(Why::TooOld));
        assert_eq!(code(&sched.rt_runtime_us), Some(Why::TooOld));
    }
}
