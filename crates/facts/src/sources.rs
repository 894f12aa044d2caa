//! Sources that several groups of facts use, which are read once.
//!
//! Also the parsers of files with one number, one word or one list of CPUs. Invalid contents are
//! reported with file, line and text.

use std::str::FromStr;

use units::CpuSet;

use crate::fact::{Fact, Unknown, Why};
use crate::format::command_line::{self, CommandLine};
use crate::format::config::{self, Config};
use crate::format::kernel_log::KernelLog;
use crate::format::release::Release;
use crate::tree::root::Root;

/// The file with the kernel's release.
pub(crate) const RELEASE: &str = "/proc/sys/kernel/osrelease";

/// The file that has it after `Linux version`.
const VERSION: &str = "/proc/version";

/// The sources that several groups of facts use.
pub(crate) struct Sources<'a> {
    /// The root of all files.
    pub(crate) root: &'a Root,
    /// `/proc/sys/kernel/osrelease`.
    pub(crate) release: Result<Release, Unknown>,
    /// The kernel's configuration, from any of its files.
    pub(crate) config: Result<Config, Unknown>,
    /// `/proc/cmdline`.
    pub(crate) command_line: Result<CommandLine, Unknown>,
    /// The kernel's messages since boot.
    pub(crate) log: Result<KernelLog, Unknown>,
}

impl<'a> Sources<'a> {
    /// Reads the sources.
    pub(crate) fn read(root: &'a Root) -> Self {
        let release = release(root);
        let known = release.as_ref().ok();
        let config = Config::find(root, known);
        let command_line =
            root.text(command_line::FILE).map(|text| CommandLine::parse(&text));
        let log = KernelLog::read(root, known);
        Self { root, release, config, command_line, log }
    }

    /// Whether the kernel's release is this version or a later one; `None` if it is unknown.
    pub(crate) fn at_least(&self, major: u32, minor: u32) -> Option<bool> {
        Some(self.release.as_ref().ok()?.at_least(major, minor))
    }

    /// Whether the kernel is built with an option; `None` if that is unknown.
    pub(crate) fn is_set(&self, option: &str) -> Option<bool> {
        Some(self.config.as_ref().ok()?.is_set(option))
    }

    /// Whether the kernel knows the boot parameter, according to its messages (since 5.15); `None`
    /// if they do not show it.
    pub(crate) fn knows(&self, parameter: &str) -> Option<bool> {
        let log = self.log.as_ref().ok().filter(|log| log.from_boot())?;
        if self.at_least(5, 15) != Some(true) || parameter.contains('.') {
            return None;
        }
        let (unknown, is_truncated) = log.unknown_parameters();
        match unknown.iter().any(|given| given.is(parameter)) {
            true => Some(false),
            false if is_truncated => None,
            false => Some(true),
        }
    }

    /// The file of the configuration, or the first one it could be in.
    pub(crate) fn config_file(&self) -> &str {
        self.config.as_ref().map_or(config::OWN, Config::file)
    }

    /// A file with one number.
    pub(crate) fn number<T: FromStr>(&self, path: &str) -> Fact<T> {
        Fact::of(self.root.parsed(path, "a number"), path)
    }

    /// A file with 0 or 1.
    pub(crate) fn boolean(&self, path: &str) -> Fact<bool> {
        let value =
            self.root.parsed(path, "0 or 1").and_then(|number: u8| match number {
                0 | 1 => Ok(number == 1),
                other => Err(Unknown::garbage(path, 1, &other.to_string(), "0 or 1")),
            });
        Fact::of(value, path)
    }

    /// A file with one line, without leading and trailing white space.
    pub(crate) fn word(&self, path: &str) -> Fact<String> {
        Fact::of(self.root.line(path), path)
    }

    /// A file with a list of CPUs.
    pub(crate) fn cpus(&self, path: &str) -> Fact<CpuSet> {
        Fact::of(self.root.parsed(path, "a list of CPUs"), path)
    }

    /// A file with a mask of CPUs.
    pub(crate) fn mask(&self, path: &str) -> Result<CpuSet, Unknown> {
        self.root.mask(path)
    }
}

/// From its own file, or from the longer one that reports of support tools have.
fn release(root: &Root) -> Result<Release, Unknown> {
    let text = match root.text(RELEASE) {
        Err(unknown) if unknown.code == Why::Absent => {
            let version = root.text(VERSION).ok();
            let release =
                version.as_ref().and_then(|text| text.split_whitespace().nth(2));
            release.map(str::to_owned).ok_or(unknown)?
        }
        found => found?,
    };
    let garbage = || Unknown::garbage(RELEASE, 1, &text, "a kernel's release");
    Release::parse(&text).ok_or_else(garbage)
}
