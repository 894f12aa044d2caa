//! Who took it: the gaps' shares added up, culprit by culprit.
//!
//! What was taken in gaps that were counted but not kept is nobody's, so that the culprits'
//! `ns` add up to the noise.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use units::{Nanos, Ppm};

/// The kind of event a gap is blamed on.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum CulpritKind {
    /// The timer interrupt.
    Timer,
    /// An interrupt from another CPU.
    Ipi,
    /// A device's interrupt.
    Irq,
    /// Work an interrupt left for after it.
    Softirq,
    /// An interrupt that cannot be held back.
    Nmi,
    /// Another thread.
    Thread,
    /// The hypervisor.
    Steal,
    /// No event is known that explains it.
    Unexplained,
}

/// A thread that gaps are blamed on.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Thread {
    /// Its number.
    pub tid: u32,
    /// Its process.
    pub pid: u32,
    /// The kernel's own priority: 0 to 98 real time, -1 deadline, 100 to 139 ordinary.
    pub prio: i32,
}

/// An event, and the gaps blamed on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Culprit {
    /// The kind of event.
    pub kind: CulpritKind,
    /// Its name: an interrupt's, a thread's.
    pub name: String,
    /// Of a thread, who it is: `tid`, `pid` and `prio` beside the other keys.
    #[serde(flatten)]
    pub thread: Option<Thread>,
    /// In how many gaps it had a share.
    pub gaps: u64,
    /// Its shares added up.
    pub ns: Nanos,
    /// The same as a part of the noise; null where there is none.
    pub noise_ppm: Option<Ppm>,
    /// What of them lay between its tracepoints.
    pub inside_ns: Nanos,
    /// The longest of them.
    pub max_ns: Nanos,
}

/// What one culprit took of one gap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareInput<'a> {
    /// The gap's place in the list.
    pub gap: usize,
    /// What kind of event took it.
    pub kind: CulpritKind,
    /// Its name.
    pub name: &'a str,
    /// Of a thread, who it is.
    pub thread: Option<Thread>,
    /// What it took.
    pub ns: Nanos,
    /// What of that lay between its tracepoints.
    pub inside: Nanos,
}

/// Stretches of time, added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) gaps: u64,
    pub(crate) ns: Nanos,
    pub(crate) max: Nanos,
}

impl Taken {
    pub(crate) fn add(&mut self, ns: Nanos) {
        *self = self.and(Some(Self { gaps: 1, ns, max: ns }));
    }

    pub(crate) fn and(self, other: Option<Self>) -> Self {
        let Some(other) = other else { return self };
        Self {
            gaps: self.gaps.saturating_add(other.gaps),
            ns: self.ns + other.ns,
            max: self.max.max(other.max),
        }
    }
}

/// What makes one culprit of shares: a thread's number too, for names are not unique.
type Who<'a> = (CulpritKind, &'a str, Option<Thread>);

const NOBODY: Who<'static> = (CulpritKind::Unexplained, "unexplained", None);

impl Culprit {
    /// Adds shares up, the most first; `lost` is nobody's. `noise` is all of it.
    pub(crate) fn of(
        shares: &[ShareInput<'_>],
        lost: Option<Taken>,
        noise: Nanos,
    ) -> Vec<Self> {
        let lost = lost.filter(|lost| lost.gaps > 0);
        let lost = lost.map(|lost| (NOBODY, lost, Nanos::ZERO));
        let shares = shares.iter().map(|share| {
            let taken = Taken { gaps: 1, ns: share.ns, max: share.ns };
            ((share.kind, share.name, share.thread), taken, share.inside)
        });
        added_up(lost.into_iter().chain(shares), noise)
    }

    /// Adds shares up, of one CPU or of several, the most first; the whole is their sum.
    pub fn of_all(shares: &[ShareInput<'_>]) -> Vec<Self> {
        Self::of(shares, None, shares.iter().map(|share| share.ns).sum())
    }

    /// Adds up what the same ones took on several CPUs.
    pub(crate) fn together<'a>(
        culprits: impl Iterator<Item = &'a Self> + Clone,
    ) -> Vec<Self> {
        let noise = culprits.clone().map(|culprit| culprit.ns).sum();
        let each = culprits.map(|culprit| {
            let Self { kind, name, thread, gaps, ns, max_ns, .. } = culprit;
            let taken = Taken { gaps: *gaps, ns: *ns, max: *max_ns };
            ((*kind, name.as_str(), *thread), taken, culprit.inside_ns)
        });
        added_up(each, noise)
    }
}

fn added_up<'a>(
    parts: impl Iterator<Item = (Who<'a>, Taken, Nanos)>,
    noise: Nanos,
) -> Vec<Culprit> {
    let mut found: BTreeMap<Who<'_>, (Taken, Nanos)> = BTreeMap::new();
    for (who, taken, inside) in parts {
        let (sum, sum_inside) = found.entry(who).or_default();
        *sum = sum.and(Some(taken));
        *sum_inside = *sum_inside + inside;
    }
    let culprit =
        |((kind, name, thread), (taken, inside_ns)): (Who<'_>, (Taken, Nanos))| Culprit {
            kind,
            name: name.to_owned(),
            thread,
            gaps: taken.gaps,
            ns: taken.ns,
            noise_ppm: Ppm::of(taken.ns, noise),
            inside_ns,
            max_ns: taken.max,
        };
    let mut culprits: Vec<Culprit> = found.into_iter().map(culprit).collect();
    culprits.sort_by_key(|culprit| Reverse(culprit.ns));
    culprits
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn nanos(nanos: u64) -> Nanos {
        Nanos::from_nanos(nanos)
    }

    fn share(kind: CulpritKind, name: &str, tid: Option<u32>, ns: u64) -> ShareInput<'_> {
        let thread = tid.map(|tid| Thread { tid, pid: 39, prio: 120 });
        ShareInput { gap: 0, kind, name, thread, ns: nanos(ns), inside: nanos(ns / 2) }
    }

