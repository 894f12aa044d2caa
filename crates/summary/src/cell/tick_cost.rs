//! The cost of a tick on a busy CPU, as measured by the guest's loop and by the counter.

use facts::Facts;
use recording::{Answer, CpuCounts, Level, NoiseSeries, PhaseCounts};
use serde::Serialize;
use stats::Spread;
use units::{CpuSet, Instructions, Nanos, Span, TscHz};

use crate::cell::counts::{on_cpu, timer};
use crate::explain::tick_kinds::TickKinds;
use crate::noise::NoiseSummary;
use crate::noise::culprits::CulpritSummary;

/// The gaps of one CPU's loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Gaps<'a> {
    /// The loop's own pass, which was subtracted from each gap.
    pass: Nanos,
    gaps: &'a [Span],
}

/// The cost of a tick on a busy CPU, measured independently by the loop and the counter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TickCost {
    /// Gaps as measured by the guest's loop, including its own pass; null if several CPUs share the
    /// guest's clock, which then includes the instructions of the others.
    pub gap_instructions: Option<Spread>,
    /// Kernel instructions of each timer interrupt of the program, until any program runs again;
    /// null without a counter.
    pub kernel_instructions: Option<Spread>,
    /// The kinds of these timer interrupts; null without a counter.
    pub kinds: Option<TickKinds>,
    /// The attribution of the gaps, in guest time; empty without tracing, or if several CPUs share
    /// the guest's clock.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub culprits: Vec<CulpritSummary>,
}

impl TickCost {
    /// The number of timer interrupts during the measurement; `None` without a counter.
    pub fn ticks(&self) -> Option<u64> {
        let of_values =
            |spread: &Spread| spread.values.iter().map(|(_, count)| count).sum();
        self.kernel_instructions.as_ref().map(of_values)
    }

    /// From the gaps, and the counts of the same CPUs.
    pub(super) fn of(answer: &Answer, series: &NoiseSeries) -> Self {
        let counts = answer.counts.as_ref();
        let measured = counts.map(|counts| {
            let of_phase = |phase| {
                let cpus =
                    series.cpus.iter().filter_map(move |cpu| on_cpu(phase, cpu.cpu));
                cpus.collect::<Vec<_>>()
            };
            counts.phases.iter().map(of_phase).collect::<Vec<_>>()
        });
        let first = counts.and_then(|counts| counts.phases.first());
        let clock = own_clock(&answer.recording.facts, series, first);
        let cost = Self::of_phases(clock, &gaps(series), measured.as_deref());
        let cpus: CpuSet = series.cpus.iter().map(|cpu| cpu.cpu).collect();
        let ticks =
            cost.kernel_instructions.as_ref().filter(|_| answer.profile.is_some());
        let kinds = ticks.map(|ticks| {
            TickKinds::of_answer(ticks.count(), answer, &cpus, &[Level::User])
        });
        let is_blamed = clock.is_some() && series.source.is_some();
        let culprits = is_blamed.then(|| NoiseSummary::of(series).culprits);
        Self { kinds, culprits: culprits.unwrap_or_default(), ..cost }
    }

    /// Summarizes gaps, measured with a clock of that frequency (`None` if several CPUs share it),
    /// and the counts of the same CPUs, both by phase.
    fn of_phases(
        clock: Option<TscHz>,
        gaps: &[Vec<Gaps<'_>>],
        counts: Option<&[Vec<&CpuCounts>]>,
    ) -> Self {
        let measured = |hz: TscHz| {
            let of_cpu = move |cpu: &Gaps<'_>| {
                let whole = |gap: &Span| hz.ticks(gap.length + cpu.pass).ticks();
                let gaps: Vec<u64> = cpu.gaps.iter().map(whole).collect();
                gaps.into_iter().map(|length| (Instructions::new(length), 1))
            };
            Spread::phased(gaps.iter().map(|phase| phase.iter().flat_map(of_cpu)))
        };
        let counted = |phases: &[Vec<&CpuCounts>]| {
            Spread::phased(phases.iter().map(|cpus| {
                let timer = cpus.iter().flat_map(|counts| timer(counts));
                let from_user = timer.filter(|way| way.from == Level::User);
                from_user.flat_map(|way| way.kernel.iter().copied())
            }))
        };
        Self {
            gap_instructions: clock.map(measured),
            kernel_instructions: counts.map(counted),
            kinds: None,
            culprits: Vec::new(),
        }
    }
}

