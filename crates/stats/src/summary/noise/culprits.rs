//! Who took it: the gaps' shares added up, culprit by culprit.
//!
//! What was taken in gaps that were counted but not kept is unexplained, so that the culprits'
//! `ns` add up to the noise. What an event took is split into entry, inside and exit: a
//! hypervisor that delivers an interrupt takes its time before the interrupt's first tracepoint.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use recording::{Blamed, CulpritKind, Share, Thread, ThreadOwner, TicksSeries};
use serde::{Deserialize, Serialize};
use units::{Nanos, Ppm, Span};

use crate::summary::noise::period::Period;

/// An event, and the gaps blamed on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CulpritSummary {
    /// The kind of event.
    pub kind: CulpritKind,
    /// Its name: an interrupt's, a thread's.
    pub name: String,
    /// Of a thread, which one it is and whose: `tid`, `pid`, `prio` and, where it is known,
    /// `owner` beside the other keys.
    #[serde(flatten)]
    pub thread: Option<Thread>,
    /// In how many gaps it had a share.
    pub gaps: u64,
    /// Its shares added up.
    pub ns: Nanos,
    /// The same as a part of the noise; null where there is none.
    pub noise_ppm: Option<Ppm>,
    /// What of them lay before the first event of a gap; null where that is not known. Entry,
    /// inside and exit add up to `ns`, but of what is unexplained or stolen.
    #[serde(default)]
    pub entry_ns: Option<Nanos>,
    /// What of them lay between its tracepoints.
    pub inside_ns: Nanos,
    /// What of them lay after it, up to the next event or the gap's end; null where that is not
    /// known.
    #[serde(default)]
    pub exit_ns: Option<Nanos>,
    /// The longest of them.
    pub max_ns: Nanos,
    /// Its period on one CPU; null where it has none, and of several CPUs together.
    #[serde(default)]
    pub period: Option<Period>,
}

/// A culprit's shares added up, and where they lie in its gaps.
#[derive(Debug, Clone, Copy)]
struct Sum<'a> {
    owner: Option<&'a ThreadOwner>,
    taken: Taken,
    entry: Option<Nanos>,
    inside: Nanos,
    exit: Option<Nanos>,
}

impl<'a> Sum<'a> {
    const NONE: Self = Self {
        owner: None,
        taken: Taken { gaps: 0, ns: Nanos::ZERO, max: Nanos::ZERO },
        entry: Some(Nanos::ZERO),
        inside: Nanos::ZERO,
        exit: Some(Nanos::ZERO),
    };

    /// Gaps of which nothing more is known: no event of theirs has an edge.
    fn whole(taken: Taken) -> Self {
        Self { taken, ..Self::NONE }
    }

    fn of(share: &Share, culprit: &'a recording::Culprit) -> Self {
        let taken = Taken { gaps: 1, ns: share.ns, max: share.ns };
        if [CulpritKind::Steal, CulpritKind::Unexplained].contains(&culprit.kind) {
            return Self::whole(taken);
        }
        let outside = share.ns.saturating_sub(share.inside_ns);
        let exit = share.entry_ns.map(|entry| outside.saturating_sub(entry));
        let owner = culprit.thread.as_ref().and_then(|thread| thread.owner.as_ref());
        Self { owner, taken, entry: share.entry_ns, inside: share.inside_ns, exit }
    }

    /// What is not known of one is not known of both.
    fn and(self, other: Self) -> Self {
        let both = |a: Option<Nanos>, b: Option<Nanos>| Some(a? + b?);
        Self {
            owner: self.owner.or(other.owner),
            taken: self.taken.and(Some(other.taken)),
            entry: both(self.entry, other.entry),
            inside: self.inside + other.inside,
            exit: both(self.exit, other.exit),
        }
    }
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

/// What makes one culprit of shares: a thread's number, process and priority too, for names are
/// not unique.
type Who<'a> = (CulpritKind, &'a str, Option<(u32, u32, i32)>);

const NOBODY: Who<'static> = (CulpritKind::Unexplained, "unexplained", None);

fn who<'a>(kind: CulpritKind, name: &'a str, thread: Option<&Thread>) -> Who<'a> {
    (kind, name, thread.map(|thread| (thread.tid, thread.pid, thread.prio)))
}

/// The shares, each with its culprit.
pub(crate) fn shares(
    blamed: &Blamed,
) -> impl Iterator<Item = (&Share, &recording::Culprit)> {
    let culprit = |share: &Share| blamed.culprits.get(share.culprit);
    blamed.shares.iter().filter_map(move |share| Some((share, culprit(share)?)))
}

