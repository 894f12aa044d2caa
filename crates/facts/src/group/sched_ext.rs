//! Schedulers of `sched_ext`: BPF programs that schedule ordinary tasks instead of the fair class.
//!
//! From `/sys/kernel/sched_ext` (since 6.12, `CONFIG_SCHED_CLASS_EXT`; Documentation/scheduler/sched-ext.rst).
//! `root/ops` exists while a scheduler is loaded, and has its name. `enable_seq` counts the schedulers
//! that were enabled since boot, and not their ends: when one ends, only `state` changes.
//!
//! Cannot see: the schedulers below the root one that cgroups may have, and which tasks the scheduler
//! has if it does not have all of them (`switch_all` is 0).

use std::fmt;
use std::str::FromStr;

use crate::absence::Needs;
use crate::fact::{Fact, Unknown, Why};
use crate::group::sched::Sched;
use crate::sources::Sources;
use crate::tree::root::Root;

const STATE: &str = "/sys/kernel/sched_ext/state";
const SWITCH_ALL: &str = "/sys/kernel/sched_ext/switch_all";
const REJECTED: &str = "/sys/kernel/sched_ext/nr_rejected";
const ENABLE_SEQ: &str = "/sys/kernel/sched_ext/enable_seq";
const OPS: &str = "/sys/kernel/sched_ext/root/ops";
/// The kernel option.
const OPTION: &str = "SCHED_CLASS_EXT";
/// The state of a scheduler that runs.
const ENABLED: &str = "enabled";

const NEEDS: Needs = Needs::since("6.12").with(&[OPTION]);

/// Whether the kernel is built with it.
pub(crate) fn is_built(sources: &Sources) -> Fact<bool> {
    let built = sources.config.as_ref().map(|config| config.is_set(OPTION));
    Fact::of(built.map_err(Clone::clone), sources.option_source(OPTION))
}

/// The state.
pub(crate) fn state(sources: &Sources) -> Fact<String> {
    sources.explain(&sources.word(STATE), &NEEDS)
}

/// Whether all ordinary tasks are switched.
pub(crate) fn switch_all(sources: &Sources) -> Fact<bool> {
    sources.explain(&sources.boolean(SWITCH_ALL), &NEEDS)
}

/// The number of refused tasks.
pub(crate) fn rejected(sources: &Sources) -> Fact<u64> {
    number(sources, REJECTED)
}

/// The number of schedulers so far.
pub(crate) fn enable_seq(sources: &Sources) -> Fact<u64> {
    number(sources, ENABLE_SEQ)
}

/// The scheduler's name. Without a loaded scheduler there is no file.
pub(crate) fn ops(sources: &Sources) -> Fact<String> {
    let ops = sources.word(OPS);
    let is_absent = ops.value().is_err_and(|unknown| unknown.code == Why::Absent);
    match sources.word(STATE).get() {
        Some(state) if is_absent => {
            let text = format!("no sched_ext scheduler is loaded ({STATE}: {state})");
            Fact::unknown(Unknown::new(Why::NotApplicable, text), OPS)
        }
        _ => sources.explain(&ops, &NEEDS),
    }
}

/// The policy of ordinary tasks, if a scheduler is enabled for all of them: its name.
pub(crate) fn policy(sources: &Sources) -> Option<Fact<String>> {
    let has_all = sources.word(SWITCH_ALL).get().is_none_or(|all| all != "0");
    let is_enabled = sources.word(STATE).get().is_some_and(|state| state == ENABLED);
    (is_enabled && has_all).then(|| sources.word(OPS))
}

fn number<T: Clone + FromStr>(sources: &Sources, file: &str) -> Fact<T> {
    sources.explain(&sources.number(file), &NEEDS)
}

/// The scheduler of ordinary tasks at a moment, as far as `sched_ext` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtState {
    state: String,
    /// The name of the loaded scheduler.
    ops: Option<String>,
    /// The number of schedulers that were enabled since boot.
    enable_seq: Option<u64>,
}

impl ExtState {
    /// What it is now; `None` if the kernel does not have it.
    pub fn now(root: &Root) -> Option<Self> {
        Some(Self {
            state: root.line(STATE).ok()?,
            ops: root.line(OPS).ok(),
            enable_seq: root.parsed(ENABLE_SEQ, "a number").ok(),
        })
    }

    /// What it was when facts were read; `None` if they do not have it.
    pub fn of(sched: &Sched) -> Option<Self> {
        Some(Self {
            state: sched.ext_state.get()?.clone(),
            ops: sched.ext_ops.get().cloned(),
            enable_seq: sched.ext_enable_seq.get().copied(),
        })
    }
}

