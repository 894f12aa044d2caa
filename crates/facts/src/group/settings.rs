//! The values of settings that advice is about: files that can be written at run time, the files that set them
//! at boot, options of the kernel's configuration, and services that change settings or cause noise.
//!
//! `setting_names` has their names. Of a file with a choice (`always [madvise] never`), the value is what is
//! chosen. Services are those of systemd: a service that runs has a cgroup of its name. What other files say
//! in detail is in the other groups.

use std::collections::BTreeMap;

use crate::fact::{Fact, Unknown, Why, group};
use crate::group::setting_files::{FileSetting, active_profile, add_profiles, sysctls};
use crate::group::setting_names::{FILES, OPTIONS, REMOVED, SERVICES, SYSCTLS};
use crate::sources::Sources;

/// Every kernel has it: a tree without it has no settings but those that other facts are read from.
const ALWAYS: &str = "vm.swappiness";
/// Where a report of sos has the values of all sysctls.
const PRINTED: &str = "/sos_commands/kernel/sysctl_-a";
/// Where files set them.
const CONFIGURED: &str = "/etc/sysctl.d, /etc/sysctl.conf, /etc/tuned";
/// Where the files of sysctls are.
const SYSCTL: &str = "/proc/sys";
/// The cgroups of systemd's services: of v2, of the hybrid layout, and of v1.
const SLICES: [&str; 3] = [
    "/sys/fs/cgroup/system.slice",
    "/sys/fs/cgroup/unified/system.slice",
    "/sys/fs/cgroup/systemd/system.slice",
];

group! {
    /// Settings by name.
    "settings" Settings {
        /// The values of sysctls by their dotted names, and of files by their paths, as far as they exist.
        values: BTreeMap<String, String>,
        /// Those that could not be read, or of which the tree does not say whether they exist.
        unread: Vec<String>,
        /// Options of the kernel's configuration, without `CONFIG_`; `n` if one is not set.
        options: BTreeMap<String, String>,
        /// The services that run.
        services: Vec<String>,
        /// Settings that files set at boot, with the last file: of sysctls, and of the active profile of tuned if it
        /// runs. Also sysctls that this kernel does not have any more.
        configured: BTreeMap<String, FileSetting>,
        /// The active profile of tuned; null if it has none.
        tuned_profile: Option<String>,
    }
}

impl Settings {
    pub(crate) fn read(sources: &Sources) -> Self {
        let (mut values, mut unread, mut absent) =
            (BTreeMap::new(), Vec::new(), Vec::new());
        let printed = printed_sysctls(sources);
        for (name, path) in names() {
            let line = sources.root.line(&path);
            match line.or_else(|why| printed.get(&name).cloned().ok_or(why)) {
                Ok(line) => drop(values.insert(name, chosen(&line).to_owned())),
                Err(unknown) if unknown.code == Why::Absent => absent.push(name),
                Err(_) => unread.push(name),
            }
        }
        if !values.contains_key(ALWAYS) {
            unread.append(&mut absent);
        }
        let source = format!("{SYSCTL}, /sys");
        let services = services(sources);
        let tuned_profile = active_profile(sources.root);
        let runs = |list: &Vec<String>| list.iter().any(|service| service == "tuned");
        let profile = tuned_profile.as_ref().ok().and_then(Option::as_deref);
        let profile = profile.filter(|_| services.get().is_none_or(runs));
        Self {
            values: Fact::known(values, source.as_str()),
            unread: Fact::known(unread, source),
            options: Fact::of(options(sources), sources.config_file()),
            services,
            configured: Fact::of(configured(sources, profile), CONFIGURED),
            tuned_profile: Fact::of(tuned_profile, "/etc/tuned/active_profile"),
        }
    }
}

/// The values of known settings in files.
fn configured(
    sources: &Sources,
    profile: Option<&str>,
) -> Result<BTreeMap<String, FileSetting>, Unknown> {
    let mut values = sysctls(sources.root)?;
    if let Some(profile) = profile {
        add_profiles(sources.root, profile, &mut values);
    }
    let known = [SYSCTLS, FILES, REMOVED];
    values.retain(|name, _| known.iter().any(|names| names.contains(&name.as_str())));
    Ok(values)
}

/// The output of `sysctl -a`, if the tree is a report of sos.
fn printed_sysctls(sources: &Sources) -> BTreeMap<String, String> {
    if sources.root.is_live() {
        return BTreeMap::new();
    }
    let text = sources.root.text(PRINTED).unwrap_or_default();
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    pairs.map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned())).collect()
}

/// The name of each setting, and its file.
fn names() -> impl Iterator<Item = (String, String)> {
    let sysctl = |name: &&str| ((*name).to_owned(), path_of_sysctl(name));
    let file = |path: &&str| ((*path).to_owned(), (*path).to_owned());
    SYSCTLS.iter().map(sysctl).chain(FILES.iter().map(file))
}

/// The file of a sysctl.
fn path_of_sysctl(name: &str) -> String {
    format!("{SYSCTL}/{}", name.replace('.', "/"))
}

