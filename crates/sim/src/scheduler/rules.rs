//! The rules of the fair class by kernel version, as data.
//!
//! A set of rules is that of one source tree, and has its name: stable updates and distributions
//! change constants and rules within a version. Sources: `kernel/sched_fair.c` and `sched_features.h` of
//! 2.6.29 and 2.6.32.2; `kernel/sched/fair.c` and `features.h` of Debian's 5.10.262, 6.1.192, 6.12.117 and
//! 7.2.13, and of 6.6 and 6.18.14.

use recording::StepSetting;

use crate::scheduler::cfs::{Cfs, NextBuddy};
use crate::scheduler::eevdf::{DelayedLag, Eevdf, LagLimit, Protection};
use crate::scheduler::fair::Fair;
use crate::scheduler::weight::Rounding;
use crate::scheduler::{Error, Kind};

/// The rules of one kernel, with values that can be changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    name: &'static str,
    version: Version,
    features: Vec<(&'static str, bool)>,
    /// In nanoseconds.
    tunables: Vec<Tunable>,
}

/// A tunable, and its value on one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Tunable {
    name: &'static str,
    ns: u64,
    /// Whether it was set: then it does not depend on the number of CPUs.
    is_set: bool,
}

impl Tunable {
    fn new(name: &'static str, ns: u64) -> Self {
        Self { name, ns, is_set: false }
    }
}

/// What features and tunables do not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Version {
    /// 2.6.29.
    FirstSleepers,
    /// 2.6.32.
    GentleSleepers,
    /// 5.10.
    Cfs,
    /// 6.1: with a least slice.
    LastCfs,
    /// 6.6.
    FirstEevdf,
    /// 6.12: with delayed dequeues and short slices.
    DelayedDequeue,
    /// 6.18: with a protected virtual time.
    ProtectedVruntime,
    /// 7.2: with a timer at the end of slices.
    SliceTimer,
}

/// The versions with the names of their rules, the oldest first.
const VERSIONS: [(Version, &str); 8] = [
    (Version::FirstSleepers, "2.6.29"),
    (Version::GentleSleepers, "2.6.32"),
    (Version::Cfs, "5.10"),
    (Version::LastCfs, "6.1"),
    (Version::FirstEevdf, "6.6"),
    (Version::DelayedDequeue, "6.12"),
    (Version::ProtectedVruntime, "6.18"),
    (Version::SliceTimer, "7.2"),
];

/// Names of all rule sets, the oldest first.
pub const NAMES: [&str; VERSIONS.len()] = {
    let mut names = [""; VERSIONS.len()];
    let mut place = 0;
    while place < names.len() {
        names[place] = VERSIONS[place].1;
        place += 1;
    }
    names
};

impl Rules {
    /// The rules with that name.
    ///
    /// # Errors
    /// `Kind::Rules` if there are none, with the names that there are.
    pub fn named(name: &str) -> Result<Self, Error> {
        let found = VERSIONS.iter().find(|(_, own)| *own == name);
        let (version, name) = *found.ok_or_else(|| unknown(name))?;
        let tunables = version.tunables().iter();
        Ok(Self {
            name,
            version,
            features: version.features().to_vec(),
            tunables: tunables.map(|(name, ns)| Tunable::new(name, *ns)).collect(),
        })
    }

