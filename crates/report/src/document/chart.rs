//! Charts: marks in panels with two axes, before anything is drawn.
//!
//! A mark is a part of both axes, and says what it is in words. Positions are numbers of a summary in the
//! unit of their axis; a band of names is as wide as 1, from 0 on.

use stats::Unit;
use units::Ppm;

use crate::document::text::Text;

/// A chart.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Chart {
    /// Its name in a document, of letters and hyphens: `noise-over-time`.
    pub(crate) name: &'static str,
    pub(crate) title: Text,
    /// What is drawn, and how it is read.
    pub(crate) about: Vec<Text>,
    pub(crate) panels: Vec<Panel>,
    /// What is not drawn.
    pub(crate) notes: Vec<Text>,
    /// Whether panels whose axes have the same title have a scale each.
    pub(crate) has_own_scales: bool,
}

/// A plot with its axes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Panel {
    pub(crate) title: Text,
    /// Its most important numbers.
    pub(crate) about: Text,
    pub(crate) x: Axis,
    /// From top to bottom if it has bands, from bottom to top otherwise.
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
}

/// An axis.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Axis {
    pub(crate) title: Text,
    pub(crate) measure: Measure,
    pub(crate) scale: Scale,
}

/// What the numbers of an axis are.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) enum Measure {
    /// Nothing to write.
    #[default]
    None,
    /// Numbers in a unit.
    In(Unit),
    /// Differences in ppm.
    Change,
}

/// How numbers become places.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Scale {
    #[default]
    Linear,
    Log,
    /// Names.
    Bands(Vec<Text>),
}

/// Marks that mean the same.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Series {
    /// Its name in the key; empty: not in the key.
    pub(crate) name: Text,
    pub(crate) shape: Shape,
    pub(crate) tone: Tone,
    pub(crate) marks: Vec<Mark>,
}

/// How marks are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A rectangle: a bar, a span of time, a cell of a map.
    Box,
    /// A rectangle with its label in it, in which one can search.
    Frame,
    /// A span of time with an arrow at its beginning.
    Flag,
    /// A line through the ends of all marks.
    Line,
    /// The area between the beginnings and the ends of all marks.
    Area,
    /// An interval of x.
    Whisker,
    Point,
    /// A line across the panel.
    Rule,
}

/// The colour of a mark.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Tone {
    /// One of the series of a chart, by number.
    Series(usize),
    /// One of many alike, by number; neighbours differ.
    Shade(usize),
    /// A part of the most, from 0 to 1.
    Heat(f64),
    /// A part of the largest difference, from -1 to 1.
    Change(f64),
    /// One of a few warm colours without a meaning, by number.
    Warm(u64),
    /// Less important than all others.
    Muted,
    /// More important than all others.
    Strong,
    /// The colour of text.
    Text,
    /// The ground on which spans are drawn.
    Ground,
    /// Time of which nothing is known.
    Unseen,
}

/// The number of colours of series; then they are repeated.
pub(crate) const SERIES: usize = 7;

/// A mark: a part of both axes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Mark {
    pub(crate) x: [f64; 2],
    pub(crate) y: [f64; 2],
    /// The colour, if it is not that of the series.
    pub(crate) tone: Option<Tone>,
    /// What it is: a row of the table of numbers.
    pub(crate) label: Text,
    /// Its number.
    pub(crate) value: Text,
    /// Written beside it.
    pub(crate) beside: Text,
}

impl Chart {
    /// A chart without panels.
    pub(crate) fn new(name: &'static str, title: impl Into<Text>) -> Self {
        Self { name, title: title.into(), ..Self::default() }
    }

    /// With another sentence about what is drawn.
    pub(crate) fn about(mut self, about: impl Into<Text>) -> Self {
        self.about.push(about.into());
        self
    }

    /// With another panel.
    pub(crate) fn panel(mut self, panel: Panel) -> Self {
        self.panels.push(panel);
        self
    }
}

impl Panel {
    /// A panel without marks.
    pub(crate) fn new(x: Axis, y: Axis) -> Self {
        Self { x, y, ..Self::default() }
    }

    /// Whether it has marks of this shape.
    pub(crate) fn has(&self, shape: Shape) -> bool {
        self.series.iter().any(|series| series.shape == shape)
    }

    /// With a title, and its most important numbers.
    pub(crate) fn titled(self, title: impl Into<Text>, about: impl Into<Text>) -> Self {
        Self { title: title.into(), about: about.into(), ..self }
    }

