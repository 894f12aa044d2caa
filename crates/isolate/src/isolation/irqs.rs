//! Device interrupts that may come to some CPUs, and where else they can go.
//!
//! `/proc/irq/N/smp_affinity_list` (`Documentation/core-api/irq/irq-affinity.rst`). The kernel
//! refuses to move those that it manages itself (EIO) and those of one CPU (EPERM); which
//! these are shows only when it is tried. `irqbalance` may move them back: what somebody else
//! changed meanwhile stays as they want it.

use std::fs;
use std::path::{Path, PathBuf};

use units::CpuSet;

use crate::numbered::numbered;
use crate::settings::change::{Change, Changes, without};

const IRQS: &str = "/proc/irq";

/// What has to be changed so that no device interrupts these CPUs; `others` are those that an
/// interrupt goes to that has nowhere else to go.
pub(crate) fn away(cpus: &CpuSet, others: &CpuSet) -> Changes {
    let numbers = numbered(IRQS);
    let lists =
        numbers.into_iter().map(|irq| format!("{IRQS}/{irq}/smp_affinity_list").into());
    let default = Path::new(IRQS).join("default_smp_affinity");
    let of_list = lists.filter_map(|file: PathBuf| {
        let text = fs::read_to_string(&file).ok()?;
        let now: CpuSet = text.trim().parse().ok()?;
        let rest = without(&now, cpus, others)?;
        // In the kernel's own words, where nothing is to change.
        let value = if rest == now { text.trim().to_owned() } else { rest.to_string() };
        Some(Change::of_file(file, value))
    });
    of_list.chain(Change::of_mask(default, cpus, others)).map(Ok).collect()
}