/// The gaps of each phase, by CPU.
fn gaps(series: &NoiseSeries) -> Vec<Vec<Gaps<'_>>> {
    let spans: Vec<Vec<Span>> = series.cpus.iter().map(|cpu| cpu.ran()).collect();
    let phases = spans.iter().map(Vec::len).max().unwrap_or(0);
    let of_phase = |phase: usize| {
        let within = series.cpus.iter().zip(&spans).filter_map(|(cpu, spans)| {
            let begin = spans.get(phase)?.start;
            let end = spans.get(phase + 1).map_or(Nanos::MAX, |next| next.start);
            let from = cpu.gaps.partition_point(|gap| gap.start < begin);
            let to = cpu.gaps.partition_point(|gap| gap.start < end);
            Some(Gaps { pass: cpu.loop_ns, gaps: cpu.gaps.get(from..to)? })
        });
        within.collect()
    };
    (0..phases).map(of_phase).collect()
}

/// The clock's frequency, if the guest has only one CPU. Their number is a fact, or else that of the
/// counter; if both are unknown, several CPUs may share the clock.
fn own_clock(
    facts: &Facts,
    series: &NoiseSeries,
    phase: Option<&PhaseCounts>,
) -> Option<TscHz> {
    let online = facts.cpus.online.get().map(units::CpuSet::len);
    let cpus = online.or_else(|| phase.map(|phase| phase.cpus.len()));
    (cpus == Some(1)).then_some(series.clock_hz)
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::cell::CellSummary;
    use crate::cell::example::{TIMER, counts, values};

    fn gaps(lengths: &[u64]) -> Vec<Span> {
        let gap = |(at, length): (usize, &u64)| Span {
            start: Nanos::from_millis(4 * at as u64),
            length: Nanos::from_nanos(*length),
        };
        lengths.iter().enumerate().map(gap).collect()
    }

    /// Check that gaps include the pass, are whole instructions on a clock that is not quite 1 GHz,
    /// and that only timer interrupts of a program count as ticks.
    #[test]
    fn tick_cost() {
        let gaps = gaps(&[2571, 2571, 2_999_997]);
        let kernel = values(&[(2574, 2)]);
        let (user, other) = (Level::User, "asm_common_interrupt");
        let entries = [(TIMER, user), (TIMER, Level::Kernel), (other, user)];
        let counts = counts(0, &entries, &kernel);
        let counts = [vec![&counts]];
        let gaps = [vec![Gaps { pass: Nanos::from_nanos(13), gaps: &gaps }]];
        let found = TickCost::of_phases(TscHz::new(999_999_000), &gaps, Some(&counts));
        let expected = serde_json::json!({
            "gap_instructions": {
                "agreed": null, "mean": 1_001_725.0, "mean_deviation": null, "p50": 2584,
                "p50_deviation": null, "p99": 3_000_007,
                "values": [[2584, 2], [3_000_007, 1]],
            },
            "kernel_instructions": {
                "agreed": 2574, "mean": 2574.0, "mean_deviation": null, "p50": 2574,
                "p50_deviation": null, "p99": 2574, "values": [[2574, 2]],
            },
            "kinds": null,
        });
        assert_eq!(serde_json::to_value(CellSummary::TickCost(found)).unwrap(), expected);
    }

    /// Check that a shared clock and a missing counter are null, never zero ticks.
    #[test]
    fn unknown_is_null() {
        let gaps = gaps(&[2571]);
        let gaps = [vec![Gaps { pass: Nanos::from_nanos(13), gaps: &gaps }]];
        let found = TickCost::of_phases(None, &gaps, None);
        assert_eq!((found.gap_instructions, found.kernel_instructions), (None, None));
        let found = TickCost::of_phases(None, &[], Some(&[]));
        assert_eq!(found.kernel_instructions, Some(Spread::default()));
    }
}
