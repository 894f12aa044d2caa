//! A setting and its requested value: `WAKEUP_PREEMPTION=off`, `base_slice_ns=3000000`,
//! `preempt=full`; `vm.stat_interval=10`, `governor=performance`.
//!
//! Features of the scheduler are upper case and on or off, its tunables lower case and integers, as in
//! the kernel (`kernel/sched/features.h`, `debug.c`). Which of them this kernel has is determined in
//! [`crate::tuning::tunables`]; other settings are those of [`crate::tuning::machine`].

pub(crate) mod lease;
pub(crate) mod machine;
pub(crate) mod tunables;

use std::fmt;
use std::str::FromStr;

use units::CpuSet;

use crate::error::{Error, Kind};
use crate::settings::setting::{OFF, ON};

/// The only tunable whose value is a word: the preemption model.
pub(crate) const PREEMPT: &str = "preempt";
/// The values of `preempt` in all kernels.
const MODELS: [&str; 5] = ["none", "voluntary", "full", "lazy", "laziest"];

/// A setting and its requested value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tuning {
    name: String,
    value: String,
    sort: Sort,
}

/// The kind of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sort {
    /// On or off.
    Feature,
    /// An integer.
    Tunable,
    /// `preempt`.
    Preempt,
    /// A file, by its path or the name of a sysctl.
    File(String),
    /// Several files with a name of their own.
    Group(Group),
}

/// A setting of the machine that several files have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    Governor,
    IdleLatency,
    Thp,
    Workqueues,
    Irqs,
    Partition,
}

impl Group {
    const ALL: [(&str, Self); 6] = [
        ("governor", Self::Governor),
        ("idle_latency_us", Self::IdleLatency),
        ("irqs", Self::Irqs),
        ("partition", Self::Partition),
        ("thp", Self::Thp),
        ("workqueues", Self::Workqueues),
    ];

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(known, _)| *known == name).map(|(_, group)| group)
    }

    /// What the value must be.
    fn value(self) -> &'static str {
        match self {
            Self::Governor => "the name of a governor",
            Self::Thp => "always, madvise or never",
            Self::IdleLatency => "a whole number of microseconds",
            Self::Workqueues | Self::Irqs | Self::Partition => "a list of CPUs",
        }
    }

    fn fits(self, value: &str) -> bool {
        match self {
            Self::Governor | Self::Thp => !value.is_empty(),
            Self::IdleLatency => value.parse::<u32>().is_ok(),
            Self::Workqueues | Self::Irqs | Self::Partition => {
                value.parse().is_ok_and(|cpus: CpuSet| !cpus.is_empty())
            }
        }
    }

    /// The message if a machine has no such file.
    pub(crate) fn missing(self) -> &'static str {
        match self {
            Self::Governor => "no CPU has a cpufreq governor",
            Self::IdleLatency => "no CPU has an idle state with a longer exit latency",
            Self::Thp => "this kernel has no transparent huge pages",
            Self::Workqueues => "this kernel has no workqueue mask",
            Self::Irqs => "no interrupt has an affinity",
            Self::Partition => "no partition can be created",
        }
    }
}

impl Tuning {
    /// A feature with `on` or `off`, a tunable with an integer in the kernel's unit (nanoseconds
    /// if its name ends in `_ns`), `preempt` with one of the kernel's models; a sysctl
    /// (`vm.stat_interval`), the path of a file, or the name of several files (`governor`).
    ///
    /// # Errors
    /// `Kind::Tuning`: no kernel has a setting with such a name, or such a value.
    pub fn parse(name: &str, value: &str) -> Result<Self, Error> {
        let (name, value) = (name.trim(), value.trim());
        let sort = sort(name)?;
        let refuse =
            |what: &str| Err(mistake(format!("{name}={value}: {name} is {what}")));
        let value = match &sort {
            Sort::Feature if ![ON, OFF].contains(&value) => return refuse("on or off"),
            Sort::Preempt if !MODELS.contains(&value) => {
                return refuse("none, voluntary, full or lazy");
            }
            Sort::File(_) if value.is_empty() || value.chars().any(char::is_control) => {
                return refuse("a line of text");
            }
            Sort::Group(group) if !group.fits(value) => return refuse(group.value()),
            Sort::Feature | Sort::Preempt | Sort::File(_) | Sort::Group(_) => {
                value.to_owned()
            }
            // In the kernel's format, for comparison with the current value.
            Sort::Tunable => match value.parse::<i64>() {
                Ok(number) => number.to_string(),
                Err(_) => return refuse("a whole number"),
            },
        };
        Ok(Self { name: name.to_owned(), value, sort })
    }

    /// The kernel's name of the setting.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The requested value, in the kernel's format.
    pub fn value(&self) -> &str {
        &self.value
    }

    pub(crate) fn sort(&self) -> &Sort {
        &self.sort
    }
}

impl FromStr for Tuning {
    type Err = Error;

    /// Parses `NAME=VALUE`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let Some((name, value)) = text.split_once('=') else {
            let forms = "FEATURE=on, TUNABLE=NUMBER, preempt=MODEL, SYSCTL=VALUE or \
                         PATH=VALUE";
            return Err(mistake(format!("'{text}' is not {forms}")));
        };
        Self::parse(name, value)
    }
}

impl fmt::Display for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

