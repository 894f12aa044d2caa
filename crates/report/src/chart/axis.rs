//! Panels: their axes, with labels and lines, around the marks.

use units::Ppm;

use crate::chart::marks;
use crate::chart::plot::{Plot, is_banded};
use crate::chart::scale::Ruler;
use crate::chart::svg::{Canvas, EDGE, LINE, SMALL, whole, width};
use crate::document::chart::{Axis, Mark, Measure, Scale, Shape};
use crate::document::text::Text;
use crate::fitting::labels::cut_labels;
use crate::number;

/// About the most labels of y, and of x.
pub(crate) const MOST: usize = 5;
const MOST_X: f64 = 10.0;
/// The longest name of a band.
const NAME: usize = 30;

impl Plot<'_> {
    /// The room for the labels of y, and that for the words beside marks.
    pub(crate) fn margins(&self) -> [f64; 2] {
        let names = labels(&self.panel.y, &self.y, MOST);
        let marks = self.panel.series.iter().filter(|one| one.shape != Shape::Rule);
        let words = marks.flat_map(|one| &one.marks).map(|mark| self.beside(mark));
        let names = names.into_iter().map(|(_, name)| name);
        [EDGE + 8.0 + widest(names), EDGE + 6.0 + widest(words)]
    }

    /// Draws the panel; `height` is that of a plot without bands. The title of x is below the last of
    /// several panels with the same.
    pub(crate) fn draw(mut self, canvas: &mut Canvas, height: f64, is_last: bool) {
        let (panel, [left, right]) = (self.panel, self.x.range);
        let is_banded = self::is_banded(&panel.y);
        if !panel.y.title.is_empty() && !is_banded {
            canvas.y += LINE;
            canvas.text("axis", EDGE, canvas.y - 4.0, &panel.y.title);
        }
        self.rules(canvas);
        canvas.y += 6.0;
        let [top, bottom] = [canvas.y, canvas.y + self.height(height)];
        self.y.range = if is_banded { [top, bottom] } else { [bottom, top] };
        self.labels_of_y(canvas);
        let names = self.labels_of_x(canvas);
        panel.series.iter().for_each(|series| marks::draw(canvas, &self, series));
        let start = if is_banded { [left, top] } else { [right, bottom] };
        if !panel.has(Shape::Frame) {
            canvas.line("base", start, [left, bottom]);
        }
        canvas.y = bottom + 3.0;
        let lines = if self::is_banded(&panel.x) && names.len() < 12 { 2 } else { 1 };
        self.spread(canvas, "axis middle", names, lines);
        if is_last && !panel.x.title.is_empty() {
            canvas.y += LINE;
            let middle = f64::midpoint(left, right);
            canvas.text("axis middle", middle, canvas.y - 2.0, &panel.x.title);
        }
    }

    fn height(&self, plain: f64) -> f64 {
        let Scale::Bands(names) = &self.panel.y.scale else { return plain };
        let count = names.len().max(1) as f64;
        count
            * match (self.panel.has(Shape::Frame), self.panel.has(Shape::Flag)) {
                (true, _) => 20.0,
                (_, true) => 32.0,
                _ => (1100.0 / count).clamp(4.0, 24.0),
            }
    }

    /// The labels of x that have room; their lines are drawn.
    fn labels_of_x(&self, canvas: &mut Canvas) -> Vec<(f64, String)> {
        let (x, [left, right], y) = (&self.panel.x, self.x.range, self.y.range);
        let ends = self.x.domain.map(|end| written(x.measure, end, end).to_string());
        let room = (right - left) / (widest(ends) + 20.0);
        let names = labels(x, &self.x, whole(room.clamp(1.0, MOST_X)));
        if !is_banded(x) {
            names
                .iter()
                .for_each(|(at, _)| canvas.line("grid", [*at, y[0]], [*at, y[1]]));
        }
        names
    }

    fn labels_of_y(&self, canvas: &mut Canvas) {
        let is_banded = is_banded(&self.panel.y);
        let [left, right] = self.x.range;
        let mut above = f64::NEG_INFINITY;
        for (at, name) in labels(&self.panel.y, &self.y, MOST) {
            if !is_banded {
                canvas.line("grid", [left, at], [right, at]);
            } else if at - above < SMALL {
                continue;
            }
            above = at;
            let class = if is_banded { "name" } else { "axis end" };
            canvas.text(class, left - 8.0, at + 5.0, name);
        }
    }

    /// Writes the words of vertical rules above the plot.
    fn rules(&self, canvas: &mut Canvas) {
        let rules = self.panel.series.iter().filter(|series| series.shape == Shape::Rule);
        let marks = rules.flat_map(|series| &series.marks);
        let vertical = marks.filter(|mark| mark.x[0] == mark.x[1]);
        let words = |mark: &Mark| (self.x.at(mark.x[0]), self.beside(mark));
        let mut words: Vec<(f64, String)> = vertical.map(words).collect();
        words.sort_by(|a, b| a.0.total_cmp(&b.0));
        self.spread(canvas, "small middle", words, usize::MAX);
    }

    /// Writes words around places of x in as many lines as they need to be apart, but in `most` at most.
    fn spread(
        &self,
        canvas: &mut Canvas,
        class: &str,
        words: Vec<(f64, String)>,
        most: usize,
    ) {
        let mut ends: Vec<f64> = Vec::new();
        for (x, words) in words.into_iter().filter(|(_, words)| !words.is_empty()) {
            let half = width(&words) * SMALL / 2.0;
            let x = x.min(self.x.range[1] + EDGE - 4.0 - half).max(4.0 + half);
            let free = ends.iter().position(|end| *end < x - half);
            let line = free.unwrap_or(ends.len());
            if line < most {
                ends.resize(ends.len().max(line + 1), 0.0);
                ends[line] = x + half + 8.0;
                canvas.text(class, x, canvas.y + LINE * (line + 1) as f64 - 2.0, words);
            }
        }
        canvas.y += LINE * ends.len() as f64;
    }
}

