//! The sets that are compared, and the doubts about them.

use stats::{Block, BlockUnit, ItemUnit, RunSet};
use units::{Nanos, printable};

use crate::compared::ComparedSets;
use crate::number;
use crate::text::comparison::{letter, runs};
use crate::text::layout::doubts::section;
use crate::text::layout::paragraph::paragraph;

/// One line for each set: its name, its runs, and when they were taken.
pub(crate) fn sets(compared: &ComparedSets<'_>) -> String {
    let line = |(at, (name, set)): (usize, (&String, &RunSet))| {
        let taken = match &set.taken {
            Some([first, last]) if first == last => format!(", {first}"),
            Some([first, last]) => format!(", {first} to {last}"),
            None => String::new(),
        };
        let text =
            format!("{name}: {} of {}{taken}", runs(set), set.kinds().join(" and "));
        paragraph(&format!(" {}  ", letter(at)), &printable(&text))
    };
    compared.names.iter().zip(compared.sets).enumerate().map(line).collect()
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
    }
}

/// The doubts about the sets, each once, with the number of runs that have it; empty if there are none.
pub(crate) fn doubts(compared: &ComparedSets<'_>) -> String {
    let mut reasons: Vec<(String, Vec<String>)> = Vec::new();
    let mut add = |reason: String, set: String| match reasons
        .iter_mut()
        .find(|(other, _)| *other == reason)
    {
        Some((_, sets)) => sets.push(set),
        None => reasons.push((reason, vec![set])),
    };
    for (at, set) in compared.sets.iter().enumerate() {
        for one in &set.doubts {
            let of = match set.runs() {
                all if all == one.runs => letter(at),
                all => format!("{} ({} of {all} runs)", letter(at), one.runs),
            };
            add(printable(&one.doubt.text).into_owned(), of);
        }
        let varying: Vec<&str> =
            set.facts.varying().chain(set.parameters.varying()).collect();
        if !varying.is_empty() {
            add(
                format!("the runs differ from each other, too: {}", varying.join(", ")),
                letter(at),
            );
        }
    }
    section(
        reasons
            .into_iter()
            .map(|(reason, sets)| format!("{}: {reason}", sets.join(", "))),
    )
}
