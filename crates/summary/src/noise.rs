//! The summary of `noise`: the time that busy CPUs lost, its causes, and the risk for a job.
//!
//! `noise_ns` is the sum of all gaps, stored or only counted; quantiles and risk are those of the
//! stored ones. The `ns` of the culprits add up to `noise_ns`.

use recording::{AtScaleSpec, CpuNoise, Lost, NoiseSeries, Source};
use serde::Serialize;
use stats::{Distribution, Gaps};
use units::{Cpu, Nanos, PerSecond, Ppm};

use crate::noise::at_scale::AtScale;
use crate::noise::culprits::{CulpritSummary, GapTotal};
use crate::noise::eventless::Eventless;
use crate::noise::firmware::FirmwareSummary;
use crate::noise::free::Risk;
use crate::noise::own::OwnCost;
use crate::noise::steal::{StealSummary, StolenTime};
use crate::noise::timers::TimerRate;
use crate::proc_counts::ProcSummary;

pub(crate) mod at_scale;
pub(crate) mod by_cpu;
pub(crate) mod by_unit;
pub(crate) mod culprits;
pub(crate) mod eventless;
pub(crate) mod firmware;
pub(crate) mod free;
pub(crate) mod hits;
pub(crate) mod job_times;
pub(crate) mod largest;
pub(crate) mod over_time;
pub(crate) mod own;
pub(crate) mod period;
pub(crate) mod sources;
pub(crate) mod steal;
pub(crate) mod timers;
pub(crate) mod verdict;

/// The job lengths of the reported risks, in rising order.
const JOBS: [Nanos; 5] = [
    Nanos::from_micros(1),
    Nanos::from_micros(10),
    Nanos::from_micros(100),
    Nanos::from_millis(1),
    Nanos::from_millis(10),
];

/// OS noise of one CPU.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CpuNoiseSummary {
    /// The CPU.
    pub cpu: Cpu,
    /// The run time of the loop.
    pub elapsed_ns: Nanos,
    /// The median duration of a pass.
    pub loop_ns_p50: Nanos,
    /// The shortest gap that was recorded.
    pub threshold_ns: Option<Nanos>,
    /// The number of gaps.
    pub gaps: u64,
    /// Gaps per second; null if no time passed.
    pub gaps_hz: Option<PerSecond>,
    /// The sum of all gaps.
    pub noise_ns: Nanos,
    /// That as a share of the run time; null if no time passed.
    pub noise_ppm: Option<Ppm>,
    /// The lengths of the gaps.
    pub gap_ns: Distribution<Gaps>,
    /// The risk of jobs of several lengths.
    pub risk: Vec<Risk>,
    /// The attribution of the gaps; the rest is `unexplained`.
    pub culprits: Vec<CulpritSummary>,
    /// The part of the measuring process; null if events were not traced.
    pub own: Option<OwnCost>,
    /// Gaps without any event; null if events were not traced.
    pub eventless: Option<Eventless>,
    /// Stolen time; null if unknown.
    pub steal: Option<StealSummary>,
    /// The firmware's time; null if unknown.
    pub firmware: Option<FirmwareSummary>,
    /// The timer interrupts; null if events were not traced.
    pub timers: Option<Vec<TimerRate>>,
    /// The counters of `/proc` during the measurement.
    pub proc: ProcSummary,
}

/// OS noise of all CPUs.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct NoiseSummary {
    /// Each CPU, in the order of the parameters.
    pub cpus: Vec<CpuNoiseSummary>,
    /// The event source (`bpf`, `tracefs`, `proc`); null without tracing.
    pub source: Option<String>,
    /// The attribution of the gaps of all CPUs.
    pub culprits: Vec<CulpritSummary>,
    /// The part of the measuring process; null if events were not traced on one of them.
    pub own: Option<OwnCost>,
    /// Gaps of all CPUs without any event; null if unknown for one.
    pub eventless: Option<Eventless>,
    /// Stolen time of all CPUs; null if unknown for one.
    pub steal: Option<StealSummary>,
    /// The firmware's time on all CPUs; null if unknown for one.
    pub firmware: Option<FirmwareSummary>,
    /// The effect on ranks that wait for each other; of whole recordings only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub at_scale: Vec<AtScale>,
}

