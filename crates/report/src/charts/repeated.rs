//! Repeated runs: the number of each run, and their median with its interval.

use summary::{RunSet, RunSpread};

use crate::comparisons::repeated::RepeatedRuns;
use crate::document::chart::{Axis, Chart, Mark, Panel, Shape, Tone};
use crate::document::text::{Text, text};
use crate::metric_names;
use crate::number;

/// The first metric of all sets, in so many rows at most; `None` without a run.
pub(crate) fn chart(repeated: &RepeatedRuns<'_>, most: usize) -> Option<Chart> {
    let mut rows = rows(repeated);
    let first = rows.first()?.spread.clone();
    rows.retain(|row| row.spread.quantity.metric() == first.quantity.metric());
    rows.sort_by_key(|row| row.spread.quantity.cpu());
    rows.truncate(most);
    let name = metric_names::name(first.quantity.metric()?);
    let title = text!("Runs: {} of each, and the median with its interval", name.clone());
    let names = Axis::bands(rows.iter().map(|row| row.name.clone()));
    let each = |of: fn(&Row, f64) -> Vec<Mark>| {
        let bands = rows.iter().enumerate();
        bands.flat_map(move |(band, row)| of(row, band as f64 + 0.5))
    };
    let panel = Panel::new(Axis::linear(name, first.unit), names)
        .draw(Shape::Point, Tone::Series(5), "runs", each(Row::runs))
        .draw(Shape::Whisker, Tone::Text, "interval (95 %)", each(Row::interval))
        .draw(Shape::Point, Tone::Text, "median", each(Row::median));
    Some(Chart::new("runs", title).panel(panel))
}

/// A metric of a set, on one CPU.
struct Row {
    name: Text,
    values: Vec<f64>,
    spread: RunSpread,
}

/// All metrics of all sets.
fn rows(repeated: &RepeatedRuns<'_>) -> Vec<Row> {
    let sets = repeated.sets.iter().zip(repeated.variants);
    let row = |(set, variant): (&RunSet, &String), spread: RunSpread| {
        let variant = (repeated.sets.len() > 1).then(|| Text::name(variant));
        let cpu = spread.quantity.cpu().map(|cpu| text!("CPU {}", cpu));
        let name = Text::join(variant.into_iter().chain(cpu), ", ");
        Row { name, values: set.values(&spread.quantity), spread }
    };
    sets.flat_map(|of| of.0.spreads().into_iter().map(move |spread| row(of, spread)))
        .collect()
}

impl Row {
    fn runs(&self, y: f64) -> Vec<Mark> {
        let mark = |(value, run): (&f64, u64)| {
            let name = text!("run {}", number::count(run));
            Mark::at(*value, y).says(name, self.words(*value))
        };
        self.values.iter().zip(1..).map(mark).collect()
    }

    fn interval(&self, y: f64) -> Vec<Mark> {
        let mark = |ends: [f64; 2]| {
            let [from, to] = ends.map(|end| self.words(end));
            Mark::over(ends, [y; 2])
                .says("interval of the median", text!("{} to {}", from, to))
        };
        self.spread.median_interval.map(mark).into_iter().collect()
    }

    fn median(&self, y: f64) -> Vec<Mark> {
        let words = self.words(self.spread.median);
        vec![Mark::at(self.spread.median, y).says("median", words.clone()).beside(words)]
    }

    fn words(&self, value: f64) -> Text {
        number::in_unit(value, self.spread.unit)
    }
}
