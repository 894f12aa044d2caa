//! The instructions of idle CPUs.

use recording::{Answer, Counts, CpuCounts, CpuTicks, Level, TickSample, TicksSeries};
use serde::Serialize;
use stats::Spread;
use units::{Cpu, CpuSet, Instructions, Nanos, PerSecond};

use crate::cell::counts::{on_cpu, timer_costs, timer_entries};
use crate::cell::idle_stretches::IdleStretches;
use crate::explain::tick_kinds::TickKinds;
use crate::noise::culprits::CulpritSummary;

/// The counts of one idle CPU, by the counter and by `/proc`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IdleCpu<'a> {
    pub(crate) cpu: Cpu,
    /// Timer interrupts by `/proc/interrupts`; `None` if unknown.
    pub(crate) timer: Option<u64>,
    /// The counts of each phase.
    pub(crate) phases: Vec<&'a CpuCounts>,
}

/// The instructions of idle CPUs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IdleCost {
    /// The duration, in guest time.
    pub idle_ns: Nanos,
    /// The number of its intervals.
    pub intervals: u64,
    /// Each CPU, in the order of the parameters.
    pub cpus: Vec<CpuIdleCost>,
    /// Kernel instructions of each timer interrupt, on all these CPUs.
    pub tick_kernel_instructions: Spread,
    /// The kinds of these timer interrupts.
    pub kinds: TickKinds,
    /// What ran on these CPUs, by time: each gap is a period of work. Empty without tracing.
    pub culprits: Vec<CulpritSummary>,
}

/// The instructions of one idle CPU. Timer interrupts are counted twice, independently.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CpuIdleCost {
    /// The CPU.
    pub cpu: Cpu,
    /// All its instructions.
    pub instructions: Instructions,
    /// Those of the kernel.
    pub kernel_instructions: Instructions,
    /// All instructions per second; null if no time passed.
    pub instructions_hz: Option<PerSecond>,
    /// The largest deviation of an interval; null for fewer than two intervals.
    pub instructions_hz_deviation: Option<PerSecond>,
    /// Timer interrupts by `/proc/interrupts`; null if unknown.
    pub timer_interrupts: Option<u64>,
    /// That per second.
    pub timer_hz: Option<PerSecond>,
    /// The largest deviation of an interval from that, by the counter; null as above.
    pub timer_hz_deviation: Option<PerSecond>,
    /// Timer interrupts by the counter: how often the kernel was entered by the timer's entry.
    pub timer_entries: u64,
    /// That per second.
    pub timer_entries_hz: Option<PerSecond>,
    /// The idle stretches; null if QEMU does not export its clock, and in older files.
    pub idle: Option<IdleStretches>,
}

impl IdleCost {
    /// Each interval is a phase. `None` if there are fewer phases.
    pub(super) fn of(
        answer: &Answer,
        series: &TicksSeries,
        counts: &Counts,
    ) -> Option<Self> {
        let samples = &series.samples;
        let phases = counts.phases.get(..samples.len())?;
        let intervals: Vec<Nanos> = samples.iter().map(|sample| sample.span_ns).collect();
        let cpus = samples.first()?.cpus.iter().map(|&CpuTicks { cpu, .. }| IdleCpu {
            cpu,
            timer: samples.iter().map(|sample| timer_count(sample, cpu)).sum(),
            phases: phases.iter().filter_map(|phase| on_cpu(phase, cpu)).collect(),
        });
        let cost = Self::of_cpus(&intervals, &cpus.collect::<Vec<_>>());
        let cpus: CpuSet = cost.cpus.iter().map(|cpu| cpu.cpu).collect();
        let ticks = cost.tick_kernel_instructions.count();
        let levels = [Level::User, Level::Kernel];
        let kinds = TickKinds::of_answer(ticks, answer, &cpus, &levels);
        Some(Self { kinds, culprits: CulpritSummary::of_busy(series), ..cost })
    }

