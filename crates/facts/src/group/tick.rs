//! The tick: its rate, and when it stops.
//!
//! `CONFIG_HZ` and `NO_HZ_*` from the kernel's configuration, changes by the command line (`nohz=`,
//! `highres=`, `divider=`), and the resulting `nohz_full` CPUs from `/sys/devices/system/cpu`.
//!
//! Whether the tick actually stops is not included: a CPU may have a dependency that prevents it.

use serde::{Deserialize, Serialize};
use units::{CpuSet, Hz};

use crate::absence::Needs;
use crate::fact::{Fact, Unknown, Why, group};
use crate::format::command_line;
use crate::format::config::Config;
use crate::parameters::divider::{self, Divider};
use crate::sources::Sources;

/// When the tick stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TickMode {
    /// Never.
    Periodic,
    /// On idle CPUs.
    Idle,
    /// On idle CPUs, and on the `nohz_full` CPUs with one task too.
    Full,
}

group! {
    /// The tick.
    "tick" Tick {
        /// `CONFIG_HZ`.
        hz: Hz,
        /// When the tick stops.
        mode: TickMode,
        /// The CPUs whose tick stops while a single task runs.
        nohz_full: CpuSet,
        /// RHEL 5's `divider=N`, if it is on the command line.
        divider: Option<Divider>,
        /// Whether high-resolution timers are used.
        high_res: bool,
        /// Whether timers of idle CPUs may migrate to busy ones (`timer_migration`).
        migration: bool,
    }
}

/// The kernel's list of `nohz_full` CPUs (since 4.2, with `NO_HZ_FULL`).
pub(crate) const NOHZ_FULL: &str = "/sys/devices/system/cpu/nohz_full";
const MIGRATION: &str = "/proc/sys/kernel/timer_migration";

impl Tick {
    pub(crate) fn read(sources: &Sources) -> Self {
        let hz = config_hz(sources);
        let nohz_full = nohz_full(sources);
        Self {
            mode: mode(sources, nohz_full.value()),
            nohz_full,
            divider: divider(sources, hz.get().copied()),
            high_res: high_res(sources),
            migration: migration(sources),
            hz,
        }
    }
}

fn config_hz(sources: &Sources) -> Fact<Hz> {
    let source = format!("{} CONFIG_HZ", sources.config_file());
    let read = |config: &Config| {
        let Some(text) = config.value("HZ") else {
            let text = format!("{} has no CONFIG_HZ", config.file());
            return Err(Unknown::new(Why::Absent, text));
        };
        let number = text.parse().ok().filter(|&hz| hz > 0);
        let text = format!("{}: CONFIG_HZ={text} is not a rate", config.file());
        number.map(Hz::new).ok_or_else(|| Unknown::new(Why::Garbage, text))
    };
    Fact::of(sources.config.as_ref().map_err(Clone::clone).and_then(read), source)
}

/// `CONFIG_HZ`, if it is known.
pub(crate) fn hz(sources: &Sources) -> Option<Hz> {
    config_hz(sources).get().copied()
}

/// The `nohz_full` CPUs. Without any, the file contains `(null)` until 6.18, and is empty since
/// 7.0.
pub(crate) fn nohz_full(sources: &Sources) -> Fact<CpuSet> {
    let read = sources.root.text(NOHZ_FULL).and_then(|text| match text.trim() {
        "(null)" => Ok(CpuSet::empty()),
        list => list
            .parse()
            .map_err(|_| Unknown::garbage(NOHZ_FULL, 1, list, "a list of CPUs")),
    });
    let needs = Needs::since("3.10").with(&["NO_HZ_FULL"]);
    Fact::of(read.map_err(|unknown| sources.why(&unknown, &needs)), NOHZ_FULL)
}

/// When the tick stops: by configuration, `nohz=` and the list of `nohz_full` CPUs.
fn mode(sources: &Sources, nohz_full: Result<&CpuSet, &Unknown>) -> Fact<TickMode> {
    let file = sources.config_file();
    let refused = sources.command_line.as_ref().is_ok_and(|line| {
        line.value("nohz").and_then(command_line::parse_bool) == Some(false)
    });
    if refused {
        return Fact::known(TickMode::Periodic, command_line::FILE);
    }
    if nohz_full.is_ok_and(|cpus| !cpus.is_empty()) {
        return Fact::known(TickMode::Full, NOHZ_FULL);
    }
    let config = match &sources.config {
        Ok(config) => config,
        Err(unknown) => return Fact::unknown(unknown.clone(), file),
    };
    let idle =
        ["NO_HZ_IDLE", "NO_HZ_FULL", "NO_HZ"].iter().any(|name| config.is_set(name));
    if config.is_set("HZ_PERIODIC") || !idle {
        return Fact::known(TickMode::Periodic, file);
    }
    let source = format!("{file}, {}", command_line::FILE);
    match (&sources.command_line, nohz_full) {
        (Err(unknown), _) => Fact::unknown(unknown.clone(), source),
        // With NO_HZ_FULL, but without the file with the resulting CPUs.
        (Ok(line), Err(unknown))
            if config.is_set("NO_HZ_FULL") && line.requests_nohz_full() =>
        {
            Fact::unknown(unknown.clone(), NOHZ_FULL)
        }
        _ => Fact::known(TickMode::Idle, source),
    }
}

