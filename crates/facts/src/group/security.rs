//! The privileges of this process, lockdown, and mitigations of the processor's vulnerabilities.
//!
//! Lockdown from `/sys/kernel/security/lockdown` (since 5.4, securityfs), or else from the kernel's
//! messages and configuration; the user and the effective capabilities from `/proc/self/status`.
//! Further restrictions by a container (seccomp) are not included.
//!
//! Mitigations from `/sys/devices/system/cpu/vulnerabilities` (since 4.15, and in later releases of
//! older kernels; `Documentation/ABI/testing/sysfs-devices-system-cpu`), one file for each
//! vulnerability that the kernel knows. Vulnerabilities that are newer than the kernel are not
//! included, and in guests the hypervisor may hide what the processor has.

use std::collections::BTreeMap;

use crate::absence::Needs;
use crate::fact::{Fact, Unknown, Why, group};
use crate::format::kernel_log;
use crate::sources::Sources;

const LOCKDOWN: &str = "/sys/kernel/security/lockdown";
const STATUS: &str = "/proc/self/status";
const VULNERABILITIES: &str = "/sys/devices/system/cpu/vulnerabilities";
const LOCKDOWN_LSM: &str = "SECURITY_LOCKDOWN_LSM";
const FORCE_INTEGRITY: &str = "LOCK_DOWN_KERNEL_FORCE_INTEGRITY";

/// The capabilities that affect measurements, with their bits (`include/uapi/linux/capability.h`;
/// the last two since 5.8, before that `sys_admin`).
const CAPABILITIES: [(u32, &str); 13] = [
    (1, "dac_override"),
    (2, "dac_read_search"),
    (12, "net_admin"),
    (14, "ipc_lock"),
    (16, "sys_module"),
    (17, "sys_rawio"),
    (19, "sys_ptrace"),
    (21, "sys_admin"),
    (23, "sys_nice"),
    (24, "sys_resource"),
    (34, "syslog"),
    (38, "perfmon"),
    (39, "bpf"),
];

group! {
    /// The privileges of this process.
    "security" Security {
        /// `none`, `integrity`, `confidentiality`.
        lockdown: String,
        /// The effective user ID.
        uid: u32,
        /// The effective capabilities, of those that affect measurements (`sys_nice`, `bpf`, ...).
        capabilities: Vec<String>,
        /// The mitigations in force, by vulnerability: `Not affected`, `Vulnerable: ...`,
        /// `Mitigation: ...`.
        mitigations: BTreeMap<String, String>,
    }
}

impl Security {
    pub(crate) fn read(sources: &Sources) -> Self {
        Self {
            lockdown: lockdown(sources),
            uid: Fact::of(status(sources, "Uid:", effective_user), STATUS),
            capabilities: Fact::of(status(sources, "CapEff:", capabilities), STATUS),
            mitigations: Fact::of(mitigations(sources), VULNERABILITIES),
        }
    }
}

/// The lockdown level, from the best available source.
pub(crate) fn lockdown(sources: &Sources) -> Fact<String> {
    let unknown = match sources.root.text(LOCKDOWN).and_then(|text| marked(&text)) {
        Ok(level) => return Fact::known(level, LOCKDOWN),
        Err(unknown) => unknown,
    };
    if let Some(level) = built_in(sources) {
        return level;
    }
    if let Some(fact) = from_log(sources).or_else(|| from_configuration(sources)) {
        return fact;
    }
    let needs = Needs::since("5.4").on("securityfs");
    Fact::of(Err(sources.why(&unknown, &needs)), LOCKDOWN)
}

/// The level in brackets: `none [integrity] confidentiality`.
fn marked(text: &str) -> Result<String, Unknown> {
    let level = text
        .split_whitespace()
        .find_map(|word| word.strip_prefix('[').and_then(|word| word.strip_suffix(']')));
    let garbage = || Unknown::garbage(LOCKDOWN, 1, text, "levels with one in brackets");
    Ok(level.ok_or_else(garbage)?.to_owned())
}