    /// Summarizes intervals of these lengths.
    pub(crate) fn of_cpus(intervals: &[Nanos], cpus: &[IdleCpu<'_>]) -> Self {
        let timer = |interval: usize| {
            let counts = cpus.iter().filter_map(move |cpu| cpu.phases.get(interval));
            counts.flat_map(|counts| timer_costs(counts))
        };
        Self {
            idle_ns: intervals.iter().copied().sum(),
            intervals: intervals.len() as u64,
            cpus: cpus.iter().map(|cpu| CpuIdleCost::of(intervals, cpu)).collect(),
            tick_kernel_instructions: Spread::phased((0..intervals.len()).map(timer)),
            kinds: TickKinds::default(),
            culprits: Vec::new(),
        }
    }

    /// The idle stretches of all CPUs together; `None` if those of one are unknown.
    pub fn idle(&self) -> Option<IdleStretches> {
        let of_cpus = self.cpus.iter().map(|cpu| Some(&cpu.idle.as_ref()?.values));
        IdleStretches::together(of_cpus)
    }

    /// The CPUs where the two counts of timer interrupts differ by more than one at each
    /// edge of each interval: `/proc` is read just before it and just after.
    pub fn contradictions(&self) -> impl Iterator<Item = &CpuIdleCost> {
        let edges = self.intervals.saturating_mul(2);
        let differs = move |cpu: &&CpuIdleCost| {
            let by_proc = cpu.timer_interrupts.unwrap_or(cpu.timer_entries);
            by_proc.abs_diff(cpu.timer_entries) > edges
        };
        self.cpus.iter().filter(differs)
    }
}

impl CpuIdleCost {
    fn of(intervals: &[Nanos], input: &IdleCpu<'_>) -> Self {
        let idle = intervals.iter().copied().sum();
        let sum = |part: fn(&CpuCounts) -> Instructions| {
            input.phases.iter().map(|counts| part(counts)).sum::<Instructions>()
        };
        let all = sum(|phase| phase.user + phase.kernel);
        let entries = input.phases.iter().map(|counts| timer_entries(counts)).sum();
        Self {
            cpu: input.cpu,
            instructions: all,
            kernel_instructions: sum(|phase| phase.kernel),
            instructions_hz: PerSecond::of(all.get(), idle),
            instructions_hz_deviation: deviation(
                PerSecond::of(all.get(), idle),
                intervals,
                input.phases.iter().map(|phase| (phase.user + phase.kernel).get()),
            ),
            timer_interrupts: input.timer,
            timer_hz: input.timer.and_then(|count| PerSecond::of(count, idle)),
            timer_hz_deviation: deviation(
                PerSecond::of(entries, idle),
                intervals,
                input.phases.iter().map(|counts| timer_entries(counts)),
            ),
            timer_entries: entries,
            timer_entries_hz: PerSecond::of(entries, idle),
            idle: IdleStretches::together(
                input.phases.iter().map(|counts| counts.idle_ns.as_ref()),
            ),
        }
    }
}

/// The largest deviation of an interval's rate from that of all.
fn deviation(
    whole: Option<PerSecond>,
    intervals: &[Nanos],
    counts: impl Iterator<Item = u64>,
) -> Option<PerSecond> {
    let rates = intervals.iter().zip(counts).filter_map(|(span, count)| {
        Some((PerSecond::of(count, *span)?.get() - whole?.get()).abs())
    });
    let furthest = rates.max_by(f64::total_cmp).filter(|_| intervals.len() > 1);
    furthest.map(PerSecond::new)
}

fn timer_count(sample: &TickSample, cpu: Cpu) -> Option<u64> {
    sample.cpus.iter().find(|ticks| ticks.cpu == cpu)?.timer
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::cell::CellSummary;
    use crate::cell::example::{TIMER, counts, values};

    /// Check the keys, and that the counts of all phases are added up.
    #[test]
    fn idle_cost() {
        let kernel = values(&[(1200, 3), (1500, 1)]);
        let phase = counts(0, &[(TIMER, Level::Kernel)], &kernel);
        let (cpu, phases) = (Cpu::new(0), vec![&phase, &phase]);
        let cpu = IdleCpu { cpu, timer: Some(9), phases };
        let found = IdleCost::of_cpus(&[Nanos::from_secs(1); 2], &[cpu]);
        assert_eq!(found.contradictions().count(), 0);
        let expected = serde_json::json!({
            "idle_ns": 2_000_000_000_u64,
            "intervals": 2,
            "cpus": [{
                "cpu": 0, "instructions": 10_080, "kernel_instructions": 10_000,
                "instructions_hz": 5040.0, "instructions_hz_deviation": 0.0,
                "timer_interrupts": 9, "timer_hz": 4.5, "timer_hz_deviation": 0.0,
                "timer_entries": 8, "timer_entries_hz": 4.0, "idle": null,
            }],
            "tick_kernel_instructions": {
                "agreed": null, "mean": 1275.0, "mean_deviation": 0.0, "p50": 1200,
                "p50_deviation": 0, "p99": 1500, "values": [[1200, 6], [1500, 2]],
            },
            "kinds": {
                "frequent_min": null, "frequent_max": null, "ticks": 0,
                "ticks_not_listed": 0, "kinds": [],
            },
            "culprits": [],
        });
        assert_eq!(serde_json::to_value(CellSummary::IdleCost(found)).unwrap(), expected);
    }

    /// Check that the stretches of all phases and CPUs are added up, and are unknown if those of one
    /// phase are.
    #[test]
    fn idle_stretches() {
        let halted = |lengths: &[u64]| {
            let idle = lengths.iter().map(|length| (Nanos::from_micros(*length), 2));
            let counts = counts(0, &[], &Vec::new());
            CpuCounts { idle_ns: Some(idle.collect()), ..counts }
        };
        let phases = [halted(&[100, 4000]), halted(&[4000]), counts(0, &[], &Vec::new())];
        let of = |phases: &[&CpuCounts]| {
            let cpu = |cpu| IdleCpu {
                cpu: Cpu::new(cpu),
                timer: None,
                phases: phases.to_vec(),
            };
            IdleCost::of_cpus(&[Nanos::from_secs(1); 2], &[cpu(0), cpu(1)])
        };
        let found = of(&[&phases[0], &phases[1]]);
        let values = |values: &[(u64, u64)]| {
            let value =
                |&(length, count): &(u64, u64)| (Nanos::from_micros(length), count);
            values.iter().map(value).collect::<Vec<_>>()
        };
        let on_cpu = found.cpus[0].idle.as_ref().unwrap();
        assert_eq!(on_cpu.values, values(&[(100, 2), (4000, 4)]));
        assert_eq!(found.idle().unwrap().values, values(&[(100, 4), (4000, 8)]));
        let found = of(&[&phases[0], &phases[2]]);
        assert_eq!((&found.cpus[0].idle, found.idle()), (&None, None));
    }

    /// Check that the two counts may differ by one at each edge and no more, and that an unknown
    /// one is no contradiction.
    #[test]
    fn contradictions() {
        let kernel = values(&[(1200, 10)]);
        let doubtful = |timer| {
            let phase = counts(0, &[(TIMER, Level::Kernel)], &kernel);
            let cpu = IdleCpu { cpu: Cpu::new(0), timer, phases: vec![&phase] };
            IdleCost::of_cpus(&[Nanos::from_secs(1)], &[cpu]).contradictions().count()
                == 1
        };
        let found = [Some(7), Some(8), Some(12), Some(13), None].map(doubtful);
        assert_eq!(found, [true, false, false, true, false]);
    }
}
