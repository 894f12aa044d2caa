//! One writable setting of the kernel: how it is named, read and written.
//!
//! A setting's value is a text in the form in which the kernel shows it, so that what was
//! written and what is there can be compared. Most settings are files below `/proc/sys`,
//! `/proc/irq` and `/sys`; the scheduler's features share one (`sched_feat_write` in
//! `kernel/sched/debug.c`), a kernel thread's affinity is a system call
//! (`sched_setaffinity(2)`), and control groups are folders
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

/// A group that is there, a controller that is on.
pub(crate) const YES: &str = "yes";
/// A group that is not there, a controller that is off.
pub(crate) const NO: &str = "no";
/// A feature that is on.
pub(crate) const ON: &str = "on";
/// A feature that is off.
pub(crate) const OFF: &str = "off";
/// How the kernel writes one that is off: this, then its name.
const WITHOUT: &str = "NO_";

/// One writable setting of the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Setting {
    /// A file that shows what was written to it.
    File(PathBuf),
    /// The CPUs that a kernel thread may run on, as a list.
    Affinity(Task),
    /// Whether there is a control group of that folder.
    Group(PathBuf),
    /// Whether the groups below that folder have the controller `cpuset`.
    Cpuset(PathBuf),
    /// The control group that a process is in, as a folder.
    Member {
        /// The process.
        process: Task,
        /// Where the hierarchy is mounted.
        mount: PathBuf,
    },
    /// A feature of the scheduler, in the file that lists them all, on or off.
    Feature {
        /// The file.
        file: PathBuf,
        /// The feature's name.
        name: String,
    },
    /// A file that shows all that it may be, and what it is in parentheses.
    Choice(PathBuf),
}

impl Setting {
    /// What the setting is now.
    ///
    /// # Errors
    /// The kernel does not say: there is no such setting (`NotFound`), or it may not be read.
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
                found.map(|(word, _)| word.to_owned()).ok_or_else(|| garbage(&text))
            }
        }
    }

    /// Whether this process may change it, as far as opening its file tells: nothing is
    /// written.
    ///
    /// # Errors
    /// The kernel refuses, or the setting is gone (`NotFound`).
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

    /// Changes it.
    ///
    /// # Errors
    /// The kernel refuses, or the setting is gone (`NotFound`).
    pub(crate) fn write(&self, value: &str) -> io::Result<()> {
        match self {
            Self::File(path) => write(paths::file(path)?, value),
            Self::Affinity(task) => {
                task.check()?;
                let cpus: CpuSet = value.parse().map_err(|_| garbage(value))?;
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
                    _ if !name.chars().all(plain) => Err(garbage(name)),
                    ON => write(file, name),
                    OFF => write(file, &format!("{WITHOUT}{name}")),
                    _ => Err(garbage(value)),
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

/// The features in the text of the file that lists them, and whether each is on.
pub(crate) fn features(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let words = text.split_whitespace();
    words
        .map(|word| word.strip_prefix(WITHOUT).map_or((word, true), |name| (name, false)))
}

/// What a file says that it may be, and whether it is that: the one in parentheses.
pub(crate) fn choices(text: &str) -> impl Iterator<Item = (&str, bool)> {
    text.split_whitespace().map(|word| {
        let chosen = word.strip_prefix('(').and_then(|word| word.strip_suffix(')'));
        chosen.map_or((word, false), |word| (word, true))
    })
}

fn yes(is: bool) -> String {
    if is { YES } else { NO }.to_owned()
}

fn garbage(text: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("{text} is no setting's"))
}

/// Writes with one call, as the kernel's files want it; none is ever created.
fn write(path: &Path, value: &str) -> io::Result<()> {
    let mut file = fs::OpenOptions::new().write(true).open(path)?;
    file.write_all(format!("{value}\n").as_bytes())
}

fn control(folder: &Path) -> io::Result<PathBuf> {
    Ok(paths::mount(folder)?.join("cgroup.subtree_control"))
}

/// Removes a group; who is still in it goes to the one above.
fn remove(folder: &Path) -> io::Result<()> {
    let above = folder.parent().unwrap_or(folder).join("cgroup.threads");
    let left = fs::read_to_string(folder.join("cgroup.threads")).unwrap_or_default();
    for thread in left.lines() {
        // One that ended meanwhile is gone, too; removing the folder tells of the others.
        let _ = write(&above, thread);
    }
    // The kernel ends a removed group's partition some time later, and lets all threads run
    // everywhere then; a partition that is ended first has done so before anything else.
    let _ = write(&folder.join("cpuset.cpus.partition"), "member");
    fs::remove_dir(folder)
}

/// The folder of the v2 group that a process is in: the line `0::/path`.
fn group_of(process: &Task, mount: &Path) -> io::Result<PathBuf> {
    let text = fs::read_to_string(format!("/proc/{}/cgroup", process.tid))?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::/"));
    path.map(|path| mount.join(path)).ok_or_else(|| garbage(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that a journal cannot make this tool write anywhere but to settings.
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

    /// Check that only a feature's name is written to the features' file.
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

    /// Check that a feature that is off is known by what stands before its name, and a choice
    /// by its parentheses.
    #[test]
    fn marks() {
        let text = "PLACE_LAG NO_HRTICK NONTASK_CAPACITY \n";
        let all: Vec<_> = features(text).collect();
        let expected =
            [("PLACE_LAG", true), ("HRTICK", false), ("NONTASK_CAPACITY", true)];
        assert_eq!(all, expected);
        let all: Vec<_> = choices("none (voluntary) full \n").collect();
        assert_eq!(all, [("none", false), ("voluntary", true), ("full", false)]);
        assert!(choices("none (voluntary full\n").all(|(_, is_chosen)| !is_chosen));
    }

    /// Check that a file's value comes without its line's end, and what is not there is
    /// told as such.
    #[test]
    fn files_are_read() {
        let file = |path: &str| Setting::File(PathBuf::from(path)).read();
        let runtime = file("/proc/sys/kernel/sched_rt_runtime_us").unwrap();
        assert!(runtime.parse::<i64>().is_ok(), "{runtime}");
        let missing = file("/proc/irq/4000000/smp_affinity_list").unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }

    /// Check how settings stand in a journal, and that they are the same when read again.
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
