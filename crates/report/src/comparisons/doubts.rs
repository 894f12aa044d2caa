//! The doubts about sets of runs.

use recording::Doubt;
use summary::RunSet;

use crate::comparisons::differing::label;
use crate::comparisons::letter;
use crate::document::text::{Text, text};
use crate::grouped::grouped;

/// These doubts, and those about sets: each once, with the sets and the number of runs that have it.
pub(crate) fn doubts<'a>(
    of_all: &'a [Doubt],
    sets: &[RunSet],
) -> impl Iterator<Item = Text> + use<'a> {
    let mut reasons: Vec<(Text, String)> = Vec::new();
    for (at, set) in sets.iter().enumerate() {
        let set_name = if sets.len() == 1 { String::new() } else { letter(at) };
        for one in &set.doubts {
            let of = match set.runs() {
                all if all == one.runs => set_name.clone(),
                all if sets.len() == 1 => format!("{} of {all} runs", one.runs),
                all => format!("{set_name} ({} of {all} runs)", one.runs),
            };
            reasons.push((one.doubt.text.as_str().into(), of));
        }
        let varying = set.facts.varying().chain(set.parameters.varying());
        let varying = Text::join(varying.map(label), ", ");
        if !varying.is_empty() {
            let reason = text!("the runs differ from each other, too: {}", varying);
            reasons.push((reason, set_name));
        }
    }
    let of_sets = grouped(reasons).into_iter();
    let of_sets = of_sets.map(|(reason, sets)| match sets.join(", ") {
        sets if sets.is_empty() => reason,
        sets => text!("{}: {}", sets, reason),
    });
    of_all.iter().map(|doubt| doubt.text.as_str().into()).chain(of_sets)
}
