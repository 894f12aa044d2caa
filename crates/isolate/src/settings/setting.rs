//! A writable kernel setting: its name, and how it is read and written.
//!
//! A value is text in the kernel's format, so that the written and the current value can be
//! compared. Most settings are files below `/proc/sys`, `/proc/irq` and `/sys`; the scheduler's
//! features share a file (`sched_feat_write` in `kernel/sched/debug.c`), the affinity of a kernel
//! thread is a system call (`sched_setaffinity(2)`), and cgroups are directories
//! (`Documentation/admin-guide/cgroup-v2.rst`).

use std::fmt;
use std::fs;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use units::CpuSet;

use crate::settings::paths;
use crate::task::Task;
use crate::thread::{affinity_of, mask_of, set_affinity_of};

/// The cgroup exists; the controller is enabled.
pub(crate) const YES: &str = "yes";
/// The cgroup does not exist; the controller is disabled.
pub(crate) const NO: &str = "no";
/// A feature that is on.
pub(crate) const ON: &str = "on";
/// A feature that is off.
pub(crate) const OFF: &str = "off";
/// The kernel's prefix of a feature that is off.
const WITHOUT: &str = "NO_";

/// A writable kernel setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Setting {
    /// A file that contains only its value.
    File(PathBuf),
    /// The affinity of a kernel thread, as a list of CPUs.
    Affinity(Task),
    /// Whether a cgroup exists, by its directory.
    Group(PathBuf),
    /// Whether the children of a cgroup have the controller `cpuset`, by its directory.
    Cpuset(PathBuf),
    /// The cgroup that a process is in, as a directory.
    Member {
        /// The process.
        process: Task,
        /// The mount point of the hierarchy.
        mount: PathBuf,
    },
    /// A scheduler feature in the file that lists all of them, on or off.
    Feature {
        /// The file.
        file: PathBuf,
        /// The feature's name.
        name: String,
    },
    /// A file that lists all possible values, with the current one in parentheses or brackets.
    Choice(PathBuf),
}

impl Setting {
    /// Whether it is the content of a file, or a part of it, which is read as it was written.
    pub(crate) fn is_file(&self) -> bool {
        match self {
            Self::File(_) | Self::Feature { .. } | Self::Choice(_) => true,
            Self::Affinity(_)
            | Self::Group(_)
            | Self::Cpuset(_)
            | Self::Member { .. } => false,
        }
    }

    /// Reads the current value.
    ///
    /// # Errors
    /// The setting does not exist (`NotFound`), or cannot be read.
    pub fn read(&self) -> io::Result<String> {
        match self {
            Self::File(path) => {
                Ok(fs::read_to_string(paths::file(path)?)?.trim().to_owned())
            }
            Self::Affinity(task) => {
                task.check()?;
                Ok(affinity_of(task.tid)?.to_string())
            }
            Self::Group(folder) => Ok(yes(paths::group(folder)?.is_dir())),
            Self::Cpuset(folder) => {
                let controllers = fs::read_to_string(control(folder)?)?;
                Ok(yes(controllers.split_whitespace().any(|name| name == "cpuset")))
            }
            Self::Member { process, mount } => {
                process.check()?;
                let group = group_of(process, paths::mount(mount)?)?;
                Ok(group.display().to_string())
            }
            Self::Feature { file, name } => {
                let text = fs::read_to_string(paths::features(file)?)?;
                let found = features(&text).find(|(feature, _)| feature == name);
                let (_, is_on) = found.ok_or(ErrorKind::NotFound)?;
                Ok(if is_on { ON } else { OFF }.to_owned())
            }
            Self::Choice(path) => {
                let text = fs::read_to_string(paths::choice(path)?)?;
                let found = choices(&text).find(|(_, is_chosen)| *is_chosen);
                found.map(|(word, _)| word.to_owned()).ok_or_else(|| invalid(&text))
            }
        }
    }

    /// Checks whether this process may change the setting by opening its file; nothing is written.
    ///
    /// # Errors
    /// The kernel refuses, or the setting does not exist (`NotFound`).
    pub(crate) fn try_open(&self) -> io::Result<()> {
        let file = match self {
            Self::File(file) => paths::file(file)?,
            Self::Feature { file, .. } => paths::features(file)?,
            Self::Choice(file) => paths::choice(file)?,
            Self::Affinity(_)
            | Self::Group(_)
            | Self::Cpuset(_)
            | Self::Member { .. } => return Ok(()),
        };
        fs::OpenOptions::new().write(true).open(file).map(drop)
    }