    /// Check the keys and the form of every value: this is the JSON contract.
    #[test]
    fn contract() {
        let shares = [
            share(CulpritKind::Thread, "kworker/1:1", Some(40), 100),
            share(CulpritKind::Thread, "kworker/1:1", Some(40), 300),
            share(CulpritKind::Timer, "tick_nohz_handler", None, 600),
        ];
        let found = Culprit::of(&shares, None, nanos(1_000));
        let expected = serde_json::json!([
            {"kind": "timer", "name": "tick_nohz_handler", "gaps": 1, "ns": 600,
                "noise_ppm": 600_000.0, "inside_ns": 300, "max_ns": 600},
            {"kind": "thread", "name": "kworker/1:1", "tid": 40, "pid": 39, "prio": 120, "gaps": 2, "ns": 400,
                "noise_ppm": 400_000.0, "inside_ns": 200, "max_ns": 300},
        ]);
        assert_eq!(serde_json::to_value(&found).unwrap(), expected);
        let again: Vec<Culprit> = serde_json::from_value(expected).unwrap();
        assert_eq!(again, found);
    }

    /// Check that threads of one name are told apart, and what was lost joins what is
    /// unexplained.
    #[test]
    fn who_is_who() {
        let shares = [
            share(CulpritKind::Thread, "worker", Some(1), 5),
            share(CulpritKind::Thread, "worker", Some(2), 6),
            share(CulpritKind::Unexplained, "unexplained", None, 7),
        ];
        let lost = Taken { gaps: 3, ns: nanos(30), max: nanos(20) };
        let found = Culprit::of(&shares, Some(lost), nanos(48));
        let told: Vec<_> = found
            .iter()
            .map(|found| (found.thread.map(|who| who.tid), found.gaps))
            .collect();
        assert_eq!(told, [(None, 4), (Some(2), 1), (Some(1), 1)]);
        assert_eq!((found[0].ns, found[0].max_ns), (nanos(37), nanos(20)));
    }

    proptest! {
        /// Check that nothing is lost when shares are added up, nor when CPUs are.
        #[test]
        fn adds_up(all in prop::collection::vec((0u8..3, 0u32..3, 0u64..1_000), 0..60)) {
            let kinds = [CulpritKind::Timer, CulpritKind::Thread, CulpritKind::Unexplained];
            let share = |&(kind, tid, ns): &(u8, u32, u64)| {
                share(kinds[usize::from(kind)], "x", (kind == 1).then_some(tid), ns)
            };
            let shares: Vec<ShareInput<'_>> = all.iter().map(share).collect();
            let noise: Nanos = shares.iter().map(|share| share.ns).sum();
            let (one, other) = shares.split_at(shares.len() / 2);
            let [one, other] = [one, other].map(|part| Culprit::of(part, None, noise));
            let together = Culprit::together(one.iter().chain(&other));
            prop_assert_eq!(&together, &Culprit::of(&shares, None, noise));
            prop_assert_eq!(together.iter().map(|c| c.ns).sum::<Nanos>(), noise);
        }
    }
}
