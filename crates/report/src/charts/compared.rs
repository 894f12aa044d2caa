//! The differences of a comparison with their intervals.

use stats::{BetterSet, Conclusion};
use summary::{Compared, Comparison};
use units::Ppm;

use crate::document::chart::{Axis, Chart, Mark, Measure, Panel, Shape, Tone};
use crate::document::text::{Text, text};
use crate::metric_names;
use crate::number;

/// Differences up to this have a panel of their own if there are larger ones.
const SMALL: f64 = 250_000.0;
/// The most metrics of a panel, and of a few lines of text.
const METRICS: usize = 60;
const LINES: usize = 6;

/// The difference of each metric of the set from those of the base; `None` without an interval.
pub(crate) fn chart(name: &str, comparison: &Comparison) -> Option<Chart> {
    of(name, with_interval(comparison).collect(), said)
}

/// The same for a few lines of text: the first metrics, those that differ before others.
pub(crate) fn strip(name: &str, comparison: &Comparison) -> Option<Chart> {
    let mut all: Vec<&Compared> = with_interval(comparison).collect();
    all.sort_by_key(|one| !one.is_difference());
    all.truncate(LINES);
    of(name, all, |one| number::any(one.difference_ppm.map(number::change)))
}

fn with_interval(comparison: &Comparison) -> impl Iterator<Item = &Compared> {
    comparison.metrics.iter().filter(|one| one.interval_ppm.is_some())
}

fn of(name: &str, all: Vec<&Compared>, beside: fn(&Compared) -> Text) -> Option<Chart> {
    let extent = |one: &Compared| {
        one.interval_ppm.map_or(0.0, |ends| {
            ends.map(|end| end.get().abs()).into_iter().fold(0.0, f64::max)
        })
    };
    let (small, large): (Vec<&Compared>, Vec<&Compared>) =
        all.iter().partition(|one| extent(one) <= SMALL);
    let title = text!(
        "{} compared with A: differences and their intervals (95 %)",
        Text::name(name)
    );
    let panels = [(large, "Larger differences"), (small, "Differences of at most 25 %")];
    let panels = panels.into_iter().filter(|(all, _)| !all.is_empty());
    let mut panels: Vec<Panel> =
        panels.map(|(all, title)| panel(&all, title, beside)).collect();
    if let [only] = &mut panels[..] {
        only.title = Text::default();
    }
    let has_own_scales = panels.len() > 1;
    (!panels.is_empty()).then(|| Chart {
        panels,
        has_own_scales,
        ..Chart::new("differences", title)
    })
}

fn panel(all: &[&Compared], title: &'static str, beside: fn(&Compared) -> Text) -> Panel {
    let all = all.get(..METRICS).unwrap_or(all);
    let x =
        Axis { measure: Measure::Change, ..Axis::linear("difference", stats::Unit::Ppm) };
    let zero = Mark::over([0.0; 2], [f64::NEG_INFINITY, f64::INFINITY]);
    let names = Axis::bands(all.iter().map(|one| metric(one)));
    let mut panel =
        Panel::new(x, names).titled(title, "").draw(Shape::Rule, Tone::Muted, "", [zero]);
    for (tone, words) in TONES {
        let of = || {
            let all = all.iter().zip(0..).filter(|(one, _)| self::tone(one) == tone);
            all.map(|(one, band)| (*one, f64::from(band) + 0.5))
        };
        let intervals = of().filter_map(|(one, y)| {
            let ends = one.interval_ppm?.map(Ppm::get);
            Some(Mark::over(ends, [y; 2]).says(metric(one), said(one)))
        });
        let points = of().filter_map(|(one, y)| {
            let point = Mark::at(one.difference_ppm?.get(), y);
            Some(point.says(metric(one), "").beside(beside(one)))
        });
        panel = panel.draw(Shape::Whisker, tone, words, intervals);
        panel = panel.draw(Shape::Point, tone, "", points);
    }
    panel
}

/// The colours of what follows from a comparison.
const TONES: [(Tone, &str); 4] = [
    (Tone::Series(5), "better than A"),
    (Tone::Series(3), "worse than A"),
    (Tone::Text, "different, neither better nor worse"),
    (Tone::Muted, "no difference is known"),
];

fn tone(one: &Compared) -> Tone {
    match (one.better_set(), one.conclusion) {
        (Some(BetterSet::Other), _) => TONES[0].0,
        (Some(BetterSet::Base), _) => TONES[1].0,
        (_, Conclusion::Lower | Conclusion::Higher) => TONES[2].0,
        (
            _,
            Conclusion::Equal
            | Conclusion::NoLargerDifference { .. }
            | Conclusion::NotEnoughData { .. },
        ) => TONES[3].0,
    }
}

fn metric(one: &Compared) -> Text {
    let name = one.quantity.metric().map_or_else(|| "?".into(), metric_names::name);
    one.quantity
        .cpu()
        .map_or_else(|| name.clone(), |cpu| text!("{}, CPU {}", name.clone(), cpu))
}

fn said(one: &Compared) -> Text {
    let change = |part: Option<Ppm>| number::any(part.map(number::change));
    let [low, high] = one.interval_ppm.map_or([None; 2], |ends| ends.map(Some));
    text!("{} ({} to {})", change(one.difference_ppm), change(low), change(high))
}
