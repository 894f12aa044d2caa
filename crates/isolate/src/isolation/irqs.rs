//! Moving device interrupts off CPUs.
//!
//! `/proc/irq/N/smp_affinity_list` (`Documentation/core-api/irq/irq-affinity.rst`). The kernel
//! rejects changes to managed interrupts (EIO) and to per-CPU interrupts (EPERM); which these are
//! is known only after the attempt. `irqbalance` may move interrupts back: settings that another
//! process has changed in the meantime are not restored.

use std::fs;
use std::path::{Path, PathBuf};

use units::CpuSet;

use crate::numeric_entries::numeric_entries;
use crate::settings::change::{Change, Changes, without};

const IRQS: &str = "/proc/irq";

/// The changes that move all device interrupts off `cpus`; interrupts without any other CPU are
/// moved to `others`.
pub(crate) fn move_off(cpus: &CpuSet, others: &CpuSet) -> Changes {
    let numbers = numeric_entries(IRQS);
    let lists =
        numbers.into_iter().map(|irq| format!("{IRQS}/{irq}/smp_affinity_list").into());
    let default = Path::new(IRQS).join("default_smp_affinity");
    let of_list = lists.filter_map(|file: PathBuf| {
        let text = fs::read_to_string(&file).ok()?;
        let now: CpuSet = text.trim().parse().ok()?;
        let rest = without(&now, cpus, others)?;
        // In the kernel's format if nothing changes, so that it compares as equal.
        let value = if rest == now { text.trim().to_owned() } else { rest.to_list() };
        Some(Change::of_file(file, value))
    });
    of_list.chain(Change::of_mask(default, cpus, others)).map(Ok).collect()
}
