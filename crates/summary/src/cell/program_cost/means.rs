//! The means of several runs of a program. Parts are rounded, and add up to the whole.

use std::collections::BTreeMap;

use units::{Instructions, Nanos};

use crate::cell::program_cost::{
    FunctionShare, GroupCost, GroupRole, ProgramCost, UnitCost,
};
use crate::explain::phase::EntryCost;
use crate::program::ProgramSummary;

impl ProgramCost {
    /// The means of this and other runs of the same program.
    pub(in crate::cell) fn averaged_with(self, others: &[Self]) -> Self {
        if others.is_empty() {
            return self;
        }
        let all: Vec<&Self> = std::iter::once(&self).chain(others).collect();
        let groups: Vec<GroupCost> = (0..self.groups.len())
            .map(|at| GroupCost::mean(all.iter().filter_map(|run| run.groups.get(at))))
            .collect();
        let instructions = groups.iter().map(|group| group.instructions).sum();
        let kernel = groups.iter().map(|group| group.kernel_instructions).sum();
        let elapsed = mean(all.iter().map(|run| run.run.elapsed_ns.get()));
        let run =
            ProgramSummary { elapsed_ns: Nanos::from_nanos(elapsed), ..self.run.clone() };
        let unit = self.unit.as_ref().map(|unit| {
            UnitCost::new(&unit.name, unit.count, run.elapsed_ns, instructions, kernel)
        });
        Self {
            run,
            instructions,
            kernel_instructions: kernel,
            timer_interrupts: mean(all.iter().map(|run| run.timer_interrupts)),
            unit,
            groups,
        }
    }
}

impl GroupCost {
    /// The means of the same group in several runs.
    fn mean<'a>(runs: impl Iterator<Item = &'a Self> + Clone) -> Self {
        let count = runs.clone().count() as u64;
        let each = |sum: Instructions| Instructions::new(rounded(sum.get(), count));
        let entries = runs.clone().flat_map(|run| &run.entries);
        let entries =
            entries.map(|one| ((one.kind, &*one.name), one.instructions, one.times));
        let mut entries = EntryCost::added_up(entries);
        for entry in &mut entries {
            entry.instructions = each(entry.instructions);
            entry.times = rounded(entry.times, count);
        }
        let mut functions: BTreeMap<&str, Vec<Instructions>> = BTreeMap::new();
        for function in runs.clone().flat_map(|run| &run.functions) {
            functions.entry(&function.name).or_default().push(function.own_instructions);
        }
        // The mean of one that is not among the largest of each run is not known.
        let known = functions.into_iter().filter(|(_, own)| own.len() as u64 == count);
        let functions = known.map(|(name, own)| FunctionShare {
            name: name.to_owned(),
            own_instructions: each(own.into_iter().sum()),
        });
        let first = runs.clone().next();
        let role = first.map_or(GroupRole::Other, |first| first.role);
        let name = first.map(|first| first.name.clone()).unwrap_or_default();
        Self::new(role, name, entries, FunctionShare::largest(functions.collect()))
    }
}

/// The mean of numbers, rounded.
fn mean(numbers: impl ExactSizeIterator<Item = u64>) -> u64 {
    let count = numbers.len() as u64;
    rounded(numbers.sum(), count)
}

/// A sum divided by a count, rounded.
fn rounded(sum: u64, count: u64) -> u64 {
    (sum + count / 2).checked_div(count).unwrap_or_default()
}
