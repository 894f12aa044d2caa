//! What the processor and its firmware counted on the measured CPUs during a measurement: below the
//! kernel, and so without an event.
//!
//! All counts are differences of two readings, before and after the measurement, outside of timed
//! loops.

use std::collections::BTreeMap;

use facts::Unknown;
use serde::{Deserialize, Serialize};
use units::{Cpu, Nanos};

/// The counts of the measured CPUs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HardwareCounts {
    /// The time between the two readings.
    pub span_ns: Nanos,
    /// The counts of each CPU, in rising order.
    pub cpus: Vec<CpuHardware>,
    /// Why a value of [`CpuHardware`] is missing, by its key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unknown: BTreeMap<String, Unknown>,
}

/// The counts of one CPU. `None` is "not known".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuHardware {
    /// The CPU.
    pub cpu: Cpu,
    /// System management interrupts: the firmware ran.
    pub smis: Option<u64>,
    /// Throttling by heat or a power limit.
    pub throttled: Option<Throttled>,
    /// The frequency.
    pub frequency: Option<Frequency>,
    /// Machine check exceptions.
    pub machine_checks: Option<u64>,
    /// Machine check polls: the kernel has looked for errors that were corrected.
    pub machine_check_polls: Option<u64>,
}

/// How often a CPU was throttled. The counts of a package are those of all its CPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Throttled {
    /// How often the core was too hot.
    pub core_heat: u64,
    /// How often the package was too hot.
    pub package_heat: u64,
    /// For how long heat throttled the core or the package, whichever was longer, in milliseconds;
    /// `None` before 5.6.
    pub heat_ms: Option<u64>,
    /// How often a power limit of the core or the package was reached.
    pub power_limits: u64,
}

/// The frequency of a CPU while it was not idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frequency {
    /// The average: by the registers that count cycles, else of the samples.
    pub mean_khz: u64,
    /// The lowest and the highest sample, which another CPU took during the measurement; `None` if
    /// there was no other CPU, or if taking samples interrupts the measured one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range_khz: Option<[u64; 2]>,
}

impl HardwareCounts {
    /// The counts of a CPU.
    pub fn cpu(&self, cpu: Cpu) -> Option<&CpuHardware> {
        self.cpus.iter().find(|own| own.cpu == cpu)
    }
}

impl Throttled {
    /// How often it was throttled for any reason.
    pub fn times(&self) -> u64 {
        [self.core_heat, self.package_heat, self.power_limits]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
}

impl Frequency {
    /// A range whose ends differ by at least this percentage of the higher one is a change: more than
    /// one step of 100 MHz, and than the differences between averages of single ticks.
    pub const CHANGE_PERCENT: u64 = 5;

    /// The lowest and the highest frequency, if it has changed.
    pub fn changed(&self) -> Option<[u64; 2]> {
        let is_change =
            |[low, high]: &[u64; 2]| (high - low) * 100 >= high * Self::CHANGE_PERCENT;
        self.range_khz.filter(|[low, high]| low <= high).filter(is_change)
    }
}

#[cfg(test)]
mod tests {
    use facts::Why;

    use super::*;

    /// Check the keys of every value in files.
    #[test]
    fn contract() {
        let cpu = CpuHardware {
            cpu: Cpu::new(1),
            smis: Some(3),
            throttled: Some(Throttled {
                core_heat: 1,
                package_heat: 2,
                heat_ms: Some(7),
                power_limits: 4,
            }),
            frequency: Some(Frequency {
                mean_khz: 3_000_000,
                range_khz: Some([2_900_000, 3_100_000]),
            }),
            machine_checks: Some(0),
            machine_check_polls: None,
        };
        let unknown = Unknown::new(Why::Absent, "no line MCP");
        let counts = HardwareCounts {
            span_ns: Nanos::from_secs(1),
            cpus: vec![cpu],
            unknown: [("machine_check_polls".to_owned(), unknown)].into(),
        };
        let expected = serde_json::json!({
            "span_ns": 1_000_000_000,
            "cpus": [{
                "cpu": 1, "smis": 3,
                "throttled": {"core_heat": 1, "package_heat": 2, "heat_ms": 7, "power_limits": 4},
                "frequency": {"mean_khz": 3_000_000, "range_khz": [2_900_000, 3_100_000]},
                "machine_checks": 0, "machine_check_polls": null,
            }],
            "unknown": {"machine_check_polls": {"code": "absent", "text": "no line MCP"}},
        });
        assert_eq!(serde_json::to_value(&counts).unwrap(), expected);
        assert_eq!(serde_json::from_value::<HardwareCounts>(expected).unwrap(), counts);
    }

    /// Check that a change begins at 5 %, and that it is unknown without samples.
    #[test]
    fn changes() {
        let changed = |range_khz| Frequency { mean_khz: 1, range_khz }.changed();
        assert_eq!(changed(Some([2_850_001, 3_000_000])), None);
        assert_eq!(changed(Some([2_850_000, 3_000_000])), Some([2_850_000, 3_000_000]));
        assert_eq!(changed(Some([3_000_000, 3_000_000])), None);
        assert_eq!(changed(Some([3_000_000, 2_000_000])), None);
        assert_eq!(changed(None), None);
    }
}
