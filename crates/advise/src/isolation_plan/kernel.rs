//! What a kernel can do for isolated CPUs, by its version, configuration and current settings.

use facts::{Facts, Why};
use units::CpuSet;

use crate::rule::kernels::{self, Version};

/// A kernel, and the CPUs that are to be isolated.
pub(crate) struct Kernel<'a> {
    pub(crate) facts: &'a Facts,
    version: Version,
    /// All isolated CPUs.
    pub(crate) cpus: CpuSet,
    /// The others.
    pub(crate) rest: CpuSet,
}

impl<'a> Kernel<'a> {
    pub(crate) fn new(facts: &'a Facts, cpus: CpuSet, rest: CpuSet) -> Self {
        let release = facts.kernel.release.get();
        let version = release.and_then(|release| kernels::version(release));
        // What no version is known of can do nothing that came later.
        Self { facts, version: version.unwrap_or_default(), cpus, rest }
    }

    pub(crate) fn since(&self, major: u32, minor: u32) -> bool {
        self.version >= (major, minor, 0)
    }

    /// Whether the kernel has an option; `None` if that is unknown.
    pub(crate) fn has(&self, option: &str) -> Option<bool> {
        let options = self.facts.settings.options.get()?;
        Some(options.get(option)? == "y")
    }

    /// Whether it can stop the tick of busy CPUs.
    pub(crate) fn has_nohz_full(&self) -> Option<bool> {
        match self.facts.tick.nohz_full.value() {
            Ok(_) => Some(true),
            Err(unknown) if matches!(unknown.code, Why::NotConfigured | Why::TooOld) => {
                Some(false)
            }
            Err(_) => self.has("NO_HZ_FULL"),
        }
    }

    pub(crate) fn stops_tick(&self) -> bool {
        self.has_nohz_full() == Some(true)
    }

    pub(crate) fn has_isolcpus(&self) -> bool {
        self.facts.cpus.isolcpus.get() == Some(&true)
    }

    pub(crate) fn can_partition(&self) -> bool {
        self.facts.can_partition()
    }

    /// The current value of a sysctl or a file.
    pub(crate) fn setting(&self, name: &str) -> Option<&str> {
        self.facts.settings.values.get()?.get(name).map(String::as_str)
    }

    /// Whether a service runs.
    pub(crate) fn runs(&self, service: &str) -> bool {
        let services = self.facts.settings.services.get().into_iter().flatten();
        services.into_iter().any(|other| other == service)
    }

    /// The value of a boot parameter of the running kernel; the last one of several counts.
    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.facts.boot.given(name)?.last().copied()
    }
}
