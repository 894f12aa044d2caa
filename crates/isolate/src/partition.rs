//! An isolated partition: a control group whose CPU the scheduler balances nothing onto.
//!
//! `cpuset.cpus.partition` = `isolated` in a group right below the root of the v2 hierarchy,
//! since 6.1 (`Documentation/admin-guide/cgroup-v2.rst`). Where cpusets belong to the v1
//! hierarchy, or this process may not make groups, there is none.

use std::path::{Path, PathBuf};

use facts::Facts;
use units::Cpu;

use crate::change::{Change, Changes};
use crate::error::{Error, Kind};
use crate::setting::{Setting, YES};
use crate::task::Task;

/// What has to be changed so that this process is alone in a partition of that CPU.
pub(crate) fn of(cpu: Cpu, facts: &Facts) -> Changes {
    match (mount(facts), Task::own()) {
        (Ok(mount), Some(own)) => steps(cpu, &mount, own).map(Ok).into(),
        (Err(why), _) => vec![Err(why)],
        (_, None) => {
            vec![Err(Error::new(Kind::System, "/proc does not show this process"))]
        }
    }
}

fn steps(cpu: Cpu, mount: &Path, own: Task) -> [Change; 5] {
    let group = mount.join(format!("noisefloor-{cpu}"));
    let yes = |setting| Change { setting, value: YES.to_owned() };
    let value = group.display().to_string();
    [
        yes(Setting::Cpuset(mount.to_owned())),
        yes(Setting::Group(group.clone())),
        Change::of_file(group.join("cpuset.cpus"), cpu.to_string()),
        Change::of_file(group.join("cpuset.cpus.partition"), "isolated"),
        Change {
            setting: Setting::Member { process: own, mount: mount.to_owned() },
            value,
        },
    ]
}

/// Where the v2 hierarchy is mounted, if it has cpusets.
fn mount(facts: &Facts) -> Result<PathBuf, Error> {
    let refuse = |why: String| {
        Error::new(Kind::NoSetting, format!("no isolated partition: {why}"))
    };
    let layout = facts.cgroup.layout.value().map_err(|why| refuse(why.to_string()))?;
    let places = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"].map(PathBuf::from);
    let has_cpuset = |place: &PathBuf| {
        std::fs::read_to_string(place.join("cgroup.controllers"))
            .is_ok_and(|text| text.split_whitespace().any(|name| name == "cpuset"))
    };
    places.into_iter().find(has_cpuset).ok_or_else(|| {
        refuse(format!(
            "the control groups here are {layout}, and cpusets are not v2's \
             (systemd.unified_cgroup_hierarchy=1, cgroup_no_v1=cpuset)"
        ))
    })
}
