//! All settings that a run may change, read independently of noisefloor as far as possible.
//!
//! Other runs on this machine may change settings at any time. They share one journal, while the runs of
//! tests that compare settings have journals of their own: what is in the shared one is not theirs.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Settings and their values.
pub(crate) type Settings = BTreeMap<String, String>;

/// The journal of root's runs.
const SHARED_JOURNAL: &str = "/run/noisefloor/journal.json";
/// The number of attempts to read all settings between two changes of the shared journal.
const ATTEMPTS: u32 = 100;

/// The current values, and the original ones of settings that other runs have changed.
pub(crate) fn now() -> Settings {
    let journal = || fs::read_to_string(SHARED_JOURNAL).unwrap_or_default();
    for _ in 0..ATTEMPTS {
        let before = journal();
        let mut all = raw();
        if journal() == before {
            restore_in(&mut all, &before);
            return all;
        }
    }
    panic!("other runs change settings all the time");
}

/// Sets what a journal names to its original value, or removes what is not compared as a file.
fn restore_in(all: &mut Settings, journal: &str) {
    let page: Value = serde_json::from_str(journal).unwrap_or_default();
    for entry in page["changes"].as_array().into_iter().flatten() {
        let (setting, old) =
            (&entry["setting"], entry["old"].as_str().unwrap_or_default());
        if let Some(file) = setting["file"].as_str() {
            if let Some(value) = all.get_mut(file) {
                old.clone_into(value);
            }
            if file.contains("workqueue") {
                all.retain(|name, _| !name.contains(" kworker/u"));
            }
        } else if let Some(tid) = setting["affinity"]["tid"].as_u64() {
            all.retain(|name, _| !name.starts_with(&format!("thread {tid} ")));
        } else if let Some(file) = setting["choice"].as_str() {
            all.remove(file);
        } else if let Some(file) = setting["feature"]["file"].as_str() {
            all.remove(file);
        } else {
            // Of a partition.
            all.retain(|name, _| name != "groups" && !name.starts_with("/sys/fs/cgroup"));
        }
    }
}

/// The current values, also those that another process has set.
pub(crate) fn raw() -> Settings {
    let mut all = Settings::new();
    for file in files() {
        if let Ok(text) = fs::read_to_string(&file) {
            all.insert(file.display().to_string(), text.trim().to_owned());
        }
    }
    all.extend(kernel_threads());
    all.insert("groups".to_owned(), format!("{:?}", folders("/sys/fs/cgroup")));
    all
}

/// The settings that differ; those that appeared or disappeared are ignored.
pub(crate) fn changed(before: &Settings, after: &Settings) -> Vec<String> {
    let other = |(name, old): (&String, &String)| {
        let now = after.get(name).filter(|now| *now != old)?;
        Some(format!("{name} was {old} and is {now}"))
    };
    before.iter().filter_map(other).collect()
}

/// The kinds of settings that differ.
pub(crate) fn kinds(before: &Settings, after: &Settings) -> Vec<&'static str> {
    let kinds = [
        ("/proc/sys/kernel/sched_rt_runtime_us", "RT throttling"),
        ("/sys/kernel/debug/sched/fair_server", "fair server"),
        ("/sys/kernel/debug/sched/ext_server", "fair server"),
        ("/sys/kernel/debug/sched", "scheduler"),
        ("/proc/sys/kernel/sched_", "scheduler"),
        ("/proc/irq/default", "default IRQ affinity"),
        ("/proc/irq/", "IRQ affinity"),
        ("/sys/devices/virtual/workqueue", "workqueues"),
        ("/proc/sys/vm/", "sysctl"),
        ("/sys/kernel/mm/transparent_hugepage", "huge pages"),
        ("thread ", "kernel threads"),
        ("groups", "partition"),
    ];
    let changed = changed(before, after);
    let kind = |line: &String| {
        let found = kinds.iter().find(|(start, _)| line.starts_with(start));
        found.map(|(_, kind)| *kind)
    };
    let mut found: Vec<_> = changed.iter().filter_map(kind).collect();
    found.sort_unstable();
    found.dedup();
    found
}

fn files() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = [
        "/proc/sys/kernel/sched_rt_runtime_us",
        "/proc/irq/default_smp_affinity",
        "/sys/devices/virtual/workqueue/cpumask",
        "/sys/fs/cgroup/cgroup.subtree_control",
        "/sys/kernel/debug/sched/features",
        "/sys/kernel/debug/sched/preempt",
        "/sys/kernel/debug/sched/base_slice_ns",
        "/sys/kernel/debug/sched/min_granularity_ns",
        "/sys/kernel/debug/sched_features",
        "/proc/sys/kernel/sched_min_granularity_ns",
        "/proc/sys/vm/dirty_writeback_centisecs",
        "/proc/sys/vm/stat_interval",
        "/sys/kernel/mm/transparent_hugepage/enabled",
    ]
    .map(PathBuf::from)
    .into();
    files.extend(below("/proc/irq", "smp_affinity_list"));
    for server in ["fair_server", "ext_server"] {
        files.extend(below(&format!("/sys/kernel/debug/sched/{server}"), "runtime"));
    }
    files
}

/// That file of each directory there.
fn below(folder: &str, file: &str) -> Vec<PathBuf> {
    let folders = folders(folder).into_iter();
    folders.map(|name| Path::new(folder).join(name).join(file)).collect()
}

fn folders(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> =
        folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// Whether its flags (the 9th field) are without `PF_NO_SETAFFINITY`.
fn is_movable(tid: &str) -> Option<bool> {
    let stat = fs::read_to_string(format!("/proc/{tid}/stat")).ok()?;
    let flags: u64 = stat.rsplit_once(") ")?.1.split(' ').nth(6)?.parse().ok()?;
    Some(flags & 0x0400_0000 == 0)
}

/// The affinity of each kernel thread that does not move by itself, from `/proc/PID/status`:
/// those that may be moved, and workers of unbound workqueues.
fn kernel_threads() -> Settings {
    let numbers = folders("/proc").into_iter().filter(|name| name.parse::<u32>().is_ok());
    let threads = numbers.filter_map(|tid| {
        let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name))?;
            Some(line.trim().to_owned())
        };
        // Only programs have memory of their own.
        let is_program = status.contains("VmSize:");
        let name = field("Name:")?;
        let is_told = is_movable(&tid)? || name.starts_with("kworker/u");
        let thread = format!("thread {tid} {name}");
        (!is_program && is_told).then_some((thread, field("Cpus_allowed_list:")?))
    });
    threads.collect()
}

/// Check that a setting that another run has changed counts with its original value, and that one that
/// is not in its journal does not.
#[test]
fn neighbours_are_left_out() {
    let mut all = Settings::new();
    let [rt, irq, thread] = ["/proc/sys/kernel/rt", "/proc/irq/1/list", "thread 7 a"];
    for name in [rt, irq, thread, "thread 70 b", "groups"] {
        all.insert(name.to_owned(), "changed".to_owned());
    }
    let journal = serde_json::json!({"changes": [
        {"setting": {"file": rt}, "old": "original"},
        {"setting": {"affinity": {"tid": 7, "started": 1, "name": "a"}}, "old": "0-1"},
    ]});
    restore_in(&mut all, &journal.to_string());
    assert_eq!(all[rt], "original");
    assert_eq!(all[irq], "changed");
    let names: Vec<&str> = all.keys().map(String::as_str).collect();
    assert_eq!(names, [irq, rt, "groups", "thread 70 b"]);
}