    /// The name: `6.12`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    pub(crate) fn version(&self) -> Version {
        self.version
    }

    /// Whether this is EEVDF; otherwise it is CFS.
    pub fn is_eevdf(&self) -> bool {
        self.version >= Version::FirstEevdf
    }

    /// Changes a feature (`on`, `off`) or a tunable (nanoseconds).
    ///
    /// # Errors
    /// `Kind::Setting` if these rules do not have it, or the value is of another kind.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let refused = |why: String| Err(Error::new(Kind::Setting, why));
        let upper = name.to_ascii_uppercase();
        if let Some(feature) = self.features.iter_mut().find(|(own, _)| *own == upper) {
            feature.1 = match value {
                "on" | "1" => true,
                "off" | "0" => false,
                _ => return refused(format!("{name} is on or off, not {value}")),
            };
            return Ok(());
        }
        let own = |tunable: &&mut Tunable| {
            tunable.name == name || name.strip_prefix("sched_") == Some(tunable.name)
        };
        match (self.tunables.iter_mut().find(own), value.parse()) {
            (Some(tunable), Ok(ns @ 1..=10_000_000_000)) => {
                (tunable.ns, tunable.is_set) = (ns, true);
                Ok(())
            }
            (Some(_), _) => {
                refused(format!("{name} is a number of nanoseconds, 1 to 10000000000"))
            }
            (None, _) => refused(format!(
                "the rules {} have no setting {name}; they have {}",
                self.name,
                self.settings().join(", ")
            )),
        }
    }

    /// The names of all settings.
    pub fn settings(&self) -> Vec<&'static str> {
        let tunables = self.tunables.iter().map(|tunable| tunable.name);
        self.features.iter().map(|(name, _)| *name).chain(tunables).collect()
    }

    /// The features that are on.
    pub fn enabled_features(&self) -> Vec<&'static str> {
        self.features.iter().filter(|(_, on)| *on).map(|(name, _)| *name).collect()
    }

    /// The settings that were changed.
    pub fn changed(&self) -> Vec<StepSetting> {
        let setting =
            |name: &str, value: String| StepSetting { name: name.to_owned(), value };
        let usual = self.version.features().iter();
        let features =
            self.features.iter().zip(usual).filter(|(own, usual)| own != usual);
        let features = features.map(|((name, on), _)| {
            setting(name, if *on { "on" } else { "off" }.to_owned())
        });
        let tunables = self.tunables.iter().filter(|tunable| tunable.is_set);
        features
            .chain(tunables.map(|tunable| setting(tunable.name, tunable.ns.to_string())))
            .collect()
    }

    fn has(&self, name: &str) -> bool {
        self.features.iter().any(|(own, on)| *own == name && *on)
    }

    /// A tunable on a machine with that many CPUs.
    fn tunable(&self, name: &str, cpus: u32) -> u64 {
        let Some(tunable) = self.tunables.iter().find(|own| own.name == name) else {
            return 0;
        };
        let first = self.version == Version::FirstSleepers;
        let counted = if first { cpus } else { cpus.min(8) };
        let scaled = tunable.ns * u64::from(1 + counted.max(1).ilog2());
        match tunable.is_set {
            true => tunable.ns,
            // Without that, sixteen CPUs and more had slices of a second.
            false if first && name != "wakeup_granularity_ns" => scaled.min(200_000_000),
            false => scaled,
        }
    }

    /// The class on a machine with that many CPUs and that tick.
    pub(crate) fn fair(&self, cpus: u32, tick_ns: u64) -> Fair {
        match self.is_eevdf() {
            true => Fair::Eevdf(self.eevdf(cpus, tick_ns)),
            false => Fair::Cfs(self.cfs(cpus)),
        }
    }

    /// Whether CPUs are balanced, and groups divided, by load averages.
    pub(crate) fn balances_by_load(&self) -> bool {
        self.version >= Version::Cfs
    }

    /// Whether a timer ends slices.
    pub(crate) fn has_slice_timer(&self) -> bool {
        self.has("HRTICK")
    }

    /// Whether a request to reschedule does not keep a wake-up from being checked.
    pub(crate) fn is_lazy(&self) -> bool {
        self.version >= Version::ProtectedVruntime
    }

    /// Whether a reschedule that a wake-up requested uses that wake-up's time
    /// (`rq_clock_skip_update` in `wakeup_preempt`).
    pub(crate) fn keeps_clock(&self) -> bool {
        self.version >= Version::Cfs
    }

    fn cfs(&self, cpus: u32) -> Cfs {
        let (version, old) = (self.version, self.version <= Version::GentleSleepers);
        let latency = self.tunable("latency_ns", cpus);
        let min_granularity = self.tunable("min_granularity_ns", cpus);
        let gentle = self.has("GENTLE_FAIR_SLEEPERS");
        let sleepers = ["NEW_FAIR_SLEEPERS", "FAIR_SLEEPERS"];
        let placed = !old || sleepers.iter().any(|name| self.has(name));
        Cfs {
            rounding: if old { Rounding::Nearest } else { Rounding::Down },
            latency,
            min_granularity,
            wakeup_granularity: self.tunable("wakeup_granularity_ns", cpus),
            tasks_in_latency: latency.div_ceil(min_granularity.max(1)),
            sleeper_credit: match (placed, gentle) {
                (false, _) => 0,
                (true, true) => latency / 2,
                (true, false) => latency,
            },
            weighted_credit: self.has("NORMALIZED_SLEEPER"),
            wakeup_preemption: self.has("WAKEUP_PREEMPT")
                || self.has("WAKEUP_PREEMPTION"),
            start_debit: self.has("START_DEBIT"),
            last_buddy: self.has("LAST_BUDDY"),
            next_buddy: if version == Version::FirstSleepers {
                NextBuddy::EachWakeup
            } else if self.has("NEXT_BUDDY") {
                NextBuddy::Crowded
            } else if old {
                NextBuddy::Never
            } else {
                NextBuddy::Preempting
            },
            last_first: version == Version::GentleSleepers,
            asymmetric_granularity: version == Version::FirstSleepers,
            ahead_at_ticks: version >= Version::GentleSleepers,
            period_of_all: version >= Version::LastCfs,
            least_slice: version >= Version::LastCfs,
            repick_renews: old,
            sleeper_holds_minimum: old,
        }
    }

    fn eevdf(&self, cpus: u32, tick: u64) -> Eevdf {
        let version = self.version;
        let until = version >= Version::ProtectedVruntime;
        let latest = version >= Version::SliceTimer;
        Eevdf {
            base_slice: self.tunable("base_slice_ns", cpus),
            least_slice: self.tunable("base_slice_ns", 1),
            tick,
            place_lag: self.has("PLACE_LAG"),
            place_deadline_initial: self.has("PLACE_DEADLINE_INITIAL"),
            run_to_parity: self.has("RUN_TO_PARITY"),
            preempt_short: self.has("PREEMPT_SHORT"),
            delay_dequeue: self.has("DELAY_DEQUEUE"),
            delay_zero: self.has("DELAY_ZERO"),
            wakeup_preemption: self.has("WAKEUP_PREEMPTION"),
            lag_limit: if latest {
                LagLimit::LongestAndTick
            } else {
                LagLimit::TwoSlices
            },
            delayed_lag: if latest { DelayedLag::NotLess } else { DelayedLag::Current },
            protection: match until {
                true => Protection::UntilVruntime,
                false => Protection::UntilRenewed,
            },
            wakeups_shorten: latest,
            wakeups_release: latest,
        }
    }
}