/// The level if the configuration determines it: no lockdown, or the highest level. Other levels
/// can be raised at boot.
fn built_in(sources: &Sources) -> Option<Fact<String>> {
    let config = sources.config.as_ref().ok()?;
    let decided = |level: &str, option| {
        Some(Fact::known(level.to_owned(), sources.option_source(option)))
    };
    let highest = "LOCK_DOWN_KERNEL_FORCE_CONFIDENTIALITY";
    if config.is_set(highest) {
        return decided("confidentiality", highest);
    }
    // Before 5.4, lockdown was a patch of distributions with other options.
    let can_be = config.is_set(LOCKDOWN_LSM) || sources.at_least(5, 4) != Some(true);
    if can_be { None } else { decided("none", LOCKDOWN_LSM) }
}

/// The level from the kernel's messages. These have the source of the lockdown, but not the level,
/// which has to be determined from that source. The command line can only raise the level.
fn from_log(sources: &Sources) -> Option<Fact<String>> {
    let log = sources.log.as_ref().ok()?;
    let Some(message) = log.find("Kernel is locked down from ") else {
        let whole = log.from_boot() && sources.at_least(5, 4) == Some(true);
        return whole.then(|| Fact::known("none".to_owned(), kernel_log::FILE));
    };
    let by = |who: &str| log.find(&format!("Kernel is locked down from {who}")).is_some();
    let level = if by("command line") {
        requested(sources)
    } else if by("Kernel configuration") && forced(sources) {
        Some("integrity")
    } else {
        None
    };
    let text = || format!("the kernel logged '{message}', without the level");
    let level = level.ok_or_else(|| Unknown::new(Why::NotMounted, text()));
    Some(Fact::of(level.map(str::to_owned), kernel_log::FILE))
}

/// The level from configuration and command line, if the messages cannot be read. A level that root
/// has raised later is not detected; this is rare.
fn from_configuration(sources: &Sources) -> Option<Fact<String>> {
    sources.command_line.as_ref().ok()?;
    let level = match requested(sources) {
        Some("confidentiality") => return None,
        _ => forced(sources).then_some("integrity")?,
    };
    Some(Fact::known(level.to_owned(), sources.option_source(FORCE_INTEGRITY)))
}

/// The level on the command line.
fn requested<'a>(sources: &'a Sources) -> Option<&'a str> {
    let level = sources.command_line.as_ref().ok()?.value("lockdown")?;
    ["integrity", "confidentiality"].contains(&level).then_some(level)
}

fn forced(sources: &Sources) -> bool {
    sources.is_set(FORCE_INTEGRITY) == Some(true)
}

/// The value of a line of `/proc/self/status`.
fn status<T>(
    sources: &Sources,
    name: &str,
    read: impl Fn(&str) -> Option<T>,
) -> Result<T, Unknown> {
    let text = sources.root.text(STATUS)?;
    let mut lines = text.lines().enumerate();
    let found = lines.find_map(|(number, line)| Some((number, line.strip_prefix(name)?)));
    let Some((number, value)) = found else {
        return Err(Unknown::new(Why::Absent, format!("{STATUS} has no line '{name}'")));
    };
    let garbage = || Unknown::garbage(STATUS, number + 1, value.trim(), "a valid value");
    read(value).ok_or_else(garbage)
}

/// The second of the real, effective, saved and file system user ID.
fn effective_user(value: &str) -> Option<u32> {
    value.split_whitespace().nth(1)?.parse().ok()
}

fn capabilities(value: &str) -> Option<Vec<String>> {
    let mask = u64::from_str_radix(value.trim(), 16).ok()?;
    let held = CAPABILITIES.iter().filter(|(bit, _)| (mask >> bit) & 1 == 1);
    Some(held.map(|&(_, name)| name.to_owned()).collect())
}

fn mitigations(sources: &Sources) -> Result<BTreeMap<String, String>, Unknown> {
    let names = sources
        .root
        .list(VULNERABILITIES)
        .map_err(|unknown| without_vulnerabilities(sources, unknown))?;
    let files = names.into_iter().map(|name| {
        let text = sources.root.line(&format!("{VULNERABILITIES}/{name}"))?;
        Ok((name, text))
    });
    files.collect()
}

