//! Metrics: the numbers of recordings and of the lab's cells, by key. Limits, baselines and
//! comparisons read them here, and nowhere else; `table` defines them.
//!
//! A key has one meaning in every mode and measurement. An unknown number has no metric, so no limit
//! applies to it. In a cell, rates are those of all CPUs together, lengths and shares those
//! of the worst CPU.
//!
//! The tolerance of a metric is by how much it may differ in another run of the same kernel: the
//! largest difference of a single phase from all phases, and twice that for means and rates,
//! which rare and expensive events affect. Of a cell with several variations it is at least the distance
//! that the mean of as many others keeps in 19 of 20 cases.

pub(crate) mod benchmark_key;
pub(crate) mod definition;
pub(crate) mod idle;
pub(crate) mod limit;
pub(crate) mod read;
pub(crate) mod row;
pub(crate) mod table;

use crate::metrics::benchmark_key::BenchmarkKey;
use crate::metrics::definition::Definition;

/// All metrics that recordings and cells can have.
pub fn definitions() -> impl Iterator<Item = &'static Definition> {
    table::of_cells().chain(table::of_recordings()).chain(table::of_files())
}

/// The definition of the metric with that key; `None` for those of benchmarks, whose names are not known before.
pub fn definition(key: &str) -> Option<&'static Definition> {
    if BenchmarkKey::of(key).is_some() {
        return None;
    }
    let exact = definitions().find(|about| about.key == key);
    exact.or_else(|| definitions().find(|about| about.call(key).is_some()))
}

/// The keys of all metrics that cells can have, with those of these calls.
pub fn cell_metric_keys<'a>(calls: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let keys = |about: &Definition| match about.key.contains(Definition::CALL) {
        true => {
            calls.clone().map(|call| about.key.replace(Definition::CALL, call)).collect()
        }
        false => vec![about.key.to_owned()],
    };
    table::of_cells().flat_map(keys).collect()
}

#[cfg(test)]
mod tests {
    use recording::{Call, CallTimes, CallsSeries, CallsSpec, CpuTicks, TickSample};
    use stats::{Spread, Unit};
    use units::{Cpu, Instructions, Nanos, TscHz};

    use super::*;
    use crate::calls::CallsSummary;
    use crate::cell::CellSummary;
    use crate::cell::idle_cost::{IdleCost, IdleCpu};
    use crate::cell::tick_cost::TickCost;
    use crate::metrics::definition::Metric;
    use crate::metrics::read::cell_metrics;
    use crate::noise::NoiseSummary;
    use crate::summary::Summary;
    use crate::ticks::TicksSummary;

    fn named(found: &[Metric]) -> Vec<(&str, f64)> {
        found.iter().map(|metric| (metric.key.as_str(), metric.value)).collect()
    }

    /// Check that the keys of calls are known before a measurement.
    #[test]
    fn names_are_known() {
        let names = cell_metric_keys(["getpid"].into_iter());
        for known in ["tick_instructions", "getpid_instructions", "getpid_ns_p50"] {
            assert!(names.iter().any(|name| name == known), "{known}");
        }
        assert!(!names.iter().any(|name| name.starts_with("pipe")));
    }

    /// Check that no key is there twice, and that each contains its unit.
    #[test]
    fn keys_have_units() {
        let mut keys = std::collections::BTreeSet::new();
        for about in definitions() {
            assert!(keys.insert(about.key), "{} is there twice", about.key);
            let unit = match about.unit {
                Unit::Ns => "_ns",
                Unit::Ppm => "_ppm",
                Unit::Hz => "_hz",
                Unit::Instructions => "_instructions",
                Unit::Count => "",
            };
            let end = about.key.rsplit_once(unit).map(|(_, end)| end);
            assert!(
                ["", "_min", "_mean", "_p50", "_p99", "_p99_9", "_max"]
                    .contains(&end.unwrap_or(about.key)),
                "{}",
                about.key
            );
        }
    }

