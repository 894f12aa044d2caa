//! From a cell of the lab to its summary: fields are moved, nothing is worked out here.
//!
//! An exact cell is summarised from the guest's clock and from the counter side by side.
//! Several CPUs share one instruction clock, so there only the counter knows who
//! executed what. Where nothing was counted, the summary is the measurement's own.

use facts::Facts;
use recording::{
    Answer, Body, CallsSeries, CallsSpec, Cell, Code, Counts, CpuCounts, Doubt, Ending,
    Episode, Level, Mode, NohzSeries, NohzSpec, NoiseSeries, PhaseCounts, Phases,
    Recording, TickSample, TicksSeries, What,
};
use stats::{
    CallCosts, CallsSummary, CellSummary, CheckSummary, CountsInput, CpuWork, Culprit,
    EntryInput, GapsInput, IdleCost, IdleInput, KindInput, NohzCost, NohzTestSummary,
    NoiseSummary, SlicesCost, SlicesSummary, Spread, TickCost, TickKinds, TicksSummary,
    is_timer_entry,
};
use units::{Cpu, CpuSet, Nanos, Span, TscHz};

use crate::typical::stacks;

/// What a cell found; `None` for a lost one.
pub fn cell_summary(cell: &Cell) -> Option<CellSummary> {
    let answer = answer(cell)?;
    let exact = match cell.mode {
        Mode::Exact => exact_summary(answer),
        Mode::Timed => None,
    };
    exact.or_else(|| ordinary_summary(&answer.recording))
}

/// Reasons not to trust a cell's numbers: the recording's own, and what its two counts
/// of timer interrupts say about each other.
pub fn cell_doubts(cell: &Cell) -> Vec<Doubt> {
    let mut doubts = answer(cell).map_or(Vec::new(), |a| a.recording.doubts.clone());
    if let Some(CellSummary::IdleCost(cost)) = cell_summary(cell) {
        doubts.extend(cost.contradictions().map(|cpu| {
            let by_proc = cpu.timer_interrupts.unwrap_or_default();
            let text = format!(
                "CPU {}: /proc/interrupts counted {by_proc} timer interrupts, the lab's \
                 counter {}",
                cpu.cpu, cpu.timer_entries
            );
            Doubt::new(Code::CountsDiffer, text)
        }));
    }
    doubts
}

/// What a cell's guest answered; `None` for a lost one.
pub(crate) fn answer(cell: &Cell) -> Option<&Answer> {
    match &cell.ending {
        Ending::Done(answer) => Some(answer),
        Ending::Lost { .. } => None,
    }
}

fn exact_summary(answer: &Answer) -> Option<CellSummary> {
    let counts = answer.counts.as_ref();
    match &answer.recording.body {
        Body::Noise { series, .. } => {
            Some(CellSummary::TickCost(tick_cost(answer, series, counts)))
        }
        Body::Ticks { series, .. } => {
            idle_cost(answer, series, counts?).map(CellSummary::IdleCost)
        }
        Body::Calls { spec, series } => {
            call_costs(spec, series, counts?).map(CellSummary::CallCosts)
        }
        Body::NohzTest { spec, series } => {
            Some(CellSummary::NohzCost(nohz_cost(spec, series, counts?)))
        }
        Body::Slices { spec, series } => {
            let found = SlicesSummary::of(
                answer.recording.facts.tick.hz.get().copied(),
                spec,
                series,
            );
            Some(CellSummary::SlicesCost(slices_cost(found, counts?)))
        }
        _ => None,
    }
}

fn ordinary_summary(recording: &Recording) -> Option<CellSummary> {
    let summary = match &recording.body {
        Body::Noise { series, .. } => CellSummary::Noise(NoiseSummary::of(series)),
        Body::Ticks { series, .. } => {
            CellSummary::Ticks(TicksSummary::of(&series.samples))
        }
        Body::Calls { spec, series } => {
            CellSummary::Calls(CallsSummary::of(spec, series))
        }
        Body::Check { series, .. } => CellSummary::Check(CheckSummary::of(series)),
        Body::NohzTest { spec, series } => {
            CellSummary::Nohz(NohzTestSummary::of(spec, series))
        }
        Body::Slices { spec, series } => CellSummary::Slices(SlicesSummary::of(
            recording.facts.tick.hz.get().copied(),
            spec,
            series,
        )),
        // No guest is asked for anything else.
        _ => return None,
    };
    Some(summary)
}

