//! Why a file is not there: what it needs, held against this kernel.
//!
//! A file that is missing says only that it is missing. The kernel's release, its
//! configuration and the mounts say why, in this order. Distributions carry changes back
//! to older kernels, so this is asked only after the file itself has been.
//!
//! Cannot see why a file is missing that this kernel should have.

use crate::fact::{Fact, Unknown, Why};
use crate::format::mounts::Mounts;
use crate::format::release::Release;
use crate::sources::Sources;
use crate::tree::root::Root;

/// What a file needs to be there.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Needs {
    /// The first release that has it.
    pub(crate) since: Option<&'static str>,
    /// The last release that has it: two numbers.
    pub(crate) until: Option<&'static str>,
    /// What the kernel must be built with; names go without `CONFIG_`.
    pub(crate) options: &'static [&'static str],
    /// The kind of file system it is in, where that may not be mounted.
    pub(crate) filesystem: Option<&'static str>,
}

impl Needs {
    /// Something that is there since a release.
    pub(crate) const fn since(release: &'static str) -> Self {
        Self { since: Some(release), until: None, options: &[], filesystem: None }
    }

    /// Something that some kernels are built without.
    pub(crate) const fn options(options: &'static [&'static str]) -> Self {
        Self { since: None, until: None, options, filesystem: None }
    }

    /// The same, until a release: the last one that has it.
    pub(crate) const fn until(self, release: &'static str) -> Self {
        Self { until: Some(release), ..self }
    }

    /// The same, where the kernel is built with these options.
    pub(crate) const fn with(self, options: &'static [&'static str]) -> Self {
        Self { options, ..self }
    }

    /// The same, in a file system that may not be mounted.
    pub(crate) const fn on(self, filesystem: &'static str) -> Self {
        Self { filesystem: Some(filesystem), ..self }
    }
}

impl Sources<'_> {
    /// The fact, with a better reason where it is not known.
    pub(crate) fn explained<T: Clone>(&self, fact: &Fact<T>, needs: &Needs) -> Fact<T> {
        let value = fact.value().cloned().map_err(|unknown| self.why(unknown, needs));
        Fact::of(value, fact.source())
    }

    /// Why something is not there, where more can be said than that it is not.
    ///
    /// A directory closed to this user hides whether the file is in it: release and
    /// configuration are asked then too.
    pub(crate) fn why(&self, unknown: &Unknown, needs: &Needs) -> Unknown {
        if !matches!(unknown.code, Why::Absent | Why::NeedsRoot) {
            return unknown.clone();
        }
        let mounted = || match unknown.code {
            Why::Absent => self.not_mounted(needs),
            _ => None,
        };
        self.other_age(needs)
            .or_else(|| needs.options.iter().find_map(|option| self.not_built(option)))
            .or_else(mounted)
            .unwrap_or_else(|| unknown.clone())
    }

    /// Where an option was looked up: for facts that the configuration decides.
    pub(crate) fn option_source(&self, option: &str) -> String {
        match &self.config {
            Ok(config) => format!("{} CONFIG_{option}", config.file()),
            Err(_) => format!("CONFIG_{option}"),
        }
    }

    fn other_age(&self, needs: &Needs) -> Option<Unknown> {
        let release = self.release.as_ref().ok()?;
        let this = release.text();
        if let Some(since) = needs.since.filter(|since| older(release, since)) {
            let text = format!("kernels have it since {since}, this one is {this}");
            return Some(Unknown::new(Why::TooOld, text));
        }
        let until = needs.until.filter(|until| newer(release, until))?;
        let text = format!("kernels have it until {until}, this one is {this}");
        Some(Unknown::new(Why::TooNew, text))
    }

    fn not_built(&self, option: &str) -> Option<Unknown> {
        let config = self.config.as_ref().ok().filter(|config| !config.is_set(option))?;
        let text =
            format!("the kernel is built without CONFIG_{option} ({})", config.file());
        Some(Unknown::new(Why::NotConfigured, text))
    }

    fn not_mounted(&self, needs: &Needs) -> Option<Unknown> {
        unmounted(self.root, needs.filesystem?)
    }
}

