//! Switching off the throttling of real-time tasks.
//!
//! Until 6.11, and with `RT_GROUP_SCHED` also later, real-time tasks may run for
//! `sched_rt_runtime_us` of each period, on all CPUs together; -1 means no limit
//! (`Documentation/scheduler/sched-rt-group.rst`). Since 6.12, a fair server on each CPU guarantees
//! ordinary tasks 50 ms of each second, since 7.0 another one sched_ext tasks; a runtime of 0
//! disables it (`kernel/sched/debug.c`, debugfs). In 6.12 (Debian's 6.12.117) disabling it is
//! rejected as exceeding the bandwidth of deadline tasks (EBUSY), unless that bandwidth is
//! unlimited, which the first setting still controls there.

use std::path::{Path, PathBuf};

use facts::{Facts, Why};
use units::{Cpu, CpuSet};

use crate::error::{Error, Kind};
use crate::settings::change::{Change, Changes};

const RT_RUNTIME: &str = "/proc/sys/kernel/sched_rt_runtime_us";
const SERVERS: &str = "/sys/kernel/debug/sched";

/// The changes that let real-time tasks use all the time of these CPUs.
pub(crate) fn switch_off(cpus: &CpuSet, others: &CpuSet, facts: &Facts) -> Changes {
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

/// The deadline servers of a CPU that this kernel has.
fn servers(cpu: Cpu) -> impl Iterator<Item = PathBuf> {
    let names = ["fair_server", "ext_server"].into_iter();
    let files = names.map(move |name| format!("{SERVERS}/{name}/cpu{cpu}/runtime"));
    files.map(PathBuf::from).filter(|file: &PathBuf| Path::exists(file))
}
