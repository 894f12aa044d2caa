//! The scheduler: which one, how long its slices are, and what it keeps for whom.
//!
//! Truth: `/proc/sys/kernel/sched_*`; debugfs `sched/` since 5.13, where lockdown closes
//! all but `sched/debug`; `/sys/kernel/sched_ext` since 6.12. What is there beats what
//! the release promises. CFS until 6.5, EEVDF since 6.6.
//!
//! Cannot see single tasks' own slices (`sched_setattr`, since 6.12).

use std::collections::BTreeMap;

use units::Nanos;

use crate::absence::{self, Needs};
use crate::fact::{Fact, Unknown, group};
use crate::format::command_line;
use crate::group::sched_debug::SchedDebug;
use crate::group::sched_features;
use crate::sources::{RELEASE, Sources};

const RT_RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
const RT_PERIOD: &str = "/proc/sys/kernel/sched_rt_period_us";
const AUTOGROUP: &str = "/proc/sys/kernel/sched_autogroup_enabled";
const RR_TIMESLICE: &str = "/proc/sys/kernel/sched_rr_timeslice_ms";
const EXT_STATE: &str = "/sys/kernel/sched_ext/state";
const EXT_ALL: &str = "/sys/kernel/sched_ext/switch_all";
const EXT_NAME: &str = "/sys/kernel/sched_ext/root/ops";
const FAIR_SERVER: &str = "/sys/kernel/debug/sched/fair_server";

/// A time the scheduler can be tuned with: its names since 5.13 and before.
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

/// The option that gives groups of real-time tasks shares of their own.
const RT_GROUP: &str = "RT_GROUP_SCHED";
const RT_GROUP_OFF: &str = "RT_GROUP_SCHED_DEFAULT_DISABLED";
const RT_GROUP_PARAMETER: &str = "rt_group_sched";

group! {
    /// The scheduler.
    "sched" Sched {
        /// `o1` (until 2.6.22), `cfs`, `eevdf`, or the name of a sched_ext scheduler in
        /// charge.
        policy: String,
        /// How much of each period real-time tasks may run, in microseconds; -1: all.
        /// Since 6.12 only deadline tasks are held to it, unless the kernel has
        /// `RT_GROUP_SCHED`.
        rt_runtime_us: i64,
        /// The period, in microseconds.
        rt_period_us: i64,
        /// Whether groups of real-time tasks have shares of their own (`RT_GROUP_SCHED`);
        /// then real-time tasks are held to `rt_runtime_us` since 6.12, too.
        rt_group: bool,
        /// How long ordinary tasks run in each period (one second unless changed)
        /// although real-time ones want to (the fair server, since 6.12): one number
        /// where all CPUs agree, else one for each possible CPU.
        fair_server_runtime_ns: Vec<Nanos>,
        /// EEVDF's slice (since 6.6).
        base_slice_ns: Nanos,
        /// CFS's period (until 6.5).
        latency_ns: Nanos,
        /// CFS's shortest slice (until 6.5).
        min_granularity_ns: Nanos,
        /// How far ahead a waking task must be to preempt (CFS, until 6.5).
        wakeup_granularity_ns: Nanos,
        /// Scheduler features that are on.
        features: Vec<String>,
        /// Whether sessions are grouped.
        autogroup: bool,
        /// The slice of `SCHED_RR`, in milliseconds.
        rr_timeslice_ms: u64,
    }
}

impl Sched {
    pub(crate) fn read(sources: &Sources) -> Self {
        let throttling = Needs::since("2.6.25");
        Self {
            policy: policy(sources),
            rt_runtime_us: sources.explained(&sources.number(RT_RUNTIME), &throttling),
            rt_period_us: sources.explained(&sources.number(RT_PERIOD), &throttling),
            rt_group: rt_group(sources),
            fair_server_runtime_ns: fair_server(sources),
            base_slice_ns: tunable(sources, &BASE_SLICE),
            latency_ns: tunable(sources, &LATENCY),
            min_granularity_ns: tunable(sources, &MIN_GRANULARITY),
            wakeup_granularity_ns: tunable(sources, &WAKEUP_GRANULARITY),
            features: sched_features::read(sources),
            autogroup: autogroup(sources),
            rr_timeslice_ms: sources
                .explained(&sources.number(RR_TIMESLICE), &Needs::since("3.9")),
        }
    }
}

fn policy(sources: &Sources) -> Fact<String> {
    extended(sources).or_else(|| shown(sources)).unwrap_or_else(|| promised(sources))
}

