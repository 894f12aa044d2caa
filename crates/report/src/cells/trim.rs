//! The steps of a series: what each changes, alone and together with those before it, and what it
//! costs.

use std::iter;

use stats::{Better, Unit};
use summary::{Trim, TrimCall, TrimKernel, TrimResult, TrimValue};
use units::Ppm;

use crate::cells::labelled::Cells;
use crate::cells::table::{Line, call_column, section, table, value};
use crate::document::Document;
use crate::document::table::{Cell, Column, Table, cells};
use crate::document::text::{Text, text};
use crate::number;

/// Gains and losses below this are not listed beside the costs of a step.
const LISTED: Ppm = Ppm::new(10_000.0);

/// Selects a kernel of a step.
type Select = fn(&TrimResult) -> &TrimKernel;

/// The sections of all series; empty without one.
pub(crate) fn sections(cells: &Cells<'_>) -> Document {
    Document::default().add_all(cells.trims().iter().map(sections_of))
}

fn sections_of(trim: &Trim) -> Document {
    let alone: Select = |step| &step.alone;
    let legend = "The base's numbers, and differences to them: kernel instructions of a tick, those of \
                  all calls, of a program's unit of work; \"image\": its compressed size.";
    let more = "Of ticks the number is the median, of calls the sum of the medians, of programs the \
                instructions of the guest. \"none > 3 %\": no difference larger than 3 %; smaller ones can \
                come from another order of events.";
    let title = text!("Each step alone, compared with {}", Text::name(&trim.base.kernel));
    let table = steps_table(trim, alone, values).legend(legend);
    let together = (trim.steps.len() > 1).then(|| {
        let together = steps_table(trim, |step| &step.cumulated, values);
        let title = "Each step with all steps before it";
        Document::section(title, together).add(verdict(trim))
    });
    let calls = steps_table(trim, alone, calls);
    section(title, table, more)
        .add(together)
        .add_full(Document::section("Single calls, with each step alone", calls))
        .add_full(Document::section("Steps", steps(trim)))
}

/// A line for the base and for each step.
fn steps_table(
    trim: &Trim,
    kernel: Select,
    line: impl Fn(&TrimKernel, bool) -> Line,
) -> Table {
    let steps = trim.steps.iter();
    let steps = steps.map(|step| (Text::name(&step.name), line(kernel(step), false)));
    let lines = iter::once(("(base)".into(), line(&trim.base, true))).chain(steps);
    let lines = lines.map(|(name, line)| (vec![name.into()], line));
    table([Column::name("step", 12..=22)], lines.collect())
}

/// A column for each cell, by experiment and name, and one for the image.
fn values(kernel: &TrimKernel, is_base: bool) -> Line {
    let cell = |of: &TrimValue| {
        let (experiment, name) = of.cell.split_once(' ').unwrap_or(("", &of.cell));
        let number = if is_base { in_unit(of, of.value).into() } else { change(of) };
        (Column::number(Text::name(name)).above(experiment), number)
    };
    let image = match is_base {
        true => number::any(kernel.image_bytes.map(number::bytes)),
        false => number::any(kernel.image_difference_bytes.map(signed_bytes)),
    };
    let cells = kernel.values.iter().flatten().map(cell);
    cells.chain([value("image", image)]).collect()
}

/// A column for each call of the cell that has them.
fn calls(kernel: &TrimKernel, is_base: bool) -> Line {
    let call = |call: &TrimCall| {
        let number = match is_base {
            true => number::rounded(call.value, number::count),
            false => number::count_difference(call.difference),
        };
        (call_column(&call.name), number.into())
    };
    let all = kernel.values.iter().flatten().find(|value| !value.calls.is_empty());
    all.into_iter().flat_map(|value| &value.calls).map(call).collect()
}

/// A difference, with that in percent as its end, or that there is none.
fn change(value: &TrimValue) -> Cell {
    match value.none_above_ppm {
        Some(_) => percent(value).into(),
        None => Cell::from(difference(value)).tail(format!(" ({})", percent(value))),
    }
}

