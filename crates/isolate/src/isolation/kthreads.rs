//! Moving kernel threads off CPUs.
//!
//! Kernel threads that are created later get their affinity from the kernel, regardless of that of
//! `kthreadd` (`__kthread_create_on_node`). Per-CPU kernel threads (`PF_NO_SETAFFINITY`) cannot be
//! moved: `ksoftirqd/N`, `migration/N`, `kworker/N:*`.

use units::CpuSet;

use crate::numeric_entries::numeric_entries;
use crate::settings::change::{Change, Changes, without};
use crate::settings::setting::Setting;
use crate::task::Stat;
use crate::thread::affinity_of;

/// The changes that move all movable kernel threads off `cpus`.
pub(crate) fn move_off(cpus: &CpuSet, others: &CpuSet) -> Changes {
    let numbers = numeric_entries("/proc");
    let movable = numbers.into_iter().filter_map(|tid| {
        let stat = Stat::of(tid).filter(Stat::is_movable_kthread)?;
        let rest = without(&affinity_of(tid).ok()?, cpus, others)?;
        Some(Ok(Change::new(Setting::Affinity(stat.task), rest.to_string())))
    });
    movable.collect()
}
