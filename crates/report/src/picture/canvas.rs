//! An SVG canvas, drawn from top to bottom. Coordinates are pixels, with one decimal.

use std::fmt::{Display, Write as _};

use units::Nanos;

use crate::picture::xml::escape;

/// The picture's width.
pub(crate) const WIDTH: f64 = 1000.0;
/// The space at its left, for the names of rows.
pub(crate) const LEFT: f64 = 64.0;
/// The width of the area to scale.
pub(crate) const PLOT: f64 = 912.0;

/// The SVG elements drawn so far.
#[derive(Debug, Default)]
pub(crate) struct Canvas {
    svg: String,
    /// The position of the next element.
    pub(crate) y: f64,
}

impl Canvas {
    pub(crate) fn svg(&self) -> &str {
        &self.svg
    }

    /// Moves the position of the next element down.
    pub(crate) fn move_down(&mut self, by: f64) {
        self.y += by;
    }

    /// Draws an SVG element.
    pub(crate) fn draw(&mut self, svg: impl Display) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.svg, "{svg}");
    }

    /// Draws a text of a CSS class; its baseline is that far below the position.
    pub(crate) fn text(&mut self, class: &str, x: f64, below: f64, text: &str) {
        let (x, y, text) = (px(x), px(self.y + below), escape(text));
        self.draw(format_args!(
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{text}</text>"
        ));
    }

    /// Opens a group at the position; coordinates of its elements are relative to it.
    pub(crate) fn open_group(&mut self, x: f64) {
        let (x, y) = (px(x), px(self.y));
        self.draw(format_args!("<g transform=\"translate({x} {y})\">"));
    }

    pub(crate) fn close_group(&mut self) {
        self.draw("</g>");
    }
}

/// A rectangle, with a tool-tip if it has a title.
pub(crate) fn rect(
    class: &str,
    [x, y, width, height]: [f64; 4],
    title: Option<&str>,
) -> String {
    let [x, y, width, height] = [x, y, width, height].map(px);
    let place = format!(
        "class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\""
    );
    title.map_or_else(
        || format!("<rect {place}/>"),
        |title| format!("<rect {place}><title>{}</title></rect>", escape(title)),
    )
}

/// A vertical line.
pub(crate) fn line(class: &str, x: f64, [from, to]: [f64; 2]) -> String {
    let [x, from, to] = [x, from, to].map(px);
    format!("<path class=\"{class}\" d=\"M{x} {from}V{to}\"/>")
}

/// A coordinate with one decimal, unless that is zero.
pub(crate) fn px(at: f64) -> String {
    let text = format!("{at:.1}");
    let short = text.strip_suffix(".0").unwrap_or(&text);
    if short == "-0" { "0".to_owned() } else { short.to_owned() }
}

/// The position of a time on an axis from zero to `whole`.
pub(crate) fn on_axis(time: Nanos, whole: Nanos) -> f64 {
    if whole.is_zero() { 0.0 } else { PLOT * time.as_secs_f64() / whole.as_secs_f64() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that coordinates are short, and that -0 is 0.
    #[test]
    fn pixels() {
        assert_eq!(
            [0.0, -0.01, 12.0, 12.34, 999.96].map(px),
            ["0", "0", "12", "12.3", "1000"]
        );
        let middle = on_axis(Nanos::from_micros(5), Nanos::from_micros(10));
        assert!((middle - PLOT / 2.0).abs() < 1e-9, "{middle}");
        assert_eq!(px(on_axis(Nanos::from_micros(5), Nanos::ZERO)), "0");
    }
}