impl Version {
    fn features(self) -> &'static [(&'static str, bool)] {
        match self {
            Self::FirstSleepers => &[
                ("NEW_FAIR_SLEEPERS", true),
                ("NORMALIZED_SLEEPER", true),
                ("WAKEUP_PREEMPT", true),
                ("START_DEBIT", true),
                ("LAST_BUDDY", true),
            ],
            Self::GentleSleepers => &[
                ("FAIR_SLEEPERS", true),
                ("GENTLE_FAIR_SLEEPERS", true),
                ("NORMALIZED_SLEEPER", false),
                ("WAKEUP_PREEMPT", true),
                ("START_DEBIT", true),
                ("NEXT_BUDDY", false),
                ("LAST_BUDDY", true),
            ],
            Self::Cfs | Self::LastCfs => &[
                ("GENTLE_FAIR_SLEEPERS", true),
                ("WAKEUP_PREEMPTION", true),
                ("START_DEBIT", true),
                ("NEXT_BUDDY", false),
                ("LAST_BUDDY", true),
            ],
            Self::FirstEevdf => &[
                ("PLACE_LAG", true),
                ("PLACE_DEADLINE_INITIAL", true),
                ("RUN_TO_PARITY", true),
                ("WAKEUP_PREEMPTION", true),
            ],
            Self::DelayedDequeue | Self::ProtectedVruntime => &[
                ("PLACE_LAG", true),
                ("PLACE_DEADLINE_INITIAL", true),
                ("RUN_TO_PARITY", true),
                ("PREEMPT_SHORT", true),
                ("DELAY_DEQUEUE", true),
                ("DELAY_ZERO", true),
                ("WAKEUP_PREEMPTION", true),
            ],
            Self::SliceTimer => &[
                ("PLACE_LAG", true),
                ("PLACE_DEADLINE_INITIAL", true),
                ("RUN_TO_PARITY", true),
                ("PREEMPT_SHORT", true),
                ("DELAY_DEQUEUE", true),
                ("DELAY_ZERO", true),
                ("WAKEUP_PREEMPTION", true),
                ("HRTICK", true),
            ],
        }
    }

    fn tunables(self) -> &'static [(&'static str, u64)] {
        match self {
            Self::FirstSleepers => &[
                ("latency_ns", 20_000_000),
                ("min_granularity_ns", 4_000_000),
                ("wakeup_granularity_ns", 5_000_000),
            ],
            Self::GentleSleepers => &[
                ("latency_ns", 5_000_000),
                ("min_granularity_ns", 1_000_000),
                ("wakeup_granularity_ns", 1_000_000),
            ],
            Self::Cfs | Self::LastCfs => &[
                ("latency_ns", 6_000_000),
                ("min_granularity_ns", 750_000),
                ("wakeup_granularity_ns", 1_000_000),
            ],
            Self::FirstEevdf => &[("base_slice_ns", 750_000)],
            Self::DelayedDequeue | Self::ProtectedVruntime | Self::SliceTimer => {
                &[("base_slice_ns", 700_000)]
            }
        }
    }
}

fn unknown(name: &str) -> Error {
    let text = format!("no rules are named {name}; there are {}", NAMES.join(", "));
    Error::new(Kind::Rules, text)
}
