//! The energy counters of processors (RAPL), as the kernel's power capping framework exports them.
//!
//! From `/sys/class/powercap/intel-rapl:*` (since 3.13; also for AMD since 5.8;
//! `Documentation/power/powercap/powercap.rst`): `name`, `energy_uj`, and
//! `max_energy_range_uj`, the value after which the counter starts again from zero.
//! `energy_uj` is readable by root only since 5.10 (CVE-2020-8694). What lies outside of the
//! processor, fans and disks for example, is not included; guests have no such counters.

use serde::{Deserialize, Serialize};

use crate::fact::{Unknown, Why};
use crate::tree::root::Root;

const FOLDER: &str = "/sys/class/powercap";
/// The zones of packages (`intel-rapl:0`) and of their parts (`intel-rapl:0:1`). The zones
/// `intel-rapl-mmio:*` count the same energy again.
const ZONES: &str = "intel-rapl:";

/// An energy counter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EnergyZone {
    /// The zone: `package-0`; a part of it: `package-0 core`.
    pub name: String,
    /// The counter in microjoules.
    pub energy_uj: u64,
    /// The largest value of the counter, after which it starts again from zero.
    pub range_uj: u64,
}

impl EnergyZone {
    /// The microjoules since an earlier reading of the counter, which has started again at most
    /// once in between: after a minute at the earliest, with the smallest range in use.
    pub fn since(&self, earlier: &Self) -> u64 {
        match self.energy_uj.checked_sub(earlier.energy_uj) {
            Some(used) => used,
            None => {
                let until_range = self.range_uj.saturating_sub(earlier.energy_uj);
                until_range.saturating_add(self.energy_uj)
            }
        }
    }
}

/// The energy counters, packages before their parts.
///
/// # Errors
/// `Why::Absent` if there is none; otherwise why one cannot be read.
pub fn energy_zones(root: &Root) -> Result<Vec<EnergyZone>, Unknown> {
    let none = || {
        let text = "no energy counters: intel_rapl is not loaded, or this is a guest";
        Unknown::new(Why::Absent, text)
    };
    let names = root
        .list(FOLDER)
        .map_err(|unknown| if unknown.code == Why::Absent { none() } else { unknown })?;
    let folders: Vec<&String> =
        names.iter().filter(|name| name.starts_with(ZONES)).collect();
    if folders.is_empty() {
        return Err(none());
    }
    folders.into_iter().map(|folder| zone(root, folder)).collect()
}

fn zone(root: &Root, folder: &str) -> Result<EnergyZone, Unknown> {
    let file = |name: &str| format!("{FOLDER}/{folder}/{name}");
    let own = root.line(&file("name"))?;
    // A part's folder is its package's, and a number.
    let package = folder.rsplit_once(':').filter(|(whole, _)| whole.contains(':'));
    let name = match package {
        Some((package, _)) => {
            let package = root.line(&format!("{FOLDER}/{package}/name"))?;
            format!("{package} {own}")
        }
        None => own,
    };
    Ok(EnergyZone {
        name,
        energy_uj: root.parsed(&file("energy_uj"), "a number")?,
        range_uj: root.parsed(&file("max_energy_range_uj"), "a number")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tree::{tree, tree_refusing};

    const PACKAGE: [(&str, &str); 3] = [
        ("/sys/class/powercap/intel-rapl:0/name", "package-0\n"),
        ("/sys/class/powercap/intel-rapl:0/energy_uj", "262143000000\n"),
        ("/sys/class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850\n"),
    ];

    /// Check a package and its part, and that zones of other control types are not read.
    #[test]
    fn zones() {
        let part = "/sys/class/powercap/intel-rapl:0:1";
        let more = [
            (format!("{part}/name"), "dram\n"),
            (format!("{part}/energy_uj"), "70\n"),
            (format!("{part}/max_energy_range_uj"), "65712999613\n"),
            ("/sys/class/powercap/intel-rapl-mmio:0/name".to_owned(), "package-0\n"),
            ("/sys/class/powercap/dtpm/enabled".to_owned(), "1\n"),
        ];
        let more: Vec<(&str, &str)> =
            more.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let found = energy_zones(&tree(&[&PACKAGE[..], &more].concat()).root).unwrap();
        let names: Vec<&str> = found.iter().map(|zone| zone.name.as_str()).collect();
        assert_eq!(names, ["package-0", "package-0 dram"]);
        assert_eq!((found[1].energy_uj, found[1].range_uj), (70, 65_712_999_613));
    }

    /// Check that no zones, and a counter that only root may read, are unknown with their reason.
    #[test]
    fn unknown() {
        assert_eq!(energy_zones(&tree(&[]).root).unwrap_err().code, Why::Absent);
        let empty = tree(&[("/sys/class/powercap/dtpm/enabled", "1\n")]);
        assert_eq!(energy_zones(&empty.root).unwrap_err().code, Why::Absent);
        let files = [PACKAGE[0], PACKAGE[2]];
        let refused = [(PACKAGE[1].0, Why::NeedsRoot)];
        let found = energy_zones(&tree_refusing(&files, &refused).root).unwrap_err();
        assert_eq!(found.code, Why::NeedsRoot);
    }

    /// Check the difference of two readings, also if the counter has started again.
    #[test]
    fn wraps() {
        let zone = |energy_uj| EnergyZone {
            name: "package-0".to_owned(),
            energy_uj,
            range_uj: 262_143_328_850,
        };
        assert_eq!(zone(1_500).since(&zone(1_000)), 500);
        assert_eq!(zone(1_000).since(&zone(262_143_328_050)), 1_800);
    }
}
