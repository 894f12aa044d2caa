//! Marks: each a path over a part of both axes, with a tool-tip that says what it is.

use std::collections::{BTreeMap, BTreeSet};

use crate::chart::plot::Plot;
use crate::chart::svg::{Canvas, escape, whole};
use crate::document::chart::{Mark, SERIES, Series, Shape, Tone};
use crate::fitting::columns::cut;

/// The least size of a mark, and the space between neighbours that are wide enough.
const LEAST: f64 = 0.8;
const SPACE: f64 = 0.6;
/// Coordinates are multiples of this; those of marks without a tool-tip each, of that.
const GRAINS: [f64; 2] = [0.01, 0.5];
/// The numbers of shades, of steps of heat and of differences, and of warm colours.
const SHADES: usize = 9;
const STEPS: f64 = 8.0;
const WARM: u64 = 12;
/// The width of a character of a frame's name.
const GLYPH: f64 = 7.83;
/// The longest name in a tool-tip, which also has a number.
const LABEL: usize = 300;
/// A line with more points has no visible dots.
const DOTS: usize = 80;

/// Draws a series.
pub(crate) fn draw(canvas: &mut Canvas, plot: &Plot<'_>, series: &Series) {
    let drawable = |mark: &&Mark| !mark.x.iter().chain(&mark.y).any(|at| at.is_nan());
    let marks: Vec<&Mark> = series.marks.iter().filter(drawable).collect();
    if matches!(series.shape, Shape::Line | Shape::Area) {
        curve(canvas, plot, series, &marks);
    }
    let is_merged = marks.len() > plot.titled;
    let mut merged: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for mark in &marks {
        let class = class(series.shape, mark.tone.unwrap_or(series.tone));
        let class =
            if marks.len() > DOTS { class.replace(" dot", " hit") } else { class };
        let path =
            outline(series.shape, plot.place(mark), GRAINS[usize::from(is_merged)]);
        if series.shape == Shape::Frame {
            frame(canvas, plot, &class, mark);
        } else if is_merged {
            merged.entry(class).or_default().insert(path);
        } else {
            canvas.path(&class, &path, title(mark));
        }
        let beside = plot.beside(mark);
        if !beside.is_empty() && series.shape != Shape::Rule {
            let [[x, to_x], [y, to_y]] = plot.place(mark);
            let is_point = series.shape == Shape::Point;
            let end = if is_point { plot.x.range[1] } else { x.max(to_x) };
            canvas.text("small", end + 6.0, f64::midpoint(y, to_y) + 5.0, beside);
        }
    }
    for (class, paths) in merged {
        let title =
            format!("{}: {} marks, too many to name each", series.name, marks.len());
        canvas.path(&class, &paths.into_iter().collect::<String>(), title);
    }
}

/// The tool-tip of a mark.
fn title(mark: &Mark) -> String {
    let colon = if mark.value.is_empty() { "" } else { ": " };
    format!("{}{colon}{}", cut(&mark.label.to_string(), LABEL), mark.value)
}

/// The attributes of a colour.
pub(crate) fn class(shape: Shape, tone: Tone) -> String {
    let step = |part: f64| whole((part.clamp(0.0, 1.0) * STEPS).round());
    let name = match tone {
        Tone::Series(number) => format!("s{}", number % SERIES),
        Tone::Shade(number) => format!("k{}", number % SHADES),
        Tone::Heat(part) => format!("h{}", step(part)),
        Tone::Change(part) => format!("d{}", step((part + 1.0) / 2.0)),
        Tone::Warm(number) => format!("w{}", number % WARM),
        Tone::Muted => "muted".to_owned(),
        Tone::Strong => "strong".to_owned(),
        Tone::Text => "ink".to_owned(),
        Tone::Ground => "ground".to_owned(),
        Tone::Unseen => "unseen".to_owned(),
    };
    let also = match shape {
        Shape::Rule | Shape::Whisker => " line",
        Shape::Line => " dot",
        Shape::Area => " hit",
        Shape::Box | Shape::Frame | Shape::Flag | Shape::Point => "",
    };
    format!("class=\"{name}{also}\"")
}

