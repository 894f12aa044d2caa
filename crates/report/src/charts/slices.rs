//! The picture of `slices`: for each variant the tasks on each CPU during 50 ms, and histograms of all
//! slices; if switches were not traced, the mean slices only.

mod rows;
mod words;

use facts::Facts;
use recording::SlicesSpec;
use stats::Unit;
use summary::{PictureStep, PictureSwitches, SliceBin, SlicesPicture};
use units::Ppm;

use crate::charts::values::{length, nanos, open_bin, rule};
use crate::document::chart::{Axis, Chart, Mark, Panel, Shape, Tone, ppm};
use crate::document::text::{Text, text};
use crate::number;

/// The picture.
pub(crate) fn chart(facts: &Facts, spec: &SlicesSpec, picture: &SlicesPicture) -> Chart {
    let title = "Time slices: how long tasks run before they are preempted";
    let chart = Chart::new("slices", title)
        .about(words::workload(spec))
        .about(words::machine(facts));
    if picture.lost.is_none() {
        let about = "Scheduler switches were not traced: only the mean slice is known.";
        return chart.about(about).panel(means(picture));
    }
    let steps = picture.steps.iter();
    let traced = steps.clone().filter_map(|step| Some((step, step.switches.as_ref()?)));
    let windows = steps.map(|step| rows::panel(picture, step));
    let histograms = traced.map(|(step, switches)| histogram(step, switches));
    Chart {
        panels: windows.chain(histograms).collect(),
        notes: words::notes(picture, rows::shown(picture)),
        ..chart
    }
}

/// The lengths of a variant's slices.
fn histogram(step: &PictureStep, switches: &PictureSwitches) -> Panel {
    let bins = || switches.bins.iter().filter(|bin| bin.slices > 0);
    let bars = |share: fn(&SliceBin) -> Option<Ppm>| {
        bins().map(move |bin| {
            let share = share(bin);
            Mark::over(open_bin(bin.from, bin.below), [0.0, ppm(share)])
                .says(length(bin.from, bin.below), number::any(share))
        })
    };
    let none = if switches.slices == 0 { ": no slice ended" } else { "" };
    let rules = [("mean", step.mean), ("p50", switches.p50), ("p99", switches.p99)];
    let rules = rules.into_iter().filter_map(|(name, length)| Some(rule(name, length?)));
    Panel::new(
        Axis::log("length of a slice", Unit::Ns),
        Axis::linear("share of all slices", Unit::Ppm),
    )
    .titled(text!("Lengths of all slices, {}{}", Text::name(&step.text), none), "")
    .draw(Shape::Box, Tone::Muted, "slices", bars(|bin| bin.share))
    .draw(Shape::Box, Tone::Strong, "slices that a wake-up ended", bars(|bin| bin.woken))
    .draw(Shape::Rule, Tone::Text, "", rules)
}

/// The mean slice of each variant.
fn means(picture: &SlicesPicture) -> Panel {
    let mark = |(at, step): (usize, &PictureStep)| {
        let words = match (step.mean, step.slices_hz) {
            (Some(mean), rate) => text!(
                "{}, {} slices per second",
                number::duration(mean),
                number::known(rate)
            ),
            (None, Some(_)) => "no slice ended".into(),
            (None, None) => "not measured".into(),
        };
        Mark::bar(at, step.mean.map_or(0.0, nanos))
            .says(Text::name(&step.text), words.clone())
            .beside(words)
    };
    let names = picture.steps.iter().map(|step| Text::name(&step.text));
    let marks = picture.steps.iter().enumerate().map(mark);
    Panel::new(Axis::linear("mean slice", Unit::Ns), Axis::bands(names)).draw(
        Shape::Box,
        Tone::Series(0),
        "",
        marks,
    )
}

#[cfg(test)]
mod tests;
