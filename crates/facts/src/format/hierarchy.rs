//! The directories of this process's cgroup with a controller, and of its ancestors.
//!
//! From `/proc/self/mounts` (the mount points of hierarchies) and `/proc/self/cgroup` (the cgroups of this
//! process). A controller is in one hierarchy only: one of v1 that was mounted with it, or that of v2.
//!
//! The part of a hierarchy that is outside a container is not visible.

use crate::fact::{Unknown, Why};
use crate::format::mounts::Mounts;
use crate::tree::root::Root;

/// The file with the cgroups of this process.
pub(crate) const GROUPS: &str = "/proc/self/cgroup";

/// This process's place in the hierarchy with a controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    /// The directory of its cgroup, and of each ancestor up to the mount point.
    pub(crate) directories: Vec<String>,
    /// Whether it is that of v2, which may not have the controller.
    pub(crate) is_v2: bool,
}

impl Hierarchy {
    /// That with this controller; `None` if neither such a hierarchy nor one of v2 is mounted.
    ///
    /// # Errors
    /// The cgroups of this process are unknown.
    pub(crate) fn with(
        root: &Root,
        mounts: &Mounts,
        controller: &str,
    ) -> Result<Option<Self>, Unknown> {
        let groups = root.text(GROUPS)?;
        let old = mounts.of_kind("cgroup").find(|mount| mount.has(controller));
        // Before cgroups had a file system of their own, cpusets had one (2.6.12).
        let old = old.or_else(|| {
            mounts.of_kind("cpuset").next().filter(|_| controller == "cpuset")
        });
        let (mount, group, is_v2) = match (old, mounts.of_kind("cgroup2").next()) {
            (Some(mount), _) => (mount, group_with(&groups, controller), false),
            (None, Some(mount)) => (mount, group_with(&groups, ""), true),
            (None, None) => return Ok(None),
        };
        let Some(group) = group else {
            let text = format!("{GROUPS} has no cgroup of this process");
            return Err(Unknown::new(Why::Absent, text));
        };
        let directories = directories(mount.directory.trim_end_matches('/'), group);
        Ok(Some(Self { directories, is_v2 }))
    }

    /// That of v2, with or without controllers; `None` if it is not mounted.
    ///
    /// # Errors
    /// The cgroups of this process are unknown.
    pub(crate) fn unified(root: &Root, mounts: &Mounts) -> Result<Option<Self>, Unknown> {
        let groups = root.text(GROUPS)?;
        let found = mounts.of_kind("cgroup2").next().zip(group_with(&groups, ""));
        Ok(found.map(|(mount, group)| Self {
            directories: directories(mount.directory.trim_end_matches('/'), group),
            is_v2: true,
        }))
    }
}

/// The directory of a group, and of each ancestor.
fn directories(base: &str, group: &str) -> Vec<String> {
    // In a container, the cgroup may be outside the mounted part of the hierarchy.
    let is_outside = group.split('/').any(|part| part == "..");
    let mut group = if is_outside { "" } else { group.trim_end_matches('/') };
    let mut directories = vec![format!("{base}{group}")];
    while let Some((above, _)) = group.rsplit_once('/') {
        group = above.trim_end_matches('/');
        directories.push(format!("{base}{group}"));
    }
    directories
}

/// This process's cgroup in the hierarchy with a controller, or in v2 if `controller` is empty.
fn group_with<'a>(groups: &'a str, controller: &str) -> Option<&'a str> {
    groups.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let found = fields.next()?.split(',').any(|name| name == controller);
        fields.next().filter(|_| found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that the ancestors of a group end at the mount point, and that a group outside of it is
    /// replaced by it.
    #[test]
    fn ancestors() {
        let all = directories("/sys/fs/cgroup", "/a.slice/b.scope/");
        let expected = [
            "/sys/fs/cgroup/a.slice/b.scope",
            "/sys/fs/cgroup/a.slice",
            "/sys/fs/cgroup",
        ];
        assert_eq!(all, expected);
        for group in ["/", "/../x", ""] {
            assert_eq!(
                directories("/sys/fs/cgroup", group),
                ["/sys/fs/cgroup"],
                "{group}"
            );
        }
    }

    /// Check that a hierarchy of v1 is used if it has the controller, and else that of v2.
    #[test]
    fn versions() {
        let groups = "3:cpu,cpuacct:/job\n0::/unit\n";
        assert_eq!(group_with(groups, "cpu"), Some("/job"));
        assert_eq!(group_with(groups, "cpuacct"), Some("/job"));
        assert_eq!(group_with(groups, ""), Some("/unit"));
        assert_eq!(group_with(groups, "cpuset"), None);
    }
}
