//! What the processor and its firmware counted on all measured CPUs.

use recording::HardwareCounts;
use serde::Serialize;

/// The ranges over all measured CPUs, each as `[lowest, highest]`; null if unknown for all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct HardwareSummary {
    /// System management interrupts of a CPU.
    pub smis: Option<[u64; 2]>,
    /// The frequency in kHz: averages of CPUs, and samples during the measurement.
    pub frequency_khz: Option<[u64; 2]>,
    /// How often a CPU was throttled, by heat or a power limit.
    pub throttled: Option<[u64; 2]>,
    /// Machine check exceptions of a CPU.
    pub machine_checks: Option<[u64; 2]>,
}

impl HardwareSummary {
    /// Summarizes the counts.
    pub fn of(counts: &HardwareCounts) -> Self {
        let cpus = || counts.cpus.iter();
        let frequencies = cpus().filter_map(|cpu| cpu.frequency).flat_map(|frequency| {
            [frequency.mean_khz]
                .into_iter()
                .chain(frequency.range_khz.into_iter().flatten())
        });
        Self {
            smis: range(cpus().filter_map(|cpu| cpu.smis)),
            frequency_khz: range(frequencies),
            throttled: range(cpus().filter_map(|cpu| Some(cpu.throttled?.times()))),
            machine_checks: range(cpus().filter_map(|cpu| cpu.machine_checks)),
        }
    }
}

fn range(values: impl Iterator<Item = u64>) -> Option<[u64; 2]> {
    values.fold(None, |range, value| {
        let [low, high] = range.unwrap_or([value, value]);
        Some([low.min(value), high.max(value)])
    })
}

#[cfg(test)]
mod tests {
    use recording::{CpuHardware, Frequency, Throttled};
    use units::Cpu;

    use super::*;

    /// Check the keys and values of the JSON contract: ranges over CPUs and samples, and unknown ones.
    #[test]
    fn contract() {
        let cpu = |number, smis, mean_khz, range_khz| CpuHardware {
            cpu: Cpu::new(number),
            smis,
            throttled: Some(Throttled { power_limits: 2, ..Throttled::default() }),
            frequency: Some(Frequency { mean_khz, range_khz }),
            machine_checks: None,
            machine_check_polls: None,
        };
        let cpus = vec![
            cpu(0, Some(4), 3_000_000, None),
            cpu(1, Some(3), 2_900_000, Some([2_800_000, 2_950_000])),
        ];
        let counts = HardwareCounts { cpus, ..HardwareCounts::default() };
        let expected = serde_json::json!({"smis": [3, 4], "frequency_khz": [2_800_000, 3_000_000],
            "throttled": [2, 2], "machine_checks": null});
        assert_eq!(serde_json::to_value(HardwareSummary::of(&counts)).unwrap(), expected);
        let none = HardwareSummary::of(&HardwareCounts::default());
        assert_eq!(none, HardwareSummary::default());
    }
}
