//! Simple charts in a few lines of text: bars, intervals, histograms and strips over time.
//!
//! A column shows the largest of its marks, so that short peaks remain. Other charts are pictures only.

use units::printable;

use crate::chart::axis::written;
use crate::chart::scale::Ruler;
use crate::chart::svg::whole;
use crate::chart::{Along, panel_title, ruler};
use crate::document::Content;
use crate::document::chart::{Chart, Mark, Panel, Scale, Shape, Tone};
use crate::document::text::Text;
use crate::fitting::columns::{columns, cut};
use crate::fitting::labels::cut_labels;
use crate::terminal::paragraph::{folded_text, with_lead};

/// The height of a histogram in lines, and the most lines of bars.
const LINES: usize = 5;
const BANDS: usize = 24;
/// Eighths of a character, from the bottom and from the left.
const RISING: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const ALONG: [char; 9] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];
/// A few points in one place, from one on.
const DOTS: [char; 3] = ['·', '•', '●'];
/// The series of a stacked bar.
const STACKED: [char; 7] = ['█', '▓', '▒', '░', '▚', '▞', '▖'];

/// What stands for a character of pictures where there is ASCII only.
pub fn ascii_for(drawn: char) -> Option<char> {
    Some(match drawn {
        '█' | '▉' | '▊' | '▋' | '▌' => '#',
        '▏' | '▎' | '▍' | '▆' | '▇' | '│' | '▕' => '|',
        '▃' | '▄' | '▅' => ':',
        '▁' | '▂' | '░' | '·' => '.',
        '▓' => '%',
        '▒' | '┼' => '+',
        '▚' => 'x',
        '▞' => '/',
        '▖' => ',',
        '├' => '[',
        '┤' => ']',
        '•' => 'o',
        '●' => 'O',
        _ => return None,
    })
}

/// The contents without the charts that are no simple ones, and without headings of such charts only.
pub(crate) fn with_simple(contents: Vec<&Content>) -> Vec<&Content> {
    let is_simple = |content: &&Content| {
        let Content::Chart(chart) = content else { return None };
        Some(chart.panels.iter().any(self::is_simple))
    };
    let is_shown = |at: usize| {
        let Content::Heading(_) = contents[at] else {
            return is_simple(&contents[at]).unwrap_or(true);
        };
        let below: Vec<bool> = contents[at + 1..].iter().map_while(is_simple).collect();
        below.is_empty() || below.contains(&true)
    };
    (0..contents.len()).filter(|&at| is_shown(at)).map(|at| contents[at]).collect()
}

/// The chart in lines of at most `width` columns; empty if it is no simple one.
pub(crate) fn lines(chart: &Chart, width: usize) -> String {
    let simple = chart.panels.iter().filter(|panel| is_simple(panel));
    let drawn = simple.map(|panel| {
        let title = panel_title(chart, panel);
        let title =
            if title.is_empty() { title.to_string() } else { folded_text("  ", &title) };
        title + &self::panel(chart, panel, width)
    });
    let drawn: String = drawn.collect();
    if drawn.is_empty() { drawn } else { folded_text("", &chart.title) + &drawn }
}

/// Whether text can draw it: no panel with lines, shades or tasks, and none without marks.
fn is_simple(panel: &Panel) -> bool {
    use Shape::{Box, Point, Rule, Whisker};
    let is_drawn = panel.series.iter().all(|series| {
        matches!(series.shape, Box | Rule | Whisker | Point)
            && !matches!(series.tone, Tone::Shade(_))
    });
    is_drawn
        && match &panel.y.scale {
            Scale::Bands(_) => panel.series.iter().any(|series| !series.marks.is_empty()),
            Scale::Linear | Scale::Log => has_boxes(panel),
        }
}

/// The lines of a simple panel.
fn panel(chart: &Chart, panel: &Panel, width: usize) -> String {
    match &panel.y.scale {
        Scale::Bands(names) => bands(chart, panel, names, width),
        Scale::Linear | Scale::Log => histogram(chart, panel, width),
    }
}

