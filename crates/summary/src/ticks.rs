//! The summary of `ticks`: timer interrupts per second, and the load of each CPU.
//!
//! Rates are those of the intervals whose counts are known. `/proc/stat` counts time in steps of
//! 10 ms, so the load of a short interval is inexact.

use std::collections::BTreeMap;

use recording::{CpuTicks, TickSample, TicksSeries};
use serde::Serialize;
use units::{Cpu, Nanos, PerSecond, Ppm};

use crate::ticks::power::PowerSummary;

pub(crate) mod power;
pub(crate) mod rates;

/// Ticks of one CPU.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CpuTicksSummary {
    /// The CPU.
    pub cpu: Cpu,
    /// Timer interrupts per second; null if unknown.
    pub timer_hz: Option<PerSecond>,
    /// Time not idle, as a share of the accounted time; null if unknown.
    pub busy_ppm: Option<Ppm>,
    /// All interrupts per second; null if unknown.
    pub interrupts_hz: Option<PerSecond>,
}

/// Ticks of all CPUs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TicksSummary {
    /// Each CPU, in ascending order.
    pub cpus: Vec<CpuTicksSummary>,
    /// The power of the processors meanwhile; missing if it was not recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub power: Option<PowerSummary>,
}

impl TicksSummary {
    /// Summarizes a series, with the power of the processors.
    pub fn of_series(series: &TicksSeries) -> Self {
        let power = series.energy.as_ref().map(PowerSummary::of);
        Self { power, ..Self::of(&series.samples) }
    }

    /// Summarizes the counts of one interval or of several.
    pub fn of(samples: &[TickSample]) -> Self {
        let mut cpus: BTreeMap<Cpu, Vec<(Nanos, &CpuTicks)>> = BTreeMap::new();
        for sample in samples {
            for cpu in &sample.cpus {
                cpus.entry(cpu.cpu).or_default().push((sample.span_ns, cpu));
            }
        }
        let cpus = cpus.into_iter().map(|(cpu, all)| CpuTicksSummary::of(cpu, &all));
        Self { cpus: cpus.collect(), power: None }
    }
}

impl CpuTicksSummary {
    fn of(cpu: Cpu, intervals: &[(Nanos, &CpuTicks)]) -> Self {
        let rate = |count: fn(&CpuTicks) -> Option<u64>| {
            let known = intervals.iter().filter(|(_, ticks)| count(ticks).is_some());
            let counts = known.clone().filter_map(|(_, ticks)| count(ticks));
            let sum = counts.fold(0, u64::saturating_add);
            PerSecond::of(sum, known.map(|(span, _)| *span).sum())
        };
        let times =
            intervals.iter().map(|(_, ticks)| (ticks.busy_ns, ticks.accounted_ns));
        let (busy, accounted): (Vec<Nanos>, Vec<Nanos>) =
            times.filter_map(|(busy, accounted)| busy.zip(accounted)).unzip();
        Self {
            cpu,
            timer_hz: rate(|ticks| ticks.timer),
            busy_ppm: Ppm::of(busy.into_iter().sum(), accounted.into_iter().sum()),
            interrupts_hz: rate(|ticks| ticks.interrupts),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

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

    /// Check the keys and values of the JSON contract.
    #[test]
    fn contract() {
        let found = TicksSummary::of(&[unknown(7, 1000), known(0, 1000, 250)]);
        let expected = serde_json::json!({"cpus": [
            {"cpu": 0, "timer_hz": 250.0, "busy_ppm": 250_000.0, "interrupts_hz": 500.0},
            {"cpu": 7, "timer_hz": null, "busy_ppm": null, "interrupts_hz": null},
        ]});
        assert_eq!(serde_json::to_value(found).unwrap(), expected);
    }

    /// Check that intervals with unknown counts do not reduce the rate.
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

    /// Check that the load is unknown without accounted time.
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
        /// Check that the rate does not depend on the lengths of the intervals.
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
