//! Charts as SVG: the one way in which pictures are drawn.
//!
//! A picture is 600 units wide, with texts of 14, so that it is readable at 400 pixels. Panels whose
//! axes have the same title have one scale; a chart that gives each its own says by how much a panel is
//! enlarged. Colours are in `style.css`: light and dark, and different for colour-blind people.

pub(crate) mod axis;
pub(crate) mod key;
pub(crate) mod marks;
pub(crate) mod numbers;
pub(crate) mod plot;
pub(crate) mod scale;
pub(crate) mod svg;

use crate::chart::plot::{Plot, is_banded};
use crate::chart::scale::Ruler;
use crate::chart::svg::{Canvas, EDGE, LINE, WIDTH, escape};
use crate::document::chart::{Axis, Chart, Mark, Panel, Scale, Shape};
use crate::document::text::{Text, text};
use crate::fitting::columns::cut;
use crate::number;

/// The colours and sizes of all charts, for pages that contain some.
pub(crate) const CHART_STYLE: &str = include_str!("chart/style.css");
/// What zooms and searches frames, for pages and files that contain some.
pub(crate) const CHART_SCRIPT: &str = include_str!("chart/frames.js");

/// The most marks of a chart that have a tool-tip each.
const TITLED: usize = 8000;
/// The longest description for readers of screens.
const LABEL: usize = 600;
/// The heights of the plots of a chart with one and with several.
const HEIGHTS: [f64; 2] = [190.0, 110.0];

/// A chart as an SVG file.
pub(crate) fn file(chart: &Chart) -> String {
    let style = format!("<style><![CDATA[\n{CHART_STYLE}]]></style>\n");
    let script = match has_frames(chart) {
        true => format!("<script><![CDATA[\n{CHART_SCRIPT}]]></script>\n"),
        false => String::new(),
    };
    let svg = element(chart, &style, &script);
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{svg}")
}

/// A chart as an element of a page that has [`CHART_STYLE`].
pub(crate) fn embedded(chart: &Chart) -> String {
    element(chart, "", "")
}

fn element(chart: &Chart, style: &str, script: &str) -> String {
    let Canvas { svg, y } = drawn(chart);
    let short = |text: String| escape(&cut(&text, LABEL));
    let about = Text::join(chart.about.iter().cloned(), " ");
    let label = short(format!("{}. {about}", chart.title));
    let title = short(chart.title.to_string());
    let high = y.ceil();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" role=\"img\" \
         aria-label=\"{label}\" width=\"{WIDTH}\" height=\"{high}\" \
         viewBox=\"0 0 {WIDTH} {high}\">\n<title>{title}</title>\n{style}\
         <rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n{svg}{script}</svg>\n"
    )
}

/// Whether it has frames, in which one can search.
pub(crate) fn has_frames(chart: &Chart) -> bool {
    chart.panels.iter().any(|panel| panel.has(Shape::Frame))
}

fn drawn(chart: &Chart) -> Canvas {
    let mut canvas = Canvas { y: 12.0, ..Canvas::default() };
    canvas.paragraph("title", &chart.title);
    chart.about.iter().for_each(|about| canvas.paragraph("about", about));
    if has_frames(chart) {
        controls(&mut canvas);
    }
    key::draw(&mut canvas, chart);
    let plots = plots(chart);
    let several = plots.iter().filter(|plot| !is_banded(&plot.panel.y)).nth(1);
    let height = HEIGHTS[usize::from(several.is_some())];
    for (at, plot) in plots.iter().enumerate() {
        canvas.y += 14.0;
        canvas.paragraph("panel", &panel_title(chart, plot.panel));
        canvas.paragraph("about", &plot.panel.about);
        let next = chart.panels.get(at + 1);
        plot.draw(&mut canvas, height, next.is_none_or(|next| next.x != plot.panel.x));
    }
    for note in &chart.notes {
        canvas.y += 8.0;
        canvas.paragraph("about", note);
    }
    canvas.y += 12.0;
    canvas
}

/// Draws what zooms and searches frames; a script shows it.
fn controls(canvas: &mut Canvas) {
    canvas.y += LINE;
    for (class, x, words) in [
        ("reset hidden", EDGE, "Reset Zoom"),
        ("details", EDGE + 110.0, " "),
        ("matched", WIDTH - EDGE - 110.0, " "),
        ("search hidden", WIDTH - EDGE, "Search"),
    ] {
        canvas.text(class, x, canvas.y, words);
    }
}

/// The panels with their scales, each as wide as the labels of all leave room.
fn plots(chart: &Chart) -> Vec<Plot<'_>> {
    let series = || chart.panels.iter().flat_map(|panel| &panel.series);
    let marks: usize = series().map(|series| series.marks.len()).sum();
    let titled = if marks <= TITLED { TITLED } else { TITLED / series().count() };
    let [x, y] = [Along::X, Along::Y].map(|along| move |of| ruler(chart, of, along));
    let plot = |panel| Plot { panel, x: x(panel), y: y(panel), titled };
    let mut plots: Vec<Plot<'_>> = chart.panels.iter().map(plot).collect();
    let margins: Vec<[f64; 2]> = plots.iter().map(Plot::margins).collect();
    let margin = |side: usize| margins.iter().map(|one| one[side]).fold(0.0, f64::max);
    let range = [margin(0), WIDTH - margin(1).min(0.36 * WIDTH)];
    plots.iter_mut().for_each(|plot| plot.x.range = range);
    plots
}

/// The title of a panel, and by how much its scale is larger than that of others.
pub(crate) fn panel_title(chart: &Chart, panel: &Panel) -> Text {
    let parts = [Some(panel.title.clone()), enlarged(chart, panel)];
    Text::join(parts.into_iter().flatten().filter(|part| !part.is_empty()), "; ")
}

/// One of the two axes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Along {
    X,
    Y,
}

impl Along {
    fn axis(self, panel: &Panel) -> &Axis {
        if self == Self::X { &panel.x } else { &panel.y }
    }

    fn part(self, mark: &Mark) -> [f64; 2] {
        if self == Self::X { mark.x } else { mark.y }
    }
}

/// The scale of one of a panel's axes: that of all axes of this title, unless each has its own.
pub(crate) fn ruler(chart: &Chart, of: &Panel, along: Along) -> Ruler {
    let own = along.axis(of);
    let is_same = |other: &&Panel| {
        std::ptr::eq(*other, of) || !chart.has_own_scales && along.axis(other) == own
    };
    let panels = chart.panels.iter().filter(is_same);
    let marks = panels.flat_map(|panel| panel.series.iter().flat_map(|one| &one.marks));
    let ruler = Ruler::of(own, marks.flat_map(|mark| along.part(mark)));
    let is_round = along == Along::Y || of.has(Shape::Whisker);
    if is_round { ruler.rounded(own, axis::MOST) } else { ruler }
}

/// By how much a panel is larger than the smallest one of the same axes, in words.
fn enlarged(chart: &Chart, panel: &Panel) -> Option<Text> {
    let is_along_x = !is_banded(&panel.x) && is_banded(&panel.y);
    let along = if is_along_x { Along::X } else { Along::Y };
    let own = along.axis(panel);
    let same = chart.panels.iter().filter(|other| along.axis(other) == own);
    let span = |panel: &Panel| {
        let [low, high] = ruler(chart, panel, along).domain;
        high - low
    };
    let times = same.map(span).reduce(f64::max)? / span(panel);
    let times = number::factor(times);
    let is_linear = own.scale == Scale::Linear && chart.has_own_scales;
    (is_linear && times != "1").then(|| text!("scale enlarged {} times", times))
}

#[cfg(test)]
mod tests;