fn has_boxes(panel: &Panel) -> bool {
    boxes(panel).next().is_some()
}

/// The rectangles, each with the place of its series.
fn boxes(panel: &Panel) -> impl Iterator<Item = (usize, &Mark)> {
    let boxes = panel.series.iter().filter(|series| series.shape == Shape::Box);
    boxes
        .zip(0..)
        .flat_map(|(series, at)| series.marks.iter().map(move |mark| (at, mark)))
}

/// A line for each band: a bar, a strip of heat, or intervals and points.
fn bands(chart: &Chart, panel: &Panel, names: &[Text], width: usize) -> String {
    let names = names.iter().map(|name| printable(&name.to_string()).into_owned());
    let names = cut_labels(names.take(BANDS), width * 3 / 10);
    let wide = names.iter().map(|name| columns(name)).max().unwrap_or(0);
    let words: Vec<String> =
        (0..names.len()).map(|at| beside(panel, at, width * 2 / 5)).collect();
    let most = words.iter().map(|words| columns(words)).max().unwrap_or(0);
    let room = width.saturating_sub(wide + most + 5).max(4);
    let mut x = ruler(chart, panel, Along::X);
    x.range = [0.0, room as f64];
    let mut text = String::new();
    for (at, (name, words)) in names.iter().zip(words).enumerate() {
        let bar = if has_boxes(panel) { bar(panel, at, x) } else { strip(panel, at, x) };
        let bar = bar.into_iter().collect::<String>();
        let line = format!("  {name:>wide$}  {} {words}", bar.trim_end());
        text.push_str(line.trim_end());
        text.push('\n');
    }
    if most == 0 || !has_boxes(panel) {
        text.push_str(&ends(panel, x.domain, wide + 4, room));
    }
    if let (BANDS, Scale::Bands(all)) = (names.len(), &panel.y.scale) {
        let more = all.len() - BANDS;
        text.push_str(&if more > 0 {
            format!("  and {more} more\n")
        } else {
            String::new()
        });
    }
    text + &key(panel)
}

fn is_in(mark: &Mark, band: usize) -> bool {
    (band as f64..band as f64 + 1.0).contains(&mark.y[0])
}

/// The words beside the marks of a band.
fn beside(panel: &Panel, band: usize, width: usize) -> String {
    let marks = panel.series.iter().flat_map(|series| &series.marks);
    let mut marks = marks.filter(|mark| is_in(mark, band) && !mark.beside.is_empty());
    let words = marks.next_back().map(|mark| mark.beside.to_string()).unwrap_or_default();
    cut(&printable(&words), width)
}

/// The bars of a band.
fn bar(panel: &Panel, band: usize, x: Ruler) -> Vec<char> {
    let mut bar = vec![' '; whole(x.range[1])];
    for (series, mark) in boxes(panel).filter(|(_, mark)| is_in(mark, band)) {
        let tone = mark.tone.unwrap_or(Tone::Text);
        paint(&mut bar, mark.x.map(|place| x.at(place)), tone, series);
    }
    bar
}

/// The intervals and points of a band. A point that is alone is as large as several in one place.
fn strip(panel: &Panel, band: usize, x: Ruler) -> Vec<char> {
    let mut strip = vec![' '; whole(x.range[1])];
    let last = strip.len().saturating_sub(1);
    for series in &panel.series {
        let is_rule = series.shape == Shape::Rule;
        let marks = || series.marks.iter().filter(|mark| is_rule || is_in(mark, band));
        let is_alone = marks().nth(1).is_none();
        for mark in marks() {
            let [from, to] = mark.x.map(|at| whole(x.at(at)).min(last));
            if is_rule {
                strip[from] = '│';
            } else if series.shape == Shape::Whisker {
                interval(&mut strip, [from, to]);
            } else {
                let before = DOTS.iter().position(|dot| *dot == strip[from]);
                let more = before.map_or(0, |before| (before + 1).min(2));
                strip[from] = DOTS[if is_alone { 2 } else { more }];
            }
        }
    }
    strip
}

