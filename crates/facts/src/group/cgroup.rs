//! Control groups: which hierarchy owns the CPUs, and what this process got of them.
//!
//! Truth: `/proc/self/mounts` for where hierarchies are mounted, `/proc/self/cgroup` for
//! where in them this process is, and the files of the cpuset there. On v2 a group
//! without the controller has what its nearest ancestor with it has. Partitions are
//! v2's, since 5.0 (`isolated` since 6.1).
//!
//! Cannot see the part of a hierarchy that a container hides.

use units::CpuSet;

use crate::absence::Needs;
use crate::fact::{Fact, Unknown, Why, group};
use crate::format::mounts::{self, Mount, Mounts};
use crate::sources::Sources;

const GROUPS: &str = "/proc/self/cgroup";

group! {
    /// Control groups.
    "cgroup" Cgroup {
        /// `v1`, `v2`, `hybrid`, `none`.
        layout: String,
        /// The directory of the cpuset this process is in.
        cpuset: String,
        /// The CPUs that cpuset grants.
        cpus: CpuSet,
        /// What kind of partition it is (`member`, `root`, `isolated`).
        partition: String,
    }
}

/// The cpuset this process is in.
struct Cpuset {
    directory: String,
    /// The file that says which CPUs it grants.
    file: String,
    cpus: CpuSet,
    is_v2: bool,
    is_root: bool,
}

impl Cgroup {
    pub(crate) fn read(sources: &Sources) -> Self {
        let mounts = Mounts::read(sources.root);
        let layout = mounts.as_ref().map(layout).map_err(Clone::clone);
        let cpuset = mounts.and_then(|mounts| cpuset(sources, &mounts));
        let cpuset = match cpuset {
            Ok(cpuset) => cpuset,
            Err(unknown) => {
                return Self::without(Fact::of(layout, mounts::FILE), &unknown);
            }
        };
        Self {
            layout: Fact::of(layout, mounts::FILE),
            partition: partition(sources, &cpuset),
            cpuset: Fact::known(cpuset.directory, GROUPS),
            cpus: Fact::known(cpuset.cpus, cpuset.file),
        }
    }

    /// The facts where no cpuset was found.
    fn without(layout: Fact<String>, unknown: &Unknown) -> Self {
        Self {
            layout,
            cpuset: Fact::unknown(unknown.clone(), GROUPS),
            cpus: Fact::unknown(unknown.clone(), GROUPS),
            partition: Fact::unknown(unknown.clone(), GROUPS),
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

fn cpuset(sources: &Sources, mounts: &Mounts) -> Result<Cpuset, Unknown> {
    let needs = Needs::since("2.6.12").with(&["CPUSETS"]);
    let groups =
        sources.root.text(GROUPS).map_err(|unknown| sources.why(&unknown, &needs));
    let groups = groups?;
    let old = mounts.of_kind("cgroup").find(|mount| mount.has("cpuset"));
    let old = old.or_else(|| mounts.of_kind("cpuset").next());
    let (mount, group, is_v2) = match (old, mounts.of_kind("cgroup2").next()) {
        (Some(mount), _) => (mount, group_with(&groups, "cpuset"), false),
        (None, Some(mount)) => (mount, group_with(&groups, ""), true),
        (None, None) => {
            let missing =
                Unknown::new(Why::Absent, "no hierarchy with cpusets is mounted");
            return Err(sources.why(&missing, &needs));
        }
    };
    let Some(group) = group else {
        let text = format!("{GROUPS} does not say where this process is");
        return Err(Unknown::new(Why::Absent, text));
    };
    nearest(sources, mount, group, is_v2)
}

/// This process's group in the hierarchy with that controller; v2's has no name.
fn group_with<'a>(groups: &'a str, controller: &str) -> Option<&'a str> {
    groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let found = fields.next()?.split(',').any(|name| name == controller);
        fields.next().filter(|_| found)
    })
}

/// The nearest group, from this process's own upwards, that has a cpuset.
fn nearest(
    sources: &Sources,
    mount: &Mount,
    group: &str,
    is_v2: bool,
) -> Result<Cpuset, Unknown> {
    let base = mount.directory.trim_end_matches('/');
    // A container may be shown a group that lies above or beside what it has mounted.
    let mut group = if group.split('/').any(|part| part == "..") { "" } else { group };
    // `effective` since 3.17 on v1; `cpus` where v1 is mounted the old way.
    let names: &[&str] = match is_v2 {
        true => &["cpuset.cpus.effective"],
        false => &["cpuset.effective_cpus", "effective_cpus", "cpuset.cpus", "cpus"],
    };
    loop {
        group = group.trim_end_matches('/');
        let directory = format!("{base}{group}");
        for name in names {
            let file = format!("{directory}/{name}");
            let cpus = sources.cpus(&file);
            match cpus.value() {
                Ok(cpus) => {
                    let (cpus, is_root) = (cpus.clone(), group.is_empty());
                    return Ok(Cpuset { directory, file, cpus, is_v2, is_root });
                }
                Err(unknown) if unknown.code == Why::Absent => {}
                Err(unknown) => return Err(unknown.clone()),
            }
        }
        let Some((above, _)) = group.rsplit_once('/') else { break };
        group = above;
    }
    let missing =
        Unknown::new(Why::Absent, format!("no group below {base} has a cpuset"));
    Err(sources.why(&missing, &Needs::options(&["CPUSETS"])))
}

fn partition(sources: &Sources, cpuset: &Cpuset) -> Fact<String> {
    let file = format!("{}/cpuset.cpus.partition", cpuset.directory);
    let nothing =
        |text: &str| Fact::unknown(Unknown::new(Why::NotApplicable, text), file.as_str());
    if !cpuset.is_v2 {
        return nothing("cpusets of cgroup v1 are no partitions");
    }
    if cpuset.is_root {
        return nothing("the whole machine is no partition of anything");
    }
    sources.explained(&sources.word(&file), &Needs::since("5.0"))
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

    /// Check this machine: both kinds are mounted, and the cpuset is on v1.
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

    /// Check that on v2 the nearest ancestor with the controller counts.
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

    /// Check that a container that is shown a group it has not mounted falls back to
    /// what it has.
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

    /// Check cpusets mounted the old way, and a kernel without `effective`.
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

    /// Check that no hierarchy, and one that says nothing, are told apart.
    #[test]
    fn nothing_mounted() {
        let cgroup = read(&[(mounts::FILE, "proc /proc proc rw 0 0\n"), (GROUPS, "")]);
        assert_eq!(cgroup.layout.get().unwrap(), "none");
        assert_eq!(cgroup.cpuset.value().unwrap_err().code, Why::Absent);
        let cgroup = read(&[]);
        assert_eq!(cgroup.layout.value().unwrap_err().code, Why::Absent);
    }

    /// Check that garbage in the cpuset is named, not passed over.
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
