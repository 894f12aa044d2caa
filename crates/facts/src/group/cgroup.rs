//! Control groups: the cpuset and the CPU quota of this process.
//!
//! From the files of its cgroups ([`Hierarchy`]). In v2, a cgroup without the controller inherits from
//! its nearest ancestor with the controller. Partitions exist in v2 only, since 5.0 (`isolated`
//! since 6.1).

use units::CpuSet;

use crate::absence::Needs;
use crate::fact::{Fact, Unknown, Why, group};
use crate::format::cpu_quota::{self, CpuQuota, Throttling};
use crate::format::hierarchy::{GROUPS, Hierarchy};
use crate::format::mounts::{self, Mount, Mounts};
use crate::sources::Sources;

/// The requirements of quotas.
const BANDWIDTH: Needs = Needs::since("3.2").with(&["CFS_BANDWIDTH"]);
/// The files with quotas.
const QUOTAS: &str = "cpu.max, cpu.cfs_quota_us";
const CONTROLLERS: &str = "/proc/self/mounts, cgroup.controllers";

group! {
    /// Control groups.
    "cgroup" Cgroup {
        /// `v1`, `v2`, `hybrid`, `none`.
        layout: String,
        /// The directory of this process's cpuset.
        cpuset: String,
        /// The CPUs of that cpuset.
        cpus: CpuSet,
        /// The type of its partition (`member`, `root`, `isolated`).
        partition: String,
        /// The directory in which root can create cpuset partitions.
        partitions: String,
        /// The smallest CPU quota of its cgroup and the ancestors of that.
        quota: CpuQuota,
        /// How often its cgroup was throttled for a quota since it was created.
        throttling: Throttling,
        /// The weight of its cgroup: `cpu.weight` (100 by default), in v1 `cpu.shares` (1024).
        weight: u64,
    }
}

/// The cpuset of this process.
struct Cpuset {
    directory: String,
    /// The file with its CPUs.
    file: String,
    cpus: CpuSet,
    is_v2: bool,
    is_root: bool,
}

impl Cgroup {
    pub(crate) fn read(sources: &Sources) -> Self {
        let mounts = Mounts::read(sources.root);
        let layout = mounts.as_ref().map(layout).map_err(Clone::clone);
        let found = mounts.as_ref().map_err(Clone::clone);
        let found = found.and_then(|mounts| partitions(sources, mounts));
        let partitions = Fact::of(found, CONTROLLERS);
        let quota = quota(sources, mounts.as_ref());
        let throttling = throttling(sources, mounts.as_ref());
        let weight = weight(sources, mounts.as_ref());
        let cpuset = mounts.and_then(|mounts| cpuset(sources, &mounts));
        let cpuset = match cpuset {
            Ok(cpuset) => cpuset,
            Err(unknown) => {
                let missing = || Fact::unknown(unknown.clone(), GROUPS);
                return Self {
                    layout: Fact::of(layout, mounts::FILE),
                    partitions,
                    cpuset: missing(),
                    cpus: Fact::unknown(unknown.clone(), GROUPS),
                    partition: missing(),
                    quota,
                    throttling,
                    weight,
                };
            }
        };
        Self {
            layout: Fact::of(layout, mounts::FILE),
            partition: partition(sources, &cpuset),
            partitions,
            cpuset: Fact::known(cpuset.directory, GROUPS),
            cpus: Fact::known(cpuset.cpus, cpuset.file),
            quota,
            throttling,
            weight,
        }
    }
}

fn layout(mounts: &Mounts) -> String {
    let is = |kind| mounts.of_kind(kind).next().is_some();
    let layout = match (is("cgroup") || is("cpuset"), is("cgroup2")) {
        (true, true) => "hybrid",
        (true, false) => "v1",
        (false, true) => "v2",
        (false, false) => "none",
    };
    layout.to_owned()
}

/// The hierarchy with the controller of CPU time.
fn with_cpu(
    sources: &Sources,
    mounts: Result<&Mounts, &Unknown>,
    needs: &Needs,
) -> Result<Hierarchy, Unknown> {
    let found = mounts
        .map_err(Clone::clone)
        .and_then(|mounts| Hierarchy::with(sources.root, mounts, cpu_quota::CONTROLLER));
    let missing = || Unknown::new(Why::Absent, "no hierarchy with CPU time is mounted");
    found
        .and_then(|found| found.ok_or_else(missing))
        .map_err(|why| sources.why(&why, needs))
}