/// Draws an interval around the points in it.
fn interval(strip: &mut [char], [from, to]: [usize; 2]) {
    if from == to {
        strip[from] = '┼';
        return;
    }
    let between = strip[from..to].iter_mut().filter(|place| **place == ' ');
    between.for_each(|place| *place = '─');
    (strip[from], strip[to]) = ('├', '┤');
}

/// Paints a mark; what is painted already stays, unless it is less heat.
fn paint(bar: &mut [char], ends: [f64; 2], tone: Tone, series: usize) {
    let [from, to] = ends.map(|at| (at * 8.0).round());
    for (at, place) in bar.iter_mut().enumerate() {
        let start = at as f64 * 8.0;
        let inside = to.min(start + 8.0) - from.max(start);
        if inside <= 0.0 {
            continue;
        }
        if let Tone::Heat(part) = tone {
            *place = (*place).max(RISING[eighths(part * 8.0).max(1)]);
        } else if series == 0 {
            *place = ALONG[eighths(inside)];
        } else if inside >= 4.0 && *place != ALONG[8] {
            *place = STACKED[series.min(6)];
        }
    }
}

fn eighths(part: f64) -> usize {
    whole(part.round().clamp(0.0, 8.0))
}

/// The key of stacked bars.
fn key(panel: &Panel) -> String {
    let named = panel.series.iter().filter(|one| one.shape == Shape::Box);
    let name = |(at, name): (usize, String)| format!("{} {name}", STACKED[at.min(6)]);
    let names: Vec<String> =
        named.map(|one| one.name.to_string()).enumerate().map(name).collect();
    if names.len() < 2 {
        String::new()
    } else {
        with_lead("  ", &printable(&names.join("  ")))
    }
}

/// Columns in a few lines, with the largest number at their left and the ends of x below.
fn histogram(chart: &Chart, panel: &Panel, width: usize) -> String {
    let [mut x, mut y] = [Along::X, Along::Y].map(|along| ruler(chart, panel, along));
    let top = boxes(panel).map(|(_, mark)| mark.y[1]).fold(y.domain[0], f64::max);
    y.domain[1] = top;
    let top = written(panel.y.measure, top, top).to_string();
    let lead = columns(&top) + 4;
    let room = width.saturating_sub(lead).max(8);
    (x.range, y.range) = ([0.0, room as f64], [0.0, 8.0 * LINES as f64]);
    let mut heights = vec![0.0_f64; room];
    for (_, mark) in boxes(panel).filter(|(_, mark)| mark.y[0] < mark.y[1]) {
        let ([from, to], height) = (mark.x.map(|at| x.at(at)), y.at(mark.y[1]).max(1.0));
        for (column, at) in heights.iter_mut().zip(0..) {
            let start = f64::from(at);
            if from < start + 1.0 && (to > start || from.floor() == start) {
                *column = column.max(height);
            }
        }
    }
    let mut text = String::new();
    for line in (0..LINES).rev() {
        let below = 8.0 * line as f64;
        let bars: String =
            heights.iter().map(|height| RISING[eighths(height - below)]).collect();
        let head = if line + 1 == LINES { top.as_str() } else { "" };
        let row = format!("  {head:>head_width$} ▕{bars}", head_width = lead - 4);
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text + &ends(panel, x.domain, lead, room)
}

/// The ends of the x axis.
fn ends(panel: &Panel, domain: [f64; 2], lead: usize, room: usize) -> String {
    let words = |at: f64| written(panel.x.measure, at, domain[1]).to_string();
    let [from, to] = match &panel.x.scale {
        Scale::Bands(names) => [names.first(), names.last()]
            .map(|name| name.map(Text::to_string).unwrap_or_default()),
        Scale::Linear | Scale::Log => domain.map(words),
    };
    let [from, to] = [from, to].map(|end| cut(&printable(&end), room / 2));
    let rest = room.saturating_sub(columns(&from));
    format!("{}{from}{to:>rest$}\n", " ".repeat(lead))
}
