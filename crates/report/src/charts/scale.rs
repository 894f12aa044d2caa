//! Noise at scale: the slowdown over the number of ranks, with all sources of noise and without each.

use stats::Unit;
use summary::{ScaleCountSummary, ScaleSummary, Slowdown};
use units::Ppm;

use crate::document::chart::{Axis, Chart, Mark, Panel, SERIES, Series, Shape, Tone};
use crate::document::text::{Text, text};
use crate::number;

/// The slowdown of all numbers of ranks; `None` without noise.
pub(crate) fn chart(summary: &ScaleSummary) -> Option<Chart> {
    let all = || summary.counts.iter().map(|count| (count, count.slowdown));
    let without = |number: usize| {
        summary.counts.iter().map(move |count| {
            let without = count.without.iter().find(|one| one.source == number);
            (count, without.map(|one| one.slowdown))
        })
    };
    let bound = summary.counts.iter();
    let bound = bound.filter_map(|count| point(count, count.bounds.independent_ppm?));
    let x = Axis::log("ranks", Unit::Count);
    let mut panel = Panel::new(x, Axis::log("slowdown", Unit::Ppm))
        .draw(Shape::Line, Tone::Muted, "slowest of independent ranks", bound)
        .draw(Shape::Area, Tone::Series(0), "", all().filter_map(interval))
        .series(line(Tone::Series(0), "all sources", all()));
    for (number, source) in summary.sources.iter().enumerate().take(SERIES - 1) {
        let name = text!("without {}", Text::name(&*source.name));
        panel = panel.series(line(Tone::Series(number + 1), name, without(number)));
    }
    let has_marks = panel.series.iter().any(|series| !series.marks.is_empty());
    has_marks.then(|| Chart::new("scale", "Slowdown by noise over ranks").panel(panel))
}

type OfCount<'a> = (&'a ScaleCountSummary, Option<Slowdown>);

fn line<'a>(
    tone: Tone,
    name: impl Into<Text>,
    values: impl Iterator<Item = OfCount<'a>>,
) -> Series {
    let marks = values.filter_map(|(count, slowdown)| point(count, slowdown?.ppm));
    Series::new(Shape::Line, tone, name, marks)
}

/// A point; none at zero, which the axis does not have.
fn point(count: &ScaleCountSummary, slowdown: Ppm) -> Option<Mark> {
    let mark = Mark::at(count.ranks as f64, slowdown.get());
    (slowdown.get() > 0.0).then(|| mark.says(label(count), number::ratio(slowdown)))
}

fn interval((count, slowdown): OfCount<'_>) -> Option<Mark> {
    let Slowdown { low_ppm, high_ppm, .. } = slowdown?;
    let [low, high] = [low_ppm?, high_ppm?].map(Ppm::get);
    let words =
        text!("{} to {}", number::ratio(Ppm::new(low)), number::ratio(Ppm::new(high)));
    let mark = Mark::over([count.ranks as f64; 2], [low, high]).says(label(count), words);
    (low > 0.0).then_some(mark)
}

fn label(count: &ScaleCountSummary) -> Text {
    text!("{} ranks", number::count(count.ranks))
}