fn quota(sources: &Sources, mounts: Result<&Mounts, &Unknown>) -> Fact<CpuQuota> {
    let smallest = with_cpu(sources, mounts, &BANDWIDTH)
        .and_then(|hierarchy| CpuQuota::smallest(sources.root, &hierarchy));
    let none = || {
        let text = "neither the cgroup of this process nor an ancestor has a CPU quota";
        Unknown::new(Why::NotApplicable, text)
    };
    Fact::of(smallest.and_then(|quota| quota.ok_or_else(none)), QUOTAS)
}

fn throttling(sources: &Sources, mounts: Result<&Mounts, &Unknown>) -> Fact<Throttling> {
    let hierarchy = match with_cpu(sources, mounts, &BANDWIDTH) {
        Ok(hierarchy) => hierarchy,
        Err(unknown) => return Fact::unknown(unknown, GROUPS),
    };
    let own = hierarchy.directories.first().map_or("", String::as_str);
    let none = || {
        let text = "the kernel does not count it for the cgroup of this process: it is the root, or \
                    the controller is not enabled";
        Unknown::new(Why::NotApplicable, text)
    };
    let found = Throttling::read(sources.root, own);
    let found = found.map_err(|why| sources.why(&why, &BANDWIDTH));
    Fact::of(found.and_then(|found| found.ok_or_else(none)), format!("{own}/cpu.stat"))
}

fn weight(sources: &Sources, mounts: Result<&Mounts, &Unknown>) -> Fact<u64> {
    let needs = Needs::options(&["FAIR_GROUP_SCHED"]);
    let hierarchy = match with_cpu(sources, mounts, &needs) {
        Ok(hierarchy) => hierarchy,
        Err(unknown) => return Fact::unknown(unknown, GROUPS),
    };
    let own = hierarchy.directories.first().map_or("", String::as_str);
    let name = if hierarchy.is_v2 { "cpu.weight" } else { "cpu.shares" };
    let weight = sources.number(&format!("{own}/{name}"));
    let is_absent = weight.value().is_err_and(|unknown| unknown.code == Why::Absent);
    let text = "the cgroup of this process has none: it is the root, or the controller is not enabled";
    match hierarchy.is_v2 && is_absent {
        true => Fact::unknown(Unknown::new(Why::NotApplicable, text), weight.source()),
        false => sources.explain(&weight, &needs),
    }
}

fn cpuset(sources: &Sources, mounts: &Mounts) -> Result<Cpuset, Unknown> {
    let needs = Needs::since("2.6.12").with(&["CPUSETS"]);
    let missing = || Unknown::new(Why::Absent, "no hierarchy with cpusets is mounted");
    let found = Hierarchy::with(sources.root, mounts, "cpuset");
    let hierarchy = found
        .and_then(|found| found.ok_or_else(missing))
        .map_err(|unknown| sources.why(&unknown, &needs))?;
    nearest(sources, hierarchy)
}

/// The nearest cgroup with a cpuset, from this process's own upwards.
fn nearest(sources: &Sources, hierarchy: Hierarchy) -> Result<Cpuset, Unknown> {
    let Hierarchy { directories, is_v2 } = hierarchy;
    // In v1, `effective` exists since 3.17; without prefix in the old cpuset file system.
    let names: &[&str] = match is_v2 {
        true => &["cpuset.cpus.effective"],
        false => &["cpuset.effective_cpus", "effective_cpus", "cpuset.cpus", "cpus"],
    };
    let last = directories.len() - 1;
    let base = directories.last().cloned().unwrap_or_default();
    for (number, directory) in directories.into_iter().enumerate() {
        for name in names {
            let file = format!("{directory}/{name}");
            let cpus = sources.cpus(&file);
            match cpus.value() {
                Ok(cpus) => {
                    let (cpus, is_root) = (cpus.clone(), number == last);
                    return Ok(Cpuset { directory, file, cpus, is_v2, is_root });
                }
                Err(unknown) if unknown.code == Why::Absent => {}
                Err(unknown) => return Err(unknown.clone()),
            }
        }
    }
    let missing =
        Unknown::new(Why::Absent, format!("no group below {base} has a cpuset"));
    Err(sources.why(&missing, &Needs::options(&["CPUSETS"])))
}