    /// Check that the manual has the same table.
    #[test]
    fn the_manuals_table() {
        let manual = include_str!("../../../docs/experiments.md");
        let (_, rest) =
            manual.split_once("| metric | of | description |\n|---|---|---|\n").unwrap();
        let found: Vec<&str> = rest.lines().take_while(|line| !line.is_empty()).collect();
        let row = |about: &Definition| {
            let of = about.of.replace(", ", "`, `");
            format!("| `{}` | `{of}` | {} |", about.key, about.help)
        };
        let expected: Vec<String> = table::of_cells().map(row).collect();
        assert_eq!(found, expected, "write:\n{}", expected.join("\n"));
    }

    /// Check the metrics of ticks, with the deviation of phases as tolerance, without unknown ones.
    #[test]
    fn ticks_cost() {
        let phase = |values: [u64; 2]| values.map(|value| (Instructions::new(value), 1));
        let cost = TickCost {
            gap_instructions: Some(Spread::phased(
                [[2584, 2584], [2584, 2600]].map(phase),
            )),
            kernel_instructions: None,
            kinds: None,
            culprits: Vec::new(),
        };
        let found = cell_metrics(&CellSummary::TickCost(cost));
        let expected =
            [("tick_instructions", 2584.0), ("tick_instructions_mean", 2588.0)];
        assert_eq!(named(&found), expected);
        assert_eq!([found[0].tolerance, found[1].tolerance], [0.0, 8.0]);
    }

    /// Check that idle rates are the sum over all CPUs, and unknown if one of them is.
    #[test]
    fn idle_rates_add_up() {
        let cpu = |cpu: u32, timer| {
            let cpu = Cpu::new(cpu);
            IdleCpu { cpu, timer, phases: Vec::new() }
        };
        let of = |timers: [Option<u64>; 2]| {
            let cpus = [cpu(0, timers[0]), cpu(1, timers[1])];
            cell_metrics(&CellSummary::IdleCost(IdleCost::of_cpus(
                &[Nanos::from_secs(2)],
                &cpus,
            )))
        };
        let all = [("idle_instructions_hz", 0.0), ("idle_timer_hz", 7.0)];
        assert_eq!(named(&of([Some(4), Some(10)])), all);
        assert_eq!(named(&of([Some(4), None])), all[..1]);
    }

    /// Check that timed cells have metrics, too, with the same key for the same meaning.
    #[test]
    fn timed() {
        let cpu = CpuTicks {
            cpu: Cpu::new(0),
            timer: Some(250),
            interrupts: None,
            busy_ns: None,
            accounted_ns: None,
        };
        let (start_ns, span_ns) = (Nanos::ZERO, Nanos::from_secs(1));
        let sample = TickSample { start_ns, span_ns, cpus: vec![cpu] };
        let summary = CellSummary::Measured(Summary::Ticks(TicksSummary::of(&[sample])));
        assert_eq!(named(&cell_metrics(&summary)), [("idle_timer_hz", 250.0)]);
        let (cpu, calls) = (Cpu::new(0), vec![Call::Getpid]);
        let spec = CallsSpec { cpu, calls, repeats: 3, phases: None };
        let step_ns = [130, 120, 9_000].map(Nanos::from_nanos).to_vec();
        let series = CallsSeries {
            clock: "tsc".to_owned(),
            clock_hz: TscHz::new(2_000_000_000).unwrap(),
            calls: vec![CallTimes { call: Call::Getpid, step_ns }],
        };
        let summary =
            CellSummary::Measured(Summary::Calls(CallsSummary::of(&spec, &series)));
        assert_eq!(named(&cell_metrics(&summary)), [("getpid_ns_p50", 130.0)]);
        let none = CellSummary::Measured(Summary::Noise(NoiseSummary {
            firmware: None,
            at_scale: Vec::new(),
            cpus: Vec::new(),
            source: None,
            culprits: Vec::new(),
            own: None,
            eventless: None,
            steal: None,
        }));
        assert_eq!(cell_metrics(&none), []);
    }
}
