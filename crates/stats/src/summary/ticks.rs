//! The summary of `ticks`: timer interrupts a second, beside how busy the CPU was.
//!
//! Counts are added up over the intervals in which they are known, and divided by the
//! length of just those. `/proc/stat` accounts time in steps of 10 ms, so a busy share
//! of a short interval is coarse.

use std::collections::BTreeMap;

use recording::{CpuTicks, TickSample};
use serde::{Deserialize, Serialize};
use units::{Cpu, Nanos, PerSecond, Ppm};

pub(crate) mod rates;

/// Ticks of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CpuTicksSummary {
    /// The CPU.
    pub cpu: Cpu,
    /// Timer interrupts a second; null where never known.
    pub timer_hz: Option<PerSecond>,
    /// Time not idle, as a part of all time accounted for; null where never known.
    pub busy_ppm: Option<Ppm>,
    /// Interrupts of all kinds a second; null where never known.
    pub interrupts_hz: Option<PerSecond>,
}

/// Ticks of all CPUs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TicksSummary {
    /// CPU by CPU, in rising order.
    pub cpus: Vec<CpuTicksSummary>,
}

impl TicksSummary {
    /// Summarises what was counted, in one interval or in many.
    pub fn of(samples: &[TickSample]) -> Self {
        let mut sums: BTreeMap<Cpu, Sums> = BTreeMap::new();
        for sample in samples {
            for cpu in &sample.cpus {
                sums.entry(cpu.cpu).or_default().add(sample.span_ns, cpu);
            }
        }
        Self { cpus: sums.into_iter().map(|(cpu, sums)| sums.summary(cpu)).collect() }
    }
}

/// A count and the time it was counted in.
#[derive(Debug, Clone, Copy, Default)]
struct Counted {
    count: u64,
    span: Nanos,
}

impl Counted {
    fn add(&mut self, count: Option<u64>, span: Nanos) {
        if let Some(count) = count {
            self.count = self.count.saturating_add(count);
            self.span = self.span + span;
        }
    }

    fn rate(self) -> Option<PerSecond> {
        PerSecond::of(self.count, self.span)
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Sums {
    timer: Counted,
    interrupts: Counted,
    busy: Nanos,
    accounted: Nanos,
}

impl Sums {
    fn add(&mut self, span: Nanos, cpu: &CpuTicks) {
        self.timer.add(cpu.timer, span);
        self.interrupts.add(cpu.interrupts, span);
        if let (Some(busy), Some(accounted)) = (cpu.busy_ns, cpu.accounted_ns) {
            self.busy = self.busy + busy;
            self.accounted = self.accounted + accounted;
        }
    }

    fn summary(self, cpu: Cpu) -> CpuTicksSummary {
        CpuTicksSummary {
            cpu,
            timer_hz: self.timer.rate(),
            busy_ppm: Ppm::of(self.busy, self.accounted),
            interrupts_hz: self.interrupts.rate(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sample(millis: u64, cpu: CpuTicks) -> TickSample {
        let span_ns = Nanos::from_millis(millis);
        TickSample { start_ns: Nanos::ZERO, span_ns, cpus: vec![cpu] }
    }

    fn known(cpu: u32, millis: u64, timer: u64) -> TickSample {
        let cpu = CpuTicks {
            cpu: Cpu::new(cpu),
            timer: Some(timer),
            interrupts: Some(timer * 2),
            busy_ns: Some(Nanos::from_millis(millis / 4)),
            accounted_ns: Some(Nanos::from_millis(millis)),
        };
        sample(millis, cpu)
    }

    fn unknown(cpu: u32, millis: u64) -> TickSample {
        let cpu = CpuTicks {
            cpu: Cpu::new(cpu),
            timer: None,
            interrupts: None,
            busy_ns: None,
            accounted_ns: None,
        };
        sample(millis, cpu)
    }

    /// Check the keys and the form of every value: this is the JSON contract.
    #[test]
    fn contract() {
        let found = TicksSummary::of(&[unknown(7, 1000), known(0, 1000, 250)]);
        let expected = serde_json::json!({"cpus": [
            {"cpu": 0, "timer_hz": 250.0, "busy_ppm": 250_000.0, "interrupts_hz": 500.0},
            {"cpu": 7, "timer_hz": null, "busy_ppm": null, "interrupts_hz": null},
        ]});
        assert_eq!(serde_json::to_value(found).unwrap(), expected);
    }

    /// Check that intervals of unknown counts do not thin the rate out.
    #[test]
    fn unknown_intervals_do_not_count() {
        let found = TicksSummary::of(&[
            known(0, 1000, 100),
            unknown(0, 5000),
            known(0, 3000, 300),
        ]);
        assert_eq!(found.cpus[0].timer_hz, Some(PerSecond::new(100.0)));
        assert_eq!(found.cpus[0].busy_ppm, Some(Ppm::new(250_000.0)));
    }

    /// Check that a CPU whose time was not accounted has no busy share.
    #[test]
    fn no_accounted_time_is_unknown() {
        let mut sample = known(0, 1, 0);
        sample.cpus[0].busy_ns = Some(Nanos::ZERO);
        sample.cpus[0].accounted_ns = Some(Nanos::ZERO);
        let found = TicksSummary::of(&[sample]);
        assert_eq!(found.cpus[0].busy_ppm, None);
        assert_eq!(found.cpus[0].timer_hz, Some(PerSecond::new(0.0)));
    }

    proptest! {
        /// Check that the whole is the count over the time, however it is cut up.
        #[test]
        fn cuts_do_not_matter(cuts in prop::collection::vec((1u64..2000, 0u64..500), 1..20)) {
            let samples: Vec<_> = cuts.iter().map(|&(ms, n)| known(1, ms, n)).collect();
            let whole = TicksSummary::of(&samples);
            let millis: u64 = cuts.iter().map(|cut| cut.0).sum();
            let count: u64 = cuts.iter().map(|cut| cut.1).sum();
            let expected = count as f64 / (millis as f64 / 1e3);
            let found = whole.cpus[0].timer_hz.unwrap().get();
            prop_assert!((found - expected).abs() <= expected * 1e-12);
        }
    }
}
