//! Culprits by index, with the number of their events.

use std::collections::BTreeMap;

use recording::Culprit;

/// The culprits found so far, with the number of events of each.
#[derive(Default)]
pub(crate) struct Tally {
    indices: BTreeMap<Culprit, usize>,
    culprits: Vec<Culprit>,
    events: Vec<u64>,
}

impl Tally {
    /// Counts an event of that culprit; returns the culprit's index.
    pub(crate) fn count(&mut self, culprit: Culprit) -> usize {
        let index = *self.indices.entry(culprit).or_insert_with_key(|culprit| {
            self.culprits.push(culprit.clone());
            self.events.push(0);
            self.culprits.len() - 1
        });
        self.events[index] += 1;
        index
    }

    /// The culprits by index.
    pub(crate) fn culprits(&self) -> &[Culprit] {
        &self.culprits
    }

    /// All culprits by index, and the number of events of each.
    pub(crate) fn into_parts(self) -> (Vec<Culprit>, Vec<u64>) {
        (self.culprits, self.events)
    }
}
