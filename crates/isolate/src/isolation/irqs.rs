//! Moving device interrupts off CPUs.
//!
//! `/proc/irq/N/smp_affinity_list` (`Documentation/core-api/irq/irq-affinity.rst`). The kernel
//! rejects changes to managed interrupts (EIO) and to per-CPU interrupts (EPERM); which these are
//! is known only after the attempt; no failure is reported if the kernel delivers the interrupt to
//! another CPU anyway (`effective_affinity_list`, since 4.13). `irqbalance` may move interrupts back: settings that another
//! process has changed in the meantime are not restored.

use std::fs;
use std::path::{Path, PathBuf};

use units::CpuSet;

use crate::error::{Error, Kind};
use crate::numeric_entries::numeric_entries;
use crate::settings::change::{Change, Changes, without};
use crate::settings::setting::Setting;

const IRQS: &str = "/proc/irq";
const LIST: &str = "smp_affinity_list";

/// The changes that move all device interrupts off `cpus`; interrupts without any other CPU are
/// moved to `others`.
pub(crate) fn move_off(cpus: &CpuSet, others: &CpuSet) -> Changes {
    let numbers = numeric_entries(IRQS);
    let lists = numbers.into_iter().map(|irq| format!("{IRQS}/{irq}/{LIST}").into());
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

/// Whether the kernel itself sets the affinity of this interrupt, and delivers it to none of `cpus`:
/// the failed change was not necessary.
pub(crate) fn is_elsewhere(change: &Change, why: &Error, cpus: &CpuSet) -> bool {
    let Setting::File(file) = &change.setting else { return false };
    let is_list = file.starts_with(IRQS) && file.ends_with(LIST);
    // EIO, or since about 6.12 a file that cannot be written, and EPERM.
    let is_fixed = || {
        let is_read_only =
            fs::metadata(file).is_ok_and(|file| file.permissions().readonly());
        why.kind() == Kind::System || is_read_only
    };
    is_list && is_fixed() && is_disjoint(file, cpus)
}

/// Whether the interrupt is delivered to none of `cpus`; false if that is unknown.
fn is_disjoint(list: &Path, cpus: &CpuSet) -> bool {
    let text = fs::read_to_string(list.with_file_name("effective_affinity_list"));
    let effective = text.ok().and_then(|text| text.trim().parse::<CpuSet>().ok());
    effective.is_some_and(|effective| effective.and(cpus).is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that only a fixed interrupt that is delivered to other CPUs needs no change.
    #[test]
    fn elsewhere() {
        let nowhere = CpuSet::default();
        let fixed = Error::new(Kind::System, "EIO");
        for change in move_off(&nowhere, &nowhere).into_iter().flatten() {
            let Setting::File(file) = &change.setting else { continue };
            let effective =
                fs::read_to_string(file.with_file_name("effective_affinity_list"));
            let Some(effective) = effective.ok().filter(|_| file.ends_with(LIST)) else {
                assert!(!is_elsewhere(&change, &fixed, &nowhere), "{file:?}");
                continue;
            };
            let effective: CpuSet = effective.trim().parse().unwrap();
            assert!(is_elsewhere(&change, &fixed, &nowhere), "{file:?}");
            let is_there = !effective.is_empty();
            assert_eq!(is_elsewhere(&change, &fixed, &effective), !is_there, "{file:?}");
            let denied = Error::new(Kind::Privilege, "EACCES");
            let is_read_only = fs::metadata(file).unwrap().permissions().readonly();
            assert_eq!(
                is_elsewhere(&change, &denied, &nowhere),
                is_read_only,
                "{file:?}"
            );
        }
    }
}
