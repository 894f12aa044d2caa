//! A bar chart of one metric of an experiment's cells: a panel for each workload, with a bar for
//! each kernel.
//!
//! Each panel has its own scale from zero, since workloads differ by orders of magnitude. Values
//! and names are written beside the bars, so that nothing depends on colours.

use stats::{Better, Unit};
use summary::{ChartBar, ChartPanel, MetricChart};

use crate::cells::Cells;
use crate::number;
use crate::picture::canvas::{Canvas, WIDTH, line, px, rect};
use crate::text::layout::labels::cut_labels;
use crate::text::layout::table::cut;

/// The space at the left of titles.
const LEFT: f64 = 24.0;
/// The left end of the bars; the names of kernels end before it.
const BARS: f64 = 330.0;
/// The length of the longest bar; its value is at its right.
const LONGEST: f64 = 460.0;
/// The height of a bar, and that of a row.
const BAR: f64 = 16.0;
const ROW: f64 = 24.0;
/// The space between a bar and the texts beside it.
const SPACE: f64 = 8.0;
/// The maximum lengths of the name of a kernel, of other lines, and of the title.
const KERNEL: usize = 44;
const LINE: usize = 130;
const TITLE: usize = 80;
/// The maximum number of intervals of an axis.
const INTERVALS: f64 = 5.0;

const STYLE: &str = include_str!("chart.css");

/// The chart as an SVG file.
pub fn chart_svg(cells: &Cells<'_>, chart: &MetricChart<'_>) -> String {
    let mut canvas = Canvas::default();
    head(&mut canvas, cells, chart);
    let names = cut_labels(chart.panels.iter().map(|panel| panel.name), LINE);
    for (panel, name) in chart.panels.iter().zip(names) {
        canvas.text("panel", LEFT, 14.0, &name);
        draw_panel(&mut canvas, panel, chart.about.unit);
    }
    let (width, height) = (px(WIDTH), px(canvas.y));
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" \
         class=\"chart\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} \
         {height}\">\n<style><![CDATA[\n{STYLE}]]></style>\n<rect class=\"paper\" \
         width=\"100%\" height=\"100%\"/>\n{}</svg>\n",
        canvas.svg()
    )
}

fn head(canvas: &mut Canvas, cells: &Cells<'_>, chart: &MetricChart<'_>) {
    let better = match chart.about.better {
        Better::Less => "; less is better",
        Better::More => "; more is better",
        Better::Neither => "",
    };
    let title = match cells.about {
        "" => cells.experiment.to_owned(),
        about => format!("{}: {about}", cells.experiment),
    };
    let metric = format!("{}: {}{better}", chart.key, chart.about.help);
    canvas.text("title", LEFT, 36.0, &cut(&title, TITLE));
    canvas.text("about", LEFT, 58.0, &cut(&metric, LINE));
    canvas.move_down(78.0);
}

fn draw_panel(canvas: &mut Canvas, panel: &ChartPanel<'_>, unit: Unit) {
    canvas.move_down(26.0);
    let height = ROW * panel.bars.len() as f64;
    let step = step(panel.largest);
    let ticks = (0..).map(|at| f64::from(at) * step);
    let ticks: Vec<f64> = ticks.take_while(|tick| *tick <= panel.largest).collect();
    canvas.open_group(BARS);
    for &tick in &ticks {
        let class = if tick > 0.0 { "grid" } else { "base" };
        canvas.draw(line(class, on_scale(tick, panel), [0.0, height]));
    }
    canvas.close_group();
    let kernels = cut_labels(panel.bars.iter().map(|bar| own_name(bar.kernel)), KERNEL);
    for (bar, kernel) in panel.bars.iter().zip(kernels) {
        canvas.text("kernel", BARS - SPACE, 15.0, &kernel);
        draw_bar(canvas, bar, panel, unit);
    }
    for tick in ticks {
        let x = BARS + on_scale(tick, panel);
        canvas.text("axis", x, 13.0, &number::in_unit(tick, unit));
    }
    canvas.move_down(38.0);
}

fn draw_bar(canvas: &mut Canvas, bar: &ChartBar<'_>, panel: &ChartPanel<'_>, unit: Unit) {
    let figures = figures(bar, unit);
    let width = bar.value.map_or(0.0, |value| on_scale(value, panel));
    if bar.value.is_some() {
        canvas.open_group(BARS);
        let title = format!("{}: {figures}", bar.kernel);
        canvas.draw(rect("bar", [0.0, (ROW - BAR) / 2.0, width, BAR], Some(&title)));
        canvas.close_group();
    }
    canvas.text("figures", BARS + width + SPACE, 15.0, &figures);
    canvas.move_down(ROW);
}

