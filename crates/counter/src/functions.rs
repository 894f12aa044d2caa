//! The kernel's instructions by function, for each group of threads.
//!
//! The counters of functions run on; the difference since the last change of the group belongs to
//! the group before it.

use std::collections::BTreeMap;

/// The instructions of functions, by group.
#[derive(Debug, Default)]
pub(crate) struct Functions {
    /// The counters so far; none outside of phases.
    counted: Option<Vec<u64>>,
    groups: BTreeMap<u32, Vec<u64>>,
}

impl Functions {
    /// A phase begins with these counters.
    pub(crate) fn begin(&mut self, counters: &[u64]) {
        self.counted = Some(counters.to_vec());
    }

    /// The instructions up to these counters belong to that group.
    pub(crate) fn count(&mut self, group: u32, counters: &[u64]) {
        let Some(all) = &mut self.counted else { return };
        // Functions are added as they are translated.
        all.resize(counters.len(), 0);
        let sums = self.groups.entry(group).or_default();
        sums.resize(counters.len(), 0);
        let pairs = counters.iter().zip(all);
        for (sum, (&counter, counted)) in sums.iter_mut().zip(pairs) {
            *sum += counter - *counted;
            *counted = counter;
        }
    }

    /// A phase ends with these counters, in that group.
    pub(crate) fn end(&mut self, group: u32, counters: &[u64]) {
        self.count(group, counters);
        self.counted = None;
    }

    /// The instructions of each group in all phases, by the function's counter.
    pub(crate) fn all(&self) -> impl Iterator<Item = (u32, usize, u64)> + '_ {
        self.groups.iter().flat_map(|(&group, sums)| {
            let sums = sums.iter().enumerate().filter(|(_, sum)| **sum > 0);
            sums.map(move |(counter, &sum)| (group, counter, sum))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that each group has the instructions up to the change of the group, also of functions
    /// that are added later.
    #[test]
    fn groups() {
        let mut functions = Functions::default();
        functions.begin(&[5]);
        functions.count(1, &[7, 10]);
        functions.end(0, &[7, 11, 3]);
        functions.count(0, &[8, 15, 3]);
        functions.begin(&[9, 20, 3]);
        functions.count(1, &[10, 20, 3]);
        let all: Vec<_> = functions.all().collect();
        assert_eq!(all, [(0, 1, 1), (0, 2, 3), (1, 0, 3), (1, 1, 10)]);
    }
}