impl NoiseSummary {
    /// Whether single events of that source are attributed to gaps.
    pub(crate) fn is_source(source: Option<Source>) -> bool {
        source.is_some_and(|source| source != Source::Proc)
    }

    /// Summarizes each CPU.
    pub fn of(series: &NoiseSeries) -> Self {
        let of = |cpu| CpuNoiseSummary::of(series.threshold_ns, cpu);
        let cpus: Vec<CpuNoiseSummary> = series.cpus.iter().map(of).collect();
        let culprits =
            CulpritSummary::together(cpus.iter().flat_map(|cpu| cpu.culprits.clone()));
        let steal = StealSummary::together(cpus.iter().map(|cpu| cpu.steal.as_ref()));
        let firmware =
            FirmwareSummary::together(cpus.iter().map(|cpu| cpu.firmware.as_ref()));
        let eventless =
            Eventless::together(cpus.iter().map(|cpu| cpu.eventless.as_ref()));
        let source = series.source.map(|source| source.name().to_owned());
        let is_traced = cpus.iter().all(|cpu| cpu.own.is_some());
        let own = (is_traced && !cpus.is_empty()).then(|| {
            let elapsed = cpus.iter().map(|cpu| cpu.elapsed_ns).sum();
            let noise = cpus.iter().map(|cpu| cpu.noise_ns).sum();
            OwnCost::of(&culprits, elapsed, noise)
        });
        let at_scale = Vec::new();
        Self { cpus, source, culprits, own, eventless, steal, firmware, at_scale }
    }

    /// The same with the effect on ranks that wait for each other.
    pub(crate) fn with_at_scale(
        series: &NoiseSeries,
        asked: Option<&AtScaleSpec>,
    ) -> Self {
        let asked = asked.cloned().unwrap_or_default();
        let at_scale = AtScale::of(&asked, &series.cpus);
        Self { at_scale, ..Self::of(series) }
    }

    /// The run time of all CPUs.
    pub fn elapsed(&self) -> Nanos {
        self.cpus.iter().map(|cpu| cpu.elapsed_ns).sum()
    }

    /// The lost time of all CPUs.
    pub fn lost(&self) -> Nanos {
        self.cpus.iter().map(|cpu| cpu.noise_ns).sum()
    }

    /// The CPUs in descending order of loss.
    pub fn by_loss(&self) -> Vec<&CpuNoiseSummary> {
        let mut cpus: Vec<&CpuNoiseSummary> = self.cpus.iter().collect();
        let loss = |cpu: &CpuNoiseSummary| cpu.noise_ppm.map_or(-1.0, Ppm::get);
        cpus.sort_by(|a, b| loss(b).total_cmp(&loss(a)).then(a.cpu.cmp(&b.cpu)));
        cpus
    }
}

impl CpuNoiseSummary {
    /// Summarizes one CPU, of which gaps of at least `threshold` were recorded.
    pub fn of(threshold: Nanos, input: &CpuNoise) -> Self {
        let total = total(input);
        let culprits = culprits(input, &total);
        let blamed = input.blamed.as_ref();
        let steal = blamed.and_then(|blamed| blamed.steal.as_ref());
        let firmware = blamed.and_then(|blamed| blamed.firmware);
        Self {
            cpu: input.cpu,
            elapsed_ns: input.elapsed_ns,
            loop_ns_p50: input.loop_ns,
            threshold_ns: Some(threshold),
            gaps: total.gaps,
            gaps_hz: PerSecond::of(total.gaps, input.elapsed_ns),
            noise_ns: total.ns,
            noise_ppm: Ppm::of(total.ns, input.elapsed_ns),
            gap_ns: total.lengths(&input.gaps),
            risk: free::risks(input.window(), &input.gaps, &JOBS),
            eventless: blamed.map(|blamed| Eventless::of(&input.gaps, blamed)),
            steal: steal.map(|steal| StealSummary::of(steal, &culprits)),
            firmware: firmware.map(|firmware| FirmwareSummary::of(firmware, &culprits)),
            own: blamed.map(|_| OwnCost::of(&culprits, input.elapsed_ns, total.ns)),
            culprits,
            timers: blamed.map(|blamed| TimerRate::of(blamed, input.elapsed_ns)),
            proc: ProcSummary::of(&input.proc),
        }
    }