/// The word in brackets of a list of choices, else the whole line.
fn chosen(line: &str) -> &str {
    let rest = line.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    rest.map_or(line, |(word, _)| word)
}

fn options(sources: &Sources) -> Result<BTreeMap<String, String>, Unknown> {
    let config = sources.config.as_ref().map_err(Clone::clone)?;
    let value =
        |name: &&str| ((*name).to_owned(), config.value(name).unwrap_or("n").to_owned());
    Ok(OPTIONS.iter().map(value).collect())
}

/// A service that runs has a cgroup with processes. Files are read, so that recorded trees have them.
fn services(sources: &Sources) -> Fact<Vec<String>> {
    let Some(slice) = SLICES.into_iter().find(|slice| sources.root.list(slice).is_ok())
    else {
        let text = "systemd has no cgroups of services here";
        return Fact::unknown(Unknown::new(Why::NotApplicable, text), SLICES[0]);
    };
    let runs = |name: &&&str| {
        let file = format!("{slice}/{name}.service/cgroup.procs");
        sources.root.text(&file).is_ok()
    };
    Fact::known(
        SERVICES.iter().filter(runs).map(|name| (*name).to_owned()).collect(),
        slice,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::{tree, tree_refusing};

    /// Check sysctls, a choice, an option that is not set, and services.
    #[test]
    fn values() {
        let tree = tree(&[
            ("/proc/sys/kernel/osrelease", "6.12.0\n"),
            ("/boot/config-6.12.0", "CONFIG_NO_HZ_FULL=y\n"),
            ("/proc/sys/vm/swappiness", "60\n"),
            ("/proc/sys/kernel/numa_balancing", "1\n"),
            ("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
            ("/sys/fs/cgroup/system.slice/irqbalance.service/cgroup.procs", ""),
            ("/sys/fs/cgroup/system.slice/other.service/cgroup.procs", ""),
        ]);
        let settings = Settings::read(&tree.sources());
        let values = settings.values.get().unwrap();
        assert_eq!(values["kernel.numa_balancing"], "1");
        assert_eq!(values["/sys/kernel/mm/transparent_hugepage/enabled"], "madvise");
        assert_eq!(values.len(), 3);
        assert!(settings.unread.get().unwrap().is_empty());
        let options = settings.options.get().unwrap();
        assert_eq!((&*options["NO_HZ_FULL"], &*options["PREEMPT_RT"]), ("y", "n"));
        assert_eq!(settings.services.get().unwrap(), &["irqbalance"]);
    }

    /// Check that files have known settings only, and that a profile counts if tuned runs.
    #[test]
    fn configured_values() {
        let profile =
            ("/etc/tuned/a/tuned.conf", "[sysctl]\nkernel.sched_latency_ns=1\n");
        let of = |service: &str| {
            let unit =
                format!("/sys/fs/cgroup/system.slice/{service}.service/cgroup.procs");
            let tree = tree(&[
                ("/etc/sysctl.d/a.conf", "vm.swappiness=10\nvm.other=1\n"),
                ("/etc/tuned/active_profile", "a\n"),
                profile,
                (&unit, "1\n"),
            ]);
            let settings = Settings::read(&tree.sources());
            assert_eq!(settings.tuned_profile.get().unwrap().as_deref(), Some("a"));
            let names = settings.configured.get().unwrap().keys().cloned();
            names.collect::<Vec<_>>()
        };
        assert_eq!(of("tuned"), ["kernel.sched_latency_ns", "vm.swappiness"]);
        assert_eq!(of("irqbalance"), ["vm.swappiness"]);
    }

    /// Check that a report of sos has the kernel's release and the sysctls, though not as files of their own.
    #[test]
    fn report_of_sos() {
        let tree = tree(&[
            (
                "/proc/version",
                "Linux version 5.14.0-503.11.1.el9_5.x86_64 (a@b) #1 SMP\n",
            ),
            (PRINTED, "kernel.numa_balancing = 1\nvm.swappiness = 60\nnet.a.b = x\n"),
        ]);
        let sources = tree.sources();
        assert!(sources.at_least(5, 14).unwrap() && !sources.at_least(5, 15).unwrap());
        let settings = Settings::read(&sources);
        assert_eq!(settings.values.get().unwrap()["kernel.numa_balancing"], "1");
        assert!(settings.unread.get().unwrap().is_empty());
    }

    /// Check that a file that cannot be read is no file that does not exist, and that of a tree without settings
    /// nothing is known.
    #[test]
    fn unknown_values() {
        let (file, always) =
            ("/proc/sys/kernel/numa_balancing", "/proc/sys/vm/swappiness");
        let refused = tree_refusing(&[(always, "60\n")], &[(file, Why::NeedsRoot)]);
        let settings = Settings::read(&refused.sources());
        assert_eq!(settings.unread.get().unwrap(), &["kernel.numa_balancing"]);
        let settings = Settings::read(&tree(&[]).sources());
        assert_eq!(settings.unread.get().unwrap().len(), SYSCTLS.len() + FILES.len());
        assert_eq!(settings.services.value().unwrap_err().code, Why::NotApplicable);
        assert!(settings.options.get().is_none());
    }
}
