//! The gaps that are proven to be the firmware's: system management interrupts (SMIs).
//!
//! The kernel does not see an SMI, but the processor counts them, and one stops all CPUs of a package at
//! once. The count was read before and after the measurement, so that it says how many gaps an SMI may
//! have caused at most, and not which. A gap without any event is attributed to the firmware only if
//! both signs are there:
//!
//! 1. All measured CPUs of its package, of two cores at least, had a gap without an event at the same
//!    moment.
//! 2. There were no more such moments than each of these CPUs counted SMIs.
//!
//! If there were more, or if one core was measured, nothing says which of the gaps it was: they remain
//! unexplained, with an upper bound. Each SMI lies in one gap, so that the bound is the sum of the
//! longest unexplained parts of as many gaps as there were SMIs. Without an SMI it is zero.
//!
//! Cannot see the part of an SMI that lies in the time of an event, or firmware that runs without an
//! SMI.

use std::collections::BTreeSet;

use facts::Facts;
use recording::{Blamed, CpuNoise, CulpritKind, Firmware, HardwareCounts};
use units::{Cpu, CpuSet, Nanos, Span};

use crate::join::steal::common;
use crate::join::{nameless, overlaps};

/// A gap without an event: its index, and when it was on the clock of all CPUs.
type Eventless = (usize, Span);

/// Attributes gaps of these CPUs to the firmware, and determines the bounds.
pub(crate) fn attribute(cpus: &mut [CpuNoise], counts: &HardwareCounts, facts: &Facts) {
    for package in facts.cpus.packages.get().into_iter().flatten() {
        let known = cpus.iter().filter(|cpu| package.contains(cpu.cpu));
        let known: Vec<&CpuNoise> = known.collect();
        let Some(moments) = proven(&known, counts, facts) else { continue };
        let measured: CpuSet = known.iter().map(|cpu| cpu.cpu).collect();
        let own = cpus.iter_mut().filter(|cpu| measured.contains(cpu.cpu));
        for (at, cpu) in own.enumerate() {
            let Some(blamed) = &mut cpu.blamed else { continue };
            take(blamed, moments.iter().filter_map(|moment| moment.get(at).copied()));
        }
    }
    for cpu in cpus {
        let smis = smis(counts, cpu.cpu);
        let Some((blamed, smis)) = cpu.blamed.as_mut().zip(smis) else { continue };
        blamed.firmware =
            Some(Firmware { smis, unexplained_max_ns: bound(blamed, smis) });
    }
}

fn smis(counts: &HardwareCounts, cpu: Cpu) -> Option<u64> {
    counts.cpu(cpu)?.smis
}

/// The proven gaps of these CPUs of a package: for each moment the gap of each CPU. `None` if nothing is
/// proven.
fn proven(
    cpus: &[&CpuNoise],
    counts: &HardwareCounts,
    facts: &Facts,
) -> Option<Vec<Vec<usize>>> {
    let measured: CpuSet = cpus.iter().map(|cpu| cpu.cpu).collect();
    let cores = facts.cpus.cores.get()?.iter();
    let is_several = cores.filter(|core| !core.and(&measured).is_empty()).count() > 1;
    let fewest = cpus.iter().map(|cpu| smis(counts, cpu.cpu)).min()??;
    if fewest == 0 || !is_several {
        return None;
    }
    let eventless = cpus.iter().map(|cpu| Some(eventless(cpu, cpu.blamed.as_ref()?)));
    let eventless: Vec<Vec<Eventless>> = eventless.collect::<Option<_>>()?;
    let limit = usize::try_from(fewest).unwrap_or(usize::MAX);
    // One more is enough to know that there are too many.
    let moments: Vec<_> = moments(&eventless).take(limit.saturating_add(1)).collect();
    (1..=limit).contains(&moments.len()).then_some(moments)
}

