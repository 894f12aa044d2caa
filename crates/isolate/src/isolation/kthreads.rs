//! The kernel's own threads that may run on a CPU and need not.
//!
//! Threads that it starts meanwhile go where it puts them, whatever `kthreadd` may use
//! (`__kthread_create_on_node`). Threads that the kernel bound to
//! their CPU (`PF_NO_SETAFFINITY`) stay: `ksoftirqd/N`, `migration/N`, `kworker/N:*`.

use units::CpuSet;

use crate::numbered::numbered;
use crate::settings::change::{Change, Changes, without};
use crate::settings::setting::Setting;
use crate::task::Stat;
use crate::thread::affinity_of;

/// What has to be changed so that no movable thread of the kernel runs on these CPUs.
pub(crate) fn away(cpus: &CpuSet, others: &CpuSet) -> Changes {
    let numbers = numbered("/proc");
    let movable = numbers.into_iter().filter_map(|tid| {
        let stat = Stat::of(tid).filter(Stat::is_movable_kthread)?;
        let rest = without(&affinity_of(tid).ok()?, cpus, others)?;
        Some(Ok(Change::new(Setting::Affinity(stat.task), rest.to_string())))
    });
    movable.collect()
}