/// Why there are no files: with this option, each kernel has them, so a tree without them is older
/// than this fact.
fn without_vulnerabilities(sources: &Sources, unknown: Unknown) -> Unknown {
    const OPTION: &str = "GENERIC_CPU_VULNERABILITIES";
    let is_old_tree = !sources.root.is_live() && sources.is_set(OPTION) == Some(true);
    if unknown.code == Why::Absent && is_old_tree {
        let text = format!("the recorded tree has no {VULNERABILITIES}");
        return Unknown::new(Why::NotRecorded, text);
    }
    sources.why(&unknown, &Needs::since("4.15").with(&[OPTION]).on("sysfs"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::tree;

    const RELEASE: (&str, &str) = ("/proc/sys/kernel/osrelease", "6.18.44");
    const CONFIG: &str = "/boot/config-6.18.44";
    const FORCED: &str =
        "CONFIG_SECURITY_LOCKDOWN_LSM=y\nCONFIG_LOCK_DOWN_KERNEL_FORCE_INTEGRITY=y\n";
    const LSM: &str = "CONFIG_SECURITY_LOCKDOWN_LSM=y\n";

    fn lockdown_of(files: &[(&str, &str)]) -> Fact<String> {
        let files: Vec<_> = [RELEASE].iter().chain(files).copied().collect();
        Security::read(&tree(&files).sources()).lockdown
    }

    fn locked_from(who: &str) -> String {
        format!("5,0,0,-;Kernel is locked down from {who}; see man kernel_lockdown.7\n")
    }

    /// Check that the file takes precedence.
    #[test]
    fn lockdown_from_the_file() {
        let levels = "none [integrity] confidentiality\n";
        let fact = lockdown_of(&[(LOCKDOWN, levels), (CONFIG, "CONFIG_HZ=250\n")]);
        assert_eq!(fact, Fact::known("integrity".to_owned(), LOCKDOWN));
        let garbage = lockdown_of(&[(LOCKDOWN, "none integrity\n")]);
        assert_eq!(garbage.value().unwrap_err().code, Why::Garbage);
    }

    /// Check that without the file, the level is determined from the source in the message.
    #[test]
    fn lockdown_from_messages() {
        let level = |who: &str, config: &str, line: &str| {
            let messages = locked_from(who);
            let files = [
                ("/dev/kmsg", messages.as_str()),
                (CONFIG, config),
                ("/proc/cmdline", line),
            ];
            lockdown_of(&files).get().cloned()
        };
        let known = |level: &str| Some(level.to_owned());
        assert_eq!(level("Kernel configuration", FORCED, ""), known("integrity"));
        let requested = level("command line", LSM, "lockdown=confidentiality");
        assert_eq!(requested, known("confidentiality"));
        assert_eq!(level("EFI Secure Boot mode", LSM, ""), None);
        assert_eq!(level("EFI Secure Boot mode", LSM, "lockdown=integrity"), None);
        assert_eq!(level("command line", LSM, ""), None);
    }

    /// Check that a missing message means no lockdown only if the log is complete.
    #[test]
    fn lockdown_not_mentioned() {
        let level = |messages| lockdown_of(&[("/dev/kmsg", messages), (CONFIG, LSM)]);
        let whole = level("5,0,0,-;Linux version 6.18\n");
        assert_eq!(whole, Fact::known("none".to_owned(), "/dev/kmsg"));
        assert!(level("5,80,0,-;eth0: link up\n").get().is_none());
    }

    /// Check that a kernel without lockdown has none, and that older kernels are unknown.
    #[test]
    fn lockdown_not_built() {
        let fact = lockdown_of(&[(CONFIG, "CONFIG_HZ=250\n")]);
        assert_eq!(fact.get().unwrap(), "none");
        let old = tree(&[("/proc/sys/kernel/osrelease", "4.19.0")]);
        let fact = Security::read(&old.sources()).lockdown;
        assert_eq!(fact.value().unwrap_err().code, Why::TooOld);
        let mounts = ("/proc/self/mounts", "proc /proc proc rw 0 0\n");
        let fact = lockdown_of(&[(CONFIG, LSM), mounts]);
        assert_eq!(fact.value().unwrap_err().code, Why::NotMounted);
    }

    /// Check that configuration and command line are used if the messages cannot be read, unless
    /// the command line requests more than the configuration forces.
    #[test]
    fn lockdown_without_messages() {
        let level = |line| {
            let files = [(CONFIG, FORCED), ("/proc/cmdline", line)];
            lockdown_of(&files).get().cloned()
        };
        assert_eq!(level("quiet"), Some("integrity".to_owned()));
        assert_eq!(level("lockdown=confidentiality"), None);
        assert_eq!(lockdown_of(&[(CONFIG, FORCED)]).get(), None);
    }

    /// Check that the command line's level overrides the forced one.
    #[test]
    fn lockdown_raised() {
        let messages = locked_from("Kernel configuration") + &locked_from("command line");
        let line = ("/proc/cmdline", "lockdown=confidentiality");
        let fact = lockdown_of(&[("/dev/kmsg", &messages), (CONFIG, FORCED), line]);
        assert_eq!(fact.get().unwrap(), "confidentiality");
    }

    /// Check the mitigations, and the reasons if there are none.
    #[test]
    fn mitigations() {
        let file = |name: &str| format!("{VULNERABILITIES}/{name}");
        let [l1tf, mds] = ["l1tf", "mds"].map(file);
        let files = [
            (mds.as_str(), "Not affected\n"),
            (&l1tf, "Mitigation: PTE Inversion; VMX: vulnerable\n"),
        ];
        let read =
            |files: &[(&str, &str)]| Security::read(&tree(files).sources()).mitigations;
        let found = read(&files);
        let found: Vec<_> = found.get().unwrap().iter().collect();
        let expected = [
            ("l1tf", "Mitigation: PTE Inversion; VMX: vulnerable"),
            ("mds", "Not affected"),
        ];
        let expected = expected.map(|(name, text)| (name.to_owned(), text.to_owned()));
        assert_eq!(found, expected.each_ref().map(|(name, text)| (name, text)));
        let why = |files: &[(&str, &str)]| read(files).value().unwrap_err().code;
        assert_eq!(why(&[("/proc/sys/kernel/osrelease", "4.14.5")]), Why::TooOld);
        assert_eq!(why(&[RELEASE, (CONFIG, LSM)]), Why::NotConfigured);
        let set = "CONFIG_GENERIC_CPU_VULNERABILITIES=y\n";
        assert_eq!(why(&[RELEASE, (CONFIG, set)]), Why::NotRecorded);
        assert_eq!(why(&[(&mds, "\n")]), Why::Absent);
        assert_eq!(why(&[(&mds, "a\nb\n")]), Why::Garbage);
    }

    /// Check the user ID and the capabilities, of which one is missing.
    #[test]
    fn user_and_capabilities() {
        let read = |text: &str| {
            let tree = tree(&[(STATUS, text)]);
            Security::read(&tree.sources())
        };
        let nobody = read("Uid:\t0\t65534\t0\t0\nCapEff:\t0000000000000000\n");
        assert_eq!(nobody.uid.get(), Some(&65534));
        assert_eq!(nobody.capabilities.get(), Some(&Vec::new()));
        let here = read("CapEff:\t000001fffeffffff\n");
        let held = here.capabilities.get().unwrap();
        let missing: Vec<&str> = CAPABILITIES
            .iter()
            .map(|&(_, name)| name)
            .filter(|name| !held.iter().any(|other| other == name))
            .collect();
        assert_eq!(missing, ["sys_resource"]);
        assert_eq!(here.uid.value().unwrap_err().code, Why::Absent);
        let garbage = read("Uid:\tme\nCapEff:\txyz\n");
        assert_eq!(garbage.uid.value().unwrap_err().code, Why::Garbage);
        assert_eq!(garbage.capabilities.value().unwrap_err().code, Why::Garbage);
    }
}
