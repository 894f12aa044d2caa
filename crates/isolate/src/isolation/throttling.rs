//! What keeps real-time tasks from all of a CPU's time, and how that is switched off.
//!
//! Until 6.11, and with `RT_GROUP_SCHED` later too, they may run `sched_rt_runtime_us` of each
//! period, on all CPUs together; -1 is all of it (`Documentation/scheduler/sched-rt-group.rst`).
//! Since 6.12 a fair server on each CPU gives ordinary tasks 50 ms of each second, since 7.0 one
//! for sched_ext as well; a runtime of 0 switches it off (`kernel/sched/debug.c`, debugfs). To 6.12
//! (Debian's 6.12.117) that looks like more than there is for deadline tasks, and it refuses
//! (EBUSY), unless there is no limit to that: which is what the first setting still means there.

use std::path::{Path, PathBuf};

use facts::{Facts, Why};
use units::{Cpu, CpuSet};

use crate::error::{Error, Kind};
use crate::settings::change::{Change, Changes};

const RT_RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
const SERVERS: &str = "/sys/kernel/debug/sched";

/// What has to be changed so that a real-time task may have all of these CPUs.
pub(crate) fn off(cpus: &CpuSet, others: &CpuSet, facts: &Facts) -> Changes {
    if others.is_empty() {
        let text = "real-time tasks stay throttled: no other CPU is left";
        return vec![Err(Error::new(Kind::Unsafe, text))];
    }
    let mut changes = vec![Ok(Change::of_file(PathBuf::from(RT_RUNTIME), "-1"))];
    match facts.sched.fair_server_runtime_ns.value() {
        Err(unknown) if unknown.code == Why::TooOld => {}
        Ok(_) => {
            let files = cpus.iter().flat_map(servers);
            changes.extend(files.map(|file| Ok(Change::of_file(file, "0"))));
        }
        Err(unknown) => {
            let text = format!("the fair servers of CPU {cpus} stay on: {unknown}");
            changes.push(Err(Error::new(Kind::Privilege, text)));
        }
    }
    changes
}

/// The servers that this kernel has.
fn servers(cpu: Cpu) -> impl Iterator<Item = PathBuf> {
    let names = ["fair_server", "ext_server"].into_iter();
    let files = names.map(move |name| format!("{SERVERS}/{name}/cpu{cpu}/runtime"));
    files.map(PathBuf::from).filter(|file: &PathBuf| Path::exists(file))
}
