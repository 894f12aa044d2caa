//! A planned change of one setting.

use std::fs;
use std::path::PathBuf;

use units::CpuSet;

use crate::error::Error;
use crate::settings::setting::Setting;

/// A setting and its new value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) setting: Setting,
    pub(crate) to: To,
}

/// The new value of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum To {
    /// A value to write.
    Value(String),
    /// A value to write in a cgroup that is removed afterwards, so that it needs no restoring.
    Transient(String),
    /// Values of which the kernel will set one as a side effect of the following changes.
    SideEffect(Vec<String>),
}

/// Changes in the order in which they are made, and errors of those that cannot be made.
pub(crate) type Changes = Vec<Result<Change, Error>>;

impl Change {
    pub(crate) fn new(setting: Setting, value: impl Into<String>) -> Self {
        Self { setting, to: To::Value(value.into()) }
    }

    pub(crate) fn of_file(path: PathBuf, value: impl Into<String>) -> Self {
        Self::new(Setting::File(path), value)
    }

    /// Whether it is undone with the removal of its cgroup, which may not exist yet.
    pub(crate) fn is_transient(&self) -> bool {
        matches!(self.to, To::Transient(_))
    }

    /// The change of a file with a CPU mask that removes `cpus` from it.
    pub(crate) fn of_mask(file: PathBuf, cpus: &CpuSet, others: &CpuSet) -> Option<Self> {
        let text = fs::read_to_string(&file).ok()?;
        let now = CpuSet::from_mask(&text).ok()?;
        let mask = without(&now, cpus, others)?.to_mask(text.trim());
        Some(Self::of_file(file, mask))
    }
}

/// Removes `cpus` from a set, or returns `others` if no CPU remains; `None` if there is no other
/// CPU. A set without these CPUs is returned unchanged.
pub(crate) fn without(now: &CpuSet, cpus: &CpuSet, others: &CpuSet) -> Option<CpuSet> {
    let rest = now.without(cpus);
    let rest = if rest.is_empty() { others.clone() } else { rest };
    (!rest.is_empty()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that CPUs are removed, that an interrupt always has a CPU, and that a set without the
    /// CPUs is unchanged.
    #[test]
    fn somewhere_to_go() {
        let left = |now: &str, cpus: &str, others: &str| {
            let [now, cpus, others] = [now, cpus, others].map(|set| set.parse().unwrap());
            without(&now, &cpus, &others).map(|rest| rest.to_string())
        };
        assert_eq!(left("0-3", "1", "0"), Some("0,2,3".to_owned()));
        assert_eq!(left("0-3", "1-2", "0"), Some("0,3".to_owned()));
        assert_eq!(left("1", "1", "0,2"), Some("0,2".to_owned()));
        assert_eq!(left("1-2", "1-2", "0,3"), Some("0,3".to_owned()));
        assert_eq!(left("0,2", "1", "0"), Some("0,2".to_owned()));
        assert_eq!(left("1", "1", ""), None);
    }
}
