//! Limits on metrics: options such as `--max-noise-ppm` and `--max-late` for those of a recording,
//! and those of an experiment for those of a cell.

use std::fmt;

use serde::Serialize;
use units::{Nanos, PerSecond, Ppm};

use crate::metrics::definition::Metric;
use crate::metrics::read::metrics;
use crate::metrics::table::{
    GAP_NS_MAX, GUEST_WAKEUPS_HZ_MAX, GUESTS_CPU_PPM, GUESTS_SAVING_PPM, LATE_NS_MAX,
    NOISE_PPM, WAIT_NS_MAX,
};
use crate::summary::Summary;

/// The largest value that a metric may have on any CPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limit {
    key: &'static str,
    most: f64,
}

impl Limit {
    /// The largest share of its time that a busy loop may lose.
    pub fn noise(most: Ppm) -> Self {
        Self { key: NOISE_PPM, most: most.get() }
    }

    /// The longest gap.
    pub fn gap(most: Nanos) -> Self {
        Self { key: GAP_NS_MAX, most: most.get() as f64 }
    }

    /// The longest wake-up latency.
    pub fn late(most: Nanos) -> Self {
        Self { key: LATE_NS_MAX, most: most.get() as f64 }
    }

    /// The longest wait for a CPU.
    pub fn wait(most: Nanos) -> Self {
        Self { key: WAIT_NS_MAX, most: most.get() as f64 }
    }

    /// The CPU time of all guests, as a share of one CPU.
    pub fn guests_cpu(most: Ppm) -> Self {
        Self { key: GUESTS_CPU_PPM, most: most.get() }
    }

    /// The CPU time that could be saved of idle guests, as a share of one CPU.
    pub fn guests_saving(most: Ppm) -> Self {
        Self { key: GUESTS_SAVING_PPM, most: most.get() }
    }

    /// The wake-ups per second and vCPU of an idle guest.
    pub fn guest_wakeups(most: PerSecond) -> Self {
        Self { key: GUEST_WAKEUPS_HZ_MAX, most: most.get() }
    }
}

/// The metrics that exceed a limit, each with its limit, in the order of the summary; a value equal
/// to its limit does not. A limit on a metric that the summary does not have has no effect.
pub fn exceeded(summary: &Summary, limits: &[Limit]) -> Vec<(Metric, f64)> {
    let above = |metric: Metric| {
        let own = limits.iter().filter(|limit| limit.key == metric.key);
        let most = own.map(|limit| limit.most).min_by(f64::total_cmp)?;
        (metric.value > most).then_some((metric, most))
    };
    metrics(summary).into_iter().filter_map(above).collect()
}

/// A limit of an experiment that a cell violates.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ViolatedLimit {
    /// The kernel, as the experiment requests it: `debian:6.1-cloud`.
    pub kernel: String,
    /// The cell's name.
    pub cell: String,
    /// The key of the metric.
    pub metric: String,
    /// Its value.
    pub value: f64,
    /// The ± of the value, if that is a mean of variations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<f64>,
    /// The limit: `<= 2600`, `== 2584`.
    pub limit: String,
    /// The place of the limit: `tick.toml:12:1`.
    pub place: String,
}

impl fmt::Display for ViolatedLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kernel, cell, metric, value, within, limit, place } = self;
        let within = within.map(|within| format!(" ± {within:.0}")).unwrap_or_default();
        write!(
            f,
            "{kernel}, {cell}: {metric} is {value}{within}, limit {limit} ({place})"
        )
    }
}

#[cfg(test)]
mod tests {
    use recording::CpuNoise;
    use units::{Cpu, Span};

    use super::*;
    use crate::example::{cpu_noise, noise};
    use crate::noise::NoiseSummary;

    fn summary() -> NoiseSummary {
        let gap =
            |length| Span { start: Nanos::ZERO, length: Nanos::from_micros(length) };
        let (quiet, noisy) = ([gap(1)], [gap(900)]);
        let cpu = |cpu, gaps: &[Span]| CpuNoise {
            cpu: Cpu::new(cpu),
            elapsed_ns: Nanos::from_millis(1),
            ..cpu_noise(gaps)
        };
        NoiseSummary::of(&noise(None, vec![cpu(0, &quiet), cpu(1, &noisy)]))
    }

    /// Check that a value equal to its limit does not exceed it, and that limits are optional.
    #[test]
    fn above_the_limit() {
        let with = |noise: Option<f64>, gap: Option<u64>| {
            let noise = noise.map(|most| Limit::noise(Ppm::new(most)));
            let gap = gap.map(|most| Limit::gap(Nanos::from_micros(most)));
            let limits: Vec<Limit> = noise.into_iter().chain(gap).collect();
            exceeded(&Summary::Noise(summary()), &limits).len()
        };
        assert_eq!(with(None, None), 0);
        assert_eq!(with(Some(900_000.0), Some(900)), 0);
        assert_eq!(with(Some(899_999.0), None), 1);
        assert_eq!(with(Some(0.0), Some(0)), 4);
    }
}
