//! The summary of `noise`: what a spinning CPU lost, how, and what that means for a job.
//!
//! `noise_ns` is the gaps' lengths added up, whether they were kept or only counted;
//! quantiles and risk come from the kept ones. The culprits' `ns` add up to `noise_ns`.

use serde::{Deserialize, Serialize};
use units::{Cpu, Nanos, PerSecond, Ppm, Span};

use crate::culprits::{Culprit, ShareInput, Taken};
use crate::eventless::Eventless;
use crate::free::FreeTime;
use crate::quantile::nearest_rank;
use crate::steal::{StealInput, StealSummary};
use crate::{MeanwhileInput, MeanwhileSummary};

/// The lengths of the jobs whose risk is told.
const JOBS: [Nanos; 5] = [
    Nanos::from_micros(1),
    Nanos::from_micros(10),
    Nanos::from_micros(100),
    Nanos::from_millis(1),
    Nanos::from_millis(10),
];

/// Gaps that were counted and summed, but not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LostInput {
    /// The first such gap's start, from the loop's first reading; up to here every gap
    /// was kept.
    pub since: Nanos,
    /// How many there were.
    pub gaps: u64,
    /// Their lengths added up.
    pub ns: Nanos,
    /// The longest of them.
    pub max: Nanos,
}

/// What was seen on one CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoiseInput<'a> {
    /// The CPU.
    pub cpu: Cpu,
    /// How long the loop ran.
    pub elapsed: Nanos,
    /// The loop's own median pass.
    pub loop_pass: Nanos,
    /// The shortest gap that was kept, where it is known.
    pub threshold: Option<Nanos>,
    /// The gaps that were kept, counted from the loop's first reading.
    pub gaps: &'a [Span],
    /// The gaps that were not.
    pub lost: Option<LostInput>,
    /// Who took the gaps that were kept; `None` where nobody watched.
    pub shares: Option<Vec<ShareInput<'a>>>,
    /// When events were lost.
    pub losses: &'a [Span],
    /// What the hypervisor's clock counted; `None` where that is not known.
    pub steal: Option<StealInput<'a>>,
    /// What `/proc` counted in the meantime.
    pub meanwhile: MeanwhileInput<'a>,
}

impl NoiseInput<'_> {
    /// The time from the loop's first reading in which every gap was kept: after that, where they
    /// were is not known.
    pub(crate) fn window(&self) -> Nanos {
        self.lost.map_or(self.elapsed, |lost| lost.since.min(self.elapsed))
    }
}

/// How long the gaps were; null where there was none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GapLengths {
    /// Half of the kept gaps were not longer.
    pub p50: Option<Nanos>,
    /// 99 of 100 kept gaps were not longer.
    pub p99: Option<Nanos>,
    /// 999 of 1000 kept gaps were not longer.
    pub p99_9: Option<Nanos>,
    /// The longest of all gaps, kept or not.
    pub max: Option<Nanos>,
}

/// How likely a job of some length is hit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Risk {
    /// The job's length.
    pub job_ns: Nanos,
    /// The chance that at least one gap falls into it when it starts at a random
    /// moment; null where the run was shorter than the job.
    pub hit_ppm: Option<Ppm>,
}

/// What one CPU lost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CpuNoiseSummary {
    /// The CPU.
    pub cpu: Cpu,
    /// How long the loop ran.
    pub elapsed_ns: Nanos,
    /// The loop's own median pass.
    pub loop_ns_p50: Nanos,
    /// The shortest gap that was kept.
    pub threshold_ns: Option<Nanos>,
    /// How many gaps there were.
    pub gaps: u64,
    /// The same a second; null for a run of no length.
    pub gaps_hz: Option<PerSecond>,
    /// The gaps' lengths added up.
    pub noise_ns: Nanos,
    /// The same as a part of the run; null for a run of no length.
    pub noise_ppm: Option<Ppm>,
    /// How long the gaps were.
    pub gap_ns: GapLengths,
    /// How likely jobs are hit.
    pub risk: Vec<Risk>,
    /// Whom the gaps are blamed on; what is left is `unexplained`.
    pub culprits: Vec<Culprit>,
    /// Gaps without any event; null where no events were watched.
    #[serde(default)]
    pub eventless: Option<Eventless>,
    /// What the hypervisor took; null where that is not known.
    #[serde(default)]
    pub steal: Option<StealSummary>,
    /// What `/proc` counted in the meantime.
    pub meanwhile: MeanwhileSummary,
}