/// The v2 hierarchy, if children of its root can be partitions: it has the cpuset controller, can be
/// written to, and its root is that of the machine, or a partition itself.
fn partitions(sources: &Sources, mounts: &Mounts) -> Result<String, Unknown> {
    let refuse = |code, text: String| Err(Unknown::new(code, text));
    let has_cpuset = |mount: &&Mount| {
        let file = format!("{}/cgroup.controllers", mount.directory);
        let text = sources.root.text(&file).unwrap_or_default();
        text.split_whitespace().any(|name| name == "cpuset")
    };
    let Some(mount) = mounts.of_kind("cgroup2").find(has_cpuset) else {
        let text = format!(
            "the cgroup layout is {}, and the cpuset controller is not in the v2 hierarchy \
             (systemd.unified_cgroup_hierarchy=1, cgroup_no_v1=cpuset)",
            layout(mounts)
        );
        let needs = Needs::options(&["CPUSETS"]);
        return Err(sources.why(&Unknown::new(Why::Absent, text), &needs));
    };
    let directory = &mount.directory;
    if mount.has("ro") {
        return refuse(Why::NotApplicable, format!("{directory} is mounted read-only"));
    }
    // The root of the machine's hierarchy has no type.
    if !sources.root.exists(&format!("{directory}/cgroup.type"))? {
        return Ok(directory.clone());
    }
    let own = sources.word(&format!("{directory}/cpuset.cpus.partition"));
    match own.get().map(String::as_str) {
        Some("root" | "isolated") => Ok(directory.clone()),
        _ => {
            let text =
                format!("{directory} is the cgroup of a container, and no partition");
            refuse(Why::NotApplicable, text)
        }
    }
}

