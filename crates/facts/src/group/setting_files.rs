//! Settings in files that are applied at boot: of sysctls, and of the active profile of tuned.
//!
//! `sysctl.d(5)`: files are applied in the order of their names, whatever their directory is, and of two with one name
//! the one in the first directory only. `tuned.conf(5)`: a profile can include others; profiles are below `profiles`
//! since tuned 2.24. Whether the values are in force is another question: a file may not exist on this kernel, and what
//! was applied may have been changed since.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::fact::{Unknown, Why};
use crate::tree::root::Root;

/// Where sysctls are set, the first directory with a name first.
const FOLDERS: [&str; 5] = [
    "/etc/sysctl.d",
    "/run/sysctl.d",
    "/usr/local/lib/sysctl.d",
    "/usr/lib/sysctl.d",
    "/lib/sysctl.d",
];
/// `sysctl(8)` reads it after them.
const LAST: &str = "/etc/sysctl.conf";
/// Profiles of tuned: its own ones last.
const PROFILES: [&str; 4] =
    ["/etc/tuned/profiles", "/etc/tuned", "/usr/lib/tuned/profiles", "/usr/lib/tuned"];
/// The names of the active ones.
const ACTIVE: &str = "/etc/tuned/active_profile";
/// More profiles than this are a circle of includes.
const PROFILES_MAX: usize = 16;

/// A value that a file sets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSetting {
    /// The value, as in the file.
    pub value: String,
    /// The file that sets it last.
    pub file: String,
}

/// Values by the dotted names of sysctls, and by paths.
type Values = BTreeMap<String, FileSetting>;

/// The values of sysctls in files.
///
/// # Errors
/// It is not known which files there are.
pub(crate) fn sysctls(root: &Root) -> Result<Values, Unknown> {
    let mut files: BTreeMap<String, &str> = BTreeMap::new();
    for folder in FOLDERS {
        let names = match root.list(folder) {
            Ok(names) => names,
            Err(unknown) if unknown.code == Why::Absent => continue,
            Err(unknown) => return Err(unknown),
        };
        for name in names.into_iter().filter(|name| name.ends_with(".conf")) {
            files.entry(name).or_insert(folder);
        }
    }
    let mut values = Values::new();
    let files = files.into_iter().map(|(name, folder)| format!("{folder}/{name}"));
    for file in files.chain([LAST.to_owned()]) {
        let text = root.text(&file).unwrap_or_default();
        for (name, value) in sysctl_assignments(&text) {
            set(&mut values, name, value, &file);
        }
    }
    Ok(values)
}

/// The dotted names and the values that a file of sysctls sets.
pub fn sysctl_assignments(text: &str) -> impl Iterator<Item = (String, &str)> {
    let assignments = text.lines().filter_map(assignment);
    assignments.map(|(name, value)| (sysctl_name(name), value))
}

/// The active profiles of tuned, as in its file; `None` without one.
pub(crate) fn active_profile(root: &Root) -> Result<Option<String>, Unknown> {
    match root.line(ACTIVE) {
        Ok(line) => Ok(Some(line)),
        Err(unknown) if unknown.code == Why::Absent => Ok(None),
        Err(unknown) => Err(unknown),
    }
}

/// Adds the values that profiles set.
pub(crate) fn add_profiles(root: &Root, profiles: &str, values: &mut Values) {
    let mut waiting: Vec<String> = names(profiles);
    waiting.reverse();
    let mut order: Vec<(String, String)> = Vec::new();
    while let Some(profile) = waiting.pop().filter(|_| order.len() < PROFILES_MAX) {
        let files = PROFILES.map(|folder| format!("{folder}/{profile}/tuned.conf"));
        let found =
            files.into_iter().find_map(|file| Some((root.text(&file).ok()?, file)));
        let Some((text, file)) = found else { continue };
        let included = entries(&text)
            .filter(|(section, name, _)| *section == "main" && *name == "include");
        waiting.extend(included.flat_map(|(_, _, profiles)| names(profiles)));
        order.push((text, file));
    }
    // What includes a profile overrides it.
    for (text, file) in order.iter().rev() {
        for (section, name, value) in entries(text) {
            let name = match (section, name) {
                ("sysctl", name) => sysctl_name(name),
                ("sysfs", path) => path.to_owned(),
                ("vm", "transparent_hugepages" | "transparent_hugepage") => {
                    "/sys/kernel/mm/transparent_hugepage/enabled".to_owned()
                }
                _ => continue,
            };
            set(values, name, value, file);
        }
    }
}