/// The gaps of a CPU that are unexplained as a whole, in order, without those in which events were lost.
fn eventless(cpu: &CpuNoise, blamed: &Blamed) -> Vec<Eventless> {
    let whole = blamed.shares.iter().filter_map(|share| {
        let gap = cpu.gaps.get(share.gap)?;
        let is_whole = is_unexplained(blamed, share.culprit) && share.ns == gap.length;
        let is_known = !overlaps(*gap, &blamed.losses);
        let start = cpu.began_ns + gap.start;
        (is_whole && is_known).then_some((share.gap, Span { start, ..*gap }))
    });
    let mut whole: Vec<Eventless> = whole.collect();
    whole.sort_by_key(|(_, span)| span.start);
    whole
}

fn is_unexplained(blamed: &Blamed, culprit: usize) -> bool {
    let culprit = blamed.culprits.get(culprit);
    culprit.is_some_and(|culprit| culprit.kind == CulpritKind::Unexplained)
}

/// The moments at which each CPU had a gap, at least half of which all of them have in common: for each
/// the gap of every CPU.
fn moments(eventless: &[Vec<Eventless>]) -> impl Iterator<Item = Vec<usize>> {
    let (first, others) = eventless
        .split_first()
        .map_or((&[][..], &[][..]), |(first, others)| (first.as_slice(), others));
    first.iter().filter_map(move |(gap, span)| {
        let mut gaps = vec![*gap];
        let (mut shared, mut whole) = (*span, *span);
        for other in others {
            let (gap, span) = longest_overlap(shared, other)?;
            gaps.push(gap);
            let start = shared.start.max(span.start);
            shared = Span { start, length: common(shared, span) };
            let (from, to) = (whole.start.min(span.start), whole.end().max(span.end()));
            whole = Span { start: from, length: to.saturating_sub(from) };
        }
        (shared.length.saturating_mul(2) >= whole.length).then_some(gaps)
    })
}

/// The gap that has most in common with a period. `gaps` are in order and do not overlap.
fn longest_overlap(span: Span, gaps: &[Eventless]) -> Option<Eventless> {
    let first = gaps.partition_point(|(_, gap)| gap.end() <= span.start);
    let near = gaps[first..].iter().take_while(|(_, gap)| gap.start < span.end());
    near.max_by_key(|(_, gap)| common(*gap, span)).copied()
}

/// Attributes these gaps, which are unexplained, to the firmware.
fn take(blamed: &mut Blamed, gaps: impl Iterator<Item = usize>) {
    let gaps: BTreeSet<usize> = gaps.collect();
    let firmware = nameless(&mut blamed.culprits, CulpritKind::Firmware);
    blamed.events.resize(blamed.culprits.len(), 0);
    for share in blamed.shares.iter_mut().filter(|share| gaps.contains(&share.gap)) {
        share.culprit = firmware;
    }
}

/// The longest unexplained parts of as many gaps as there were SMIs besides the proven ones.
fn bound(blamed: &Blamed, smis: u64) -> Nanos {
    if smis == 0 {
        return Nanos::ZERO;
    }
    let of = |kind| {
        blamed.shares.iter().filter(move |share| {
            blamed.culprits.get(share.culprit).is_some_and(|it| it.kind == kind)
        })
    };
    let proven = of(CulpritKind::Firmware).count();
    let others = usize::try_from(smis).unwrap_or(usize::MAX).saturating_sub(proven);
    let mut parts: Vec<Nanos> =
        of(CulpritKind::Unexplained).map(|share| share.ns).collect();
    parts.sort_unstable_by(|one, other| other.cmp(one));
    parts.into_iter().take(others).sum()
}

#[cfg(test)]
mod tests {
    use facts::{Fact, Root};
    use proptest::prelude::*;
    use recording::{CpuHardware, Culprit, ProcCounts, Share};

    use super::*;

    fn span(start: u64, length: u64) -> Span {
        Span { start: Nanos::from_nanos(start), length: Nanos::from_nanos(length) }
    }

