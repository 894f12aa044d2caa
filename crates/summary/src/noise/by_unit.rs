//! The sources of lost time by unit: programs that belong to one unit of systemd, or to one container, are
//! one source.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use units::Nanos;

use crate::noise::verdict::{Group, TimePart};

impl Group {
    /// These groups, those of one unit together, in descending order of time.
    pub fn by_unit(groups: &[Self]) -> Vec<UnitGroup<'_>> {
        let mut units: BTreeMap<_, Vec<&Self>> = BTreeMap::new();
        for (number, group) in groups.iter().enumerate() {
            let alone = group.unit.is_none().then_some(number);
            units.entry((&group.unit, alone)).or_default().push(group);
        }
        let mut all: Vec<UnitGroup> = units.into_values().map(UnitGroup::of).collect();
        all.sort_by_key(|one| Reverse(one.part.ns));
        all
    }
}

/// The groups of one unit, or one group without a unit.
#[derive(Debug, Clone, PartialEq)]
pub struct UnitGroup<'a> {
    /// The groups, in descending order of time.
    pub groups: Vec<&'a Group>,
    /// The number of their threads.
    pub threads: usize,
    /// The number of gaps with a share of it, added up for its culprits.
    pub gaps: u64,
    /// Their time.
    pub part: TimePart,
    /// The longest share.
    pub max_ns: Nanos,
}

impl<'a> UnitGroup<'a> {
    fn of(mut groups: Vec<&'a Group>) -> Self {
        groups.sort_by_key(|group| Reverse(group.part.ns));
        Self {
            threads: groups.iter().map(|group| group.threads).sum(),
            gaps: groups.iter().map(|group| group.gaps).sum(),
            part: groups
                .iter()
                .map(|group| group.part)
                .fold(TimePart::default(), TimePart::plus),
            max_ns: groups.iter().map(|group| group.max_ns).max().unwrap_or_default(),
            groups,
        }
    }
}

#[cfg(test)]
mod tests {
    use facts::Unit;
    use recording::CulpritKind;
    use units::{Nanos, Ppm};

    use super::*;
    use crate::noise::verdict::LossCategory;

    /// Check that programs of one unit are added up, and that others remain alone, also with one name.
    #[test]
    fn units() {
        let group = |name: &str, unit: Option<&str>, ns| Group {
            category: LossCategory::Programs,
            kind: CulpritKind::Thread,
            name: name.to_owned(),
            unit: unit.and_then(Unit::of_path),
            processes: 1,
            threads: 2,
            gaps: 3,
            part: TimePart { ns: Nanos::from_nanos(ns), ppm: Some(Ppm::new(ns as f64)) },
            max_ns: Nanos::from_nanos(ns / 2),
        };
        let groups = [
            group("a", None, 10),
            group("sh", Some("/x/cron.service"), 4),
            group("b", None, 10),
            group("rustc", Some("/x/cron.service"), 8),
        ];
        let found = Group::by_unit(&groups);
        let found = found.iter().map(|one| {
            let names: Vec<&str> = one.groups.iter().map(|group| &*group.name).collect();
            (names.join(" "), one.threads, one.part.ns.get(), one.max_ns.get())
        });
        let expected = [("rustc sh", 4, 12, 4), ("a", 2, 10, 5), ("b", 2, 10, 5)];
        let expected = expected
            .map(|(names, threads, ns, max)| (names.to_owned(), threads, ns, max));
        assert_eq!(found.collect::<Vec<_>>(), expected);
    }
}
