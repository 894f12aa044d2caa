//! Isolated cpuset partitions: cgroups whose CPUs are excluded from the scheduler's load balancing.
//!
//! `cpuset.cpus.partition` = `isolated` in a child of the root of the v2 hierarchy, since 6.1
//! (`Documentation/admin-guide/cgroup-v2.rst`). The cgroup is threaded, and only the thread that
//! uses the CPUs is moved into it, by its
//! [`PartitionEntry`](crate::thread::partition_entry::PartitionEntry): other threads of the process
//! would never run beside a real-time thread there. Not possible if the cpuset controller is in the
//! v1 hierarchy, or if this process may not create cgroups.
//!
//! Creating and removing a partition resets the affinity of every thread in the root cgroup. Those
//! of user threads and movable kernel threads are restored. Those of workers of unbound workqueues,
//! which are restricted if the kernel boots with `nohz_full=` or `isolcpus=`, cannot be restored
//! (`EINVAL`, `PF_NO_SETAFFINITY`). Linux 6.15 does not reset these (commit 39b5ef791d10); before
//! that, no partition is created then, even if a stable release has the same change.

use std::fs;
use std::path::{Path, PathBuf};

use facts::Facts;
use units::{Cause, CpuSet};

use crate::error::{Error, Kind};
use crate::settings::change::{Change, Changes, To};
use crate::settings::setting::{Setting, YES};
use crate::task::{Stat, Task};
use crate::thread::affinity_of;
use crate::thread::partition_entry::{MOUNTS, name};

/// The changes that create a partition with these CPUs, which a thread of this process can enter.
pub(crate) fn of(cpus: &CpuSet, facts: &Facts) -> Changes {
    match (mount(facts), Task::own()) {
        (Ok(mount), Some(own)) => {
            if let Some(why) = workers_change(&mount, facts) {
                return vec![Err(why)];
            }
            let others = affinities(cpus, &mount, facts);
            others.into_iter().chain(steps(cpus, &mount, own)).map(Ok).collect()
        }
        (Err(why), _) => vec![Err(why)],
        (_, None) => {
            vec![Err(Error::new(Kind::System, "/proc does not show this process"))]
        }
    }
}

/// The affinities that the kernel resets when a partition is created or removed: those of all
/// threads in the root cgroup, including its own threads. The new affinity is all CPUs, or all
/// except those of partitions (`update_tasks_cpumask` in `kernel/cgroup/cpuset.c`). The threads of
/// this process are handled by [`crate::thread::affinities`].
fn affinities(cpus: &CpuSet, mount: &Path, facts: &Facts) -> Vec<Change> {
    let whole = whole(facts);
    let expected = whole.iter().flat_map(|all| [(*all).clone(), all.without(cpus)]);
    let expected: Vec<String> = expected.map(|cpus| cpus.to_string()).collect();
    let is_own = |tid: u32| Path::new(&format!("/proc/self/task/{tid}")).exists();
    let numbers = threads_of_root(mount).into_iter();
    let forgotten = numbers.filter(|&tid| !is_own(tid)).filter_map(|tid| {
        let stat = Stat::of(tid).filter(Stat::is_movable)?;
        let now = affinity_of(tid).ok()?;
        let to = To::SideEffect(expected.clone());
        let change = Change { setting: Setting::Affinity(stat.task), to };
        (!whole.contains(&&now)).then_some(change)
    });
    forgotten.collect()
}

/// The affinities of a thread that is not restricted.
fn whole(facts: &Facts) -> Vec<&CpuSet> {
    let all = [&facts.cpus.possible, &facts.cpus.online].map(facts::Fact::get);
    all.into_iter().flatten().collect()
}

fn threads_of_root(mount: &Path) -> Vec<u32> {
    let threads = fs::read_to_string(mount.join("cgroup.threads")).unwrap_or_default();
    threads.lines().filter_map(|line| line.parse().ok()).collect()
}

/// Why no partition can be created: it would change affinities that cannot be restored.
fn workers_change(mount: &Path, facts: &Facts) -> Option<Error> {
    if facts.kernel_at_least(6, 15) == Some(true) {
        return None;
    }
    let whole = whole(facts);
    let restricted = |tid: u32| {
        let stat = Stat::of(tid).filter(Stat::is_unbound_worker)?;
        let cpus = affinity_of(tid).ok().filter(|now| !whole.contains(&now))?;
        Some((stat.task, cpus))
    };
    let (worker, cpus) = threads_of_root(mount).into_iter().find_map(restricted)?;
    let text = format!(
        "no isolated partition: before Linux 6.15 it would change the affinity of the kernel \
         worker {worker}, which is CPU {cpus} (nohz_full=, isolcpus= or the workqueues' \
         cpumask) and could not be restored"
    );
    Some(Error::new(Kind::Unsafe, text))
}

fn steps(cpus: &CpuSet, mount: &Path, own: Task) -> [Change; 6] {
    let group = mount.join(name(cpus));
    let root = mount.display().to_string();
    let within = |file: &str, value: &str| Change {
        setting: Setting::File(group.join(file)),
        to: To::Transient(value.to_owned()),
    };
    [
        Change::new(Setting::Member { process: own, mount: mount.to_owned() }, root),
        Change::new(Setting::Cpuset(mount.to_owned()), YES),
        Change::new(Setting::Group(group.clone()), YES),
        within("cgroup.type", "threaded"),
        within("cpuset.cpus", &cpus.to_string()),
        within("cpuset.cpus.partition", "isolated"),
    ]
}

/// The mount point of the v2 hierarchy, if a partition can be created there.
fn mount(facts: &Facts) -> Result<PathBuf, Error> {
    let refuse =
        |why: Cause| Error::new(Kind::NoSetting, "no isolated partition").caused_by(why);
    let found = facts.cgroup.partitions.value();
    let mount = PathBuf::from(found.map_err(|why| refuse(why.clone().into()))?);
    match MOUNTS.iter().any(|known| Path::new(known) == mount) {
        true => Ok(mount),
        false => {
            let (found, expected) = (mount.display(), MOUNTS.join(" or "));
            let why = format!("cgroup v2 is mounted on {found}; expected {expected}");
            Err(refuse(why.into()))
        }
    }
}
