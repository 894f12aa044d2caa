//! The key: what series are, each with a sample.

use itertools::Itertools;

use crate::chart::marks;
use crate::chart::svg::{Canvas, EDGE, LINE, SMALL, WIDTH, width};
use crate::document::chart::{Chart, Series, Shape, Tone};
use crate::fitting::columns::cut;

/// The longest name.
const NAME: usize = 48;
/// The width of a sample, and the spaces after it and after a name.
const SAMPLE: f64 = 20.0;
const SPACES: f64 = 24.0;

/// Draws the series of all panels that have a name.
pub(crate) fn draw(canvas: &mut Canvas, chart: &Chart) {
    let series = chart.panels.iter().flat_map(|panel| &panel.series);
    let named = series.filter(|one| !one.name.is_empty() && !one.marks.is_empty());
    let mut x = f64::INFINITY;
    for one in named.unique_by(|one| one.name.to_string()) {
        let name = cut(&one.name.to_string(), NAME);
        let needs = SAMPLE + width(&name) * SMALL;
        if x + needs > WIDTH - EDGE {
            canvas.y += LINE + 2.0;
            x = EDGE;
        }
        sample(canvas, one, x);
        canvas.text("small", x + SAMPLE + 6.0, canvas.y - 3.0, name);
        x += needs + SPACES;
    }
}

fn sample(canvas: &mut Canvas, series: &Series, x: f64) {
    let [from, to] = [canvas.y - 15.0, canvas.y - 2.0];
    let (shape, x, y) = match series.shape {
        Shape::Line | Shape::Rule => (Shape::Rule, [x, x + SAMPLE], [from + 7.0; 2]),
        Shape::Flag => (Shape::Flag, [x + 9.0, x + 11.0], [from, to]),
        Shape::Area => (Shape::Box, [x, x + SAMPLE], [from, to]),
        Shape::Box | Shape::Frame | Shape::Whisker | Shape::Point => {
            (series.shape, [x, x + SAMPLE], [from, to])
        }
    };
    let mut tones = vec![series.tone];
    if let Tone::Shade(_) = series.tone {
        tones = (0..4).map(Tone::Shade).collect();
    } else if let Tone::Heat(_) = series.tone {
        tones = [0.1, 0.4, 0.7, 1.0].map(Tone::Heat).into();
    }
    let each = (x[1] - x[0]) / tones.len() as f64;
    for (at, tone) in tones.into_iter().enumerate() {
        let from = x[0] + each * at as f64;
        let path = marks::outline(shape, [[from, from + each], y], 0.01);
        canvas.path(&marks::class(shape, tone), &path, "");
    }
}
