//! The sources that used the most CPU time lately, each with a counter, and the sum of all others.
//!
//! Their number is bounded: a source that is replaced by a more active one disappears, with its counter, and
//! its time from then on is part of the others'; when it returns, it begins with 0. So no counter ever shrinks.
//! What a source used before it was listed is in the others' sum.

use std::collections::HashMap;

use recording::TopUse;
use units::Nanos;

use crate::noise::sources::{OTHER, source_labels};

/// The time after which the use of a CPU counts half as much in the choice of sources.
const HALF_LIFE: f64 = 600e9;
/// How much more active a source is that replaces another one.
const MORE: f64 = 2.0;
/// The most sources that are known and not listed, for each that is listed.
const KNOWN: usize = 8;

/// A source, or the sum of those that are not listed, in the labels of the metrics of noise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceTotal {
    /// The kind of event; `other` for the sum of the rest.
    pub kind: &'static str,
    /// The name of the program, the kernel thread without its number, or the event.
    pub name: String,
    /// The systemd unit or the container of a program; empty if it is in none, or not known.
    pub unit: String,
    /// Its CPU time.
    pub ns: Nanos,
    /// The number of its runs or interrupts; `None` if it is not known.
    pub count: Option<u64>,
}

/// A kind, a name and a unit.
type Key = (&'static str, String, String);

/// Those that are listed, and how active they and others are.
#[derive(Debug)]
pub(crate) struct SourceTotals {
    most: usize,
    listed: HashMap<Key, Sum>,
    /// The recent time of each known source, in ns.
    activity: HashMap<Key, f64>,
    others: Sum,
}

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    ns: Nanos,
    count: Option<u64>,
}

impl SourceTotals {
    pub(crate) fn new(most: usize) -> Self {
        let (listed, activity) = (HashMap::new(), HashMap::new());
        Self { most, listed, activity, others: Sum::default() }
    }

    /// Adds what used the CPUs in an interval.
    pub(crate) fn add(&mut self, uses: &[TopUse], elapsed: Nanos) {
        let mut grown: HashMap<Key, Sum> = HashMap::new();
        for used in uses {
            grown.entry(key(used)).or_default().add(used.ns, used.count);
        }
        self.weigh(&grown, elapsed);
        self.choose();
        for (key, sum) in grown {
            match self.listed.get_mut(&key) {
                Some(listed) => listed.add(sum.ns, sum.count),
                None => self.others.add(sum.ns, sum.count),
            }
        }
    }

    /// The listed ones in the order of their labels, and the others.
    pub(crate) fn all(&self) -> Vec<SourceTotal> {
        let total = |(kind, name, unit): Key, sum: Sum| {
            let Sum { ns, count } = sum;
            SourceTotal { kind, name, unit, ns, count }
        };
        let mut all: Vec<(&Key, &Sum)> = self.listed.iter().collect();
        all.sort_by_key(|(key, _)| *key);
        let others = (OTHER, OTHER.to_owned(), String::new());
        let others = std::iter::once(total(others, self.others));
        all.into_iter().map(|(key, sum)| total(key.clone(), *sum)).chain(others).collect()
    }

    /// Lets earlier activity decay, and adds what has grown.
    fn weigh(&mut self, grown: &HashMap<Key, Sum>, elapsed: Nanos) {
        let decay = (-(elapsed.get() as f64) / HALF_LIFE).exp2();
        self.activity.values_mut().for_each(|activity| *activity *= decay);
        for (key, sum) in grown {
            let ns = sum.ns.get() as f64;
            match self.activity.get_mut(key) {
                Some(activity) => *activity += ns,
                None => drop(self.activity.insert(key.clone(), ns)),
            }
        }
    }

    /// Lists the most active sources, but does not replace one by another that is about as active.
    fn choose(&mut self) {
        let (added, removed) = self.changes();
        for key in removed {
            self.listed.remove(&key);
        }
        self.listed.extend(added.into_iter().map(|key| (key, Sum::default())));
        let forgotten =
            self.by_activity().into_iter().skip(self.most.saturating_mul(KNOWN));
        let forgotten: Vec<Key> = forgotten.map(|(key, _)| key.clone()).collect();
        for key in forgotten.iter().filter(|key| !self.listed.contains_key(*key)) {
            self.activity.remove(key);
        }
    }

    /// Sources to list, and those that they replace.
    fn changes(&self) -> (Vec<Key>, Vec<Key>) {
        let known = self.by_activity().into_iter();
        let (listed, new): (Vec<_>, Vec<_>) =
            known.partition(|(key, _)| self.listed.contains_key(*key));
        let mut least = listed.iter().rev().peekable();
        let (mut added, mut removed) = (Vec::new(), Vec::new());
        for (key, activity) in new {
            if self.listed.len() + added.len() - removed.len() >= self.most {
                match least.next_if(|(_, least)| activity > least * MORE) {
                    Some(&(replaced, _)) => removed.push(replaced.clone()),
                    None => break,
                }
            }
            added.push(key.clone());
        }
        (added, removed)
    }