/// The path of a shape over a part of the picture. One that is not empty has a least size.
pub(crate) fn outline(shape: Shape, [x, y]: [[f64; 2]; 2], grain: f64) -> String {
    let px = |at: f64| ((at / grain).round() * grain * 100.0).round() / 100.0;
    let side = |[from, to]: [f64; 2]| match (to - from).abs() {
        0.0 => [px(from), 0.0],
        size if size > 4.0 * SPACE => [px(from.min(to)), px(size - SPACE)],
        size => [px(from.min(to)), px(size.max(LEAST))],
    };
    let ([left, width], [top, height]) = (side(x), side(y));
    let middle = px(f64::midpoint(y[0], y[1]));
    let round = |x: f64, y: f64, by: f64| {
        let [x, y, wide] = [px(x - by), px(y), 2.0 * by];
        format!("M{x} {y}a{by} {by} 0 1 0 {wide} 0a{by} {by} 0 1 0 -{wide} 0z")
    };
    match shape {
        Shape::Box | Shape::Frame | Shape::Area if width == 0.0 || height == 0.0 => {
            String::new()
        }
        Shape::Box | Shape::Frame | Shape::Area => {
            format!("M{left} {top}h{width}v{height}h-{width}z")
        }
        Shape::Flag => {
            let (bar, head) = (px(y[0] + 7.0), px(left + 0.6));
            let bottom = px(y[1]);
            format!("M{left} {bottom}V{bar}h{width}V{bottom}zM{head} {bar}l-3.2 -7h6.4z")
        }
        Shape::Point => round(f64::midpoint(x[0], x[1]), middle, 4.0),
        Shape::Line => round(f64::midpoint(x[0], x[1]), y[1], 3.0),
        Shape::Rule => format!("M{} {}L{} {}", px(x[0]), px(y[0]), px(x[1]), px(y[1])),
        Shape::Whisker => {
            format!("M{} {middle}m0 -4v8m0 -4H{}m0 -4v8", px(x[0]), px(x[1]))
        }
    }
}

/// Draws a line through the ends of all marks, or the area between their beginnings and their ends.
fn curve(canvas: &mut Canvas, plot: &Plot<'_>, series: &Series, marks: &[&Mark]) {
    let at = |mark: &Mark, end: usize| {
        let [[x, to_x], y] = plot.place(mark);
        format!("L{:.2} {:.2}", f64::midpoint(x, to_x), y[end])
    };
    let mut path: String = marks.iter().map(|mark| at(mark, 1)).collect();
    let mut shape = Shape::Rule;
    if series.shape == Shape::Area {
        path.extend(marks.iter().rev().map(|mark| at(mark, 0)));
        shape = Shape::Box;
    }
    if !path.is_empty() {
        let class = class(shape, series.tone);
        canvas.path(&class, &path.replacen('L', "M", 1), &series.name);
    }
}

/// A rectangle with its label in it, as far as it fits; the numbers are for the script.
fn frame(canvas: &mut Canvas, plot: &Plot<'_>, class: &str, mark: &Mark) {
    let ([[x, to_x], [y, to_y]], label) = (plot.place(mark), mark.label.to_string());
    let (width, height) = ((to_x - x - SPACE).max(LEAST), to_y - y - SPACE);
    let fit = whole((width - 6.0) / GLYPH);
    let words = if fit < 3 { String::new() } else { cut(&label, fit) };
    let ([from, to], depth) = (mark.x, -mark.y[0]);
    canvas.draw(format_args!(
        "<g class=\"frame\" data-name=\"{}\" data-depth=\"{depth}\" data-from=\"{from}\" \
         data-to=\"{to}\"><rect {class} rx=\"2\" x=\"{x:.2}\" y=\"{y:.2}\" width=\"{width:.2}\" \
         height=\"{height:.2}\"><title>{}</title></rect>",
        escape(&label),
        escape(&title(mark)),
    ));
    canvas.text("in", x + 3.0, y + 14.0, words);
    canvas.draw("</g>");
}