    /// Writes a new value.
    ///
    /// # Errors
    /// The kernel refuses, or the setting does not exist (`NotFound`).
    pub(crate) fn write(&self, value: &str) -> io::Result<()> {
        match self {
            Self::File(path) => write(paths::file(path)?, value),
            Self::Affinity(task) => {
                task.check()?;
                let cpus: CpuSet = value.parse().map_err(|_| invalid(value))?;
                set_affinity_of(task.tid, &mask_of(&cpus))
            }
            Self::Group(folder) if value == YES => fs::create_dir(paths::group(folder)?),
            Self::Group(folder) => remove(paths::group(folder)?),
            Self::Cpuset(folder) => {
                write(&control(folder)?, if value == YES { "+cpuset" } else { "-cpuset" })
            }
            Self::Member { process, .. } => {
                process.check()?;
                let procs = paths::any_group(Path::new(value))?.join("cgroup.procs");
                write(&procs, &process.tid.to_string())
            }
            Self::Feature { file, name } => {
                let plain =
                    |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
                let file = paths::features(file)?;
                match value {
                    _ if !name.chars().all(plain) => Err(invalid(name)),
                    ON => write(file, name),
                    OFF => write(file, &format!("{WITHOUT}{name}")),
                    _ => Err(invalid(value)),
                }
            }
            Self::Choice(path) => write(paths::choice(path)?, value),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) | Self::Group(path) | Self::Choice(path) => {
                write!(f, "{}", path.display())
            }
            Self::Feature { file, name } => write!(f, "{name} in {}", file.display()),
            Self::Affinity(task) => write!(f, "affinity of {task}"),
            Self::Cpuset(folder) => write!(f, "cpuset below {}", folder.display()),
            Self::Member { process, .. } => write!(f, "control group of {process}"),
        }
    }
}

/// The features in the text of their file, each with whether it is on.
pub(crate) fn features(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let words = text.split_whitespace();
    words
        .map(|word| word.strip_prefix(WITHOUT).map_or((word, true), |name| (name, false)))
}

/// The possible values in a file, each with whether it is the current one: in parentheses, or in
/// brackets.
pub(crate) fn choices(text: &str) -> impl Iterator<Item = (&str, bool)> {
    text.split_whitespace().map(|word| {
        let marked = [('(', ')'), ('[', ']')];
        let within = |(from, to)| word.strip_prefix(from)?.strip_suffix(to);
        let chosen = marked.into_iter().find_map(within);
        chosen.map_or((word, false), |word| (word, true))
    })
}

fn yes(is: bool) -> String {
    if is { YES } else { NO }.to_owned()
}

fn invalid(text: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("'{text}' is not a valid value"))
}

/// Writes with a single call, as the kernel's files require; never creates a file.
fn write(path: &Path, value: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).open(path)?;
    file.write_all(format!("{value}\n").as_bytes())
}

fn control(folder: &Path) -> io::Result<PathBuf> {
    Ok(paths::mount(folder)?.join("cgroup.subtree_control"))
}

/// Removes a cgroup, after moving its threads to the parent.
fn remove(folder: &Path) -> io::Result<()> {
    let above = folder.parent().unwrap_or(folder).join("cgroup.threads");
    let left = fs::read_to_string(folder.join("cgroup.threads")).unwrap_or_default();
    for thread in left.lines() {
        // Fails for threads that have ended. For other errors, removing the directory fails, too.
        let _ = write(&above, thread);
    }
    // The kernel ends the partition of a removed cgroup asynchronously, and then resets the
    // affinity of all threads; ending the partition first makes that synchronous.
    let _ = write(&folder.join("cpuset.cpus.partition"), "member");
    fs::remove_dir(folder)
}