    /// The known sources, the most active first.
    fn by_activity(&self) -> Vec<(&Key, f64)> {
        let mut known: Vec<(&Key, f64)> =
            self.activity.iter().map(|(key, &activity)| (key, activity)).collect();
        known.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(other.0)));
        known
    }
}

impl Sum {
    fn add(&mut self, ns: Nanos, count: Option<u64>) {
        self.ns = self.ns.saturating_add(ns);
        if let Some(count) = count {
            self.count = Some(self.count.unwrap_or(0).saturating_add(count));
        }
    }
}

/// The labels of what used a CPU.
fn key(used: &TopUse) -> Key {
    let culprit = &used.culprit;
    let (kind, name) = source_labels(culprit);
    let thread = culprit.thread.as_ref().filter(|thread| !thread.own);
    let unit = thread.and_then(|thread| thread.unit.as_ref());
    (kind, name.to_owned(), unit.map_or_else(String::new, ToString::to_string))
}

#[cfg(test)]
mod tests {
    use recording::{Culprit, CulpritKind, Thread, ThreadOwner};

    use super::*;

    fn used(name: &str, ns: u64) -> TopUse {
        let owner = Some(ThreadOwner::Program(name.to_owned()));
        let thread = Thread { tid: 7, pid: 7, prio: 120, owner, unit: None, own: false };
        let kind = CulpritKind::Thread;
        TopUse {
            cpu: None,
            culprit: Culprit { kind, name: name.to_owned(), thread: Some(thread) },
            ns: Nanos::from_nanos(ns),
            count: Some(1),
            ns_max: None,
        }
    }

    fn names(totals: &SourceTotals) -> Vec<(String, u64)> {
        totals.all().into_iter().map(|one| (one.name, one.ns.get())).collect()
    }

    fn expected(all: &[(&str, u64)]) -> Vec<(String, u64)> {
        all.iter().map(|(name, ns)| ((*name).to_owned(), *ns)).collect()
    }

    /// Check that threads of a program are one source, that all times are in a source or in the others, and
    /// that a source is replaced only by one that is much more active, and begins with 0 when it returns.
    #[test]
    fn replaced() {
        let second = Nanos::from_secs(1);
        let mut totals = SourceTotals::new(2);
        totals.add(
            &[used("a", 500), used("a", 500), used("b", 100), used("c", 50)],
            second,
        );
        assert_eq!(names(&totals), expected(&[("a", 1000), ("b", 100), ("other", 50)]));
        totals.add(&[used("c", 100)], second);
        assert_eq!(names(&totals), expected(&[("a", 1000), ("b", 100), ("other", 150)]));
        totals.add(&[used("c", 900), used("b", 1)], second);
        assert_eq!(names(&totals), expected(&[("a", 1000), ("c", 900), ("other", 151)]));
        totals.add(&[used("b", 9000)], second);
        assert_eq!(names(&totals), expected(&[("b", 9000), ("c", 900), ("other", 151)]));
        let counts: Vec<_> = totals.all().iter().map(|one| one.count).collect();
        assert_eq!(counts, [Some(1), Some(1), Some(3)]);
    }

    /// Check that a source that was active long ago gives way.
    #[test]
    fn forgotten() {
        let mut totals = SourceTotals::new(1);
        totals.add(&[used("old", 1_000_000)], Nanos::from_secs(1));
        totals.add(&[used("new", 100)], Nanos::from_secs(36_000));
        assert_eq!(names(&totals), expected(&[("new", 100), ("other", 0)]));
    }

    /// Check that any number of short-lived sources needs constant memory, that no counter shrinks, and that
    /// the busiest source is listed throughout.
    #[test]
    fn bounded() {
        let mut totals = SourceTotals::new(4);
        let mut before: HashMap<String, u64> = HashMap::new();
        for round in 0..500 {
            let mut uses: Vec<TopUse> =
                (0..50).map(|n| used(&format!("{round}.{n}"), 1000 + n)).collect();
            uses.push(used("steady", 100_000));
            totals.add(&uses, Nanos::from_secs(15));
            assert!(totals.activity.len() <= 4 * KNOWN + 4, "{}", totals.activity.len());
            let all = names(&totals);
            assert!(
                all.len() <= 5
                    && all.contains(&("steady".to_owned(), 100_000 * (round + 1)))
            );
            let other = all.iter().find(|(name, _)| name == "other").unwrap().1;
            assert!(before.insert("other".to_owned(), other).unwrap_or(0) <= other);
        }
    }
}