/// A difference in percent, or the largest that there may be.
fn percent(value: &TrimValue) -> Text {
    match value.none_above_ppm {
        Some(most) => text!("none > {}", number::share(most)),
        None => number::any(value.difference_ppm.map(number::change)),
    }
}

fn difference(value: &TrimValue) -> Text {
    match value.unit {
        Unit::Instructions | Unit::Count | Unit::Hz => {
            number::count_difference(value.difference)
        }
        Unit::Ns | Unit::Ppm => {
            let size = in_unit(value, value.difference.abs());
            number::signed(value.difference, size)
        }
    }
}

fn in_unit(of: &TrimValue, value: f64) -> Text {
    match of.unit {
        Unit::Instructions | Unit::Count | Unit::Hz => {
            number::rounded(value, number::count)
        }
        Unit::Ns | Unit::Ppm => number::in_unit(value, of.unit),
    }
}

fn signed_bytes(bytes: i64) -> Text {
    number::signed(bytes as f64, number::bytes(bytes.unsigned_abs()))
}

/// What each step sets, gains and costs.
fn steps(trim: &Trim) -> Table {
    let mut table = Table::new([Column::name("", 12..=22), Column::prose("")]);
    for step in &trim.steps {
        let options = Text::join(step.options.iter().map(Text::command), ", ");
        let costs = match step.costs.as_str() {
            "" => String::new(),
            costs => format!(" Costs: {costs}"),
        };
        let words = text!("{}. {}{}", options, effect(step), costs);
        table.row(cells![Text::name(&step.name), words]);
    }
    table
}

/// The largest gain and loss of a step alone, in words.
fn effect(step: &TrimResult) -> Text {
    let listed = |value: &&TrimValue, sign: f64| {
        value.gain_ppm().is_some_and(|gain| gain.get() * sign >= LISTED.get())
    };
    let words = |value: &TrimValue, word: &str| {
        let cell = Text::name(&value.cell);
        text!("{}: {} {} ({}).", word, cell, difference(value), percent(value))
    };
    let best = step.best().filter(|value| listed(value, 1.0));
    let worst = step.worst().filter(|value| listed(value, -1.0));
    let found = [
        best.map(|value| words(value, "Largest gain")),
        worst.map(|value| words(value, "Worse")),
    ];
    let found = Text::join(found.into_iter().flatten(), " ");
    match (found.is_empty(), step.best()) {
        (true, Some(_)) => "No change of 1 % or more.".into(),
        (true, None) => "Not measured.".into(),
        (false, _) => found,
    }
}

