//! The attribution of gaps: the shares of each culprit, added up.
//!
//! Gaps that were counted but not stored are unexplained, so that the culprits' `ns` add up to the
//! noise. The time of an event is split into entry (before the first tracepoint of the gap), inside
//! (between its own tracepoints) and exit (after them): a hypervisor that delivers an interrupt adds
//! its time before the interrupt's first tracepoint.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use recording::{Blamed, CulpritKind, Share, Thread, ThreadOwner, TicksSeries};
use serde::{Deserialize, Serialize};
use units::{Nanos, Ppm, Span};

use crate::noise::period::Period;

/// An event, and the gaps blamed on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CulpritSummary {
    /// The kind of event.
    pub kind: CulpritKind,
    /// The name of the interrupt, the thread, ...
    pub name: String,
    /// For a thread, the keys `tid`, `pid`, `prio`, `owner` if it is known, and `own` if it belongs
    /// to the process that measured.
    #[serde(flatten)]
    pub thread: Option<Thread>,
    /// The number of gaps with a share of it.
    pub gaps: u64,
    /// The sum of its shares.
    pub ns: Nanos,
    /// That as a share of the noise; null without noise.
    pub noise_ppm: Option<Ppm>,
    /// The part of them before the first event of a gap; null if unknown. Entry, inside and exit add up
    /// to `ns`, and are zero for unexplained and stolen time.
    #[serde(default)]
    pub entry_ns: Option<Nanos>,
    /// The part of them between its tracepoints.
    pub inside_ns: Nanos,
    /// The part of them after it, until the next event or the end of the gap; null if unknown.
    #[serde(default)]
    pub exit_ns: Option<Nanos>,
    /// The longest share.
    pub max_ns: Nanos,
    /// Its period on one CPU; null if it has none, and for several CPUs together.
    #[serde(default)]
    pub period: Option<Period>,
}

/// The sum of a culprit's shares, and of their parts.
#[derive(Debug, Clone, Copy)]
struct ShareSum<'a> {
    owner: Option<&'a ThreadOwner>,
    is_own: bool,
    total: GapTotal,
    entry: Option<Nanos>,
    inside: Nanos,
    exit: Option<Nanos>,
}

impl<'a> ShareSum<'a> {
    const NONE: Self = Self {
        owner: None,
        is_own: false,
        total: GapTotal { gaps: 0, ns: Nanos::ZERO, max: Nanos::ZERO },
        entry: Some(Nanos::ZERO),
        inside: Nanos::ZERO,
        exit: Some(Nanos::ZERO),
    };

    /// Time of which no parts are known.
    fn whole(total: GapTotal) -> Self {
        Self { total, ..Self::NONE }
    }

    fn of(share: &Share, culprit: &'a recording::Culprit) -> Self {
        let total = GapTotal { gaps: 1, ns: share.ns, max: share.ns };
        if [CulpritKind::Steal, CulpritKind::Unexplained].contains(&culprit.kind) {
            return Self::whole(total);
        }
        let outside = share.ns.saturating_sub(share.inside_ns);
        let exit = share.entry_ns.map(|entry| outside.saturating_sub(entry));
        let thread = culprit.thread.as_ref();
        let owner = thread.and_then(|thread| thread.owner.as_ref());
        let is_own = thread.is_some_and(|thread| thread.own);
        Self {
            owner,
            is_own,
            total,
            entry: share.entry_ns,
            inside: share.inside_ns,
            exit,
        }
    }

    /// Adds two sums; a part that is unknown for one is unknown for both.
    fn and(self, other: Self) -> Self {
        let both = |a: Option<Nanos>, b: Option<Nanos>| Some(a? + b?);
        Self {
            owner: self.owner.or(other.owner),
            is_own: self.is_own || other.is_own,
            total: self.total.and(Some(other.total)),
            entry: both(self.entry, other.entry),
            inside: self.inside + other.inside,
            exit: both(self.exit, other.exit),
        }
    }
}

/// The number, the sum and the maximum of gaps or shares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct GapTotal {
    pub(crate) gaps: u64,
    pub(crate) ns: Nanos,
    pub(crate) max: Nanos,
}

impl GapTotal {
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

/// Identifies a culprit; for a thread also by its ID, process ID and priority, because names are not
/// unique.
type CulpritKey<'a> = (CulpritKind, &'a str, Option<(u32, u32, i32)>);

const UNEXPLAINED: CulpritKey<'static> = (CulpritKind::Unexplained, "unexplained", None);

fn key<'a>(kind: CulpritKind, name: &'a str, thread: Option<&Thread>) -> CulpritKey<'a> {
    (kind, name, thread.map(|thread| (thread.tid, thread.pid, thread.prio)))
}

/// The shares, each with its culprit.
pub(crate) fn shares(
    blamed: &Blamed,
) -> impl Iterator<Item = (&Share, &recording::Culprit)> {
    let culprit = |share: &Share| blamed.culprits.get(share.culprit);
    blamed.shares.iter().filter_map(move |share| Some((share, culprit(share)?)))
}

fn sums(blamed: &Blamed) -> impl Iterator<Item = (CulpritKey<'_>, ShareSum<'_>)> {
    shares(blamed).map(|(share, culprit)| {
        let thread = culprit.thread.as_ref();
        (key(culprit.kind, &culprit.name, thread), ShareSum::of(share, culprit))
    })
}