    /// The time that the hypervisor took, from the best clock; `None` if it is unknown.
    pub fn stolen(&self) -> Option<StolenTime> {
        StolenTime::of(self.steal.as_ref(), self.proc.steal_ns)
    }

    /// The same as shares of the run time: the lower and the upper bound.
    pub fn stolen_ppm(&self) -> Option<[Ppm; 2]> {
        let StolenTime { at_least, at_most } = self.stolen()?;
        Some([Ppm::of(at_least, self.elapsed_ns)?, Ppm::of(at_most, self.elapsed_ns)?])
    }
}

/// All gaps, stored or only counted.
pub(crate) fn total(cpu: &CpuNoise) -> GapTotal {
    let mut total = GapTotal::default();
    cpu.gaps.iter().for_each(|gap| total.add(gap.length));
    total.and(cpu.lost.map(lost))
}

fn lost(lost: Lost) -> GapTotal {
    GapTotal { gaps: lost.gaps, ns: lost.ns, max: lost.max_ns }
}

/// All gaps are unexplained without events; gaps that were only counted always are.
fn culprits(cpu: &CpuNoise, total: &GapTotal) -> Vec<CulpritSummary> {
    let Some(blamed) = &cpu.blamed else {
        return CulpritSummary::of(None, Some(*total), total.ns);
    };
    let mut culprits = CulpritSummary::of(Some(blamed), cpu.lost.map(lost), total.ns);
    CulpritSummary::find_periods(&mut culprits, &cpu.gaps, blamed);
    culprits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use units::Span;

    use super::*;
    use crate::example::{cpu_noise, noise};

    fn span(start: u64, length: u64) -> Span {
        Span { start: Nanos::from_nanos(start), length: Nanos::from_nanos(length) }
    }

    fn cpu(seen: &CpuNoise) -> CpuNoiseSummary {
        CpuNoiseSummary::of(Nanos::from_nanos(100), seen)
    }

    /// Check the keys and values of the JSON contract.
    #[test]
    fn contract() {
        let gaps = [span(1000, 200), span(500_000_000, 2_999_800)];
        let series = noise(None, vec![cpu_noise(&gaps)]);
        let found = serde_json::to_value(NoiseSummary::of(&series)).unwrap();
        let mut expected = serde_json::json!({
            "cpu": 3, "elapsed_ns": 1_000_000_000, "loop_ns_p50": 20, "threshold_ns": 100,
            "gaps": 2, "gaps_hz": 2.0, "noise_ns": 3_000_000, "noise_ppm": 3000.0,
            "gap_ns": {"p50": 200, "p99": 2_999_800, "p99_9": 2_999_800, "max": 2_999_800},
            "culprits": [{"kind": "unexplained", "name": "unexplained", "gaps": 2,
                "ns": 3_000_000, "noise_ppm": 1e6, "entry_ns": 0, "inside_ns": 0, "exit_ns": 0,
                "max_ns": 2_999_800, "period": null}],
            "own": null, "eventless": null, "steal": null, "firmware": null,
            "timers": null,
            "proc": {"span_ns": 0, "interrupts": null, "softirqs": null,
                "timer_hz": null, "preempted": 0, "waited_ns": null, "steal_ns": null},
        });
        let risk = &found["cpus"][0]["risk"];
        expected["risk"] = risk.clone();
        let all = &found["cpus"][0]["culprits"];
        assert_eq!(
            found,
            serde_json::json!({
                "cpus": [expected], "source": null, "culprits": all, "own": null,
                "eventless": null, "steal": null, "firmware": null
            })
        );
        let jobs: Vec<_> = (0..5).map(|i| risk[i]["job_ns"].as_u64().unwrap()).collect();
        assert_eq!(jobs, [1_000, 10_000, 100_000, 1_000_000, 10_000_000]);
        // A job meets a gap if it starts in (0, 1200) or in the 3.9998 ms around the long gap.
        let ppm = risk[3]["hit_ppm"].as_f64().unwrap();
        assert!((ppm - 4_001_000.0 / 999e6 * 1e6).abs() < 1e-6, "{ppm}");
    }

    /// Check that the noise is zero without gaps, and that statistics without values are null.
    #[test]
    fn silence() {
        let found = cpu(&cpu_noise(&[]));
        assert_eq!(found.noise_ppm, Some(Ppm::new(0.0)));
        assert_eq!((found.gap_ns.p50, found.gap_ns.max), (None, None));
        assert_eq!(found.culprits, []);
        assert!(found.risk.iter().all(|risk| risk.hit_ppm == Some(Ppm::new(0.0))));
    }

    /// Check that shares and risks are null if no time passed.
    #[test]
    fn no_time() {
        let found = cpu(&CpuNoise { elapsed_ns: Nanos::ZERO, ..cpu_noise(&[]) });
        assert_eq!((found.noise_ppm, found.gaps_hz), (None, None));
        assert!(found.risk.iter().all(|risk| risk.hit_ppm.is_none()));
    }

    /// Check that gaps that were only counted are part of noise and maximum, and that the risk is that
    /// of the time before them.
    #[test]
    fn lost_gaps_count() {
        let gaps = [span(0, 1_000_000)];
        let lost = Lost {
            since_ns: Nanos::from_millis(5),
            gaps: 4,
            ns: Nanos::from_millis(9),
            max_ns: Nanos::from_millis(6),
        };
        let found = cpu(&CpuNoise { lost: Some(lost), ..cpu_noise(&gaps) });
        assert_eq!((found.gaps, found.noise_ns), (5, Nanos::from_millis(10)));
        assert_eq!(found.gap_ns.p99_9, Some(Nanos::from_millis(1)));
        assert_eq!(found.gap_ns.max, Some(Nanos::from_millis(6)));
        assert_eq!(found.risk[3].hit_ppm, Some(Ppm::new(0.25e6)));
        assert_eq!(found.risk[4].hit_ppm, None, "a job of 10 ms does not fit into 5 ms");
    }

    proptest! {
        /// Check that times and gaps of the culprits add up exactly.
        #[test]
        fn culprits_add_up(
            pairs in prop::collection::vec((0u64..1_000_000, 0u64..10_000), 0..50),
            lost in prop::option::of((0u64..1_000_000, 1u64..9, 0u64..99, 0u64..99)),
        ) {
            let gaps: Vec<Span> = pairs.into_iter().map(|(s, l)| span(s, l)).collect();
            let lost = lost.map(|(since, gaps, ns, max)| Lost {
                since_ns: Nanos::from_nanos(since), gaps,
                ns: Nanos::from_nanos(ns), max_ns: Nanos::from_nanos(max),
            });
            let found = cpu(&CpuNoise { lost, ..cpu_noise(&gaps) });
            prop_assert_eq!(found.culprits.iter().map(|c| c.ns).sum::<Nanos>(), found.noise_ns);
            prop_assert_eq!(found.culprits.iter().map(|c| c.gaps).sum::<u64>(), found.gaps);
            prop_assert_eq!(found.culprits.first().map(|c| c.max_ns), found.gap_ns.max);
        }
    }
}
