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

use crate::chart::plot::{EDGE, LINE, Plot, SMALL, is_banded};
use crate::chart::scale::Ruler;
use crate::chart::svg::{Canvas, escape};
use crate::document::chart::{Axis, Chart, Mark, Panel, Scale, Shape};
use crate::document::text::{Text, text};
use crate::fitting::columns::cut;
use crate::fitting::lines::wrapped;
use crate::number;

/// The colours and sizes of all charts, for pages that contain some.
pub(crate) const CHART_STYLE: &str = include_str!("chart/style.css");
/// What zooms and searches frames, for pages and files that contain some.
pub(crate) const CHART_SCRIPT: &str = include_str!("chart/frames.js");

/// The width of a picture.
const WIDTH: f64 = 600.0;
/// The most marks of a chart that have a tool-tip each.
const TITLED: usize = 8000;
/// The longest description for readers of screens.
const LABEL: usize = 600;
/// The most lines of a title, and of a sentence.
const LINES: [usize; 2] = [2, 5];

/// A chart as an SVG file.
pub(crate) fn file(chart: &Chart) -> String {
    let script = if has_frames(chart) {
        format!("<script><![CDATA[\n{CHART_SCRIPT}]]></script>\n")
    } else {
        String::new()
    };
    let style = format!("<style><![CDATA[\n{CHART_STYLE}]]></style>\n");
    let svg = element(chart, chart.name, &style, &script);
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{svg}")
}

/// A chart as an element of a page that has [`CHART_STYLE`]; `id` begins its IDs.
pub(crate) fn embedded(chart: &Chart, id: &str) -> String {
    element(chart, id, "", "")
}

fn element(chart: &Chart, id: &str, style: &str, script: &str) -> String {
    let mut canvas = Canvas::default();
    draw(&mut canvas, chart, id, WIDTH);
    let about = Text::join(chart.about.iter().cloned(), " ");
    let label = escape(&cut(&format!("{}. {about}", chart.title), LABEL));
    let id = escape(id);
    let high = canvas.y.ceil();
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" role=\"img\" \
         aria-label=\"{label}\" width=\"{WIDTH}\" height=\"{high}\" \
         viewBox=\"0 0 {WIDTH} {high}\">\n<title>{}</title>\n{style}<defs><pattern \
         id=\"{id}-unseen\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
         patternTransform=\"rotate(45)\"><path class=\"hatch\" d=\"M1 0V6\"/></pattern>\
         </defs>\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n{}{script}</svg>\n",
        escape(&cut(&chart.title.to_string(), LABEL)),
        canvas.svg
    )
}

/// Whether it has frames, in which one can search.
pub(crate) fn has_frames(chart: &Chart) -> bool {
    let series = chart.panels.iter().flat_map(|panel| &panel.series);
    series.into_iter().any(|series| series.shape == Shape::Frame)
}

fn draw(canvas: &mut Canvas, chart: &Chart, id: &str, width: f64) {
    canvas.y = 12.0;
    lines(canvas, "title", &chart.title, [19.0, 24.0, width], LINES[0]);
    for about in &chart.about {
        lines(canvas, "about", about, [SMALL, LINE, width], LINES[1]);
    }
    if has_frames(chart) {
        controls(canvas, width);
    }
    key::draw(canvas, chart, id, width);
    let many = chart.panels.iter().filter(|panel| !is_banded(&panel.y)).count() > 1;
    let height = if many { 110.0 } else { 190.0 };
    let plots: Vec<Plot<'_>> = plots(chart, id).collect();
    let margins: Vec<[f64; 2]> = plots.iter().map(Plot::margins).collect();
    let margin = |side: usize| margins.iter().map(|one| one[side]).fold(0.0, f64::max);
    let [left, right] = [margin(0), width - margin(1).min(0.36 * width)];
    for (at, mut plot) in plots.into_iter().enumerate() {
        head(canvas, chart, plot.panel, width);
        let is_last = chart.panels.get(at + 1).is_none_or(|next| next.x != plot.panel.x);
        plot.x.range = [left, right];
        plot.draw(canvas, height, is_last);
    }
    for note in &chart.notes {
        canvas.y += 8.0;
        lines(canvas, "about", note, [SMALL, LINE, width], LINES[1]);
    }
    canvas.y += 12.0;
}

/// Draws what zooms and searches frames; a script shows it.
fn controls(canvas: &mut Canvas, width: f64) {
    canvas.y += LINE;
    let [left, right] = [EDGE, width - EDGE];
    for (class, x, words) in [
        ("reset hidden", left, "Reset Zoom"),
        ("details", left + 110.0, " "),
        ("matched", right - 110.0, " "),
        ("search hidden", right, "Search"),
    ] {
        canvas.text(class, x, canvas.y, words);
    }
}

/// Draws a text in lines, cut after so many.
fn lines(
    canvas: &mut Canvas,
    class: &str,
    text: &Text,
    [size, line, width]: [f64; 3],
    most: usize,
) {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "few")]
    let columns = ((width - 2.0 * EDGE) / (0.56 * size)) as usize;
    let all = wrapped(&text.to_string(), columns);
    for (at, words) in all.iter().take(most).enumerate() {
        let cut = if at + 1 == most && all.len() > most { "…" } else { "" };
        canvas.y += line;
        canvas.text(class, EDGE, canvas.y - line * 0.2, format!("{words}{cut}"));
    }
}

/// The panels with their scales.
fn plots<'a>(chart: &'a Chart, id: &'a str) -> impl Iterator<Item = Plot<'a>> {
    let series = || chart.panels.iter().flat_map(|panel| &panel.series);
    let marks: usize = series().map(|series| series.marks.len()).sum();
    let titled = if marks <= TITLED { TITLED } else { TITLED / series().count() };
    chart.panels.iter().map(move |panel| Plot {
        panel,
        x: ruler(chart, panel, Along::X),
        y: ruler(chart, panel, Along::Y),
        id,
        titled,
    })
}

fn head(canvas: &mut Canvas, chart: &Chart, panel: &Panel, width: f64) {
    canvas.y += 14.0;
    let title = panel_title(chart, panel);
    for (class, text, sizes) in
        [("panel", &title, [16.0, 21.0]), ("about", &panel.about, [SMALL, LINE])]
    {
        if !text.is_empty() {
            lines(canvas, class, text, [sizes[0], sizes[1], width], LINES[0]);
        }
    }
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
    let is_interval = of.series.iter().any(|series| series.shape == Shape::Whisker);
    let is_round = along == Along::Y || is_interval;
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
    let is_linear = own.scale == Scale::Linear && chart.has_own_scales;
    let times = number::factor(times);
    (is_linear && times != "1").then(|| text!("scale enlarged {} times", times))
}

#[cfg(test)]
mod tests;