    /// A CPU whose gaps are unexplained, except for those that begin at `explained`. Its loop began at
    /// its number, in nanoseconds.
    fn cpu(number: u32, gaps: &[Span], explained: &[u64]) -> CpuNoise {
        let culprit = |kind| Culprit { kind, name: String::new(), thread: None };
        let share = |(gap, span): (usize, &Span)| {
            let culprit = usize::from(explained.contains(&span.start.get()));
            let (inside_ns, entry_ns) = (Nanos::ZERO, None);
            Share { gap, culprit, ns: span.length, inside_ns, entry_ns }
        };
        let blamed = Blamed {
            culprits: [CulpritKind::Unexplained, CulpritKind::Timer]
                .map(culprit)
                .to_vec(),
            shares: gaps.iter().enumerate().map(share).collect(),
            events: vec![0, 1],
            ..Blamed::default()
        };
        CpuNoise {
            cpu: Cpu::new(number),
            began_ns: Nanos::from_nanos(number.into()),
            elapsed_ns: Nanos::from_secs(1),
            phases: vec![],
            loop_ns: Nanos::from_nanos(20),
            passes: 1,
            gaps: gaps.to_vec(),
            lost: None,
            blamed: Some(blamed),
            backwards: 0,
            proc: ProcCounts::default(),
        }
    }

    fn counted(smis: &[Option<u64>]) -> HardwareCounts {
        let of = |(number, smis): (u32, &Option<u64>)| CpuHardware {
            cpu: Cpu::new(number),
            smis: *smis,
            throttled: None,
            frequency: None,
            machine_checks: None,
            machine_check_polls: None,
        };
        let cpus = (0..).zip(smis).map(of).collect();
        HardwareCounts { cpus, ..HardwareCounts::default() }
    }

    /// A machine of one package with these cores.
    fn facts(cores: &[&str]) -> Facts {
        let mut facts = Facts::read(&Root::live());
        let cores: Vec<CpuSet> = cores.iter().map(|core| core.parse().unwrap()).collect();
        let package = cores.iter().flat_map(CpuSet::iter).collect();
        facts.cpus.cores = Fact::known(cores, "");
        facts.cpus.packages = Fact::known(vec![package], "");
        facts
    }

    /// The time of the firmware, and the bounds of further time.
    fn found(
        mut cpus: Vec<CpuNoise>,
        smis: &[Option<u64>],
        cores: &[&str],
    ) -> Vec<(u64, Option<u64>)> {
        let lengths = |cpus: &[CpuNoise]| -> Vec<Nanos> {
            let shares = cpus.iter().flat_map(|cpu| &cpu.blamed.as_ref().unwrap().shares);
            shares.map(|share| share.ns).collect()
        };
        let before = lengths(&cpus);
        attribute(&mut cpus, &counted(smis), &facts(cores));
        assert_eq!(lengths(&cpus), before, "the shares still add up");
        let of = |cpu: &CpuNoise| {
            let blamed = cpu.blamed.as_ref().unwrap();
            assert_eq!(blamed.events.len(), blamed.culprits.len());
            let is_own = |share: &&Share| {
                blamed.culprits[share.culprit].kind == CulpritKind::Firmware
            };
            let own: Nanos =
                blamed.shares.iter().filter(is_own).map(|share| share.ns).sum();
            (own.get(), blamed.firmware.map(|it| it.unexplained_max_ns.get()))
        };
        cpus.iter().map(of).collect()
    }

    const CORES: [&str; 2] = ["0", "1"];
    /// Two SMIs, and gaps of one CPU each. The loops began one nanosecond apart.
    const FIRST: [(u64, u64); 4] = [(1_001, 100), (3_000, 70), (5_001, 200), (8_000, 5)];
    const SECOND: [(u64, u64); 3] = [(1_000, 110), (3_900, 80), (5_000, 190)];