    /// With another series.
    pub(crate) fn series(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// With marks that mean the same.
    pub(crate) fn draw(
        self,
        shape: Shape,
        tone: Tone,
        name: impl Into<Text>,
        marks: impl IntoIterator<Item = Mark>,
    ) -> Self {
        self.series(Series::new(shape, tone, name, marks))
    }

    /// With a bar, made by `bar`, for each value in the band of its place; its label is that band's name.
    pub(crate) fn bars(
        self,
        bar: fn(usize, f64) -> Mark,
        tone: Tone,
        name: impl Into<Text>,
        values: impl IntoIterator<Item = Option<(f64, Text)>>,
    ) -> Self {
        let Scale::Bands(names) = &self.y.scale else { return self };
        let values = values.into_iter().zip(names).enumerate();
        let marks = values.filter_map(|(band, (value, label))| {
            let (value, words) = value?;
            Some(bar(band, value).says(label.clone(), words))
        });
        let marks = marks.collect();
        self.series(Series { name: name.into(), shape: Shape::Box, tone, marks })
    }

    /// With the numbers of the last series beside its marks.
    pub(crate) fn with_words(mut self) -> Self {
        let marks = self.series.last_mut().into_iter().flat_map(|one| &mut one.marks);
        marks.for_each(|mark| mark.beside = mark.value.clone());
        self
    }

    /// With series of as many marks each, each of which begins where that of the series before ends: along
    /// x if y has bands, along y otherwise.
    pub(crate) fn stacked(mut self, series: impl IntoIterator<Item = Series>) -> Self {
        let along_x = matches!(self.y.scale, Scale::Bands(_));
        let mut ends: Vec<f64> = Vec::new();
        for mut one in series {
            ends.resize(ends.len().max(one.marks.len()), 0.0);
            for (mark, end) in one.marks.iter_mut().zip(&mut ends) {
                let place = if along_x { &mut mark.x } else { &mut mark.y };
                *place = place.map(|at| at + *end);
                *end = place[1];
            }
            self.series.push(one);
        }
        self
    }
}

impl Axis {
    /// Numbers in a unit.
    pub(crate) fn linear(title: impl Into<Text>, unit: Unit) -> Self {
        Self { title: title.into(), measure: Measure::In(unit), scale: Scale::Linear }
    }

    /// The same on a logarithmic scale.
    pub(crate) fn log(title: impl Into<Text>, unit: Unit) -> Self {
        Self { scale: Scale::Log, ..Self::linear(title, unit) }
    }

    /// Names.
    pub(crate) fn bands(names: impl IntoIterator<Item = Text>) -> Self {
        Self { scale: Scale::Bands(names.into_iter().collect()), ..Self::default() }
    }
}

impl Series {
    /// Marks that mean the same.
    pub(crate) fn new(
        shape: Shape,
        tone: Tone,
        name: impl Into<Text>,
        marks: impl IntoIterator<Item = Mark>,
    ) -> Self {
        Self { name: name.into(), shape, tone, marks: marks.into_iter().collect() }
    }
}

impl Mark {
    /// A mark that covers these parts.
    pub(crate) fn over(x: [f64; 2], y: [f64; 2]) -> Self {
        Self { x, y, ..Self::default() }
    }

    /// A bar from zero in a band of y.
    pub(crate) fn bar(band: usize, value: f64) -> Self {
        Self::over([0.0, value], [0.16, 0.84].map(|part| band as f64 + part))
    }

    /// A thinner bar, for a part of what a bar shows.
    pub(crate) fn part(band: usize, value: f64) -> Self {
        Self::over([0.0, value], [0.36, 0.64].map(|part| band as f64 + part))
    }

    /// A point.
    pub(crate) fn at(x: f64, y: f64) -> Self {
        Self::over([x, x], [y, y])
    }

    /// With what it is, and its number.
    pub(crate) fn says(self, label: impl Into<Text>, value: impl Into<Text>) -> Self {
        Self { label: label.into(), value: value.into(), ..self }
    }

    /// With words beside it.
    pub(crate) fn beside(self, words: impl Into<Text>) -> Self {
        Self { beside: words.into(), ..self }
    }

    /// In a colour of its own.
    pub(crate) fn tone(self, tone: Tone) -> Self {
        Self { tone: Some(tone), ..self }
    }
}

/// A share as a number of its axis.
pub(crate) fn ppm(share: Option<Ppm>) -> f64 {
    share.map_or(0.0, Ppm::get)
}
