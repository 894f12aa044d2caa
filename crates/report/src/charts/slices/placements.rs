//! The picture of placements: for each variant, how far tasks that woke up in 50 ms were placed before the
//! running one in virtual time, and whether they preempted it.

use facts::Facts;
use recording::SlicesSpec;
use stats::Unit;
use summary::{
    PlacedTask, PlacementsPicture, PlacementsSummary, SlicesSummary, StepSlices,
};
use units::Nanos;

use crate::charts::slices::{variants, words};
use crate::charts::values::nanos;
use crate::document::chart::{Axis, Chart, Mark, Panel, Shape, Tone};
use crate::document::text::{Text, text};
use crate::number;

/// The picture, in which all panels have the same scales.
pub(crate) fn chart(
    facts: &Facts,
    spec: &SlicesSpec,
    summary: &SlicesSummary,
    picture: &PlacementsPicture,
) -> Chart {
    let title = "Wake-ups: how far before the running task";
    let variants = variants(summary).into_iter().zip(&picture.steps);
    let panels = variants.map(|((name, of), woken)| {
        panel(of, woken, picture.window).titled(name, about(of, woken))
    });
    Chart { panels: panels.collect(), ..Chart::new("placements", title) }
        .about(words::workload(spec))
        .about(words::machine(facts))
        .about("A task with less virtual time than the running one is placed before it.")
}

/// The wake-ups of a variant in its window.
fn panel(of: &StepSlices, woken: &[PlacedTask], window: Nanos) -> Panel {
    let marks = |preempts: bool| {
        let these = move |of: &&PlacedTask| of.lost.is_some() == preempts;
        woken.iter().filter(these).map(mark)
    };
    let line = |ahead: f64, label: &str, value: Text| {
        Mark::over([0.0, nanos(window)], [ahead; 2]).says(label, value)
    };
    let needed = of.placements.as_ref().and_then(|of| of.granularity_ns);
    let needed = needed
        .map(|needed| line(nanos(needed), "needed to preempt", number::duration(needed)));
    let running = [line(0.0, "the running task", Text::default())];
    Panel::new(
        Axis::linear("time", Unit::Ns),
        Axis::linear("placed ahead of the running task", Unit::Ns),
    )
    .draw(Shape::Rule, Tone::Muted, "the running task", running)
    .draw(Shape::Rule, Tone::Text, "needed to preempt", needed)
    .draw(Shape::Point, Tone::Series(0), "did not preempt it", marks(false))
    .draw(Shape::Point, Tone::Strong, "woke up and preempted it", marks(true))
}

/// A wake-up, and what happened.
fn mark(of: &PlacedTask) -> Mark {
    let named = |name: &Option<String>| {
        name.as_deref().map_or_else(|| "another task".into(), Text::name)
    };
    let side = if of.ahead_ns < 0 { "behind" } else { "before" };
    let distance = number::duration(Nanos::from_nanos(of.ahead_ns.unsigned_abs()));
    let then = match of.lost {
        Some(lost) => {
            text!("and preempted it, which lost {} of its slice", number::duration(lost))
        }
        None => "and did not preempt it".into(),
    };
    let label = text!(
        "{}: {} woke up while {} ran on CPU {}",
        number::period(of.at),
        named(&of.name),
        named(&of.running),
        of.cpu,
    );
    Mark::at(nanos(of.at), of.ahead_ns as f64)
        .says(label, text!("placed {} {} it {}", distance, side, then))
}

/// The figures of all rounds of a variant.
fn about(of: &StepSlices, woken: &[PlacedTask]) -> Text {
    let Some(of) = &of.placements else { return Text::default() };
    let PlacementsSummary { wakeups, preempting_ppm, ahead_ns, lost_ns_mean, .. } = &**of;
    let none = woken.is_empty().then_some(", none of them in this window");
    let lost = lost_ns_mean.map(|lost| {
        text!(", which lost {} of its slice on average", number::duration(lost))
    });
    text!(
        "{}{}, median {} ahead; {} preempted the running task{}",
        number::counted(*wakeups, "wake-up"),
        none,
        number::any(ahead_ns.p50.map(number::signed_duration)),
        number::any(preempting_ppm.map(number::share)),
        lost,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart;
    use crate::chart::svg::checked::check_xml;
    use crate::example::{GUEST, facts, slices};

    fn draw((spec, series): &(SlicesSpec, recording::SlicesSeries)) -> String {
        let summary = SlicesSummary::of(None, spec, series);
        let traced = summary::SlicesPicture::of(spec, series);
        let picture = PlacementsPicture::of(spec, series, traced.as_ref()).unwrap();
        let svg = chart::file(&super::chart(&facts(GUEST), spec, &summary, &picture));
        check_xml(&svg);
        svg
    }

    /// The number of dots with this in their tool-tip.
    fn dots(svg: &str, words: &str) -> usize {
        svg.lines()
            .filter(|line| line.contains("woke up while") && line.contains(words))
            .count()
    }

    /// Check that each variant has the wake-ups of its window, those that preempted in another colour
    /// than the others, a line at the granularity, and words for each.
    #[test]
    fn preempting_and_not() {
        let svg = draw(&slices::placed());
        let panel = ">WAKEUP_PREEMPTION=off</text>";
        let (unmodified, variant) = svg.split_once(panel).unwrap();
        assert_eq!(
            (dots(unmodified, "and preempted it"), dots(unmodified, "not")),
            (49, 1)
        );
        assert_eq!((dots(variant, "and preempted it"), dots(variant, "not")), (0, 50));
        assert_eq!(dots(unmodified, "class=\"strong\""), 49);
        assert_eq!(dots(variant, "class=\"s0\""), 50);
        assert_eq!(svg.matches("<title>needed to preempt: 10 ms</title>").count(), 2);
        assert!(dots(variant, "placed 200 µs behind it and did not preempt it") > 0);
        let lost = "woke up while spin/7 ran on CPU 1: placed 47 ms before it and preempted it, \
            which lost 5.7 ms of its slice";
        assert!(dots(unmodified, lost) > 0, "{unmodified}");
    }

    /// Check a picture with any numbers: without traced switches, without a granularity, without a
    /// wake-up, and with tasks that were not measured.
    #[test]
    fn hostile() {
        let (spec, mut series) = slices::placed();
        series.switches = None;
        let placements = series.placements.as_mut().unwrap();
        placements.granularity_ns = None;
        for (at, wakeup) in placements.wakeups.iter_mut().enumerate() {
            wakeup.ahead_ns = [i64::MIN, i64::MAX, 0][at % 3];
            wakeup.lost_ns = [None, Some(Nanos::MAX)][at % 2];
            (wakeup.task, wakeup.running) = (u32::MAX, 99);
        }
        let svg = draw(&(spec.clone(), series.clone()));
        assert!(!svg.contains("NaN") && !svg.contains("needed to preempt"));
        assert!(dots(&svg, "another task woke up while another task ran") > 90);
        series.placements.as_mut().unwrap().wakeups.clear();
        let svg = draw(&(spec, series));
        assert!(svg.contains(", none of them in this window"), "{svg}");
    }
}
