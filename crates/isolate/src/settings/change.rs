//! A change of one setting that a plan is made of.

use std::fs;
use std::path::PathBuf;

use units::CpuSet;

use crate::error::Error;
use crate::settings::setting::Setting;

/// A setting, and what it is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) setting: Setting,
    pub(crate) to: To,
}

/// What a setting is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum To {
    /// That, which is written.
    Value(String),
    /// That, which is written, and goes with the group that it is in.
    Within(String),
    /// What the kernel will make of it by itself, because of the changes that come next: one
    /// of these.
    Foreseen(Vec<String>),
}

/// Changes to make in that order, and what cannot be changed.
pub(crate) type Changes = Vec<Result<Change, Error>>;

impl Change {
    pub(crate) fn new(setting: Setting, value: impl Into<String>) -> Self {
        Self { setting, to: To::Value(value.into()) }
    }

    pub(crate) fn of_file(path: PathBuf, value: impl Into<String>) -> Self {
        Self::new(Setting::File(path), value)
    }

    /// The change of a file that holds a mask, where one of these CPUs is in it.
    pub(crate) fn of_mask(file: PathBuf, cpus: &CpuSet, others: &CpuSet) -> Option<Self> {
        let text = fs::read_to_string(&file).ok()?;
        let now = CpuSet::from_mask(&text).ok()?;
        let mask = without(&now, cpus, others)?.to_mask(text.trim());
        Some(Self::of_file(file, mask))
    }
}

/// The set without these CPUs, or the others where nothing is left of it; `None` where there is
/// nowhere else to go. A set that is without them already is as it has to stay.
pub(crate) fn without(now: &CpuSet, cpus: &CpuSet, others: &CpuSet) -> Option<CpuSet> {
    let rest = now.without(cpus);
    let rest = if rest.is_empty() { others.clone() } else { rest };
    (!rest.is_empty()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that CPUs are left out, that an interrupt always has one to go to, and that one
    /// that did not come there stays as it is.
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