    fn both() -> Vec<CpuNoise> {
        let spans = |all: &[(u64, u64)]| -> Vec<Span> {
            all.iter().map(|(start, length)| span(*start, *length)).collect()
        };
        vec![cpu(0, &spans(&FIRST), &[]), cpu(1, &spans(&SECOND), &[])]
    }

    /// Check that gaps at the same moments are the firmware's, if no more than were counted, and that the
    /// rest has a bound.
    #[test]
    fn both_signs() {
        assert_eq!(
            found(both(), &[Some(2), Some(2)], &CORES),
            [(300, Some(0)), (300, Some(0))]
        );
        let more = found(both(), &[Some(3), Some(4)], &CORES);
        assert_eq!(more, [(300, Some(70)), (300, Some(80))]);
    }

    /// Check that nothing is attributed with one sign only: fewer SMIs than moments, SMIs of another
    /// CPU, one core, one CPU, an unknown count; the bound is that of the count.
    #[test]
    fn one_sign() {
        let none = |smis: [Option<u64>; 2], cores: &[&str], bounds: [Option<u64>; 2]| {
            let expected = bounds.map(|bound| (0, bound));
            assert_eq!(found(both(), &smis, cores), expected);
        };
        none([Some(1), Some(1)], &CORES, [Some(200), Some(190)]);
        none([Some(2), Some(0)], &CORES, [Some(300), Some(0)]);
        none([Some(2), Some(2)], &["0,1"], [Some(300), Some(300)]);
        none([Some(2), None], &CORES, [Some(300), None]);
        let alone = vec![both().remove(0)];
        assert_eq!(found(alone, &[Some(9)], &CORES), [(0, Some(375))]);
    }

    /// Check that a gap with an event, with lost events, or of quite another length is no sign.
    #[test]
    fn other_gaps() {
        let smis = [Some(5), Some(5)];
        let times = |cpus| {
            found(cpus, &smis, &CORES).iter().map(|(own, _)| *own).collect::<Vec<_>>()
        };
        let gap = [span(1_000, 100)];
        assert_eq!(times(vec![cpu(0, &gap, &[]), cpu(1, &gap, &[])]), [100, 100]);
        assert_eq!(times(vec![cpu(0, &gap, &[]), cpu(1, &gap, &[1_000])]), [0, 0]);
        let longer = [span(1_000, 210)];
        assert_eq!(times(vec![cpu(0, &gap, &[]), cpu(1, &longer, &[])]), [0, 0]);
        let mut lost = cpu(1, &gap, &[]);
        lost.blamed.as_mut().unwrap().losses = vec![span(1_050, 1)];
        assert_eq!(times(vec![cpu(0, &gap, &[]), lost]), [0, 0]);
    }

    proptest! {
        /// Check that no CPU has more gaps of the firmware than SMIs, whatever its gaps are.
        #[test]
        fn at_most_the_count(
            pauses in prop::collection::vec((1u64..50, 1u64..50), 0..40),
            shift in 0u64..20,
            smis in 0u64..10,
        ) {
            let mut now = 0;
            let gaps: Vec<Span> = pauses.into_iter().map(|(pause, length)| {
                let start = now + pause;
                now = start + length;
                span(start, length)
            }).collect();
            let later: Vec<Span> =
                gaps.iter().map(|gap| span(gap.start.get() + shift, gap.length.get())).collect();
            let mut cpus = vec![cpu(0, &gaps, &[]), cpu(1, &later, &[])];
            attribute(&mut cpus, &counted(&[Some(smis), Some(smis)]), &facts(&CORES));
            for cpu in &cpus {
                let blamed = cpu.blamed.as_ref().unwrap();
                let own = blamed.shares.iter().filter(|share| {
                    blamed.culprits[share.culprit].kind == CulpritKind::Firmware
                });
                prop_assert!(own.count() as u64 <= smis);
            }
        }
    }
}
