//! The attribution of gaps: the shares of each culprit, added up.
//!
//! Gaps that were counted but not stored are unexplained, so that the culprits' `ns` add up to the
//! noise. The time of an event is split into entry (before the first tracepoint of the gap), inside
//! (between its own tracepoints) and exit (after them): a hypervisor that delivers an interrupt adds
//! its time before the interrupt's first tracepoint.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use recording::{Blamed, Culprit, CulpritKind, Share, Thread, TicksSeries};
use serde::Serialize;
use stats::{Distribution, Gaps};
use units::{Nanos, Ppm, Span};

use crate::noise::period::Period;

/// An event, and the gaps blamed on it.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
    pub entry_ns: Option<Nanos>,
    /// The part of them between its tracepoints.
    pub inside_ns: Nanos,
    /// The part of them after it, until the next event or the end of the gap; null if unknown.
    pub exit_ns: Option<Nanos>,
    /// The longest share.
    pub max_ns: Nanos,
    /// Its period on one CPU; null if it has none, and for several CPUs together.
    pub period: Option<Period>,
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

    /// The lengths of the gaps, of which these were stored: the others have no quantiles.
    pub(crate) fn lengths(&self, stored: &[Span]) -> Distribution<Gaps> {
        Distribution {
            max: (self.gaps > 0).then_some(self.max),
            ..Distribution::of(stored.iter().map(|gap| gap.length))
        }
    }
}

/// Identifies a culprit; for a thread also by its ID, process ID and priority, because names are not
/// unique.
type CulpritKey<'a> = (CulpritKind, &'a str, Option<(u32, u32, i32)>);

fn key<'a>(kind: CulpritKind, name: &'a str, thread: Option<&Thread>) -> CulpritKey<'a> {
    (kind, name, thread.map(|thread| (thread.tid, thread.pid, thread.prio)))
}

/// The shares, each with its culprit.
pub(crate) fn shares(blamed: &Blamed) -> impl Iterator<Item = (&Share, &Culprit)> {
    let culprit = |share: &Share| blamed.culprits.get(share.culprit);
    blamed.shares.iter().filter_map(move |share| Some((share, culprit(share)?)))
}

impl CulpritSummary {
    /// Adds up shares, in descending order; `lost` gaps are unexplained. `noise` is the sum of all gaps.
    pub(crate) fn of(
        blamed: Option<&Blamed>,
        lost: Option<GapTotal>,
        noise: Nanos,
    ) -> Vec<Self> {
        let lost = lost.filter(|lost| lost.gaps > 0).map(Self::unexplained);
        let blamed = blamed.into_iter().flat_map(Self::each);
        Self::added_up(lost.into_iter().chain(blamed).collect(), noise)
    }

    /// An event without a share.
    fn without_share(culprit: Culprit) -> Self {
        let Culprit { kind, name, thread } = culprit;
        let none = Nanos::ZERO;
        Self {
            kind,
            name,
            thread,
            gaps: 0,
            ns: none,
            noise_ppm: None,
            entry_ns: Some(none),
            inside_ns: none,
            exit_ns: Some(none),
            max_ns: none,
            period: None,
        }
    }

    fn unexplained(GapTotal { gaps, ns, max }: GapTotal) -> Self {
        let name = "unexplained".to_owned();
        let culprit = Culprit { kind: CulpritKind::Unexplained, name, thread: None };
        Self { gaps, ns, max_ns: max, ..Self::without_share(culprit) }
    }

    /// Each culprit with a share; several can be the same.
    fn each(blamed: &Blamed) -> Vec<Self> {
        let culprits = blamed.culprits.iter().cloned();
        let mut all: Vec<Self> = culprits.map(Self::without_share).collect();
        for share in &blamed.shares {
            if let Some(culprit) = all.get_mut(share.culprit) {
                culprit.add_share(share);
            }
        }
        all.retain(|culprit| culprit.gaps > 0);
        all
    }

    fn add_share(&mut self, share: &Share) {
        self.gaps += 1;
        self.ns = self.ns + share.ns;
        self.max_ns = self.max_ns.max(share.ns);
        if self.kind.is_event() {
            let outside = share.ns.saturating_sub(share.inside_ns);
            let exit = share.entry_ns.map(|entry| outside.saturating_sub(entry));
            self.add_parts(share.entry_ns, share.inside_ns, exit);
        }
    }

    /// Adds parts of shares; one that is unknown for some is unknown for all.
    fn add_parts(&mut self, entry: Option<Nanos>, inside: Nanos, exit: Option<Nanos>) {
        let both = |a: Option<Nanos>, b: Option<Nanos>| Some(a? + b?);
        self.entry_ns = both(self.entry_ns, entry);
        self.inside_ns = self.inside_ns + inside;
        self.exit_ns = both(self.exit_ns, exit);
    }

    /// Adds the shares of the same culprit.
    fn add(&mut self, other: &Self) {
        self.gaps = self.gaps.saturating_add(other.gaps);
        self.ns = self.ns + other.ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.add_parts(other.entry_ns, other.inside_ns, other.exit_ns);
        if let (Some(own), Some(other)) = (&mut self.thread, &other.thread) {
            own.owner = own.owner.take().or_else(|| other.owner.clone());
            own.own |= other.own;
        }
    }

    fn key(&self) -> CulpritKey<'_> {
        key(self.kind, &self.name, self.thread.as_ref())
    }

    /// Each culprit once, in descending order, with its share of this noise.
    fn added_up(mut all: Vec<Self>, noise: Nanos) -> Vec<Self> {
        all.sort_by(|one, other| one.key().cmp(&other.key()));
        all.dedup_by(|next, sum| {
            let is_same = next.key() == sum.key();
            if is_same {
                sum.add(next);
            }
            is_same
        });
        for culprit in &mut all {
            culprit.noise_ppm = Ppm::of(culprit.ns, noise);
        }
        all.sort_by_key(|culprit| Reverse(culprit.ns));
        all
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
        Self::together(series.busy.iter().flat_map(|cpu| Self::each(&cpu.blamed)))
    }

    /// Adds up the culprits of several CPUs, as shares of the sum.
    pub(crate) fn together(culprits: impl Iterator<Item = Self>) -> Vec<Self> {
        let all: Vec<Self> = culprits.map(|one| Self { period: None, ..one }).collect();
        let noise = all.iter().map(|culprit| culprit.ns).sum();
        Self::added_up(all, noise)
    }
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
        let thread = tid.map(|tid| Thread {
            tid,
            pid: 39,
            prio: 120,
            owner: None,
            unit: None,
            own: false,
        });
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

    /// Check that entry and exit are null if a recording does not distinguish them, and that those of
    /// unexplained time are zero.
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
            let together = CulpritSummary::together([one, other].concat().into_iter());
            prop_assert_eq!(&together, &CulpritSummary::of(Some(&blamed(&shares)), None, noise));
            prop_assert_eq!(together.iter().map(|c| c.ns).sum::<Nanos>(), noise);
            for culprit in together.iter().filter(|c| c.kind != CulpritKind::Unexplained) {
                let parts = [culprit.entry_ns.unwrap(), culprit.inside_ns, culprit.exit_ns.unwrap()];
                prop_assert_eq!(parts.into_iter().sum::<Nanos>(), culprit.ns);
            }
        }
    }
}
