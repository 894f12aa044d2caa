//! The report of `lab ablate`: which options make the difference of a metric, the largest part first;
//! below them what remains, and which kernels could not be tested.

use serde::Serialize;
use stats::{Ablation, Contribution, Ended, OptionsChange, Unexplained};

use crate::document::Document;
use crate::document::table::{Cell, Column, Table, cells};
use crate::document::text::{Text, text};
use crate::json::object;
use crate::number;

/// So many options of a set are named.
const NAMED_MAX: usize = 12;
/// So many kernels that could not be tested are listed.
const UNRESOLVED_MAX: usize = 5;

/// The difference of a metric between two kernels, and its parts.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Ablated<'a> {
    /// The key of the metric.
    pub metric: &'a str,
    /// The experiment's name.
    pub experiment: &'a str,
    /// The cell's name.
    pub cell: &'a str,
    /// The first configuration, as requested.
    #[serde(rename = "from_config")]
    pub from: &'a str,
    /// The second configuration.
    #[serde(rename = "to_config")]
    pub to: &'a str,
    /// The source of the kernels.
    pub source: &'a str,
    /// The number of different kernels that were measured.
    pub kernels: usize,
    /// How many of them were built now.
    pub builds: usize,
    /// The parts.
    #[serde(flatten)]
    pub ablation: &'a Ablation,
}

/// The metric of both kernels is the same.
const NO_DIFFERENCE: &str = "The metric is the same: no option makes a difference, unless the \
    differences of several cancel exactly.";

/// The report.
pub fn ablation_document(ablated: &Ablated<'_>) -> Document {
    let found = ablated.ablation;
    let (Some(from), Some(to)) = (found.from, found.to) else {
        let same = text!(
            "{} and {} give the same configuration: there is nothing to explain.",
            Text::name(ablated.from),
            Text::name(ablated.to),
        );
        return same.into();
    };
    let document = Document::from(title(ablated, from, to));
    if found.difference == 0.0 {
        return document.add(NO_DIFFERENCE);
    }
    let table = (!found.contributions.is_empty()).then(|| table(found));
    document.add(table).lines(notes(found))
}

/// What the table does not say.
fn notes(found: &Ablation) -> Vec<Text> {
    let mut notes = Vec::new();
    if found.contributions.iter().any(Contribution::interacts) {
        let words = "* depends on the other options: it has another effect alone or as the last one.";
        notes.push(words.into());
    }
    if found.without_effect > 0 {
        let count = found.without_effect;
        let verb = if count == 1 { "option makes" } else { "options make" };
        notes.push(text!("{} {} no difference.", count.to_string(), verb));
    }
    notes.extend(found.unexplained.iter().map(|rest| unexplained(rest, found)));
    notes.extend(found.unresolved.iter().take(UNRESOLVED_MAX).map(|one| {
        text!(
            "Not tested: the kernel with {} of {} changes: {}",
            one.made.to_string(),
            found.changes.to_string(),
            one.why.as_str(),
        )
    }));
    notes.extend(found.ended.map(|ended| Text::from(end(ended))));
    notes
}

fn title(ablated: &Ablated<'_>, from: f64, to: f64) -> Text {
    let Ablated { metric, experiment, cell, kernels, builds, ablation, .. } = ablated;
    let Ablation { difference, changes, .. } = ablation;
    text!(
        "{} of {}: {} to {}, a difference of {}. {} {}, {} kernels measured, {} of them built now.",
        Text::name(*metric),
        Text::name(format!("{experiment}/{cell}")),
        number::metric(from),
        number::metric(to),
        number::difference(*difference),
        changes.to_string(),
        if *changes == 1 { "option differs" } else { "options differ" },
        kernels.to_string(),
        builds.to_string(),
    )
}

fn table(found: &Ablation) -> Table {
    let numbers = ["difference", "alone", "last"].map(Column::number);
    let mut table = Table::new(numbers.into_iter().chain([Column::prose("option")]));
    let other = |value: Option<f64>| number::known(value.map(number::difference));
    for part in &found.contributions {
        let mark = if part.interacts() { "*" } else { "" };
        table.row(cells![
            Cell::from(number::difference(part.difference)).tail(mark),
            other(part.alone),
            other(part.last),
            names(&part.changes),
        ]);
    }
    let mut row = |difference, words: &str| {
        table.row(cells![number::difference(difference), "", "", words]);
    };
    if !found.unexplained.is_empty() {
        row(found.unexplained_sum, "(unexplained)");
    }
    row(found.difference, "(all)");
    table.legend(
        "\"difference\": made in this order, so that all add up. \"alone\": as the only change of the first \
         kernel; \"last\": as the only one that the second is without.",
    )
}