/// What all steps change together, beside the claim of an old post.
fn verdict(trim: &Trim) -> Text {
    let Some(last) = trim.steps.last() else { return Text::default() };
    let words = |value: &TrimValue| {
        let kind = match value.better {
            Better::Less | Better::Neither => "",
            Better::More => " (more is better)",
        };
        let throughput = value.throughput_ppm.map(|gain| {
            text!(
                ", throughput {} (an old blog post claims up to {} more)",
                number::change(gain),
                number::ratio(trim.old_claim_ppm)
            )
        });
        text!("{} {}{}{}", Text::name(&value.cell), percent(value), kind, throughput)
    };
    let found = Text::join(last.cumulated.values.iter().flatten().map(words), "; ");
    match found.is_empty() {
        true => found,
        false => text!("All steps together: {}.", found),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::{Call, Cell};
    use summary::{TrimSeries, TrimStep};

    use super::*;
    use crate::cells::cells_document;
    use crate::example;
    use crate::example::cell::{OLD, call_costs, cell, lost, tick_cost};
    use crate::json::cells::cells_json;
    use crate::terminal::full_text;

    const BUILD: &str = "build:debian:6.1,debian";

    fn series() -> [TrimSeries; 1] {
        let step = |name: &str, options: &[&str], costs: &str, all: &str| TrimStep {
            name: name.to_owned(),
            options: options.iter().map(|&option| option.to_owned()).collect(),
            costs: costs.to_owned(),
            alone: format!("{BUILD},name={name}"),
            cumulated: format!("{BUILD},name={all}"),
        };
        let steps = vec![
            step("no-audit", &["AUDIT=n"], "no audit log.", "no-audit"),
            step("no-highres", &["HIGH_RES_TIMERS=n"], "late wake-ups.", "to-no-highres"),
            step("no-lsm", &["SECURITY=n"], "", "to-no-lsm"),
        ];
        [TrimSeries { base: BUILD.to_owned(), steps }]
    }

    /// A tick and two calls on each kernel; one cell is lost, and one kernel has no cell.
    fn cells() -> Vec<Cell> {
        let kernels = [
            ("", 0, 0),
            (",name=no-audit", 40, 3),
            (",name=no-highres", 0, 900),
            (",name=to-no-highres", 40, 903),
            (",name=no-lsm", 600, 0),
        ];
        let of = |(label, less, more): (&str, u64, u64)| {
            let asked = format!("{BUILD}{label}");
            let image_bytes = Some(9_306_624 - 1_000 * less);
            let own = |name: &str, ending| Cell {
                asked: asked.clone(),
                image_bytes,
                ..cell(name, OLD, ending)
            };
            let tick = tick_cost(&[2584 + more; 9], &[(2571 + more, 9)]);
            let calls = call_costs(&[
                (Call::Getpid, &[(412 - less / 2, 200)]),
                (Call::ClockGettime, &[(633, 200)]),
            ]);
            let tick = if less == 600 { lost() } else { tick };
            [own("tick-cost other", tick), own("syscalls calls", calls)]
        };
        kernels.into_iter().flat_map(of).collect()
    }

    fn page<'a>(cells: &'a [Cell], series: &'a [TrimSeries]) -> Cells<'a> {
        let about = "what each step gains";
        Cells { about, series, ..example::cells::page("trim", cells) }
    }

    /// Check the tables, single calls, and the words for gains, losses, lost and missing cells.
    #[test]
    fn text() {
        let (cells, series) = (cells(), series());
        let text = full_text(&cells_document(&page(&cells, &series)));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert_snapshot!(text);
    }

    /// Check the keys of the JSON object, and that it has none without steps.
    #[test]
    fn json() {
        let (cells, series) = (cells(), series());
        let text = cells_json(&page(&cells, &series), false).unwrap();
        let object: serde_json::Value = serde_json::from_str(&text).unwrap();
        let expected = serde_json::json!({
            "kernel": format!("{BUILD},name=no-audit"),
            "image_bytes": 9_266_624, "image_difference_bytes": -40_000,
            "values": [
                {
                    "cell": "tick-cost other", "metric": "tick_kernel_instructions",
                    "value": 2574.0, "difference": 3.0, "difference_ppm": 3.0 / 2571.0 * 1e6,
                    "throughput_ppm": null,
                },
                {
                    "cell": "syscalls calls", "metric": "calls_instructions", "value": 1025.0,
                    "difference": -20.0, "difference_ppm": -20.0 / 1045.0 * 1e6,
                    "throughput_ppm": null, "calls": [
                        {"name": "getpid", "value": 392.0, "difference": -20.0},
                        {"name": "clock_gettime", "value": 633.0, "difference": 0.0},
                    ],
                },
            ],
        });
        let step = &object["trim"][0]["steps"][0];
        assert_eq!(step["alone"], expected);
        assert_eq!(step["options"], serde_json::json!(["AUDIT=n"]));
        let missing = &object["trim"][0]["steps"][2]["cumulated"]["values"];
        assert_eq!(*missing, serde_json::json!([null, null]));
        let without = cells_json(&page(&cells, &[]), false).unwrap();
        let without: serde_json::Value = serde_json::from_str(&without).unwrap();
        assert!(without.get("trim").is_none());
    }
}
