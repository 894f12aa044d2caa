//! The doubts about sets of runs.

use recording::{Code, Doubt};
use summary::{RunNumbers, RunSet, RunsDoubt};

use crate::comparisons::differing::label;
use crate::comparisons::letter;
use crate::comparisons::main_metric::doubt;
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
        reasons.extend(not_stationary(set).map(|reason| (reason, set_name.clone())));
        let varying = set.facts.varying().chain(set.parameters.varying());
        let varying = Text::join(varying.map(label), ", ");
        if !varying.is_empty() {
            let reason = text!("the runs differ from each other, too: {}", varying);
            reasons.push((reason, set_name));
        }
    }
    reasons.extend(common_runs(sets));
    let of_sets = grouped(reasons).into_iter();
    let of_sets = of_sets.map(|(reason, sets)| match sets.join(", ") {
        sets if sets.is_empty() => reason,
        sets => text!("{}: {}", sets, reason),
    });
    of_all.iter().map(|doubt| doubt.text.as_str().into()).chain(of_sets)
}

/// What the runs of a set do, if they are not stationary.
fn not_stationary(set: &RunSet) -> Option<Text> {
    let (pattern, metric) = set.pattern()?;
    let unit = RunNumbers::unit(&metric)?;
    Some(doubt(&metric, &pattern, unit))
}

/// The doubts about the runs of a set for JSON, with that.
pub(crate) fn with_pattern(set: &RunSet) -> Vec<RunsDoubt> {
    let pattern = not_stationary(set).map(|text| RunsDoubt {
        doubt: Doubt::new(Code::NotStationary, text.to_string()),
        runs: set.runs(),
    });
    set.doubts.iter().cloned().chain(pattern).collect()
}

/// A reason for each set that has some of the runs of the first one, but not the same ones.
fn common_runs(sets: &[RunSet]) -> Vec<(Text, String)> {
    let Some((base, others)) = sets.split_first() else { return Vec::new() };
    let reason = |(set, at): (&RunSet, usize)| {
        let common = set.runs_in(base);
        let is_same = [set, base].iter().all(|one| one.runs() == common);
        let reason = text!(
            "{} of the runs are in both sets, so that they are more alike than others",
            common
        );
        (common > 0 && !is_same).then(|| (reason, format!("A and {}", letter(at))))
    };
    others.iter().zip(1..).filter_map(reason).collect()
}
