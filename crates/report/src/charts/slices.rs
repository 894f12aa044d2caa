//! The picture of `slices`: for each variant the tasks on each CPU during 50 ms, and histograms of all
//! slices; if switches were not traced, the mean slices only.

pub(crate) mod placements;
mod rows;
mod words;

use facts::Facts;
use recording::SlicesSpec;
use stats::Unit;
use summary::{PictureStep, SliceBin, SlicesPicture, SlicesSummary, StepSlices};
use units::Ppm;

use crate::charts::values::{self, nanos};
use crate::document::chart::{Axis, Chart, Mark, Panel, Shape, Tone, ppm};
use crate::document::text::{Text, text};
use crate::number;

/// The picture; without traced switches, of the numbers of the summary only.
pub(crate) fn chart(
    facts: &Facts,
    spec: &SlicesSpec,
    summary: &SlicesSummary,
    picture: Option<&SlicesPicture>,
) -> Chart {
    let title = "Time slices: how long tasks run before they are preempted";
    let chart = Chart::new("slices", title)
        .about(words::workload(spec))
        .about(words::machine(facts));
    let Some(picture) = picture else {
        let about = "Scheduler switches were not traced: only the mean slice is known.";
        return chart.about(about).panel(means(summary));
    };
    let variants = || variants(summary).into_iter().zip(&picture.steps);
    let windows = variants().map(|(variant, step)| rows::panel(picture, &variant, step));
    let histograms = variants().map(|(variant, step)| histogram(&variant, step));
    Chart {
        panels: windows.chain(histograms).collect(),
        notes: words::notes(picture, rows::shown(picture)),
        ..chart
    }
}

/// A variant: its name, and its results.
type Variant<'a> = (Text, &'a StepSlices);

/// All variants, the unmodified settings first.
fn variants(summary: &SlicesSummary) -> Vec<Variant<'_>> {
    let changed = summary.steps.iter().map(|step| (step.step.as_str(), &step.results));
    let all = std::iter::once(("unmodified", &summary.results)).chain(changed);
    all.map(|(name, results)| (Text::name(name), results)).collect()
}

/// The lengths of a variant's slices.
fn histogram((name, results): &Variant<'_>, step: &PictureStep) -> Panel {
    let bins = || step.bins.iter().filter(|bin| bin.slices > 0);
    let bars = |share: fn(&SliceBin) -> Option<Ppm>| {
        bins().map(move |bin| {
            let share = share(bin);
            values::bin([bin.from, bin.below], ppm(share), number::any(share))
        })
    };
    let none = if bins().next().is_none() { ": no slice ended" } else { "" };
    let of = &results.slice_ns;
    let rules = [("mean", of.mean), ("p50", of.p50), ("p99", of.p99)];
    Panel::new(
        Axis::log("length of a slice", Unit::Ns),
        Axis::linear("share of all slices", Unit::Ppm),
    )
    .titled(text!("Lengths of all slices, {}{}", name.clone(), none), "")
    .draw(Shape::Box, Tone::Muted, "slices", bars(|bin| bin.share))
    .draw(Shape::Box, Tone::Strong, "slices that a wake-up ended", bars(|bin| bin.woken))
    .draw(Shape::Rule, Tone::Text, "", values::rules(rules))
}

/// The mean slice of each variant.
fn means(summary: &SlicesSummary) -> Panel {
    let mean = |(_, results): &Variant<'_>| {
        let mean = results.slice_ns.mean;
        let words = match (mean, results.switches_hz) {
            (Some(mean), rate) => {
                text!(
                    "{}, {} slices",
                    number::duration(mean),
                    number::known(rate.map(number::rate))
                )
            }
            (None, Some(_)) => "no slice ended".into(),
            (None, None) => "not measured".into(),
        };
        Some((mean.map_or(0.0, nanos), words))
    };
    let variants = variants(summary);
    let names = variants.iter().map(|(name, _)| name.clone());
    Panel::new(Axis::linear("mean slice", Unit::Ns), Axis::bands(names))
        .bars(Mark::bar, Tone::Series(0), "", variants.iter().map(mean))
        .with_words()
}

#[cfg(test)]
mod tests;