/// The directory of a process's v2 cgroup, from the line `0::/path`.
fn group_of(process: &Task, mount: &Path) -> io::Result<PathBuf> {
    let text = fs::read_to_string(format!("/proc/{}/cgroup", process.tid))?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"));
    path.map(|path| mount.join(path)).ok_or_else(|| invalid(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a journal cannot cause writes to files other than settings.
    #[test]
    fn only_settings_are_written() {
        let others = ["/etc/passwd", "/proc/sys/kernel/core_pattern", "/proc/irq/../x"];
        for path in others {
            let refused = Setting::File(PathBuf::from(path)).write("1").unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidData, "{path}");
            assert!(Setting::Group(PathBuf::from(path)).write(NO).is_err());
            let choice = Setting::Choice(PathBuf::from(path));
            let (file, name) = (PathBuf::from(path), "HRTICK".to_owned());
            for setting in [choice, Setting::Feature { file, name }] {
                for refused in [setting.write(ON), setting.try_open()] {
                    assert_eq!(refused.unwrap_err().kind(), ErrorKind::InvalidData);
                }
            }
        }
    }

    /// Check that only valid feature names are written to the features' file.
    #[test]
    fn only_names_are_features() {
        let file = PathBuf::from("/sys/kernel/debug/sched_features");
        let kind = |name: &str, value: &str| {
            let (file, name) = (file.clone(), name.to_owned());
            Setting::Feature { file, name }.write(value).unwrap_err().kind()
        };
        assert_eq!(kind("HRTICK", ON), ErrorKind::NotFound);
        for (name, value) in [("HRTICK", "maybe"), ("HRTICK\nX", ON), ("a b", OFF)] {
            assert_eq!(kind(name, value), ErrorKind::InvalidData, "{name} {value}");
        }
    }

    /// Check the parsing of features that are off, and of the current choice.
    #[test]
    fn marks() {
        let text = "PLACE_LAG NO_HRTICK NONTASK_CAPACITY \n";
        let all: Vec<_> = features(text).collect();
        let expected =
            [("PLACE_LAG", true), ("HRTICK", false), ("NONTASK_CAPACITY", true)];
        assert_eq!(all, expected);
        assert!(choices("always [madvise] never\n").eq([
            ("always", false),
            ("madvise", true),
            ("never", false)
        ]));
        let all: Vec<_> = choices("none (voluntary) full \n").collect();
        assert_eq!(all, [("none", false), ("voluntary", true), ("full", false)]);
        assert!(choices("none (voluntary full\n").all(|(_, is_chosen)| !is_chosen));
    }

    /// Check that a file's value is trimmed, and that a missing file is `NotFound`.
    #[test]
    fn files_are_read() {
        let file = |path: &str| Setting::File(PathBuf::from(path)).read();
        let runtime = file("/proc/sys/kernel/sched_rt_runtime_us").unwrap();
        assert!(runtime.parse::<i64>().is_ok(), "{runtime}");
        let missing = file("/proc/irq/4000000/smp_affinity_list").unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }

    /// Check the format of settings in the journal, in both directions.
    #[test]
    fn contract() {
        let task = Task { tid: 7, started: 9, name: "kswapd0".to_owned() };
        let text = r#"[{"file":"/proc/sys/kernel/x"},
            {"affinity":{"tid":7,"started":9,"name":"kswapd0"}},
            {"group":"/sys/fs/cgroup/a"},{"cpuset":"/sys/fs/cgroup"},
            {"member":{"process":{"tid":7,"started":9,"name":"kswapd0"},"mount":"/sys/fs/cgroup"}},
            {"feature":{"file":"/sys/kernel/debug/sched/features","name":"HRTICK"}},
            {"choice":"/sys/kernel/debug/sched/preempt"}]"#;
        let mount = PathBuf::from("/sys/fs/cgroup");
        let settings = [
            Setting::File("/proc/sys/kernel/x".into()),
            Setting::Affinity(task.clone()),
            Setting::Group("/sys/fs/cgroup/a".into()),
            Setting::Cpuset(mount.clone()),
            Setting::Member { process: task, mount },
            Setting::Feature {
                file: "/sys/kernel/debug/sched/features".into(),
                name: "HRTICK".to_owned(),
            },
            Setting::Choice("/sys/kernel/debug/sched/preempt".into()),
        ];
        assert_eq!(serde_json::from_str::<Vec<Setting>>(text).unwrap(), settings);
        let again: serde_json::Value = serde_json::to_value(&settings).unwrap();
        assert_eq!(again, serde_json::from_str::<serde_json::Value>(text).unwrap());
    }
}
