//! A picture that is filled from top to bottom: how wide it is, where it is written next, and
//! how things are put down on it.
//!
//! Coordinates are pixels, to a tenth of one; they say where something is drawn and are no
//! figures.

use std::fmt::{Display, Write as _};

use units::Nanos;

use crate::picture::xml::escaped;

/// The picture's width.
pub(crate) const WIDTH: f64 = 1000.0;
/// The space at its left, for the names of rows.
pub(crate) const LEFT: f64 = 64.0;
/// The width of what is drawn to scale.
pub(crate) const PLOT: f64 = 912.0;

/// A picture being filled.
#[derive(Debug, Default)]
pub(crate) struct Sheet {
    svg: String,
    /// Where the next thing goes.
    pub(crate) y: f64,
}

impl Sheet {
    /// What has been drawn.
    pub(crate) fn svg(&self) -> &str {
        &self.svg
    }

    /// Leaves some room.
    pub(crate) fn down(&mut self, by: f64) {
        self.y += by;
    }

    /// Draws something that is SVG as it is.
    pub(crate) fn put(&mut self, svg: impl Display) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.svg, "{svg}");
    }

    /// A text in a style of its own, on a line that far below.
    pub(crate) fn text(&mut self, class: &str, x: f64, below: f64, text: &str) {
        let (x, y, text) = (px(x), px(self.y + below), escaped(text));
        self.put(format_args!(
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{text}</text>"
        ));
    }

    /// Begins a group at a place; its coordinates count from there.
    pub(crate) fn open(&mut self, x: f64) {
        let (x, y) = (px(x), px(self.y));
        self.put(format_args!("<g transform=\"translate({x} {y})\">"));
    }

    /// Ends it.
    pub(crate) fn close(&mut self) {
        self.put("</g>");
    }
}

/// A rectangle that tells something when it is pointed at.
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
        |title| format!("<rect {place}><title>{}</title></rect>", escaped(title)),
    )
}

/// A line from top to bottom.
pub(crate) fn line(class: &str, x: f64, [from, to]: [f64; 2]) -> String {
    let [x, from, to] = [x, from, to].map(px);
    format!("<path class=\"{class}\" d=\"M{x} {from}V{to}\"/>")
}

/// To a tenth of a pixel.
pub(crate) fn px(at: f64) -> String {
    let text = format!("{at:.1}");
    let short = text.strip_suffix(".0").unwrap_or(&text);
    if short == "-0" { "0".to_owned() } else { short.to_owned() }
}

/// Where a moment is on an axis from zero to `whole`.
pub(crate) fn on_axis(time: Nanos, whole: Nanos) -> f64 {
    if whole.is_zero() { 0.0 } else { PLOT * time.as_secs_f64() / whole.as_secs_f64() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check that coordinates are short, and that nothing is no different from zero.
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
