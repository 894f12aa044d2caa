//! The report of `lab ablate`: which options make the difference of a metric, the largest part first;
//! below them what remains, and which kernels could not be tested.

use stats::{Ablation, Contribution, Ended, OptionsChange, Unexplained};

use crate::ablated::Ablated;
use crate::number;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table};

/// So many options of a set are named.
const NAMED_MAX: usize = 12;
/// So many kernels that could not be tested are listed.
const UNRESOLVED_MAX: usize = 5;

/// The report for the terminal.
pub fn ablation_text(ablated: &Ablated<'_>) -> String {
    let found = ablated.ablation;
    let (Some(from), Some(to)) = (found.from, found.to) else {
        let Ablated { from, to, .. } = ablated;
        let equal = format!(
            "{from} and {to} give the same configuration: there is nothing to explain."
        );
        return paragraph("", &equal);
    };
    let mut text = paragraph("", &title(ablated, from, to));
    if found.difference == 0.0 {
        text.push_str(&paragraph("", SAME));
        return text;
    }
    if !found.contributions.is_empty() {
        text.push('\n');
        text.push_str(&table(found));
        text.push('\n');
        text.push_str(&paragraph("", LEGEND));
        if found.contributions.iter().any(Contribution::interacts) {
            text.push_str(&paragraph("", INTERACTS));
        }
    }
    if found.without_effect > 0 {
        let count = found.without_effect;
        let verb = if count == 1 { "option makes" } else { "options make" };
        text.push_str(&paragraph("", &format!("{count} {verb} no difference.")));
    }
    for rest in &found.unexplained {
        text.push_str(&paragraph("", &unexplained(rest, found)));
    }
    for one in found.unresolved.iter().take(UNRESOLVED_MAX) {
        let made = format!(
            "Not tested: the kernel with {} of {} changes: ",
            one.made, found.changes
        );
        text.push_str(&paragraph("", &format!("{made}{}", one.why)));
    }
    if let Some(ended) = found.ended {
        text.push_str(&paragraph("", end(ended)));
    }
    text
}

const LEGEND: &str = "difference: made in this order, so that all add up. alone: as the only change of \
     the first kernel. last: the second kernel, compared with the one that lacks only this change.";
const SAME: &str = "The metric is the same: no option makes a difference, unless the differences of \
     several cancel exactly.";
const INTERACTS: &str =
    "* depends on the other options: it has another effect alone or as the last one.";

fn title(ablated: &Ablated<'_>, from: f64, to: f64) -> String {
    let Ablated { metric, experiment, cell, kernels, builds, ablation, .. } = ablated;
    let Ablation { difference, changes, .. } = ablation;
    format!(
        "{metric} of {experiment}/{cell}: {} to {}, a difference of {}. {changes} {}, {kernels} \
         kernels measured, {builds} of them built now.",
        number::metric(from),
        number::metric(to),
        number::difference(*difference),
        if *changes == 1 { "option differs" } else { "options differ" },
    )
}

fn table(found: &Ablation) -> String {
    let columns = [
        ("difference", Side::Right),
        ("alone", Side::Right),
        ("last", Side::Right),
        ("", Side::Left),
        ("option", Side::Left),
    ];
    let mut table = Table::new(1, &columns);
    let other = |value| number::known(value, number::difference);
    for part in &found.contributions {
        let mark = if part.interacts() { "*" } else { "" };
        table.row([
            number::difference(part.difference),
            other(part.alone),
            other(part.last),
            mark.to_owned(),
            names(&part.changes),
        ]);
    }
    let mut row = |difference, text: &str| {
        let empty = String::new;
        table.row([
            number::difference(difference),
            empty(),
            empty(),
            empty(),
            text.into(),
        ]);
    };
    if !found.unexplained.is_empty() {
        row(found.unexplained_sum, "(unexplained)");
    }
    row(found.difference, "(all)");
    table.text()
}

/// The options of a set: `AUDIT: n to y`.
fn names(changes: &[OptionsChange]) -> String {
    let mut names: Vec<String> = changes.iter().take(NAMED_MAX).map(name).collect();
    if changes.len() > NAMED_MAX {
        names.push(format!("{} more", changes.len() - NAMED_MAX));
    }
    names.join(", ")
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

fn unexplained(rest: &Unexplained, found: &Ablation) -> String {
    let difference = number::difference(rest.difference);
    let why = match rest.difference.abs() <= found.tolerance {
        true => format!(
            ", within {}, by which the metric may differ without a reason",
            number::metric(found.tolerance)
        ),
        false => String::new(),
    };
    format!("Unexplained{why}: {difference} by {}.", names(&rest.changes))
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

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use stats::{OptionChange, Unresolved};

    use super::*;

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
        ablation_text(&Ablated {
            metric: "getpid_instructions",
            experiment: "syscalls",
            cell: "calls",
            from: "A.config",
            to: "B.config",
            source: "debian:6.1",
            kernels: 6,
            builds: 4,
            ablation,
        })
    }

    /// Check the report of a run that used up its budget.
    #[test]
    fn report() {
        assert_snapshot!(ablated(&ablation()), @r"
        getpid_instructions of syscalls/calls: 412 to 371, a difference of -41. 9
        options differ, 6 kernels measured, 4 of them built now.

         difference  alone  last     option
                -28    -28   -28     AUDIT: y to n
                -10    -12     ?  *  HZ_1000 to HZ_100
                 -3                  (unexplained)
                -41                  (all)

        difference: made in this order, so that all add up. alone: as the only change of
        the first kernel. last: the second kernel, compared with the one that lacks only
        this change.
        * depends on the other options: it has another effect alone or as the last one.
        4 options make no difference.
        Unexplained: -3 by LOG_BUF_SHIFT: 17 to 12, HZ_1000 to HZ_100.
        Not tested: the kernel with 4 of 9 changes: it does not boot
        The budget is used up. The same command with a larger one continues: what is
        built and measured is in the cache.
        ");
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
        let equal = Ablation::of_equal();
        assert_snapshot!(ablated(&equal), @"A.config and B.config give the same configuration: there is nothing to explain.");
    }
}
