//! What several groups of facts are worked out from: read once, handed to each.
//!
//! Also the readers of the small files most facts are: one number, one word, one list of
//! CPUs. What such a file holds instead is garbage, and named with file, line and text.

use std::str::FromStr;

use units::CpuSet;

use crate::fact::{Fact, Unknown};
use crate::format::command_line::{self, CommandLine};
use crate::format::config::{self, Config};
use crate::format::kernel_log::KernelLog;
use crate::format::release::Release;
use crate::tree::root::Root;

/// Where the kernel says its release.
pub(crate) const RELEASE: &str = "/proc/sys/kernel/osrelease";

/// What several groups of facts are worked out from.
pub(crate) struct Sources<'a> {
    /// Where everything else is read.
    pub(crate) root: &'a Root,
    /// `/proc/sys/kernel/osrelease`.
    pub(crate) release: Result<Release, Unknown>,
    /// The kernel's configuration, wherever it was found.
    pub(crate) config: Result<Config, Unknown>,
    /// `/proc/cmdline`.
    pub(crate) command_line: Result<CommandLine, Unknown>,
    /// The kernel's messages since boot.
    pub(crate) log: Result<KernelLog, Unknown>,
}

impl<'a> Sources<'a> {
    /// Reads what is shared.
    pub(crate) fn read(root: &'a Root) -> Self {
        let release = release(root);
        let known = release.as_ref().ok();
        let config = Config::find(root, known);
        let command_line =
            root.text(command_line::FILE).map(|text| CommandLine::parse(&text));
        let log = KernelLog::read(root, known);
        Self { root, release, config, command_line, log }
    }

    /// Whether the kernel is of that version or a later one, by its own word; `None`
    /// where its release is not known.
    pub(crate) fn at_least(&self, major: u32, minor: u32) -> Option<bool> {
        Some(self.release.as_ref().ok()?.at_least(major, minor))
    }

    /// Whether the kernel was built with an option; `None` where that is not known.
    pub(crate) fn is_set(&self, option: &str) -> Option<bool> {
        Some(self.config.as_ref().ok()?.is_set(option))
    }

    /// Whether the kernel knows the boot parameter, by its own messages (since 5.15);
    /// `None` where they do not say.
    pub(crate) fn knows(&self, parameter: &str) -> Option<bool> {
        let log = self.log.as_ref().ok().filter(|log| log.from_boot())?;
        if self.at_least(5, 15) != Some(true) || parameter.contains('.') {
            return None;
        }
        let (disowned, cut_off) = log.disowned();
        match disowned.iter().any(|given| given.is(parameter)) {
            true => Some(false),
            false if cut_off => None,
            false => Some(true),
        }
    }

    /// The file the configuration was found in, or the first it would be in.
    pub(crate) fn config_file(&self) -> &str {
        self.config.as_ref().map_or(config::OWN, Config::file)
    }

    /// The file's only number.
    pub(crate) fn number<T: FromStr>(&self, path: &str) -> Fact<T> {
        Fact::of(self.root.parsed(path, "a number"), path)
    }

    /// The file's only line, without white space around it.
    pub(crate) fn word(&self, path: &str) -> Fact<String> {
        Fact::of(self.root.line(path), path)
    }

    /// The file's list of CPUs.
    pub(crate) fn cpus(&self, path: &str) -> Fact<CpuSet> {
        Fact::of(self.root.parsed(path, "a list of CPUs"), path)
    }

    /// The file's mask of CPUs.
    pub(crate) fn mask(&self, path: &str) -> Result<CpuSet, Unknown> {
        let text = self.root.text(path)?;
        let garbage = |_| Unknown::garbage(path, 1, &text, "a mask of CPUs");
        CpuSet::from_mask(&text).map_err(garbage)
    }
}

fn release(root: &Root) -> Result<Release, Unknown> {
    let text = root.text(RELEASE)?;
    let garbage = || Unknown::garbage(RELEASE, 1, &text, "a kernel's release");
    Release::parse(&text).ok_or_else(garbage)
}