/// What the CPUs lost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoiseSummary {
    /// CPU by CPU, in the order given.
    pub cpus: Vec<CpuNoiseSummary>,
    /// Who saw the events that gaps are blamed on (`bpf`, `tracefs`, `proc`), for those who
    /// know to say; null where nobody looked.
    pub source: Option<String>,
    /// Whom the gaps of all of them are blamed on.
    pub culprits: Vec<Culprit>,
    /// Gaps of all of them without any event; null where that is not known of each.
    #[serde(default)]
    pub eventless: Option<Eventless>,
    /// What the hypervisor took of all of them; null where that is not known of each.
    #[serde(default)]
    pub steal: Option<StealSummary>,
}

impl NoiseSummary {
    /// Summarises what was seen, CPU by CPU.
    pub fn of(inputs: &[NoiseInput<'_>]) -> Self {
        let cpus = inputs.iter().map(CpuNoiseSummary::of);
        let cpus: Vec<CpuNoiseSummary> = cpus.collect();
        let culprits = Culprit::together(cpus.iter().flat_map(|cpu| &cpu.culprits));
        let steal = StealSummary::together(cpus.iter().map(|cpu| cpu.steal.as_ref()));
        let eventless =
            Eventless::together(cpus.iter().map(|cpu| cpu.eventless.as_ref()));
        Self { cpus, source: None, culprits, eventless, steal }
    }
}

impl CpuNoiseSummary {
    fn of(input: &NoiseInput<'_>) -> Self {
        let total = total(input);
        let culprits = culprits(input, &total);
        let steal = input.steal.map(|steal| StealSummary::of(&steal, &culprits));
        let shares = input.shares.as_ref();
        let eventless =
            shares.map(|shares| Eventless::of(input.gaps, shares, input.losses));
        Self {
            cpu: input.cpu,
            elapsed_ns: input.elapsed,
            loop_ns_p50: input.loop_pass,
            threshold_ns: input.threshold,
            gaps: total.gaps,
            gaps_hz: PerSecond::of(total.gaps, input.elapsed),
            noise_ns: total.ns,
            noise_ppm: Ppm::of(total.ns, input.elapsed),
            gap_ns: lengths(input, &total),
            risk: risks(input),
            culprits,
            eventless,
            steal,
            meanwhile: MeanwhileSummary::of(&input.meanwhile),
        }
    }
}

/// All gaps, kept or not.
fn total(input: &NoiseInput<'_>) -> Taken {
    let mut total = Taken::default();
    input.gaps.iter().for_each(|gap| total.add(gap.length));
    total.and(input.lost.map(lost))
}

fn lost(lost: LostInput) -> Taken {
    Taken { gaps: lost.gaps, ns: lost.ns, max: lost.max }
}

/// Who took it. Where nobody watched, and of gaps that were not kept, it is not known.
fn culprits(input: &NoiseInput<'_>, total: &Taken) -> Vec<Culprit> {
    let Some(shares) = &input.shares else {
        return Culprit::of(&[], Some(*total), total.ns);
    };
    let mut culprits = Culprit::of(shares, input.lost.map(lost), total.ns);
    Culprit::find_periods(&mut culprits, input.gaps, shares);
    culprits
}

fn lengths(input: &NoiseInput<'_>, total: &Taken) -> GapLengths {
    let mut sorted: Vec<Nanos> = input.gaps.iter().map(|gap| gap.length).collect();
    sorted.sort_unstable();
    GapLengths {
        p50: nearest_rank(&sorted, 500),
        p99: nearest_rank(&sorted, 990),
        p99_9: nearest_rank(&sorted, 999),
        max: (total.gaps > 0).then_some(total.max),
    }
}

fn risks(input: &NoiseInput<'_>) -> Vec<Risk> {
    let free = FreeTime::new(input.window(), input.gaps);
    JOBS.iter().map(|&job_ns| Risk { job_ns, hit_ppm: free.hit(job_ns) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn span(start: u64, length: u64) -> Span {
        Span { start: Nanos::from_nanos(start), length: Nanos::from_nanos(length) }
    }

    fn input(gaps: &[Span]) -> NoiseInput<'_> {
        NoiseInput {
            cpu: Cpu::new(3),
            elapsed: Nanos::from_secs(1),
            loop_pass: Nanos::from_nanos(20),
            threshold: Some(Nanos::from_nanos(100)),
            gaps,
            lost: None,
            shares: None,
            losses: &[],
            steal: None,
            meanwhile: MeanwhileInput::default(),
        }
    }

    /// Check the keys and the form of every value: this is the JSON contract.
    #[test]
    fn contract() {
        let gaps = [span(1000, 200), span(500_000_000, 2_999_800)];
        let found = serde_json::to_value(NoiseSummary::of(&[input(&gaps)])).unwrap();
        let mut expected = serde_json::json!({
            "cpu": 3, "elapsed_ns": 1_000_000_000, "loop_ns_p50": 20, "threshold_ns": 100,
            "gaps": 2, "gaps_hz": 2.0, "noise_ns": 3_000_000, "noise_ppm": 3000.0,
            "gap_ns": {"p50": 200, "p99": 2_999_800, "p99_9": 2_999_800, "max": 2_999_800},
            "culprits": [{"kind": "unexplained", "name": "unexplained", "gaps": 2,
                "ns": 3_000_000, "noise_ppm": 1e6, "entry_ns": 0, "inside_ns": 0, "exit_ns": 0,
                "max_ns": 2_999_800, "period": null}],
            "eventless": null, "steal": null,
            "meanwhile": {"span_ns": 0, "interrupts": null, "softirqs": null,
                "timer_hz": null, "preempted": 0, "waited_ns": null, "steal_ns": null},
        });
        let risk = &found["cpus"][0]["risk"];
        expected["risk"] = risk.clone();
        let all = &found["cpus"][0]["culprits"];
        assert_eq!(
            found,
            serde_json::json!({
                "cpus": [expected], "source": null, "culprits": all, "eventless": null,
                "steal": null
            })
        );
        let jobs: Vec<_> = (0..5).map(|i| risk[i]["job_ns"].as_u64().unwrap()).collect();
        assert_eq!(jobs, [1_000, 10_000, 100_000, 1_000_000, 10_000_000]);
        // Starts in (0, 1200) and in the 3.9998 ms around the long gap are hit.
        let ppm = risk[3]["hit_ppm"].as_f64().unwrap();
        assert!((ppm - 4_001_000.0 / 999e6 * 1e6).abs() < 1e-6, "{ppm}");
    }

    /// Check that a summary read back is the summary that was written.
    #[test]
    fn reads_back() {
        let found = NoiseSummary::of(&[input(&[])]);
        let text = serde_json::to_string(&found).unwrap();
        let again: NoiseSummary = serde_json::from_str(&text).unwrap();
        assert_eq!(again, found);
    }

    /// Check that no gaps are no noise, and that what then has no value is null.
    #[test]
    fn silence() {
        let found = CpuNoiseSummary::of(&input(&[]));
        assert_eq!(found.noise_ppm, Some(Ppm::new(0.0)));
        assert_eq!((found.gap_ns.p50, found.gap_ns.max), (None, None));
        assert_eq!(found.culprits, []);
        assert!(found.risk.iter().all(|risk| risk.hit_ppm == Some(Ppm::new(0.0))));
    }

    /// Check that a run of no length has no share and no risk, rather than none.
    #[test]
    fn no_time() {
        let found =
            CpuNoiseSummary::of(&NoiseInput { elapsed: Nanos::ZERO, ..input(&[]) });
        assert_eq!((found.noise_ppm, found.gaps_hz), (None, None));
        assert!(found.risk.iter().all(|risk| risk.hit_ppm.is_none()));
    }

    /// Check that gaps that were not kept count for noise and the longest gap, and that
    /// risk looks only at the time before them.
    #[test]
    fn lost_gaps_count() {
        let gaps = [span(0, 1_000_000)];
        let lost = LostInput {
            since: Nanos::from_millis(5),
            gaps: 4,
            ns: Nanos::from_millis(9),
            max: Nanos::from_millis(6),
        };
        let found = CpuNoiseSummary::of(&NoiseInput { lost: Some(lost), ..input(&gaps) });
        assert_eq!((found.gaps, found.noise_ns), (5, Nanos::from_millis(10)));
        assert_eq!(found.gap_ns.p99_9, Some(Nanos::from_millis(1)));
        assert_eq!(found.gap_ns.max, Some(Nanos::from_millis(6)));
        assert_eq!(found.risk[3].hit_ppm, Some(Ppm::new(0.25e6)));
        assert_eq!(found.risk[4].hit_ppm, None, "a job of 10 ms does not fit into 5 ms");
    }

    proptest! {
        /// Check that the culprits' times and gaps add up to the noise exactly.
        #[test]
        fn culprits_add_up(
            pairs in prop::collection::vec((0u64..1_000_000, 0u64..10_000), 0..50),
            lost in prop::option::of((0u64..1_000_000, 1u64..9, 0u64..99, 0u64..99)),
        ) {
            let gaps: Vec<Span> = pairs.into_iter().map(|(s, l)| span(s, l)).collect();
            let lost = lost.map(|(since, gaps, ns, max)| LostInput {
                since: Nanos::from_nanos(since), gaps,
                ns: Nanos::from_nanos(ns), max: Nanos::from_nanos(max),
            });
            let found = CpuNoiseSummary::of(&NoiseInput { lost, ..input(&gaps) });
            prop_assert_eq!(found.culprits.iter().map(|c| c.ns).sum::<Nanos>(), found.noise_ns);
            prop_assert_eq!(found.culprits.iter().map(|c| c.gaps).sum::<u64>(), found.gaps);
            prop_assert_eq!(found.culprits.first().map(|c| c.max_ns), found.gap_ns.max);
        }
    }
}