/// A sched_ext scheduler, where one is in charge of all ordinary tasks.
fn extended(sources: &Sources) -> Option<Fact<String>> {
    let is = |path, word| sources.word(path).get().is_some_and(|found| found == word);
    let charge = is(EXT_STATE, "enabled") && !is(EXT_ALL, "0");
    charge.then(|| sources.word(EXT_NAME))
}

/// The policy that the tunables which are there belong to.
fn shown(sources: &Sources) -> Option<Fact<String>> {
    let fact = |name: &str, source: &str| Fact::known(name.to_owned(), source);
    [("eevdf", &BASE_SLICE), ("cfs", &LATENCY)].into_iter().find_map(|(name, tunable)| {
        let found = self::tunable(sources, tunable);
        found.get().map(|_| fact(name, found.source()))
    })
}

/// The policy that kernels of this release have.
fn promised(sources: &Sources) -> Fact<String> {
    let name = sources.release.as_ref().map(|release| {
        if !absence::older(release, "6.6") {
            return "eevdf".to_owned();
        }
        if absence::older(release, "2.6.23") { "o1".to_owned() } else { "cfs".to_owned() }
    });
    Fact::of(name.map_err(Clone::clone), RELEASE)
}

fn tunable(sources: &Sources, tunable: &Tunable) -> Fact<Nanos> {
    let read = |path: &str| {
        let fact = sources.number::<u64>(path);
        let value = fact.value().copied().map_err(Clone::clone);
        Fact::of(value.map(Nanos::from_nanos), path)
    };
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
    sources.explained(&fact, &needs.with(options))
}

/// The option; since 6.15 it may be built to be off unless `rt_group_sched=1` is given, and
/// `rt_group_sched=0` switches it off.
fn rt_group(sources: &Sources) -> Fact<bool> {
    let asked = sources.command_line.as_ref().ok();
    let asked = asked.and_then(|line| line.value(RT_GROUP_PARAMETER));
    let built = sources.config.as_ref().map(|config| {
        let on = asked.and_then(command_line::truth);
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

/// Each possible CPU's runtime; only one where they are all the same.
fn runtimes(sources: &Sources) -> Result<Vec<Nanos>, Unknown> {
    let runtime = |cpu: u32| {
        let fact = sources.number::<u64>(&format!("{FAIR_SERVER}/cpu{cpu}/runtime"));
        fact.value().map(|&nanos| Nanos::from_nanos(nanos)).map_err(Clone::clone)
    };
    // The directory of a recorded tree does not say why it is not there; a file does.
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
    let number = sources.number::<u8>(AUTOGROUP);
    let value = number.value().map_err(Clone::clone).and_then(|&number| match number {
        0 | 1 => Ok(number == 1),
        other => Err(Unknown::garbage(AUTOGROUP, 1, &other.to_string(), "0 or 1")),
    });
    let needs = Needs::since("2.6.38").with(&["SCHED_AUTOGROUP"]);
    sources.explained(&Fact::of(value, AUTOGROUP), &needs)
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

    /// Check when groups of real-time tasks have shares of their own.
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

    /// Check the policy each release promises.
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

    /// Check that tunables which are there beat the release: distributions carry back.
    #[test]
    fn policy_by_what_is_there() {
        let slice = "/sys/kernel/debug/sched/base_slice_ns";
        let sched = read(&[(RELEASE_FILE, "5.14.0-1.el9"), (slice, "3000000\n")]);
        assert_eq!(sched.policy, Fact::known("eevdf".to_owned(), slice));
        assert_eq!(sched.base_slice_ns.get(), Some(&Nanos::from_millis(3)));
    }

    /// Check that a sched_ext scheduler counts only while it is in charge of all tasks.
    #[test]
    fn policy_of_sched_ext() {
        let policy = |state: &str, all: &str| {
            let files = [
                (RELEASE_FILE, "6.12.1"),
                (EXT_STATE, state),
                (EXT_ALL, all),
                (EXT_NAME, "lavd_1.0.9\n"),
            ];
            read(&files).policy.get().cloned().unwrap()
        };
        assert_eq!(policy("enabled\n", "1\n"), "lavd_1.0.9");
        assert_eq!(policy("enabled\n", "0\n"), "eevdf");
        assert_eq!(policy("disabled\n", "1\n"), "eevdf");
    }

    /// Check CFS's times in their place until 5.12, and since.
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

    /// Check that under lockdown the slice comes from the header of the debug file.
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

    /// Check that the fair server's runtimes are one number where they agree, and in
    /// the order of the CPUs where they do not.
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

    /// Check the reasons why the fair server is not known.
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

    /// Check the sysctls, a negative one among them, and garbage in one.
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

    /// Check that autogroup's absence is explained by release or configuration.
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