fn sums(blamed: &Blamed) -> impl Iterator<Item = (Who<'_>, Sum<'_>)> {
    shares(blamed).map(|(share, culprit)| {
        let thread = culprit.thread.as_ref();
        (who(culprit.kind, &culprit.name, thread), Sum::of(share, culprit))
    })
}

impl CulpritSummary {
    /// Adds shares up, the most first; `lost` is unexplained. `noise` is all of it.
    pub(crate) fn of(
        blamed: Option<&Blamed>,
        lost: Option<Taken>,
        noise: Nanos,
    ) -> Vec<Self> {
        let lost = lost.filter(|lost| lost.gaps > 0);
        let lost = lost.map(|lost| (NOBODY, Sum::whole(lost)));
        let sums = blamed.into_iter().flat_map(sums);
        added_up(lost.into_iter().chain(sums), noise)
    }

    /// Looks for the periods of culprits in the gaps that they have shares of.
    pub(crate) fn find_periods(culprits: &mut [Self], gaps: &[Span], blamed: &Blamed) {
        let mut taken: BTreeMap<Who<'_>, Vec<(Nanos, Nanos)>> = BTreeMap::new();
        for (share, culprit) in shares(blamed) {
            let Some(gap) = gaps.get(share.gap) else { continue };
            let who = who(culprit.kind, &culprit.name, culprit.thread.as_ref());
            taken.entry(who).or_default().push((gap.start, share.ns));
        }
        for culprit in culprits {
            let who = who(culprit.kind, &culprit.name, culprit.thread.as_ref());
            if let Some(taken) = taken.get_mut(&who) {
                taken.sort_unstable();
                culprit.period = Period::find(taken);
            }
        }
    }

    /// What of its shares is known to lie outside of its tracepoints.
    pub fn edges(&self) -> Nanos {
        [self.entry_ns, self.exit_ns].into_iter().flatten().sum()
    }

    /// What ran on CPUs that were watched while their ticks were counted, the most first; the
    /// whole is the sum.
    pub(crate) fn of_busy(series: &TicksSeries) -> Vec<Self> {
        let sums = || series.busy.iter().flat_map(|cpu| sums(&cpu.blamed));
        added_up(sums(), sums().map(|(_, sum)| sum.taken.ns).sum())
    }

    /// Adds up what the same ones took on several CPUs.
    pub(crate) fn together<'a>(
        culprits: impl Iterator<Item = &'a Self> + Clone,
    ) -> Vec<Self> {
        let noise = culprits.clone().map(|culprit| culprit.ns).sum();
        let each = culprits.map(|culprit| {
            let Self { kind, name, thread, gaps, ns, max_ns, .. } = culprit;
            let thread = thread.as_ref();
            let sum = Sum {
                owner: thread.and_then(|thread| thread.owner.as_ref()),
                taken: Taken { gaps: *gaps, ns: *ns, max: *max_ns },
                entry: culprit.entry_ns,
                inside: culprit.inside_ns,
                exit: culprit.exit_ns,
            };
            (who(*kind, name, thread), sum)
        });
        added_up(each, noise)
    }
}

