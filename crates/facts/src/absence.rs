//! Why a file does not exist: its requirements, compared with this kernel.
//!
//! The reason is determined from the kernel's release, its configuration and the mounts, in this
//! order. Since distributions backport changes, this is done only if the file does not exist.
//!
//! If this kernel should have the file, the reason remains unknown.

use crate::fact::{Fact, Unknown, Why};
use crate::format::mounts::Mounts;
use crate::format::release::Release;
use crate::sources::Sources;
use crate::tree::root::Root;

/// What is required for a file to exist.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Needs {
    /// The first release with it.
    pub(crate) since: Option<&'static str>,
    /// The last release with it: two numbers.
    pub(crate) until: Option<&'static str>,
    /// The required kernel options, without `CONFIG_`.
    pub(crate) options: &'static [&'static str],
    /// The type of its file system, if that may not be mounted.
    pub(crate) filesystem: Option<&'static str>,
}

impl Needs {
    /// Requires a release or a later one.
    pub(crate) const fn since(release: &'static str) -> Self {
        Self { since: Some(release), until: None, options: &[], filesystem: None }
    }

    /// Requires kernel options.
    pub(crate) const fn options(options: &'static [&'static str]) -> Self {
        Self { since: None, until: None, options, filesystem: None }
    }

    /// Also requires a release or an earlier one.
    pub(crate) const fn until(self, release: &'static str) -> Self {
        Self { until: Some(release), ..self }
    }

    /// Also requires kernel options.
    pub(crate) const fn with(self, options: &'static [&'static str]) -> Self {
        Self { options, ..self }
    }

    /// Also requires a mounted file system.
    pub(crate) const fn on(self, filesystem: &'static str) -> Self {
        Self { filesystem: Some(filesystem), ..self }
    }
}

impl Sources<'_> {
    /// Replaces the reason of an unknown fact with a more specific one.
    pub(crate) fn explain<T: Clone>(&self, fact: &Fact<T>, needs: &Needs) -> Fact<T> {
        let value = fact.value().cloned().map_err(|unknown| self.why(unknown, needs));
        Fact::of(value, fact.source())
    }

    /// A more specific reason than that a file does not exist, if there is one.
    ///
    /// An inaccessible directory may or may not contain the file: release and configuration are
    /// checked in this case, too.
    pub(crate) fn why(&self, unknown: &Unknown, needs: &Needs) -> Unknown {
        if !matches!(unknown.code, Why::Absent | Why::NeedsRoot) {
            return unknown.clone();
        }
        let is_absent = unknown.code == Why::Absent;
        let mounted = || is_absent.then(|| self.not_mounted(needs)).flatten();
        self.wrong_release(needs)
            .or_else(|| needs.options.iter().find_map(|option| self.not_built(option)))
            .or_else(mounted)
            .unwrap_or_else(|| unknown.clone())
    }

    /// The source of a fact that is determined by a kernel option.
    pub(crate) fn option_source(&self, option: &str) -> String {
        match &self.config {
            Ok(config) => format!("{} CONFIG_{option}", config.file()),
            Err(_) => format!("CONFIG_{option}"),
        }
    }

    fn wrong_release(&self, needs: &Needs) -> Option<Unknown> {
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

/// The reason, with the mount command, if no file system of this type is mounted. `None` if one
/// is mounted, or if the mounts are unknown.
pub fn unmounted(root: &Root, kind: &str) -> Option<Unknown> {
    let mounts = Mounts::read(root).ok()?;
    mounts.of_kind(kind).next().is_none().then(|| not_mounted(kind))
}

/// The reason that a file system is not mounted, with the mount command.
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

/// Whether a release is older than a version; compares all three numbers.
pub(crate) fn older(release: &Release, version: &str) -> bool {
    Release::parse(version).is_some_and(|version| release.numbers() < version.numbers())
}

/// Whether a release belongs to a later series than a version; compares two numbers.
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

    /// Check that release, configuration and mounts are checked in this order.
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

    /// Check that the reason includes versions, option and file system.
    #[test]
    fn texts_of_reasons() {
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

    /// Check that release and configuration are checked for a file in an inaccessible directory,
    /// and that lockdown remains the reason.
    #[test]
    fn inaccessible_directories() {
        let (set, unset) = ("CONFIG_FOO=y\n", "CONFIG_BAR=y\n");
        assert_eq!(why("5.10.0", set, "", Why::NeedsRoot).code, Why::NeedsRoot);
        assert_eq!(why("5.10.0", unset, "", Why::NeedsRoot).code, Why::NotConfigured);
        assert_eq!(why("6.6.0", set, "", Why::NeedsRoot).code, Why::TooNew);
        assert_eq!(why("6.6.0", set, "", Why::Lockdown).code, Why::Lockdown);
    }
}