/// The options of a set: `AUDIT: n to y`.
fn names(changes: &[OptionsChange]) -> Text {
    let names = changes.iter().map(|change| Text::name(name(change)));
    Text::first(NAMED_MAX, names.collect(), ", ")
}

/// One option, or a choice by what was and is set.
fn name(change: &OptionsChange) -> String {
    let options = &change.0;
    if let Some(number) = options.iter().find(|one| one.from != "n" && one.to != "n") {
        return format!("{}: {} to {}", number.name, number.from, number.to);
    }
    let set = |is: fn(&stats::OptionChange) -> bool| {
        options.iter().find(|one| is(one)).map(|one| one.name.as_str())
    };
    match (options.as_slice(), set(|one| one.from != "n"), set(|one| one.to != "n")) {
        ([_, _, ..], Some(from), Some(to)) => format!("{from} to {to}"),
        ([first, ..], ..) => format!("{}: {} to {}", first.name, first.from, first.to),
        ([], ..) => String::new(),
    }
}

fn unexplained(rest: &Unexplained, found: &Ablation) -> Text {
    let difference = number::difference(rest.difference);
    let why = match rest.difference.abs() <= found.tolerance {
        true => text!(
            ", within {}, by which the metric may differ without a reason",
            number::metric(found.tolerance)
        ),
        false => Text::default(),
    };
    text!("Unexplained{}: {} by {}.", why, difference, names(&rest.changes))
}

fn end(ended: Ended) -> &'static str {
    match ended {
        Ended::Budget => {
            "The budget is used up. The same command with a larger one continues: what is built and \
             measured is in the cache."
        }
        Ended::Interrupted => {
            "Interrupted. The same command continues: what is built and measured is in the cache."
        }
    }
}

/// The parts of a difference as one JSON object.
///
/// # Errors
/// None that is known: all fields can be written.
pub fn ablation_json(ablated: &Ablated<'_>) -> serde_json::Result<String> {
    object("ablation", ablated)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use stats::{OptionChange, Unresolved};

    use super::*;
    use crate::terminal::full_text;

    fn change(options: &[(&str, &str, &str)]) -> OptionsChange {
        let option = |(name, from, to): &(&str, &str, &str)| OptionChange {
            name: (*name).to_owned(),
            from: (*from).to_owned(),
            to: (*to).to_owned(),
        };
        OptionsChange(options.iter().map(option).collect())
    }

    fn ablation() -> Ablation {
        let audit = change(&[("AUDIT", "y", "n")]);
        let hz = change(&[("HZ_100", "n", "y"), ("HZ_1000", "y", "n")]);
        let shift = change(&[("LOG_BUF_SHIFT", "17", "12")]);
        Ablation {
            from: Some(412.0),
            to: Some(371.0),
            difference: -41.0,
            tolerance: 0.0,
            changes: 9,
            without_effect: 4,
            contributions: vec![
                Contribution {
                    changes: vec![audit],
                    difference: -28.0,
                    alone: Some(-28.0),
                    last: Some(-28.0),
                },
                Contribution {
                    changes: vec![hz.clone()],
                    difference: -10.0,
                    alone: Some(-12.0),
                    last: None,
                },
            ],
            unexplained: vec![Unexplained { changes: vec![shift, hz], difference: -3.0 }],
            unexplained_sum: -3.0,
            unresolved: vec![Unresolved { made: 4, why: "it does not boot".to_owned() }],
            ended: Some(Ended::Budget),
        }
    }

    fn ablated(ablation: &Ablation) -> String {
        full_text(&ablation_document(&Ablated {
            metric: "getpid_instructions",
            experiment: "syscalls",
            cell: "calls",
            from: "A.config",
            to: "B.config",
            source: "debian:6.1",
            kernels: 6,
            builds: 4,
            ablation,
        }))
    }

    /// Check the report of a run that used up its budget.
    #[test]
    fn report() {
        assert_snapshot!(ablated(&ablation()));
    }

    /// Check that equal kernels need no explanation.
    #[test]
    fn equal() {
        let same = Ablation {
            to: Some(412.0),
            difference: 0.0,
            contributions: Vec::new(),
            unexplained: Vec::new(),
            unexplained_sum: 0.0,
            unresolved: Vec::new(),
            without_effect: 9,
            ended: None,
            ..ablation()
        };
        assert_snapshot!(ablated(&same), @r"
        getpid_instructions of syscalls/calls: 412 to 412, a difference of 0. 9 options
        differ, 6 kernels measured, 4 of them built now.

        The metric is the same: no option makes a difference, unless the differences of
        several cancel exactly.
        ");
        let equal = Ablation::default();
        assert_snapshot!(ablated(&equal), @"A.config and B.config give the same configuration: there is nothing to explain.");
    }
}