/// The value, and its difference from that of the first kernel.
fn figures(bar: &ChartBar<'_>, unit: Unit) -> String {
    match (bar.value, bar.difference) {
        (None, _) if bar.is_lost => "lost".to_owned(),
        (None, _) => "not measured".to_owned(),
        (Some(value), None) => number::in_unit(value, unit),
        (Some(value), Some(by)) => {
            format!("{} ({})", number::in_unit(value, unit), number::change(by))
        }
    }
}

fn on_scale(value: f64, panel: &ChartPanel<'_>) -> f64 {
    if panel.largest > 0.0 { LONGEST * (value / panel.largest).max(0.0) } else { 0.0 }
}

/// The interval of an axis up to a value: 1, 2 or 5 times a power of ten.
fn step(largest: f64) -> f64 {
    let least = largest / INTERVALS;
    if least <= 0.0 || !least.is_finite() {
        return f64::INFINITY; // an axis with zero only
    }
    let power = 10_f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= least);
    factor.unwrap_or(10.0) * power
}

/// A kernel's own name if the experiment gives it one, or the requested one.
fn own_name(kernel: &str) -> &str {
    kernel.rsplit_once(",name=").map_or(kernel, |(_, own)| own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::example::cell::{NEW, OLD, cell, lost, tick_cost};
    use crate::picture::xml::checked::check_xml;
    use recording::Cell;

    /// A chart of two workloads, one with a lost cell and a name that has to be escaped.
    fn chart(cells: &[Cell]) -> String {
        let all = Cells {
            experiment: "atlas",
            about: "what a tick costs",
            cells,
            planned: cells.len(),
            made_with: None,
            violations: None,
            series: &[],
            guests: 100,
        };
        let svg = chart_svg(&all, &MetricChart::of(cells, "tick_instructions").unwrap());
        check_xml(&svg);
        svg
    }

    /// Check that all kernels are there, with values and differences, that a lost cell has no
    /// bar, and that names are escaped.
    #[test]
    fn of_two_kernels() {
        let tick = |gap| tick_cost(&[gap, gap, 10_911], &[(gap - 13, 248)]);
        let asked = |asked: &str, cell: Cell| Cell { asked: asked.to_owned(), ..cell };
        let svg = chart(&[
            asked("debian:6.1-cloud", cell("fifo", OLD, tick(2000))),
            asked("./a<b>\u{1b}[2J", cell("fifo", NEW, tick(2500))),
            asked("debian:9.9", cell("fifo", "debian:9.9", lost())),
            asked("debian:6.1-cloud", cell("other", OLD, tick(40))),
            asked("debian:9.9", cell("lost", "debian:9.9", lost())),
        ]);
        assert_eq!(svg.matches("class=\"bar\"").count(), 3);
        assert_eq!(svg.matches("class=\"panel\"").count(), 2);
        assert_eq!(svg.matches("width=\"460\"").count(), 2, "{svg}");
        for words in [">2500 (+25.0 %)<", ">lost<", "./a&lt;b&gt;\u{fffd}[2J", ">40<"] {
            assert!(svg.contains(words), "{words}");
        }
    }

    /// Check that no cell with the metric gives no chart.
    #[test]
    fn of_none() {
        let tick = tick_cost(&[2584, 2584, 10_911], &[(2571, 248)]);
        let cells = [cell("fifo", OLD, tick), cell("fifo", NEW, lost())];
        assert_eq!(MetricChart::of(&cells, "units_hz"), None);
        assert!(MetricChart::keys(&cells).contains(&"tick_instructions".to_owned()));
    }

    /// Check the intervals of axes.
    #[test]
    fn axes() {
        let found = [0.9, 1.0, 4.9, 5.1, 12.0, 2_212_955.0].map(step);
        for (found, expected) in found.into_iter().zip([0.2, 0.2, 1.0, 2.0, 5.0, 5e5]) {
            assert!((found / expected - 1.0).abs() < 1e-9, "{found} {expected}");
        }
        assert!(step(0.0).is_infinite() && step(f64::NAN).is_infinite());
    }

    /// Check that a kernel's own name is preferred.
    #[test]
    fn own_names() {
        assert_eq!(own_name("build:debian:6.1,lean,AUDIT=n,name=quiet"), "quiet");
        assert_eq!(own_name("debian:6.1"), "debian:6.1");
    }
}
