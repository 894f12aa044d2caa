//! The time slices of cells beside those of their simulations, and cells without one.

use stats::{Unit, VariedMean};
use summary::{BesideSimulation, SimulatedSlices, StepSlices};

use crate::cells::labelled::LabelledCell;
use crate::cells::table::{Line, Row};
use crate::document::Document;
use crate::document::list::{Item, List};
use crate::document::table::{Cell, Column};
use crate::document::text::{Text, text};
use crate::grouped::grouped;
use crate::number;

/// The line of a simulated cell.
pub(crate) fn simulations(row: &Row<'_>) -> Vec<Line> {
    let guest = StepSlices::of_cell(row.named.cell);
    let Some((guest, simulated)) = guest.zip(simulated(row.named)) else {
        return Vec::new();
    };
    let own = &simulated.summary.results;
    let mean = |varied: Option<VariedMean>, single: &StepSlices| match varied {
        None => number::any(single.slice_ns.mean),
        Some(varied) => number::in_unit(varied.mean, Unit::Ns),
    };
    let guests = mean(row.varied("slice_ns_mean"), &guest);
    let mut line = pair("slice", [guests, mean(simulated.slice_ns_mean, own)]);
    line.push((Column::number("off"), off(simulated).into()));
    let both = |value: fn(&StepSlices) -> Text| [value(&guest), value(own)];
    if guest.traced_slices.is_some() {
        line.extend(pair("p99", both(|of| number::any(of.slice_ns.p99))));
    }
    line.extend(pair("wakes/s", both(|of| number::any(of.wakeups_hz))));
    vec![line]
}

/// The difference of the means; of several variations, with its ±.
fn off(simulated: &SimulatedSlices) -> Text {
    let off = number::any(simulated.slice_difference_ppm.map(number::change));
    match simulated.slice_difference_within_ppm {
        None => off,
        Some(within) => text!("{} ± {}", off, number::share(within)),
    }
}

/// The same value of the guest and of the simulation.
fn pair(name: &str, [guest, simulated]: [Text; 2]) -> Line {
    let of = |head, value| (Column::number(head).above(name), Cell::from(value));
    vec![of("guest", guest), of("sim", simulated)]
}

fn simulated<'a>(named: &LabelledCell<'a>) -> Option<&'a SimulatedSlices> {
    match named.beside? {
        BesideSimulation::Simulated(simulated) => Some(simulated),
        BesideSimulation::NotSimulated { .. } => None,
    }
}