/// The labels of an axis, about that many at most if it has numbers, and their places.
fn labels(axis: &Axis, ruler: &Ruler, most: usize) -> Vec<(f64, String)> {
    if let Scale::Bands(names) = &axis.scale {
        let names = cut_labels(names.iter().map(Text::to_string), NAME).into_iter();
        return names
            .zip(0..)
            .map(|(name, at)| (ruler.at(f64::from(at) + 0.5), name))
            .collect();
    }
    let ticks = ruler.ticks(axis.measure, most);
    let largest = ticks.iter().copied().fold(0.0, f64::max);
    let label =
        |tick: f64| (ruler.at(tick), written(axis.measure, tick, largest).to_string());
    ticks.into_iter().map(label).filter(|(_, label)| !label.is_empty()).collect()
}

/// The width of the widest text.
fn widest(texts: impl IntoIterator<Item = String>) -> f64 {
    texts.into_iter().map(|text| width(text) * SMALL).fold(0.0, f64::max)
}

/// A number of an axis whose largest is known, in words.
pub(crate) fn written(measure: Measure, value: f64, largest: f64) -> Text {
    let size = value.abs();
    let words = match measure {
        Measure::None => return Text::default(),
        Measure::Change => return number::change(Ppm::new(value)),
        Measure::In(_) if value == 0.0 => return "0".into(),
        Measure::In(stats::Unit::Count | stats::Unit::Instructions) if size >= 1e6 => {
            number::rounded(size, number::short_count)
        }
        Measure::In(stats::Unit::Ppm) => {
            number::ShareUnit::of([Some(Ppm::new(largest))]).print(Ppm::new(size))
        }
        Measure::In(unit) => number::in_unit(size, unit),
    };
    if value < 0.0 { format!("-{words}").into() } else { words }
}