impl CulpritSummary {
    /// Adds up shares, in descending order; `lost` gaps are unexplained. `noise` is the sum of all gaps.
    pub(crate) fn of(
        blamed: Option<&Blamed>,
        lost: Option<GapTotal>,
        noise: Nanos,
    ) -> Vec<Self> {
        let lost = lost.filter(|lost| lost.gaps > 0);
        let lost = lost.map(|lost| (UNEXPLAINED, ShareSum::whole(lost)));
        let sums = blamed.into_iter().flat_map(sums);
        added_up(lost.into_iter().chain(sums), noise)
    }

    /// Finds the period of each culprit, from the starts of the gaps with a share of it.
    pub(crate) fn find_periods(culprits: &mut [Self], gaps: &[Span], blamed: &Blamed) {
        let mut events: BTreeMap<CulpritKey<'_>, Vec<(Nanos, Nanos)>> = BTreeMap::new();
        for (share, culprit) in shares(blamed) {
            let Some(gap) = gaps.get(share.gap) else { continue };
            let key = key(culprit.kind, &culprit.name, culprit.thread.as_ref());
            events.entry(key).or_default().push((gap.start, share.ns));
        }
        for culprit in culprits {
            let key = key(culprit.kind, &culprit.name, culprit.thread.as_ref());
            if let Some(events) = events.get_mut(&key) {
                events.sort_unstable();
                culprit.period = Period::find(events);
            }
        }
    }

    /// Whether it is a thread of the process that measured.
    pub fn is_own(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| thread.own)
    }

    /// The known part of its shares outside of its tracepoints.
    pub fn edges(&self) -> Nanos {
        [self.entry_ns, self.exit_ns].into_iter().flatten().sum()
    }

    /// What ran on traced CPUs while their ticks were counted, in descending order, as shares of the
    /// sum.
    pub(crate) fn of_busy(series: &TicksSeries) -> Vec<Self> {
        let sums = || series.busy.iter().flat_map(|cpu| sums(&cpu.blamed));
        added_up(sums(), sums().map(|(_, sum)| sum.total.ns).sum())
    }

    /// Adds up the same culprits of several CPUs.
    pub(crate) fn together<'a>(
        culprits: impl Iterator<Item = &'a Self> + Clone,
    ) -> Vec<Self> {
        let noise = culprits.clone().map(|culprit| culprit.ns).sum();
        let each = culprits.map(|culprit| {
            let Self { kind, name, thread, gaps, ns, max_ns, .. } = culprit;
            let thread = thread.as_ref();
            let sum = ShareSum {
                owner: thread.and_then(|thread| thread.owner.as_ref()),
                is_own: culprit.is_own(),
                total: GapTotal { gaps: *gaps, ns: *ns, max: *max_ns },
                entry: culprit.entry_ns,
                inside: culprit.inside_ns,
                exit: culprit.exit_ns,
            };
            (key(*kind, name, thread), sum)
        });
        added_up(each, noise)
    }
}

fn added_up<'a>(
    parts: impl Iterator<Item = (CulpritKey<'a>, ShareSum<'a>)>,
    noise: Nanos,
) -> Vec<CulpritSummary> {
    let mut found: BTreeMap<CulpritKey<'_>, ShareSum<'_>> = BTreeMap::new();
    for (key, part) in parts {
        let sum = found.entry(key).or_insert(ShareSum::NONE);
        *sum = sum.and(part);
    }
    let culprit =
        |((kind, name, thread), sum): (CulpritKey<'_>, ShareSum<'_>)| CulpritSummary {
            kind,
            name: name.to_owned(),
            thread: thread.map(|(tid, pid, prio)| Thread {
                tid,
                pid,
                prio,
                owner: sum.owner.cloned(),
                own: sum.is_own,
            }),
            gaps: sum.total.gaps,
            ns: sum.total.ns,
            noise_ppm: Ppm::of(sum.total.ns, noise),
            entry_ns: sum.entry,
            inside_ns: sum.inside,
            exit_ns: sum.exit,
            max_ns: sum.total.max,
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
    use crate::example;
    use crate::example::blamed;

    fn nanos(nanos: u64) -> Nanos {
        Nanos::from_nanos(nanos)
    }

    fn share(
        kind: CulpritKind,
        name: &str,
        tid: Option<u32>,
        ns: u64,
    ) -> (recording::Culprit, Share) {
        let thread =
            tid.map(|tid| Thread { tid, pid: 39, prio: 120, owner: None, own: false });
        let (culprit, share) = example::share(0, kind, name, thread, ns);
        let (inside_ns, entry_ns) = (nanos(ns / 2), Some(nanos(ns / 4)));
        (culprit, Share { inside_ns, entry_ns, ..share })
    }

    /// Check the keys and values of the JSON contract.
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

    /// Check that threads of one name are distinguished, and that lost gaps are unexplained.
    #[test]
    fn same_names() {
        let shares = [
            share(CulpritKind::Thread, "worker", Some(1), 5),
            share(CulpritKind::Thread, "worker", Some(2), 6),
            share(CulpritKind::Unexplained, "unexplained", None, 7),
        ];
        let lost = GapTotal { gaps: 3, ns: nanos(30), max: nanos(20) };
        let found = CulpritSummary::of(Some(&blamed(&shares)), Some(lost), nanos(48));
        let threads: Vec<_> = found
            .iter()
            .map(|found| (found.thread.as_ref().map(|thread| thread.tid), found.gaps))
            .collect();
        assert_eq!(threads, [(None, 4), (Some(2), 1), (Some(1), 1)]);
        assert_eq!((found[0].ns, found[0].max_ns), (nanos(37), nanos(20)));
    }

    /// Check that entry and exit are null if a recording does not distinguish them, that those of
    /// unexplained time are zero, and that an older summary can be read.
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
        /// Check that sums of shares and of CPUs contain all shares.
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