/// How guests differ from what was simulated, and the cells that were not.
pub(crate) fn remarks(cells: &[LabelledCell<'_>]) -> Document {
    let remarks = cells.iter().flat_map(|named| {
        let remarks = simulated(named).into_iter().flat_map(|one| one.remarks.iter());
        remarks.map(|remark| (remark.as_str(), named.full()))
    });
    let missing = cells.iter().filter_map(|named| match named.beside? {
        BesideSimulation::NotSimulated { not_simulated } => {
            Some((not_simulated.as_str(), named.full()))
        }
        BesideSimulation::Simulated(_) => None,
    });
    Document::default()
        .add(list("Remarks on the simulations", remarks))
        .add(list("Cells that were not simulated", missing))
}

/// Each text once, after the names of its cells.
fn list<'a>(title: &str, texts: impl Iterator<Item = (&'a str, String)>) -> Document {
    let items = grouped(texts).into_iter().map(|(words, names)| {
        Item::new(text!("{}: {}", Text::name(names.join(", ")), words))
    });
    Document::section(title, List::bullets(items))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::{Body, Mode, Recording};
    use serde_json::Value;

    use super::*;
    use crate::cells::cells_document;
    use crate::cells::labelled::Cells;
    use crate::example::cell::{NEW, OLD, cell, done};
    use crate::example::cells::page;
    use crate::example::{GUEST, noise, slices};
    use crate::json::cells::cells_json;
    use crate::terminal::{full_text, screen_text};

    /// A recording whose spinners were switched a tenth more often.
    fn shorter(mut recording: Recording) -> Recording {
        let Body::Slices { series, .. } = &mut recording.body else { panic!() };
        let samples = series.turns.iter_mut().flat_map(|turn| &mut turn.samples);
        for task in samples.flat_map(|sample| &mut sample.tasks) {
            task.involuntary += task.involuntary / 10;
        }
        recording
    }

    /// Cells, and the simulation of each: a traced one, one that was not traced, and one of noise.
    fn cells() -> (Vec<recording::Cell>, Vec<BesideSimulation>) {
        let of = |name, kernel, recording| recording::Cell {
            mode: Mode::Timed,
            ..cell(name, kernel, done(recording, None))
        };
        let cells = vec![
            of("both", OLD, slices(GUEST, true)),
            of("both", NEW, slices(GUEST, false)),
            of("fifo", NEW, noise(GUEST, 2)),
        ];
        let simulated = |place: usize, rules, remark: &str| {
            let remarks = vec![remark.to_owned()];
            let recording = shorter(slices(GUEST, true));
            let found = SimulatedSlices::of(&cells[place], &[recording], rules, remarks);
            BesideSimulation::Simulated(Box::new(found.unwrap()))
        };
        let reason = "it does not measure time slices".to_owned();
        let beside = vec![
            simulated(0, "6.1", "the same remark"),
            simulated(1, "6.12", "the same remark"),
            BesideSimulation::NotSimulated { not_simulated: reason },
        ];
        (cells, beside)
    }

    /// Check the table, the remarks, and the reason why a cell is not in it, on one screen, too; and that
    /// quantiles are there only if the guest was traced.
    #[test]
    fn both() {
        let (cells, beside) = cells();
        let document = cells_document(&Cells { beside: &beside, ..page("mine", &cells) });
        let text = full_text(&document);
        let part = text.split_once("Time slices beside a simulation").unwrap().1;
        let part = part.split("\n\nTimes of timed").next().unwrap();
        assert_snapshot!(part);
        let screen = screen_text(&document);
        assert!(screen.contains("Cells that were not simulated"), "{screen}");
        let without = full_text(&cells_document(&page("mine", &cells)));
        assert!(!without.contains("simul"), "{without}");
    }

    /// Check that the means of variations are compared, with their ±, and not those of the first ones.
    #[test]
    fn of_variations() {
        let (mut cells, _) = cells();
        let one = slices(GUEST, false);
        let recordings = [one.clone(), shorter(one.clone()), shorter(shorter(one))];
        let varied = |(place, recording): (usize, &Recording)| recording::Variation {
            number: 2 + u32::try_from(place).unwrap(),
            identity: String::new(),
            cached: false,
            ending: done(recording.clone(), None),
        };
        cells[1].variations = recordings[1..].iter().enumerate().map(varied).collect();
        let found = SimulatedSlices::of(&cells[1], &recordings, "6.12", Vec::new());
        let found = found.unwrap();
        assert_eq!(found.slice_difference_ppm.map(|ppm| ppm.get().round()), Some(0.0));
        assert!(found.slice_difference_within_ppm.unwrap().get() > 10_000.0);
        let beside = [BesideSimulation::Simulated(Box::new(found))];
        let cells = Cells { beside: &beside, ..page("mine", &cells[1..2]) };
        let text = full_text(&cells_document(&cells));
        let part = text.split_once("Time slices beside a simulation").unwrap().1;
        assert_snapshot!(part.split("\n\nFor a ±").next().unwrap());
    }

    /// Check the JSON of both: the rules, the remarks, the difference, and a summary as that of the guest.
    #[test]
    fn as_json() {
        let (cells, beside) = cells();
        let object = |beside: &[BesideSimulation]| -> Value {
            let cells = Cells { beside, ..page("mine", &cells) };
            serde_json::from_str(&cells_json(&cells, false).unwrap()).unwrap()
        };
        let found = object(&beside);
        let [first, _, last] = [0, 1, 2].map(|place| &found["cells"][place]);
        let simulated = &first["beside"];
        assert_eq!(simulated["rules"], "6.1");
        assert_eq!(simulated["remarks"][0], "the same remark");
        let [guest, own] = [&first["summary"], &simulated["summary"]]
            .map(|summary| summary["slice_ns"]["mean"].as_f64().unwrap());
        let difference = simulated["slice_difference_ppm"].as_f64().unwrap();
        assert!((difference - (own / guest - 1.0) * 1e6).abs() < 1e-3, "{difference}");
        assert!((-100_000.0..-40_000.0).contains(&difference), "{difference}");
        let reason = "it does not measure time slices";
        assert_eq!(last["beside"], serde_json::json!({"not_simulated": reason}));
        assert!(object(&[])["cells"][0].get("beside").is_none());
    }
}