fn added_up<'a>(
    parts: impl Iterator<Item = (Who<'a>, Sum<'a>)>,
    noise: Nanos,
) -> Vec<CulpritSummary> {
    let mut found: BTreeMap<Who<'_>, Sum<'_>> = BTreeMap::new();
    for (who, part) in parts {
        let sum = found.entry(who).or_insert(Sum::NONE);
        *sum = sum.and(part);
    }
    let culprit = |((kind, name, thread), sum): (Who<'_>, Sum<'_>)| CulpritSummary {
        kind,
        name: name.to_owned(),
        thread: thread.map(|(tid, pid, prio)| Thread {
            tid,
            pid,
            prio,
            owner: sum.owner.cloned(),
        }),
        gaps: sum.taken.gaps,
        ns: sum.taken.ns,
        noise_ppm: Ppm::of(sum.taken.ns, noise),
        entry_ns: sum.entry,
        inside_ns: sum.inside,
        exit_ns: sum.exit,
        max_ns: sum.taken.max,
        period: None,
    };
    let mut culprits: Vec<CulpritSummary> = found.into_iter().map(culprit).collect();
    culprits.sort_by_key(|culprit| Reverse(culprit.ns));
    culprits
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::example::{self, blamed};

    fn nanos(nanos: u64) -> Nanos {
        Nanos::from_nanos(nanos)
    }

    fn share(
        kind: CulpritKind,
        name: &str,
        tid: Option<u32>,
        ns: u64,
    ) -> (recording::Culprit, Share) {
        let thread = tid.map(|tid| Thread { tid, pid: 39, prio: 120, owner: None });
        let (culprit, share) = example::share(0, kind, name, thread, ns);
        let (inside_ns, entry_ns) = (nanos(ns / 2), Some(nanos(ns / 4)));
        (culprit, Share { inside_ns, entry_ns, ..share })
    }

    /// Check the keys and the form of every value: this is the JSON contract.
    #[test]
    fn contract() {
        let shares = [
            share(CulpritKind::Thread, "kworker/1:1", Some(40), 100),
            share(CulpritKind::Thread, "kworker/1:1", Some(40), 300),
            share(CulpritKind::Timer, "tick_nohz_handler", None, 600),
        ];
        let found = CulpritSummary::of(Some(&blamed(&shares)), None, nanos(1_000));
        let expected = serde_json::json!([
            {"kind": "timer", "name": "tick_nohz_handler", "gaps": 1, "ns": 600,
                "noise_ppm": 600_000.0, "entry_ns": 150, "inside_ns": 300, "exit_ns": 150,
                "max_ns": 600, "period": null},
            {"kind": "thread", "name": "kworker/1:1", "tid": 40, "pid": 39, "prio": 120, "gaps": 2, "ns": 400,
                "noise_ppm": 400_000.0, "entry_ns": 100, "inside_ns": 200, "exit_ns": 100,
                "max_ns": 300, "period": null},
        ]);
        assert_eq!(serde_json::to_value(&found).unwrap(), expected);
        let again: Vec<CulpritSummary> = serde_json::from_value(expected).unwrap();
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
        let found = CulpritSummary::of(Some(&blamed(&shares)), Some(lost), nanos(48));
        let told: Vec<_> = found
            .iter()
            .map(|found| (found.thread.as_ref().map(|who| who.tid), found.gaps))
            .collect();
        assert_eq!(told, [(None, 4), (Some(2), 1), (Some(1), 1)]);
        assert_eq!((found[0].ns, found[0].max_ns), (nanos(37), nanos(20)));
    }

    /// Check that edges are null where a recording does not tell them apart, that those of what is
    /// unexplained are none, and that an older summary is read.
    #[test]
    fn unknown_edges() {
        let (disk, share_of_it) = share(CulpritKind::Irq, "disk", None, 8);
        let older = (disk, Share { entry_ns: None, ..share_of_it });
        let shares = [
            share(CulpritKind::Irq, "disk", None, 100),
            older,
            share(CulpritKind::Unexplained, "unexplained", None, 7),
        ];
        let found = CulpritSummary::of(Some(&blamed(&shares)), None, nanos(115));
        assert_eq!((found[0].entry_ns, found[0].exit_ns), (None, None));
        assert_eq!(found[0].inside_ns, nanos(54));
        let zero = Some(Nanos::ZERO);
        assert_eq!((found[1].entry_ns, found[1].exit_ns), (zero, zero));
        let mut value = serde_json::to_value(&found).unwrap();
        for key in ["entry_ns", "exit_ns", "period"] {
            value[0].as_object_mut().unwrap().remove(key);
        }
        assert_eq!(serde_json::from_value::<Vec<CulpritSummary>>(value).unwrap(), found);
    }

    proptest! {
        /// Check that nothing is lost when shares are added up, nor when CPUs are.
        #[test]
        fn adds_up(all in prop::collection::vec((0u8..3, 0u32..3, 0u64..1_000), 0..60)) {
            let kinds = [CulpritKind::Timer, CulpritKind::Thread, CulpritKind::Unexplained];
            let share = |&(kind, tid, ns): &(u8, u32, u64)| {
                share(kinds[usize::from(kind)], "x", (kind == 1).then_some(tid), ns)
            };
            let shares: Vec<_> = all.iter().map(share).collect();
            let noise: Nanos = shares.iter().map(|(_, share)| share.ns).sum();
            let (one, other) = shares.split_at(shares.len() / 2);
            let of = |part| CulpritSummary::of(Some(&blamed(part)), None, noise);
            let [one, other] = [one, other].map(of);
            let together = CulpritSummary::together(one.iter().chain(&other));
            prop_assert_eq!(&together, &CulpritSummary::of(Some(&blamed(&shares)), None, noise));
            prop_assert_eq!(together.iter().map(|c| c.ns).sum::<Nanos>(), noise);
            for culprit in together.iter().filter(|c| c.kind != CulpritKind::Unexplained) {
                let parts = [culprit.entry_ns.unwrap(), culprit.inside_ns, culprit.exit_ns.unwrap()];
                prop_assert_eq!(parts.into_iter().sum::<Nanos>(), culprit.ns);
            }
        }
    }
}
