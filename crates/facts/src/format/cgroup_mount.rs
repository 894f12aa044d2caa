//! The mounted hierarchies of cgroups that have a number or a controller: `/proc/self/mounts`, and
//! `/proc/cgroups` for those of v1.
//!
//! A hierarchy of v1 without a controller (`name=systemd`) is left out.

use crate::fact::{Unknown, Why};
use crate::format::mounts::{Mount, Mounts};
use crate::tree::root::Root;

/// The controllers, each with the number of its hierarchy.
const CONTROLLERS: &str = "/proc/cgroups";

/// A mounted hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CgroupMount {
    /// The mount point.
    pub directory: String,
    /// Its number; 0: that of v2.
    pub hierarchy: u32,
    /// A controller of it; `None` for that of v2, which is found without one.
    pub controller: Option<String>,
}

impl CgroupMount {
    /// All of them, that of v2 first.
    ///
    /// # Errors
    /// None is mounted, or the mounts cannot be read.
    pub fn read(root: &Root) -> Result<Vec<Self>, Unknown> {
        let mounts = Mounts::read(root)?;
        let whole = mounts.of_kind("cgroup2").map(|mount| Self {
            directory: mount.directory.clone(),
            hierarchy: 0,
            controller: None,
        });
        let controllers = root.text(CONTROLLERS).unwrap_or_default();
        let old = mounts.of_kind("cgroup").filter_map(|mount| old(mount, &controllers));
        let all: Vec<Self> = whole.chain(old).collect();
        match all.is_empty() {
            true => Err(Unknown::new(Why::Absent, "no hierarchy of cgroups is mounted")),
            false => Ok(all),
        }
    }
}

/// A hierarchy of v1, if it has a controller.
fn old(mount: &Mount, controllers: &str) -> Option<CgroupMount> {
    controllers.lines().find_map(|line| {
        let mut fields = line.split_whitespace();
        let controller = fields.next().filter(|name| mount.has(name))?;
        Some(CgroupMount {
            directory: mount.directory.clone(),
            hierarchy: fields.next()?.parse().ok().filter(|number| *number > 0)?,
            controller: Some(controller.to_owned()),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::tree;

    /// Check a hybrid of both versions, and a machine without cgroups.
    #[test]
    fn versions() {
        let mounts = "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n\
                      cgroup /sys/fs/cgroup/systemd cgroup rw,name=systemd 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let controllers = "#subsys_name\thierarchy\tnum_cgroups\tenabled\n\
                           cpuset\t0\t1\t1\ncpu\t3\t1\t1\ncpuacct\t3\t1\t1\n";
        let files = [("/proc/self/mounts", mounts), ("/proc/cgroups", controllers)];
        let found = CgroupMount::read(&tree(&files).root);
        let mount = |directory: &str, hierarchy, controller: Option<&str>| CgroupMount {
            directory: directory.to_owned(),
            hierarchy,
            controller: controller.map(str::to_owned),
        };
        let expected = [
            mount("/sys/fs/cgroup/unified", 0, None),
            mount("/sys/fs/cgroup/cpu,cpuacct", 3, Some("cpu")),
        ];
        assert_eq!(found.unwrap(), expected);
        assert!(CgroupMount::read(&tree(&[("/proc/self/mounts", "")]).root).is_err());
    }
}