fn tick_cost(answer: &Answer, series: &NoiseSeries, counts: Option<&Counts>) -> TickCost {
    let measured = counts.map(|counts| {
        let of_phase = |phase| {
            let cpus = series.cpus.iter().filter_map(move |cpu| on_cpu(phase, cpu.cpu));
            cpus.collect::<Vec<_>>()
        };
        counts.phases.iter().map(of_phase).collect::<Vec<_>>()
    });
    let first = counts.and_then(|counts| counts.phases.first());
    let clock = own_clock(&answer.recording.facts, series, first);
    let cost = TickCost::of(clock, &gaps(series), measured.as_deref());
    let cpus: CpuSet = series.cpus.iter().map(|cpu| cpu.cpu).collect();
    let ticks = cost.kernel_instructions.as_ref().filter(|_| answer.profile.is_some());
    let of_all = |ticks: &Spread| {
        TickKinds::of(ticks.count(), kinds(answer, &cpus, &[Level::User]))
    };
    let kinds = ticks.map(of_all);
    let is_blamed = clock.is_some() && series.source.is_some();
    let culprits = is_blamed.then(|| NoiseSummary::of(series).culprits);
    TickCost { kinds, culprits: culprits.unwrap_or_default(), ..cost }
}

/// The gaps of each phase, CPU by CPU.
fn gaps(series: &NoiseSeries) -> Vec<Vec<GapsInput<'_>>> {
    let spans: Vec<Vec<Span>> = series.cpus.iter().map(|cpu| cpu.ran()).collect();
    let phases = spans.iter().map(Vec::len).max().unwrap_or(0);
    let of_phase = |phase: usize| {
        let within = series.cpus.iter().zip(&spans).filter_map(|(cpu, spans)| {
            let begin = spans.get(phase)?.start;
            let end = spans.get(phase + 1).map_or(Nanos::MAX, |next| next.start);
            let from = cpu.gaps.partition_point(|gap| gap.start < begin);
            let to = cpu.gaps.partition_point(|gap| gap.start < end);
            Some(GapsInput { pass: cpu.loop_ns, gaps: cpu.gaps.get(from..to)? })
        });
        within.collect()
    };
    (0..phases).map(of_phase).collect()
}

/// The clock's frequency, where the guest's only CPU has it for itself. How many there
/// are is a fact, or else the counter knows; where neither says, it may be shared.
fn own_clock(
    facts: &Facts,
    series: &NoiseSeries,
    phase: Option<&PhaseCounts>,
) -> Option<TscHz> {
    let online = facts.cpus.online.get().map(units::CpuSet::len);
    let cpus = online.or_else(|| phase.map(|phase| phase.cpus.len()));
    (cpus == Some(1)).then_some(series.clock_hz)
}

/// Each interval is a phase of its own.
fn idle_cost(answer: &Answer, series: &TicksSeries, counts: &Counts) -> Option<IdleCost> {
    let samples = &series.samples;
    let phases = counts.phases.get(..samples.len())?;
    let intervals: Vec<Nanos> = samples.iter().map(|sample| sample.span_ns).collect();
    let cpus = samples.first()?.cpus.iter().map(|seen| IdleInput {
        cpu: seen.cpu,
        timer: samples.iter().map(|sample| timer(sample, seen.cpu)).sum(),
        phases: phases.iter().filter_map(|phase| on_cpu(phase, seen.cpu)).collect(),
    });
    let cost = IdleCost::of(&intervals, &cpus.collect::<Vec<_>>());
    let cpus: CpuSet = cost.cpus.iter().map(|cpu| cpu.cpu).collect();
    let ticks = cost.tick_kernel_instructions.count();
    let kinds = TickKinds::of(ticks, kinds(answer, &cpus, &[Level::User, Level::Kernel]));
    Some(IdleCost { kinds, culprits: Culprit::of_busy(series), ..cost })
}

