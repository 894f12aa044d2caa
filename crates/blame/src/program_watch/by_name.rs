//! Sums by name, of a limited number of names: if there are too many, the half with the least time becomes
//! one sum, so that memory stays constant for days.

use std::collections::BTreeMap;

use units::Nanos;

/// The most names.
const NAMES_MAX: usize = 1000;
/// The name of the sum of all others.
pub(crate) const OTHERS: &str = "(others)";

/// What can be added up.
pub(crate) trait Summed {
    /// The time by which sums are compared.
    fn time(&self) -> Nanos;
    /// Adds another one.
    fn add(&mut self, other: &Self);
    /// The same as a sum of others.
    fn as_others(&self) -> Self;
}

/// The sums.
#[derive(Debug)]
pub(crate) struct ByName<T>(BTreeMap<String, T>);

impl<T> Default for ByName<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Summed> ByName<T> {
    /// Adds one of that name.
    pub(crate) fn add(&mut self, name: String, one: T) {
        if self.0.len() >= NAMES_MAX && !self.0.contains_key(&name) {
            self.fold();
        }
        match self.0.get_mut(&name) {
            Some(sum) => sum.add(&one),
            None => drop(self.0.insert(name, one)),
        }
    }

    /// Adds up the half with the least time.
    fn fold(&mut self) {
        let mut times: Vec<Nanos> = self.0.values().map(Summed::time).collect();
        let middle = times.len() / 2;
        let median = *times.select_nth_unstable(middle).1;
        let mut others = self.0.remove(OTHERS);
        self.0.retain(|_, one| {
            if one.time() > median {
                return true;
            }
            match &mut others {
                Some(others) => others.add(one),
                None => others = Some(one.as_others()),
            }
            false
        });
        self.0.extend(others.map(|others| (OTHERS.to_owned(), others)));
    }

    /// All sums.
    pub(crate) fn into_values(self) -> impl Iterator<Item = T> {
        self.0.into_values()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Summed for Nanos {
        fn time(&self) -> Nanos {
            *self
        }

        fn add(&mut self, other: &Self) {
            *self = *self + *other;
        }

        fn as_others(&self) -> Self {
            *self
        }
    }

    /// Check that any number of names needs constant memory, that nothing is lost, and that the largest
    /// sums keep their names.
    #[test]
    fn many_names() {
        let mut sums = ByName::default();
        for name in 0..10_000_u64 {
            sums.add(name.to_string(), Nanos::from_nanos(1));
            sums.add("large".to_owned(), Nanos::from_nanos(100));
        }
        assert!(sums.0.len() <= NAMES_MAX, "{}", sums.0.len());
        assert_eq!(sums.0["large"], Nanos::from_nanos(1_000_000));
        let all: u64 = sums.into_values().map(Nanos::get).sum();
        assert_eq!(all, 1_010_000);
    }
}
