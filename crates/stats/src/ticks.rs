//! The summary of `ticks`: timer interrupts a second, beside how busy the CPU was.
//!
//! Counts are added up over the intervals in which they are known, and divided by the
//! length of just those. `/proc/stat` accounts time in steps of 10 ms, so a busy share
//! of a short interval is coarse.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use units::{Cpu, Nanos, PerSecond, Ppm};

/// What was counted on one CPU in one interval; `None` is "not known".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TickInput {
    /// The CPU.
    pub cpu: Cpu,
    /// The interval's length.
    pub span: Nanos,
    /// Timer interrupts.
    pub timer: Option<u64>,
    /// Interrupts of all kinds.
    pub interrupts: Option<u64>,
    /// Time not idle.
    pub busy: Option<Nanos>,
    /// All time that was accounted for.
    pub accounted: Option<Nanos>,
}

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
    pub fn of(inputs: impl IntoIterator<Item = TickInput>) -> Self {
        let mut sums: BTreeMap<Cpu, Sums> = BTreeMap::new();
        for input in inputs {
            sums.entry(input.cpu).or_default().add(&input);
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
    fn add(&mut self, input: &TickInput) {
        self.timer.add(input.timer, input.span);
        self.interrupts.add(input.interrupts, input.span);
        if let (Some(busy), Some(accounted)) = (input.busy, input.accounted) {
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

    fn known(cpu: u32, millis: u64, timer: u64) -> TickInput {
        TickInput {
            cpu: Cpu::new(cpu),
            span: Nanos::from_millis(millis),
            timer: Some(timer),
            interrupts: Some(timer * 2),
            busy: Some(Nanos::from_millis(millis / 4)),
            accounted: Some(Nanos::from_millis(millis)),
        }
    }

    fn unknown(cpu: u32, millis: u64) -> TickInput {
        let span = Nanos::from_millis(millis);
        let cpu = Cpu::new(cpu);
        TickInput {
            cpu,
            span,
            timer: None,
            interrupts: None,
            busy: None,
            accounted: None,
        }
    }

    /// Check the keys and the form of every value: this is the JSON contract.
    #[test]
    fn contract() {
        let found = TicksSummary::of([unknown(7, 1000), known(0, 1000, 250)]);
        let expected = serde_json::json!({"cpus": [
            {"cpu": 0, "timer_hz": 250.0, "busy_ppm": 250_000.0, "interrupts_hz": 500.0},
            {"cpu": 7, "timer_hz": null, "busy_ppm": null, "interrupts_hz": null},
        ]});
        assert_eq!(serde_json::to_value(found).unwrap(), expected);
    }

    /// Check that intervals of unknown counts do not thin the rate out.
    #[test]
    fn unknown_intervals_do_not_count() {
        let found = TicksSummary::of([
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
        let input = TickInput {
            busy: Some(Nanos::ZERO),
            accounted: Some(Nanos::ZERO),
            ..known(0, 1, 0)
        };
        let found = TicksSummary::of([input]);
        assert_eq!(found.cpus[0].busy_ppm, None);
        assert_eq!(found.cpus[0].timer_hz, Some(PerSecond::new(0.0)));
    }

    proptest! {
        /// Check that the whole is the count over the time, however it is cut up.
        #[test]
        fn cuts_do_not_matter(cuts in prop::collection::vec((1u64..2000, 0u64..500), 1..20)) {
            let whole = TicksSummary::of(cuts.iter().map(|&(ms, n)| known(1, ms, n)));
            let millis: u64 = cuts.iter().map(|cut| cut.0).sum();
            let count: u64 = cuts.iter().map(|cut| cut.1).sum();
            let expected = count as f64 / (millis as f64 / 1e3);
            let found = whole.cpus[0].timer_hz.unwrap().get();
            prop_assert!((found - expected).abs() <= expected * 1e-12);
        }
    }
}