/// Why nothing of that kind of file system is there, where none is mounted: how to mount it.
/// `None` where one is, and where that is not known.
pub fn unmounted(root: &Root, kind: &str) -> Option<Unknown> {
    let mounts = Mounts::read(root).ok()?;
    mounts.of_kind(kind).next().is_none().then(|| not_mounted(kind))
}

/// Says that a file system is not mounted, and how to mount it.
pub(crate) fn not_mounted(kind: &str) -> Unknown {
    let directory = match kind {
        "debugfs" => "/sys/kernel/debug",
        "securityfs" => "/sys/kernel/security",
        "sysfs" => "/sys",
        _ => "/sys/kernel/tracing",
    };
    let text =
        format!("{kind} is not mounted; as root: mount -t {kind} {kind} {directory}");
    Unknown::new(Why::NotMounted, text)
}

/// Whether a release is older than a version, all three numbers compared.
pub(crate) fn older(release: &Release, version: &str) -> bool {
    Release::parse(version).is_some_and(|version| release.numbers() < version.numbers())
}

/// Whether a release is of a later series than a version.
fn newer(release: &Release, version: &str) -> bool {
    let series = |release: &Release| (release.numbers().0, release.numbers().1);
    Release::parse(version).is_some_and(|version| series(release) > series(&version))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::tree;

    const NEEDS: Needs = Needs::since("2.6.23").until("6.5").with(&["FOO"]).on("debugfs");

    fn why(release: &str, config: &str, mounts: &str, code: Why) -> Unknown {
        let config_file = format!("/boot/config-{release}");
        let tree = tree(&[
            ("/proc/sys/kernel/osrelease", release),
            (&config_file, config),
            ("/proc/self/mounts", mounts),
        ]);
        Sources::read(&tree.root).why(&Unknown::new(code, "missing"), &NEEDS)
    }

    /// Check that release, configuration and mounts are asked in this order.
    #[test]
    fn order_of_reasons() {
        let (set, unset) = ("CONFIG_FOO=y\n", "CONFIG_BAR=y\n");
        let debugfs = "none /sys/kernel/debug debugfs rw 0 0\n";
        for (release, config, mounts, code) in [
            ("2.6.18-308.el5", unset, "", Why::TooOld),
            ("6.6.1", unset, "", Why::TooNew),
            ("6.5.13", unset, "", Why::NotConfigured),
            ("2.6.23", set, "", Why::NotMounted),
            ("6.1.0", set, debugfs, Why::Absent),
        ] {
            assert_eq!(why(release, config, mounts, Why::Absent).code, code, "{release}");
        }
    }

    /// Check that the reason names versions, option and file system.
    #[test]
    fn reasons_in_words() {
        let (set, unset) = ("CONFIG_FOO=y\n", "CONFIG_BAR=y\n");
        let text = |release, config| why(release, config, "", Why::Absent).text;
        assert_eq!(
            text("2.6.18", set),
            "kernels have it since 2.6.23, this one is 2.6.18"
        );
        assert_eq!(text("7.0.1", set), "kernels have it until 6.5, this one is 7.0.1");
        assert!(
            text("5.10.0", unset).contains("without CONFIG_FOO (/boot/config-5.10.0)")
        );
        assert!(
            text("5.10.0", set).contains("mount -t debugfs debugfs /sys/kernel/debug")
        );
    }

    /// Check that a closed directory does not hide that the file cannot be in it, and
    /// that a refusal by lockdown stays one.
    #[test]
    fn closed_directories() {
        let (set, unset) = ("CONFIG_FOO=y\n", "CONFIG_BAR=y\n");
        assert_eq!(why("5.10.0", set, "", Why::NeedsRoot).code, Why::NeedsRoot);
        assert_eq!(why("5.10.0", unset, "", Why::NeedsRoot).code, Why::NotConfigured);
        assert_eq!(why("6.6.0", set, "", Why::NeedsRoot).code, Why::TooNew);
        assert_eq!(why("6.6.0", set, "", Why::Lockdown).code, Why::Lockdown);
    }
}