fn divider(sources: &Sources, hz: Option<Hz>) -> Fact<Option<Divider>> {
    let read = sources.command_line.as_ref().map_err(Clone::clone).and_then(|line| {
        let Some(last) = line.last("divider") else { return Ok(None) };
        let release = sources.release.as_ref().map_err(Clone::clone)?;
        let requested = last.value.as_deref().unwrap_or("");
        Ok(Some(divider::divider(requested, release, hz)))
    });
    Fact::of(read, command_line::FILE)
}

fn high_res(sources: &Sources) -> Fact<bool> {
    let source = format!("{}, {}", sources.config_file(), command_line::FILE);
    let read = || {
        let config = sources.config.as_ref().map_err(Clone::clone)?;
        if !config.is_set("HIGH_RES_TIMERS") {
            return Ok(false);
        }
        let line = sources.command_line.as_ref().map_err(Clone::clone)?;
        Ok(line.value("highres").and_then(command_line::parse_bool) != Some(false))
    };
    Fact::of(read(), source)
}

fn migration(sources: &Sources) -> Fact<bool> {
    let fact = sources.boolean(MIGRATION);
    let is_absent = fact.value().is_err_and(|unknown| unknown.code == Why::Absent);
    let nohz = ["NO_HZ_COMMON", "NO_HZ"].map(|name| sources.is_set(name));
    if !is_absent || nohz != [Some(false); 2] {
        return fact;
    }
    let text = "the kernel is built without NO_HZ_COMMON: its timers do not migrate";
    Fact::unknown(Unknown::new(Why::NotConfigured, text), MIGRATION)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::tree;

    fn on(config: &str, line: &str, more: &[(&str, &str)]) -> Tick {
        let mut files = vec![
            ("/proc/sys/kernel/osrelease", "6.1.0"),
            ("/boot/config-6.1.0", config),
            ("/proc/cmdline", line),
        ];
        files.extend_from_slice(more);
        Tick::read(&tree(&files).sources())
    }

    /// Check the mode by configuration, command line and the resulting CPUs.
    #[test]
    fn modes() {
        let full = "CONFIG_NO_HZ_FULL=y\nCONFIG_NO_HZ_COMMON=y\n";
        let empty = (NOHZ_FULL, "(null)\n");
        let some = (NOHZ_FULL, "1-3\n");
        for (config, line, file, mode) in [
            ("CONFIG_HZ_PERIODIC=y\n", "", empty, TickMode::Periodic),
            ("CONFIG_HZ=100\n", "", empty, TickMode::Periodic),
            ("CONFIG_NO_HZ=y\n", "", empty, TickMode::Idle),
            ("CONFIG_NO_HZ_IDLE=y\n", "", empty, TickMode::Idle),
            ("CONFIG_NO_HZ_IDLE=y\n", "nohz=off", empty, TickMode::Periodic),
            ("CONFIG_NO_HZ_IDLE=y\n", "nohz=off nohz=on", empty, TickMode::Idle),
            (full, "", empty, TickMode::Idle),
            (full, "", (NOHZ_FULL, "  (null)\n"), TickMode::Idle),
            (full, "nohz_full=1-3", some, TickMode::Full),
            (full, "nohz_full=1-3 nohz=0", some, TickMode::Periodic),
        ] {
            let tick = on(config, line, &[file]);
            assert_eq!(tick.mode.get(), Some(&mode), "{config:?} {line:?} {file:?}");
        }
    }

    /// Check that the mode is unknown if the list of `nohz_full` CPUs cannot be read.
    #[test]
    fn mode_without_evidence() {
        let full = "CONFIG_NO_HZ_FULL=y\n";
        for line in ["nohz_full=1", "isolcpus=nohz,domain,1"] {
            assert!(on(full, line, &[]).mode.get().is_none(), "{line}");
        }
        assert_eq!(on(full, "isolcpus=1", &[]).mode.get(), Some(&TickMode::Idle));
        let nothing = tree(&[("/proc/sys/kernel/osrelease", "6.1.0")]);
        assert!(Tick::read(&nothing.sources()).mode.get().is_none());
    }

    /// Check that an invalid rate is `Garbage`, and a missing one `Absent`.
    #[test]
    fn rates() {
        let code = |config| on(config, "", &[]).hz.value().map_err(|u| u.code).copied();
        assert_eq!(code("CONFIG_HZ=300\n"), Ok(Hz::new(300)));
        assert_eq!(code("CONFIG_HZ=y\n"), Err(Why::Garbage));
        assert_eq!(code("CONFIG_HZ=0\n"), Err(Why::Garbage));
        assert_eq!(code("CONFIG_X86=y\n"), Err(Why::Absent));
    }

    /// Check that high-resolution timers can be disabled at boot.
    #[test]
    fn resolution() {
        let config = "CONFIG_HIGH_RES_TIMERS=y\n";
        assert_eq!(on(config, "", &[]).high_res.get(), Some(&true));
        assert_eq!(on(config, "highres=off", &[]).high_res.get(), Some(&false));
        assert_eq!(on("CONFIG_HZ=250\n", "", &[]).high_res.get(), Some(&false));
    }

    /// Check that without the command line, the divider is unknown and not `None`.
    #[test]
    fn divider_without_a_command_line() {
        let tree = tree(&[("/proc/sys/kernel/osrelease", "2.6.18-308.el5")]);
        assert!(Tick::read(&tree.sources()).divider.value().is_err());
        assert_eq!(on("CONFIG_HZ=250\n", "quiet", &[]).divider.get(), Some(&None));
    }
}
