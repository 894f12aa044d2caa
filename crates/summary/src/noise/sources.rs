//! The sources of the time that all CPUs together lost, for systems that keep each as a time series:
//! their number is limited, and names do not contain the numbers of threads.

use std::cmp::Reverse;

use recording::{Culprit, CulpritKind};

use crate::noise::NoiseSummary;
use crate::noise::verdict::{Group, LossCategory, TimePart, groups, source_of};

/// A source, or the sum of those that are not listed.
#[derive(Debug, Clone, PartialEq)]
pub struct NoiseSource {
    /// The kind of event, `own` for the measuring process, `other` for the sum of the rest.
    pub kind: &'static str,
    /// The name of the program, the kernel thread without its number, or the event.
    pub name: String,
    /// Its time, and that as a share of the time of all CPUs.
    pub part: TimePart,
}

impl NoiseSummary {
    /// The sources by time, which add up to the lost time: the hypervisor, unexplained time and the
    /// measuring process, that many others, and the sum of the rest. `None` if events were not
    /// traced.
    pub fn sources(&self, most: usize) -> Option<Vec<NoiseSource>> {
        self.own?;
        let elapsed = self.elapsed();
        let part = |ns| TimePart::of(ns, elapsed);
        let (mut others, mut listed): (Vec<Group>, Vec<Group>) =
            groups(&self.culprits, part, |_| None).into_iter().partition(|group| {
                matches!(group.category, LossCategory::Programs | LossCategory::Kernel)
            });
        others.sort_by_key(|group| Reverse(group.part.ns));
        let rest = others.split_off(most.min(others.len()));
        listed.extend(others);
        listed.sort_by_key(|group| Reverse(group.part.ns));
        let mut sources: Vec<NoiseSource> = listed.into_iter().map(source).collect();
        if !rest.is_empty() {
            let ns = rest.iter().map(|group| group.part.ns).sum();
            let (kind, name) = (OTHER, OTHER.to_owned());
            sources.push(NoiseSource { kind, name, part: part(ns) });
        }
        Some(sources)
    }
}

/// The kind and the name of the sum of sources that are not listed.
pub(crate) const OTHER: &str = "other";

fn source(group: Group) -> NoiseSource {
    let kind = label(group.category, group.kind);
    NoiseSource { kind, name: group.name, part: group.part }
}

/// The kind and the name by which a culprit is known among the sources of metrics.
pub(crate) fn source_labels(culprit: &Culprit) -> (&'static str, &str) {
    let thread = culprit.thread.as_ref();
    let (category, kind, name) = source_of(culprit.kind, &culprit.name, thread);
    (label(category, kind), name)
}

fn label(category: LossCategory, kind: CulpritKind) -> &'static str {
    if category == LossCategory::Own { "own" } else { kind_label(kind) }
}

/// The name of a kind of event in metrics.
pub(crate) fn kind_label(kind: CulpritKind) -> &'static str {
    match kind {
        CulpritKind::Timer => "timer",
        CulpritKind::Ipi => "ipi",
        CulpritKind::Irq => "irq",
        CulpritKind::Softirq => "softirq",
        CulpritKind::Nmi => "nmi",
        CulpritKind::Thread => "thread",
        CulpritKind::Quota => "quota",
        CulpritKind::Steal => "steal",
        CulpritKind::Firmware => "firmware",
        CulpritKind::Unexplained => "unexplained",
    }
}

#[cfg(test)]
mod tests {
    use recording::{Thread, ThreadOwner};
    use units::{Nanos, Span};

    use super::*;
    use crate::example;

    /// Check that sources are limited and add up, that those of no program or event are always
    /// listed, and that a stranger with the own name is a thread.
    #[test]
    fn limited() {
        let thread = |name: &str, tid, own, ns| {
            let owner = Some(ThreadOwner::Program(name.to_owned()));
            let thread = Thread { tid, pid: tid, prio: 120, owner, unit: None, own };
            example::share(0, CulpritKind::Thread, name, Some(thread), ns)
        };
        let event = |kind, name: &str, ns| example::share(0, kind, name, None, ns);
        let blamed = example::blamed(&[
            thread("noisefloor", 1, true, 5),
            thread("noisefloor", 2, false, 90),
            event(CulpritKind::Timer, "tick", 50),
            event(CulpritKind::Irq, "disk", 20),
            event(CulpritKind::Ipi, "reschedule", 10),
            event(CulpritKind::Steal, "hypervisor", 15),
            event(CulpritKind::Unexplained, "unexplained", 10),
        ]);
        let gap = Span { start: Nanos::ZERO, length: Nanos::from_nanos(200) };
        let mut cpu = example::cpu_noise(&[gap]);
        cpu.blamed = Some(blamed);
        let summary = NoiseSummary::of(&example::noise(None, vec![cpu]));
        let found = |most| {
            let sources = summary.sources(most).unwrap().into_iter();
            sources.map(|one| (one.kind, one.name, one.part.ns.get())).collect::<Vec<_>>()
        };
        let expected = [
            ("thread", "noisefloor", 90),
            ("timer", "tick", 50),
            ("steal", "hypervisor", 15),
            ("unexplained", "unexplained", 10),
            ("own", "noisefloor", 5),
            ("other", "other", 30),
        ];
        let expected = expected.map(|(kind, name, ns)| (kind, name.to_owned(), ns));
        assert_eq!(found(2), expected);
        for most in [0, 1, 4, 9] {
            assert_eq!(found(most).iter().map(|(.., ns)| ns).sum::<u64>(), 200);
        }
        assert!(found(4).iter().all(|(kind, ..)| *kind != OTHER));
        let untraced = example::noise(None, vec![example::cpu_noise(&[gap])]);
        assert_eq!(NoiseSummary::of(&untraced).sources(9), None);
    }
}