/// The kinds of timer interrupts that were kept: those of these CPUs that interrupted this.
fn kinds<'a>(answer: &'a Answer, cpus: &CpuSet, levels: &[Level]) -> Vec<KindInput<'a>> {
    let Some(profile) = &answer.profile else { return Vec::new() };
    let is_tick = |episode: &&Episode| match &episode.what {
        What::Interruption { entry, from } => {
            is_timer_entry(entry) && levels.contains(from) && cpus.contains(episode.cpu)
        }
        What::Step => false,
    };
    let kind = |episode: &'a Episode| KindInput {
        instructions: episode.total,
        times: episode.times.iter().map(|(_, times)| times).sum(),
        stacks: stacks(profile, episode),
    };
    profile.episodes.iter().filter(is_tick).map(kind).collect()
}

/// Each try is a phase, and the stay the last one, where there was one. What was executed is
/// that of the try whose wait is reported.
fn nohz_cost(spec: &NohzSpec, series: &NohzSeries, counts: &Counts) -> NohzCost {
    let work = |phase: Option<&PhaseCounts>, span| {
        let cpus = phase.into_iter().flat_map(|phase| phase.cpus.iter());
        CpuWork::of(&cpus.map(counts_input).collect::<Vec<_>>(), span)
    };
    let stay = series.stay.as_ref().map(|stay| stay.span_ns);
    let test = NohzTestSummary::of(spec, series);
    let mut tries = series.tries.iter().zip(&counts.phases).rev();
    let told = tries.find(|(tried, _)| Some(tried.wait_ns) == test.wait_ns);
    NohzCost {
        entering: work(told.map(|(_, phase)| phase), None),
        staying: work(counts.phases.get(series.tries.len()), stay),
        test,
    }
}

/// Each turn is a phase.
fn slices_cost(found: SlicesSummary, counts: &Counts) -> SlicesCost {
    let cpus = counts.phases.iter().flat_map(|phase| phase.cpus.iter());
    let cpus: Vec<CountsInput<'_>> = cpus.map(counts_input).collect();
    SlicesCost { cpus: CpuWork::of(&cpus, Some(found.found.wall_ns)), found }
}

fn timer(sample: &TickSample, cpu: Cpu) -> Option<u64> {
    sample.cpus.iter().find(|seen| seen.cpu == cpu)?.timer
}

/// Each call has phases of its own, one after the other.
fn call_costs(
    spec: &CallsSpec,
    series: &CallsSeries,
    counts: &Counts,
) -> Option<CallCosts> {
    let each = phases_each(spec);
    let phases = counts.phases.get(..series.calls.len().checked_mul(each)?)?;
    let calls =
        series.calls.iter().zip(phases.chunks_exact(each)).map(|(seen, phases)| {
            let counts = phases.iter().map(|phase| on_cpu(phase, spec.cpu));
            Some((seen.call.name(), counts.collect::<Option<Vec<_>>>()?))
        });
    let calls = calls.collect::<Option<Vec<_>>>()?;
    Some(CallCosts::of(calls.iter().map(|(name, counts)| (*name, counts.as_slice()))))
}

/// In how many phases each call was made.
pub(crate) fn phases_each(spec: &CallsSpec) -> usize {
    usize::try_from(Phases::parts(spec.phases.as_ref())).unwrap_or(usize::MAX)
}

fn on_cpu(phase: &PhaseCounts, cpu: Cpu) -> Option<CountsInput<'_>> {
    phase.cpus.iter().find(|counts| counts.cpu == cpu).map(counts_input)
}

fn counts_input(counts: &CpuCounts) -> CountsInput<'_> {
    let entries = counts.interruptions.iter().map(|way| EntryInput {
        entry: &way.entry,
        from_user: way.from == Level::User,
        kernel: &way.kernel,
    });
    CountsInput {
        cpu: counts.cpu,
        user: counts.user,
        kernel: counts.kernel,
        steps: &counts.steps,
        entries: entries.collect(),
    }
}

#[cfg(test)]
mod tests {
    use recording::Call;
    use units::Instructions;

    use super::*;
    use crate::cell_example::{OLD, call_costs, cell, idle_cost, lost, phase, tick_cost};
    use crate::example;

    fn tick(ending: &Ending) -> TickCost {
        let Some(CellSummary::TickCost(cost)) =
            cell_summary(&cell("other", OLD, ending.clone()))
        else {
            panic!("not the cost of a tick")
        };
        cost
    }

    fn answer_of(ending: &mut Ending) -> &mut Answer {
        let Ending::Done(answer) = ending else { panic!("lost") };
        answer
    }