fn sort(name: &str) -> Result<Sort, Error> {
    let fits = |first: fn(&char) -> bool| {
        let rest = |c: char| first(&c) || c.is_ascii_digit() || c == '_';
        name.starts_with(|c| first(&c)) && name.chars().all(rest)
    };
    if let Some(plain) = name.strip_prefix("NO_") {
        return Err(mistake(format!("'{name}' is written {plain}=off")));
    }
    if let Some(group) = Group::named(name) {
        return Ok(Sort::Group(group));
    }
    match name {
        PREEMPT => Ok(Sort::Preempt),
        _ if name.starts_with("/proc/") || name.starts_with("/sys/") => {
            Ok(Sort::File(name.to_owned()))
        }
        _ if is_sysctl(name) => Ok(Sort::File(sysctl_path(name))),
        _ if fits(char::is_ascii_uppercase) => Ok(Sort::Feature),
        _ if fits(char::is_ascii_lowercase) => Ok(Sort::Tunable),
        _ => {
            let groups: Vec<&str> = Group::ALL.iter().map(|(name, _)| *name).collect();
            let rule = format!(
                "expected a sysctl (vm.stat_interval), a path below /proc/sys or /sys, a \
                 scheduler feature (upper case) or tunable (lower case), or {}",
                groups.join(", ")
            );
            Err(mistake(format!("'{name}' is not a setting: {rule}")))
        }
    }
}

/// Whether it is the name of a sysctl: words with dots between them.
fn is_sysctl(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-/".contains(c);
    let is_word = |word: &str| !word.is_empty() && word.chars().all(plain);
    !name.starts_with('/') && name.contains('.') && name.split('.').all(is_word)
}

/// The path of a sysctl. The first separator decides what separates: a name with a dot in it is
/// written with slashes, which become dots (`sysctl.d(5)`).
fn sysctl_path(name: &str) -> String {
    let is_slashed = name.find('/') < name.find('.') && name.contains('/');
    let path = match is_slashed {
        true => name.to_owned(),
        false => name
            .chars()
            .map(|c| {
                if c == '.' {
                    '/'
                } else if c == '/' {
                    '.'
                } else {
                    c
                }
            })
            .collect(),
    };
    format!("/proc/sys/{path}")
}

pub(crate) fn mistake(text: String) -> Error {
    Error::new(Kind::Tuning, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        let error = text.parse::<Tuning>().unwrap_err();
        assert_eq!(error.kind(), Kind::Tuning, "{text}");
        error.to_string()
    }

    /// Check that kinds are determined by name, and that numbers are normalized.
    #[test]
    fn sorts() {
        let file = |path: &str| Sort::File(path.to_owned());
        for (text, sort, value) in [
            ("WAKEUP_PREEMPTION=off", Sort::Feature, "off"),
            (" NONTASK_CAPACITY = on ", Sort::Feature, "on"),
            ("base_slice_ns=0700000", Sort::Tunable, "700000"),
            ("migration_cost_ns=-1", Sort::Tunable, "-1"),
            ("preempt=lazy", Sort::Preempt, "lazy"),
            ("thp=never", Sort::Group(Group::Thp), "never"),
            ("irqs=0,2-3", Sort::Group(Group::Irqs), "0,2-3"),
            ("vm.stat_interval=10", file("/proc/sys/vm/stat_interval"), "10"),
            (
                "net.ipv4.conf.eth0/1.forwarding=1",
                file("/proc/sys/net/ipv4/conf/eth0.1/forwarding"),
                "1",
            ),
            (
                "net/ipv4/conf/eth0.1/forwarding=1",
                file("/proc/sys/net/ipv4/conf/eth0.1/forwarding"),
                "1",
            ),
            ("/sys/kernel/mm/ksm/run=0", file("/sys/kernel/mm/ksm/run"), "0"),
        ] {
            let tuning: Tuning = text.parse().unwrap();
            assert_eq!((tuning.sort(), tuning.value()), (&sort, value), "{text}");
            let again: Tuning = tuning.to_string().parse().unwrap();
            assert_eq!(again, tuning);
        }
    }

    /// Check that invalid settings are rejected with the expected form.
    #[test]
    fn mistakes() {
        for (text, expected) in [
            ("WAKEUP_PREEMPTION", "'WAKEUP_PREEMPTION' is not FEATURE=on"),
            ("WAKEUP_PREEMPTION=1", "WAKEUP_PREEMPTION is on or off"),
            ("NO_HRTICK=on", "'NO_HRTICK' is written HRTICK=off"),
            ("base_slice_ns=3ms", "base_slice_ns is a whole number"),
            ("base_slice_ns=", "base_slice_ns is a whole number"),
            ("preempt=fast", "preempt is none, voluntary, full or lazy"),
            ("=on", "'' is not a setting"),
            ("Hrtick=on", "'Hrtick' is not a setting"),
            ("../features=1", "'../features' is not a setting"),
            ("/etc/passwd=1", "'/etc/passwd' is not a setting"),
            ("numa_balancing/scan_size_mb=1", "is not a setting"),
            ("irqs=none", "irqs is a list of CPUs"),
            ("idle_latency_us=-1", "idle_latency_us is a whole number"),
            ("vm.stat_interval=", "vm.stat_interval is a line of text"),
        ] {
            let error = refused(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
