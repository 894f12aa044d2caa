//! The CPUs that a table lists if there are many: the worst.

use crate::document::text::{Text, text};

/// The listed CPUs, and the others from the worst on.
pub(crate) struct Worst<'a, T> {
    pub(crate) listed: Vec<&'a T>,
    pub(crate) others: Vec<&'a T>,
}

impl<'a, T> Worst<'a, T> {
    /// All in their order; of more than `all`, the `most` ones with the largest numbers, from the worst on.
    pub(crate) fn of(
        cpus: &'a [T],
        all: usize,
        most: usize,
        number: impl Fn(&T) -> Option<f64>,
    ) -> Self {
        let mut listed: Vec<&T> = cpus.iter().collect();
        if cpus.len() <= all {
            return Self { listed, others: Vec::new() };
        }
        let rank = |cpu: &&T| number(cpu).unwrap_or(-1.0);
        listed.sort_by(|a, b| rank(b).total_cmp(&rank(a)));
        let others = listed.split_off(most);
        Self { listed, others }
    }

    /// A sentence about the CPUs that are not listed; nothing if all are.
    pub(crate) fn rest(
        &self,
        verb: &str,
        most: &str,
        number: impl Fn(&T) -> Text,
    ) -> Text {
        let sentence = |next: &&T| {
            text!(
                "These CPUs {} {}; {} more {} {} or less each (see --json).",
                verb,
                most,
                self.others.len(),
                verb,
                number(next)
            )
        };
        self.others.first().map(sentence).into()
    }
}