impl fmt::Display for ExtState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.state.as_str(), &self.ops) {
            (ENABLED, Some(ops)) => write!(f, "{ops} (sched_ext)")?,
            ("disabled", _) => f.write_str("the kernel's own")?,
            (state, Some(ops)) => write!(f, "{ops} (sched_ext, {state})")?,
            (state, None) => write!(f, "unknown (sched_ext, {state})")?,
        }
        match self.enable_seq {
            Some(enabled) => write!(f, ", enable_seq {enabled}"),
            None => Ok(()),
        }
    }
}

impl Sched {
    /// The name of the `sched_ext` scheduler that is enabled, and whether it has all ordinary tasks;
    /// `None` if none is enabled, or if that is unknown.
    pub fn ext_scheduler(&self) -> Option<(&str, bool)> {
        let is_enabled = self.ext_state.get().is_some_and(|state| state == ENABLED);
        let name = self.ext_ops.get().filter(|_| is_enabled)?;
        Some((name, self.ext_switch_all.get() != Some(&false)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::{Tree, tree};

    const RELEASE: (&str, &str) = ("/proc/sys/kernel/osrelease", "7.3.4");

    fn with(files: &[(&str, &str)]) -> Tree {
        tree(&[&[RELEASE], files].concat())
    }

    fn enabled(all: &'static str) -> [(&'static str, &'static str); 5] {
        [
            (STATE, "enabled\n"),
            (SWITCH_ALL, all),
            (REJECTED, "3\n"),
            (ENABLE_SEQ, "2\n"),
            (OPS, "lavd_1.1.4\n"),
        ]
    }

    /// Check the facts of an enabled scheduler, for all ordinary tasks or for some.
    #[test]
    fn of_an_enabled_scheduler() {
        let sched = Sched::read(&with(&enabled("1\n")).sources());
        assert_eq!(sched.policy.get().unwrap(), "lavd_1.1.4");
        assert_eq!(sched.ext_ops, Fact::known("lavd_1.1.4".to_owned(), OPS));
        assert_eq!(sched.ext_nr_rejected, Fact::known(3, REJECTED));
        assert_eq!(sched.ext_enable_seq, Fact::known(2, ENABLE_SEQ));
        assert_eq!(sched.ext_scheduler(), Some(("lavd_1.1.4", true)));
        let sched = Sched::read(&with(&enabled("0\n")).sources());
        assert_eq!(sched.policy.get().unwrap(), "eevdf");
        assert_eq!(sched.ext_scheduler(), Some(("lavd_1.1.4", false)));
    }

    /// Check that a kernel without a loaded scheduler, and one without `sched_ext`, have no name of one,
    /// each with its reason.
    #[test]
    fn without_a_scheduler() {
        let none = [(STATE, "disabled\n"), (SWITCH_ALL, "0\n"), (ENABLE_SEQ, "4\n")];
        let sched = Sched::read(&with(&none).sources());
        let why = sched.ext_ops.value().unwrap_err();
        assert_eq!(why.code, Why::NotApplicable);
        assert!(why.text.contains("disabled"), "{why}");
        assert_eq!(sched.ext_scheduler(), None);
        for (release, config, code) in [
            ("6.11.1", "CONFIG_HZ=250\n", Why::TooOld),
            ("6.12.1", "CONFIG_HZ=250\n", Why::NotConfigured),
            ("6.12.1", "CONFIG_SCHED_CLASS_EXT=y\n", Why::Absent),
        ] {
            let file = format!("/boot/config-{release}");
            let tree = tree(&[("/proc/sys/kernel/osrelease", release), (&file, config)]);
            let sched = Sched::read(&tree.sources());
            for why in [
                sched.ext_state.value().err(),
                sched.ext_ops.value().err(),
                sched.ext_switch_all.value().err(),
                sched.ext_enable_seq.value().err(),
            ] {
                assert_eq!(why.map(|why| why.code), Some(code), "{release}");
            }
            let is_built = sched.ext_class.get().copied();
            assert_eq!(is_built, Some(config.contains("EXT")), "{release}");
        }
    }

    /// Check that a scheduler that ends, and one that is replaced by itself, are another state than before,
    /// in words that show what changed.
    #[test]
    fn states_differ() {
        let facts = Sched::read(&with(&enabled("1\n")).sources());
        let before = ExtState::of(&facts).unwrap();
        assert_eq!(before.to_string(), "lavd_1.1.4 (sched_ext), enable_seq 2");
        assert_eq!(ExtState::now(&with(&enabled("1\n")).root).unwrap(), before);
        let ended = [(STATE, "disabled\n"), (ENABLE_SEQ, "2\n")];
        let ended = ExtState::now(&with(&ended).root).unwrap();
        assert_eq!(ended.to_string(), "the kernel's own, enable_seq 2");
        assert_ne!(ended, before);
        let mut again = enabled("1\n");
        again[3].1 = "3\n";
        assert_ne!(ExtState::now(&with(&again).root).unwrap(), before);
        assert_eq!(ExtState::now(&with(&[]).root), None);
    }
}