fn partition(sources: &Sources, cpuset: &Cpuset) -> Fact<String> {
    let file = format!("{}/cpuset.cpus.partition", cpuset.directory);
    let nothing =
        |text: &str| Fact::unknown(Unknown::new(Why::NotApplicable, text), file.as_str());
    if !cpuset.is_v2 {
        return nothing("cgroup v1 has no cpuset partitions");
    }
    if cpuset.is_root {
        return nothing("the whole machine is no partition of anything");
    }
    sources.explain(&sources.word(&file), &Needs::since("5.0"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::tree;

    const HYBRID: &str = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                          cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                          cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n\
                          cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
    const V2: &str = "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n";

    fn read(files: &[(&str, &str)]) -> Cgroup {
        Cgroup::read(&tree(files).sources())
    }

    fn cpus(cgroup: &Cgroup) -> String {
        cgroup.cpus.get().unwrap().to_string()
    }

    /// Check a machine with both hierarchies, with cpusets in v1.
    #[test]
    fn hybrid() {
        let cgroup = read(&[
            (mounts::FILE, HYBRID),
            (GROUPS, "4:memory:/agent\n3:cpuset:/\n1:cpu:/\n0::/\n"),
            ("/sys/fs/cgroup/cpuset/cpuset.effective_cpus", "0-1\n"),
        ]);
        assert_eq!(cgroup.layout.get().unwrap(), "hybrid");
        assert_eq!(cgroup.cpuset.get().unwrap(), "/sys/fs/cgroup/cpuset");
        assert_eq!(cpus(&cgroup), "0,1");
        assert_eq!(cgroup.cpus.source(), "/sys/fs/cgroup/cpuset/cpuset.effective_cpus");
        assert_eq!(cgroup.partition.value().unwrap_err().code, Why::NotApplicable);
    }

    /// Check that the nearest v2 ancestor with the controller is used.
    #[test]
    fn nearest_ancestor() {
        let cgroup = read(&[
            (mounts::FILE, V2),
            (GROUPS, "0::/rt.slice/job.scope/inner\n"),
            ("/sys/fs/cgroup/cpuset.cpus.effective", "0-7\n"),
            ("/sys/fs/cgroup/rt.slice/cpuset.cpus.effective", "2-3\n"),
            ("/sys/fs/cgroup/rt.slice/cpuset.cpus.partition", "isolated\n"),
        ]);
        assert_eq!(cgroup.layout.get().unwrap(), "v2");
        assert_eq!(cgroup.cpuset.get().unwrap(), "/sys/fs/cgroup/rt.slice");
        assert_eq!(cpus(&cgroup), "2,3");
        assert_eq!(cgroup.partition.get().unwrap(), "isolated");
    }

    /// Check that a cgroup outside the mounted hierarchy is replaced by the root of the mount.
    #[test]
    fn inside_a_container() {
        for group in ["0::/docker/4f2a\n", "0::/../../4f2a\n"] {
            let cgroup = read(&[
                (mounts::FILE, V2),
                (GROUPS, group),
                ("/sys/fs/cgroup/cpuset.cpus.effective", "4-5\n"),
            ]);
            assert_eq!(cgroup.cpuset.get().unwrap(), "/sys/fs/cgroup");
            assert_eq!(cpus(&cgroup), "4,5");
        }
    }

    /// Check the old cpuset file system, and a kernel without `effective`.
    #[test]
    fn old_mounts() {
        let cgroup = read(&[
            (mounts::FILE, "none /dev/cpuset cpuset rw 0 0\n"),
            (GROUPS, "2:cpuset:/system\n"),
            ("/dev/cpuset/system/cpus", "0,2\n"),
        ]);
        assert_eq!(cgroup.layout.get().unwrap(), "v1");
        assert_eq!(cpus(&cgroup), "0,2");
    }

    /// Check that no hierarchy and unknown mounts are distinguished.
    #[test]
    fn nothing_mounted() {
        let cgroup = read(&[(mounts::FILE, "proc /proc proc rw 0 0\n"), (GROUPS, "")]);
        assert_eq!(cgroup.layout.get().unwrap(), "none");
        assert_eq!(cgroup.cpuset.value().unwrap_err().code, Why::Absent);
        let cgroup = read(&[]);
        assert_eq!(cgroup.layout.value().unwrap_err().code, Why::Absent);
    }

    /// Check where partitions can be created: not in v1 or hybrid hierarchies, not in one that is
    /// read-only, not in the cgroup of a container unless that is a partition itself.
    #[test]
    fn partitions() {
        const HYBRID: &str = "cgroup /sys/fs/cgroup/cpuset cgroup rw,cpuset 0 0\n\
                              cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let read_only = V2.replace(" rw", " ro");
        let v2 = ("/sys/fs/cgroup/cgroup.controllers", "cpuset cpu io\n");
        let typed = ("/sys/fs/cgroup/cgroup.type", "domain\n");
        let member = ("/sys/fs/cgroup/cpuset.cpus.partition", "member\n");
        let isolated = ("/sys/fs/cgroup/cpuset.cpus.partition", "isolated\n");
        let unified = ("/sys/fs/cgroup/unified/cgroup.controllers", "cpuset\n");
        for (mounts, files, expected) in [
            (V2, vec![v2], Ok("/sys/fs/cgroup")),
            (V2, vec![], Err(Why::Absent)),
            (V2, vec![v2, typed, member], Err(Why::NotApplicable)),
            (V2, vec![v2, typed, isolated], Ok("/sys/fs/cgroup")),
            (&read_only, vec![v2], Err(Why::NotApplicable)),
            (HYBRID, vec![], Err(Why::Absent)),
            (HYBRID, vec![unified], Ok("/sys/fs/cgroup/unified")),
            ("proc /proc proc rw 0 0\n", vec![], Err(Why::Absent)),
        ] {
            let mut all = vec![(mounts::FILE, mounts)];
            all.extend(&files);
            let found = read(&all).partitions;
            let found = found.value().map(String::as_str).map_err(|why| why.code);
            assert_eq!(found, expected, "{mounts} {files:?}");
        }
    }

    /// Check that invalid contents of the cpuset are an error.
    #[test]
    fn garbage() {
        let cgroup = read(&[
            (mounts::FILE, V2),
            (GROUPS, "0::/a\n"),
            ("/sys/fs/cgroup/a/cpuset.cpus.effective", "3-1\n"),
            ("/sys/fs/cgroup/cpuset.cpus.effective", "0-7\n"),
        ]);
        assert_eq!(cgroup.cpus.value().unwrap_err().code, Why::Garbage);
    }
}