fn set(values: &mut Values, name: String, value: &str, file: &str) {
    let (value, file) = (value.to_owned(), file.to_owned());
    values.insert(name, FileSetting { value, file });
}

/// Names that are separated by commas or spaces.
fn names(list: &str) -> Vec<String> {
    let names = list.split([',', ' ']).map(str::trim).filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

/// `NAME = VALUE`; a minus before the name means that errors are ignored.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let line = line.trim();
    if line.starts_with(['#', ';']) {
        return None;
    }
    let (name, value) = line.split_once('=')?;
    let name = name.trim().trim_start_matches('-');
    (!name.is_empty()).then_some((name, value.trim()))
}

/// The dotted name: of a path, the first separator is a slash.
fn sysctl_name(name: &str) -> String {
    match name.find(['.', '/']).map(|at| &name[at..=at]) {
        Some("/") => name.replace('/', "."),
        _ => name.to_owned(),
    }
}

/// The sections, names and values of a profile.
fn entries(text: &str) -> impl Iterator<Item = (&str, &str, &str)> {
    let mut section = "";
    text.lines().filter_map(move |line| {
        let trimmed = line.trim();
        let head = trimmed.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if let Some(head) = head {
            section = head.trim();
            return None;
        }
        assignment(trimmed).map(|(name, value)| (section, name, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::tree;

    fn shown(values: &Values) -> Vec<String> {
        let one = |(name, it): (&String, &FileSetting)| {
            format!("{name}={} {}", it.value, it.file)
        };
        values.iter().map(one).collect()
    }

    /// Check the order of files, a name in two directories, comments, and both separators.
    #[test]
    fn sysctl_files() {
        let tree = tree(&[
            ("/etc/sysctl.d/50-a.conf", "# a\nvm.swappiness = 10\n-kernel/watchdog=0\n"),
            ("/usr/lib/sysctl.d/50-a.conf", "vm.swappiness = 99\n"),
            ("/usr/lib/sysctl.d/60-b.conf", ";\nkernel.sched_latency_ns=1\nbroken\n"),
            ("/etc/sysctl.d/note.txt", "vm.swappiness = 98\n"),
            ("/etc/sysctl.conf", "vm.stat_interval=5\nnet/ipv4/conf/a.b/x = 1\n"),
        ]);
        let values = sysctls(tree.sources().root).unwrap();
        assert_eq!(
            shown(&values),
            [
                "kernel.sched_latency_ns=1 /usr/lib/sysctl.d/60-b.conf",
                "kernel.watchdog=0 /etc/sysctl.d/50-a.conf",
                "net.ipv4.conf.a.b.x=1 /etc/sysctl.conf",
                "vm.stat_interval=5 /etc/sysctl.conf",
                "vm.swappiness=10 /etc/sysctl.d/50-a.conf",
            ]
        );
    }

    /// Check that a profile overrides those that it includes, and that a circle of includes ends.
    #[test]
    fn profiles() {
        let tree = tree(&[
            ("/etc/tuned/active_profile", "mine\n"),
            (
                "/etc/tuned/mine/tuned.conf",
                "[main]\ninclude=base\n[sysctl]\nvm.swappiness=1\n[vm]\ntransparent_hugepages=never\n",
            ),
            (
                "/usr/lib/tuned/profiles/base/tuned.conf",
                "[main]\ninclude = mine\n[sysctl]\nvm.swappiness=10\nkernel.sched_latency_ns=1\n\
                 [sysfs]\n/sys/kernel/mm/ksm/run=1\n[cpu]\ngovernor=performance\n",
            ),
        ]);
        let sources = tree.sources();
        let active = active_profile(sources.root).unwrap().unwrap();
        let mut values = Values::new();
        add_profiles(sources.root, &active, &mut values);
        let base = "/usr/lib/tuned/profiles/base/tuned.conf";
        assert_eq!(values["vm.swappiness"].value, "1");
        assert_eq!(values["kernel.sched_latency_ns"].file, base);
        assert_eq!(values["/sys/kernel/mm/ksm/run"].value, "1");
        assert_eq!(values["/sys/kernel/mm/transparent_hugepage/enabled"].value, "never");
        assert_eq!(values.len(), 4);
    }
}