    /// Check that a guest of one CPU has both views, with the loop's pass in the first.
    #[test]
    fn one_cpu() {
        let cost = tick(&tick_cost(&[2584, 2584, 9_000_123], &[(2571, 2)]));
        let gaps = cost.gap_instructions.unwrap();
        assert_eq!(gaps.p50, Some(Instructions::new(2584)));
        assert_eq!(gaps.max(), Some(Instructions::new(9_000_121)));
        assert_eq!(cost.kernel_instructions.unwrap().p50, Some(Instructions::new(2571)));
    }

    /// Check that each phase's gaps and ticks are its own, and that the spread over phases is
    /// known.
    #[test]
    fn phases() {
        let mut ending = tick_cost(&[2584, 2584, 2684, 2684], &[(2571, 2)]);
        let answer = answer_of(&mut ending);
        let Body::Noise { series, .. } = &mut answer.recording.body else { panic!() };
        let span = |start| Span {
            start: Nanos::from_millis(start),
            length: Nanos::from_millis(7),
        };
        series.cpus[0].phases = vec![span(0), span(8)];
        let phases = &mut answer.counts.as_mut().unwrap().phases;
        phases.push(phase(&[], Level::User, &[(2671, 2)]));
        let cost = tick(&ending);
        for (spread, mean) in
            [(cost.gap_instructions, 2634.0), (cost.kernel_instructions, 2621.0)]
        {
            let spread = spread.unwrap();
            assert_eq!((spread.mean, spread.mean_deviation), (Some(mean), Some(50.0)));
            assert_eq!(spread.p50_deviation, Some(Instructions::new(100)));
            assert_eq!(spread.agreed, None);
        }
    }

    /// Check that with several CPUs, or where nobody says how many, the clock is not
    /// believed; and that the counter knows where facts do not.
    #[test]
    fn shared_clock() {
        let mut ending = tick_cost(&[2584], &[(2571, 1)]);
        let gaps = |ending: &Ending| tick(ending).gap_instructions.is_some();
        answer_of(&mut ending).recording.facts = example::facts(example::GUEST);
        assert!(!gaps(&ending));
        assert!(tick(&ending).kernel_instructions.is_some());
        answer_of(&mut ending).recording.facts = example::facts(example::MUTE);
        assert!(gaps(&ending));
        answer_of(&mut ending).counts = None;
        assert!(!gaps(&ending));
        assert_eq!(tick(&ending).kernel_instructions, None);
    }

    /// Check that what was not counted, or was measured in time, is summarised as the
    /// measurement is anywhere else, and that a lost cell has no summary.
    #[test]
    fn ordinary() {
        let calls = || call_costs(&[(Call::Getpid, &[(412, 3)])]);
        let mut uncounted = calls();
        answer_of(&mut uncounted).counts = None;
        let mut cells =
            [calls(), uncounted, calls()].map(|ending| cell("calls", OLD, ending));
        cells[2].mode = Mode::Timed;
        let is_exact =
            |cell: &Cell| matches!(cell_summary(cell), Some(CellSummary::CallCosts(_)));
        assert_eq!(cells.each_ref().map(is_exact), [true, false, false]);
        assert!(matches!(cell_summary(&cells[1]), Some(CellSummary::Calls(_))));
        assert_eq!(cell_summary(&cell("gone", OLD, lost())), None);
    }

    /// Check that phases beyond the intervals that were kept do not count, and that
    /// fewer phases than intervals are no count at all.
    #[test]
    fn phases_are_intervals() {
        let mut ending = idle_cost(18, &[(1920, 9)]);
        let phases = &mut answer_of(&mut ending).counts.as_mut().unwrap().phases;
        phases.push(phases[0].clone());
        let Some(CellSummary::IdleCost(cost)) =
            cell_summary(&cell("idle", OLD, ending.clone()))
        else {
            panic!("not the cost of idling")
        };
        assert_eq!((cost.intervals, cost.cpus[0].timer_entries), (2, 18));
        answer_of(&mut ending).counts.as_mut().unwrap().phases.truncate(1);
        let summary = cell_summary(&cell("idle", OLD, ending));
        assert!(matches!(summary, Some(CellSummary::Ticks(_))));
    }
}
