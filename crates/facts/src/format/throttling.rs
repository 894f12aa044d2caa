//! How often a CPU was slowed down by heat or by a power limit, and its current frequency.
//!
//! From `/sys/devices/system/cpu/cpuN/thermal_throttle` (Intel, since 2.6.17):
//! `{core,package}_throttle_count`, `..._total_time_ms` (since 5.6), and
//! `{core,package}_power_limit_count` (since 2.6.38); and from `cpuN/cpufreq/scaling_cur_freq`.
//!
//! Other processors slow down without a count.

use units::Cpu;

use crate::fact::Unknown;
use crate::tree::root::Root;

/// The folder of a CPU.
fn folder(cpu: Cpu) -> String {
    format!("/sys/devices/system/cpu/cpu{cpu}")
}

/// What a CPU has counted since boot. The counts of a package are those of all its CPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SlowDowns {
    /// How often the core was too hot.
    pub core_heat: u64,
    /// How often the package was too hot.
    pub package_heat: u64,
    /// For how long the core was throttled by heat, in milliseconds; `None` before 5.6.
    pub core_heat_ms: Option<u64>,
    /// The same of the package.
    pub package_heat_ms: Option<u64>,
    /// How often a power limit of the core or the package was reached.
    pub power_limits: u64,
}

impl SlowDowns {
    /// The counts of a CPU.
    ///
    /// # Errors
    /// `Why::Absent` if this processor, or its hypervisor, has none.
    pub fn now(root: &Root, cpu: Cpu) -> Result<Self, Unknown> {
        let folder = format!("{}/thermal_throttle", folder(cpu));
        let number = |name: &str| root.parsed(&format!("{folder}/{name}"), "a number");
        let none =
            "this processor, or its hypervisor, has no counts of thermal throttling";
        let core_heat = number("core_throttle_count");
        let core_heat = core_heat.map_err(|unknown| unknown.if_absent(none))?;
        // Not every processor has each of the others.
        let limits = ["core_power_limit_count", "package_power_limit_count"];
        let limits = limits.iter().filter_map(|name| number(name).ok());
        Ok(Self {
            core_heat,
            package_heat: number("package_throttle_count").unwrap_or(0),
            core_heat_ms: number("core_throttle_total_time_ms").ok(),
            package_heat_ms: number("package_throttle_total_time_ms").ok(),
            power_limits: limits.fold(0, u64::saturating_add),
        })
    }

    /// What was counted since an earlier reading.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let ms = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Self {
            core_heat: self.core_heat.saturating_sub(earlier.core_heat),
            package_heat: self.package_heat.saturating_sub(earlier.package_heat),
            core_heat_ms: ms(self.core_heat_ms, earlier.core_heat_ms),
            package_heat_ms: ms(self.package_heat_ms, earlier.package_heat_ms),
            power_limits: self.power_limits.saturating_sub(earlier.power_limits),
        }
    }
}

/// The current frequency of a CPU in kHz. On x86 it is the average of the last tick; before 5.18
/// reading it interrupts the CPU.
///
/// # Errors
/// `Why::Absent` without a frequency driver.
pub fn current_khz(root: &Root, cpu: Cpu) -> Result<u64, Unknown> {
    let file = format!("{}/cpufreq/scaling_cur_freq", folder(cpu));
    let none = |unknown: Unknown| unknown.if_absent("no frequency driver is loaded");
    root.parsed(&file, "a frequency in kHz").map_err(none)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::Why;
    use crate::test_tree::tree;

    /// Check all counts, those of an old kernel, and their differences.
    #[test]
    fn counts() {
        let file = |cpu: u32, name: &str| {
            format!("/sys/devices/system/cpu/cpu{cpu}/thermal_throttle/{name}")
        };
        let files = [
            (file(0, "core_throttle_count"), "7\n"),
            (file(0, "package_throttle_count"), "9\n"),
            (file(0, "core_throttle_total_time_ms"), "41\n"),
            (file(0, "package_throttle_total_time_ms"), "52\n"),
            (file(0, "core_power_limit_count"), "2\n"),
            (file(0, "package_power_limit_count"), "3\n"),
            (file(1, "core_throttle_count"), "1\n"),
        ];
        let files: Vec<_> =
            files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let tree = tree(&files);
        let [new, old] =
            [0, 1].map(|cpu| SlowDowns::now(&tree.root, Cpu::new(cpu)).unwrap());
        assert_eq!((new.core_heat, new.package_heat, new.power_limits), (7, 9, 5));
        assert_eq!((new.core_heat_ms, new.package_heat_ms), (Some(41), Some(52)));
        assert_eq!(old, SlowDowns { core_heat: 1, ..SlowDowns::default() });
        let since = new.since(&SlowDowns { core_heat: 4, ..new });
        let ms = Some(0);
        let expected = SlowDowns {
            core_heat: 3,
            core_heat_ms: ms,
            package_heat_ms: ms,
            ..SlowDowns::default()
        };
        assert_eq!(since, expected);
        let none = SlowDowns::now(&tree.root, Cpu::new(2)).unwrap_err();
        assert_eq!(none.code, Why::Absent);
        assert_eq!(current_khz(&tree.root, Cpu::new(0)).unwrap_err().code, Why::Absent);
    }
}
