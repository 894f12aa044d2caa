//! The largest sources of lost time, and the sum of all others: in each part of a measurement, or on each
//! CPU.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use units::{Nanos, Ppm};

use crate::noise::verdict::LossCategory;

/// A source: its category and name; `None` for all gaps if events were not traced.
pub(super) type Source<'a> = Option<(LossCategory, &'a str)>;
/// The time that each source took in each part, or on each CPU.
pub(super) type Times<'a> = BTreeMap<Source<'a>, Vec<Nanos>>;

/// What one source took in each part of a measurement, or on each CPU.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceShares {
    /// Its name; `None` for the sum of all others, and for all gaps if events were not traced.
    pub name: Option<String>,
    /// Whether it is the measuring process.
    pub is_own: bool,
    /// Its time in each part as a share of the time that was measured; `None` if none was.
    pub shares: Vec<Option<Ppm>>,
}

impl SourceShares {
    /// The `most` sources with the most time, the largest first, and the sum of all others. `measured` is
    /// the time of each part.
    pub(super) fn largest(
        times: Times<'_>,
        most: usize,
        measured: &[Nanos],
    ) -> Vec<Self> {
        let total = |sums: &[Nanos]| sums.iter().copied().sum::<Nanos>();
        let mut times: Vec<(Source<'_>, Vec<Nanos>)> = times.into_iter().collect();
        times.retain(|(_, sums)| !total(sums).is_zero());
        times.sort_by_key(|(_, sums)| Reverse(total(sums)));
        if times.len() > most + 1 {
            let rest = times.split_off(most);
            let part = |at: usize| {
                rest.iter().filter_map(|(_, sums)| sums.get(at)).copied().sum()
            };
            times.push((None, (0..measured.len()).map(part).collect()));
        }
        let source = |(of, sums): (Source<'_>, Vec<Nanos>)| Self {
            name: of.map(|(_, name)| name.to_owned()),
            is_own: of.is_some_and(|(category, _)| category == LossCategory::Own),
            shares: sums
                .iter()
                .zip(measured)
                .map(|(ns, all)| Ppm::of(*ns, *all))
                .collect(),
        };
        times.into_iter().map(source).collect()
    }
}
