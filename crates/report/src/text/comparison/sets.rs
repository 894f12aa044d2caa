//! The sets that are compared, and the doubts about them.

use stats::{Block, BlockUnit, ItemUnit};
use summary::RunSet;
use units::{Nanos, printable};

use crate::compared::ComparedSets;
use crate::number;
use crate::text::comparison::differing::label;
use crate::text::comparison::{letter, runs};
use crate::text::layout::paragraph::paragraph;

/// One line for each set: its name, its runs, and when they were taken.
pub(crate) fn sets(compared: &ComparedSets<'_>) -> String {
    let line = |(at, (name, set)): (usize, (&String, &RunSet))| {
        let (kinds, taken) = (set.kinds().join(" and "), taken(set));
        let text = format!("{name}: {} of {kinds}{taken}", runs(set));
        paragraph(&format!(" {}  ", letter(at)), &printable(&text))
    };
    compared.names.iter().zip(compared.sets).enumerate().map(line).collect()
}

/// When the runs of a set were taken, after a comma.
pub(crate) fn taken(set: &RunSet) -> String {
    match &set.taken {
        Some([first, last]) if first == last => format!(", {first}"),
        Some([first, last]) => format!(", {first} to {last}"),
        None => String::new(),
    }
}

/// The length of a block in words.
pub(crate) fn block_length(block: Block) -> String {
    match block.unit {
        BlockUnit::Ns => number::duration(Nanos::from_nanos(block.length)),
        BlockUnit::Items(ItemUnit::Wakeups) => {
            format!("{} wake-ups", number::count(block.length))
        }
        BlockUnit::Items(ItemUnit::Tests) => {
            format!("{} tests", number::count(block.length))
        }
        BlockUnit::Items(ItemUnit::Intervals) => {
            format!("{} intervals", number::count(block.length))
        }
    }
}

/// The doubts about sets, each once, with the sets and the number of runs that have it.
pub(crate) fn doubts(sets: &[RunSet]) -> impl Iterator<Item = String> {
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    let mut add = |reason: String, set: String| match reasons
        .iter_mut()
        .find(|(other, _)| *other == reason)
    {
        Some((_, sets)) => sets.push(set),
        None => reasons.push((reason, vec![set])),
    };
    for (at, set) in sets.iter().enumerate() {
        let set_name = if sets.len() == 1 { String::new() } else { letter(at) };
        for one in &set.doubts {
            let of = match set.runs() {
                all if all == one.runs => set_name.clone(),
                all if sets.len() == 1 => format!("{} of {all} runs", one.runs),
                all => format!("{set_name} ({} of {all} runs)", one.runs),
            };
            add(printable(&one.doubt.text).into_owned(), of);
        }
        let varying = set.facts.varying().chain(set.parameters.varying());
        let varying: Vec<String> = varying.map(label).collect();
        if !varying.is_empty() {
            let text =
                format!("the runs differ from each other, too: {}", varying.join(", "));
            add(text, set_name);
        }
    }
    reasons.into_iter().map(|(reason, sets)| match sets.join(", ") {
        sets if sets.is_empty() => reason,
        sets => format!("{sets}: {reason}"),
    })
}
