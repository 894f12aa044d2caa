//! Flame graphs: callers below callees; the width of a frame is its number of instructions.
//!
//! In the style of Brendan Gregg's `flamegraph.pl`: a self-contained SVG for browsers, with
//! tool-tips, zoom on click and search. A colour is derived from the function's name and has no
//! meaning; in a comparison red is more and blue is fewer instructions of the function itself.

use std::fmt::Write as _;

use summary::{Change, FlameGraph, Frame, Typical};

use crate::number;
use crate::picture::xml::escape;
use crate::text::explain::titles::{Titles, diff_titles, size, titles};
use crate::text::explain::{format_name, format_signed};
use crate::text::layout::table::cut;

const WIDTH: usize = 1200;
/// The space at the left and right.
const LEFT: usize = 10;
/// The space above the frames, for the title and two lines below it.
const ABOVE: usize = 80;
/// The space below the frames, for details.
const BELOW: usize = 32;
/// The height of a frame, with the space to the next.
const FRAME: usize = 16;
/// The width of a character of a monospace font of 11 px.
const GLYPH: f64 = 6.63;
/// The maximum length of the title, in the larger font.
const TITLE: usize = 100;
/// The maximum length of the line below it, in the smaller font.
const NAMES: usize = 170;

const CSS: &str = include_str!("flame.css");
const SCRIPT: &str = include_str!("flame.js");

/// One tick or call as a flame graph.
pub fn flame_svg(typical: &Typical<'_>) -> String {
    let graph = FlameGraph::of(&typical.stacks);
    let about = size(typical, graph.total());
    render(&titles(typical), &about, &graph)
}

/// A graph with colours by name.
pub(crate) fn render(titles: &Titles, about: &str, graph: &FlameGraph) -> String {
    render_with(titles, about, graph, |frame| Style {
        colour: name_colour(&frame.name),
        note: String::new(),
    })
}

/// The second as a flame graph, coloured by its difference from the first.
pub fn flame_diff_svg(before: &Typical<'_>, after: &Typical<'_>) -> String {
    let graph = FlameGraph::compared(&before.stacks, &after.stacks);
    let total = graph.total().more_than(graph.total_before());
    let mut about = format!(
        "{} instructions, {} compared with {}; red: more in the function itself, blue: fewer",
        number::count(graph.total().get()),
        format_signed(total),
        number::count(graph.total_before().get()),
    );
    if graph.removed().get() > 0 {
        let removed = number::count(graph.removed().get());
        about
            .push_str(&format!("; not shown: {removed} of functions that no longer run"));
    }
    let changes = || graph.frames().iter().filter_map(|frame| frame.change);
    let most = changes().map(|change| change.own.unsigned_abs()).max().unwrap_or(0);
    render_with(&diff_titles(before, after), &about, &graph, |frame| {
        let Change { own, total } = frame.change.unwrap_or_default();
        let (more_own, more_total) = (format_signed(own), format_signed(total));
        Style {
            colour: difference_colour(own, most),
            note: format!("; difference: self {more_own}, total {more_total}"),
        }
    })
}

/// The colour of a frame, and a note in its tool-tip.
struct Style {
    colour: [u8; 3],
    note: String,
}

fn render_with(
    titles: &Titles,
    about: &str,
    graph: &FlameGraph,
    style: impl Fn(&Frame) -> Style,
) -> String {
    let deepest = graph.frames().iter().map(|frame| frame.depth).max().unwrap_or(0);
    let height = ABOVE + (deepest + 1) * FRAME + BELOW;
    let mut svg = head(titles, about, height);
    for frame in graph.frames() {
        let y = ABOVE + (deepest - frame.depth) * FRAME;
        write_frame(&mut svg, graph, frame, y, &style(frame));
    }
    svg.push_str("<script><![CDATA[\n");
    svg.push_str(SCRIPT);
    svg.push_str("]]></script>\n</svg>\n");
    svg
}

fn head(titles: &Titles, about: &str, height: usize) -> String {
    let (right, middle, below) = (WIDTH - LEFT, WIDTH / 2, height - 12);
    let room = WIDTH - 2 * LEFT;
    let Titles { title, names } = titles;
    let (title, names) = (escape(&cut(title, TITLE)), escape(&cut(names, NAMES)));
    let about = escape(about);
    format!(
        r##"<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" data-left="{LEFT}" data-width="{room}" data-glyph="{GLYPH}">
<title>{title}</title>
<style><![CDATA[
{CSS}]]></style>
<defs><linearGradient id="paper" x1="0" y1="0" x2="0" y2="1"><stop offset="0" stop-color="#fbfaf7"/><stop offset="1" stop-color="#f2ecd9"/></linearGradient></defs>
<rect width="100%" height="100%" fill="url(#paper)"/>
<text id="title" x="{middle}" y="26">{title}</text>
<text class="about" x="{middle}" y="45">{names}</text>
<text class="about" x="{middle}" y="62">{about}</text>
<text id="reset" class="hidden" x="{LEFT}" y="26">Reset Zoom</text>
<text id="search" class="hidden" x="{right}" y="26">Search</text>
<text id="details" x="{LEFT}" y="{below}"> </text>
<text id="matched" x="{right}" y="{below}"> </text>
"##
    )
}

fn write_frame(
    svg: &mut String,
    graph: &FlameGraph,
    frame: &Frame,
    y: usize,
    style: &Style,
) {
    let scale = (WIDTH - 2 * LEFT) as f64 / (graph.total().get().max(1)) as f64;
    let x = LEFT as f64 + frame.start.get() as f64 * scale;
    let width = frame.total.get() as f64 * scale;
    let label = format_name(&frame.name, frame.renamed_from.as_deref());
    let name = escape(&label);
    let total = number::count(frame.total.get());
    let share = escape(&number::any(graph.share(frame), number::share));
    let Style { colour: [red, green, blue], note } = style;
    let (start, length, depth) = (frame.start, frame.total, frame.depth);
    let text = escape(&clip(&label, width));
    let (text_x, text_y) = (x + 3.0, y + 11);
    // Writing to a String cannot fail.
    let _ = writeln!(
        svg,
        "<g class=\"frame\" data-name=\"{name}\" data-depth=\"{depth}\" data-start=\"{start}\" \
         data-total=\"{length}\"><title>{name} ({total} instructions, {share}{note})</title>\
         <rect x=\"{x:.2}\" y=\"{y}\" width=\"{width:.2}\" height=\"{}\" rx=\"2\" \
         fill=\"rgb({red},{green},{blue})\"/><text x=\"{text_x:.2}\" y=\"{text_y}\">{text}</text>\
         </g>",
        FRAME - 1,
    );
}

/// The name, cut to the width; empty if fewer than three characters fit.
fn clip(name: &str, width: f64) -> String {
    // Casts of floats saturate.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "characters that fit into a picture's width are few"
    )]
    let fit = ((width - 6.0) / GLYPH).max(0.0) as usize;
    if fit < 3 { String::new() } else { cut(name, fit) }
}

/// A warm colour by the hash of the name (FNV-1a, 64 bits).
fn name_colour(name: &str) -> [u8; 3] {
    let mix =
        |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, mix);
    let [_, _, _, a, b, c, ..] = hash.to_be_bytes();
    let between = |low: u8, high: u8, at: u8| {
        let step = u16::from(at) * u16::from(high - low) / 255;
        low.saturating_add(u8::try_from(step).unwrap_or(0))
    };
    [between(218, 253, a), between(104, 214, b), between(32, 80, c)]
}

/// Red for more, blue for fewer, stronger for larger differences; `most` is the largest. Text
/// is readable on the strongest colour.
fn difference_colour(difference: i128, most: u128) -> [u8; 3] {
    const STRONG: u128 = 84;
    const PALE: u128 = 218;
    let size = difference.unsigned_abs().min(most);
    let faded = ((most - size) * (PALE - STRONG)).checked_div(most).unwrap_or_default();
    let pale = u8::try_from(STRONG + faded).unwrap_or(u8::MAX);
    match difference.signum() {
        1 => [245, pale, pale],
        -1 => [pale, pale, 245],
        _ => [228, 225, 217],
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use summary::CallStack;
    use units::Instructions;

    use super::*;
    use crate::example::cell::{NEW, OLD, cell, lost, new_tick, old_tick, typical};
    use crate::picture::xml::checked::check_xml;

    /// The part of a line between two marks.
    fn between<'a>(line: &'a str, from: &str, to: &str) -> &'a str {
        line.split_once(from).unwrap().1.split_once(to).unwrap().0
    }

    fn frame_lines(svg: &str) -> impl Iterator<Item = &str> {
        svg.lines().filter(|line| line.starts_with("<g class=\"frame\""))
    }

    /// Check that a graph is well-formed, loads nothing, and has tool-tips.
    #[test]
    fn tick() {
        let cell = cell("<other> & \"fifo\"", OLD, lost());
        let svg = flame_svg(&typical(&cell, old_tick()));
        check_xml(&svg);
        let about = "<title>update_process_times (1077 instructions, 40.6 %)</title>";
        assert!(svg.contains(about));
        assert!(svg.contains("One tick, &lt;other&gt; &amp; &quot;fifo&quot;"));
        let links = svg.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        assert!(!links.contains("http") && !links.contains("href"));
    }

    /// Check the tool-tips and colours of a comparison.
    #[test]
    fn difference() {
        let cells = [OLD, NEW].map(|kernel| cell("other", kernel, lost()));
        let (a, b) = (typical(&cells[0], old_tick()), typical(&cells[1], new_tick()));
        let svg = flame_diff_svg(&a, &b);
        check_xml(&svg);
        let line = |name: &str| {
            let name = format!("data-name=\"{name}\"");
            frame_lines(&svg).find(|line| line.contains(&name)).unwrap()
        };
        assert!(line("hrtimer_interrupt").contains("; difference: self +3, total +"));
        assert!(line("rb_erase").contains("fill=\"rgb(228,225,217)\""));
        assert!(line("update_curr_dl_se").contains("; difference: self +93, total +93)"));
        let pair = "tick_sched_timer → tick_nohz_handler";
        assert!(line(pair).contains("; difference: self +18, total +"));
        assert!(svg.contains("not shown: "));
        assert!(svg.contains(">One tick, other: 6.12.117 compared with 6.1.0</text>"));
        assert!(svg.contains(&format!(">{NEW} compared with {OLD}</text>")));
    }

    /// Check that more is red, fewer is blue, and the largest difference has the strongest colour.
    #[test]
    fn colours_of_differences() {
        let [red, pale, blue] =
            [10, 1, -10].map(|difference| difference_colour(difference, 10));
        assert_eq!((red, blue), ([245, 84, 84], [84, 84, 245]));
        assert!(pale[0] == 245 && pale[1] > 200);
        assert_eq!(difference_colour(0, 0), difference_colour(0, 10));
    }

    /// Check that a function's colour depends on its name only.
    #[test]
    fn colours() {
        assert_eq!(name_colour("update_curr"), name_colour("update_curr"));
        let names = ["update_curr", "rb_erase", "ktime_get", "task_tick_fair"];
        let colours: std::collections::BTreeSet<_> =
            names.map(name_colour).into_iter().collect();
        assert_eq!(colours.len(), 4);
        assert!(colours.iter().all(|[red, green, blue]| red > blue && green > blue));
    }

    proptest! {
        /// Check that the picture is well-formed for any names of functions, and that frames are
        /// inside it with their texts inside them.
        #[test]
        fn well_formed(
            title in any::<String>(),
            kernel in any::<String>(),
            stacks in prop::collection::vec(
                (prop::collection::vec(any::<String>(), 0..5), 0u64..9_999), 0..9),
        ) {
            let stacks: Vec<CallStack<'_>> = stacks
                .iter()
                .map(|(frames, own)| {
                    let frames = frames.iter().map(String::as_str).collect();
                    CallStack::new(frames, Instructions::new(*own))
                })
                .collect();
            let cell = cell(&title, &kernel, lost());
            let half = typical(&cell, stacks[stacks.len() / 2..].to_vec());
            let whole = typical(&cell, stacks);
            check_xml(&flame_diff_svg(&half, &whole));
            let svg = flame_svg(&whole);
            check_xml(&svg);
            for line in frame_lines(&svg) {
                let number = |from| between(line, from, "\"").parse::<f64>().unwrap();
                let (x, width) = (number(" x=\""), number(" width=\""));
                prop_assert!(x >= 10.0 && x + width <= 1190.01);
                let text = between(line, "<text", "</text>").split_once('>').unwrap().1;
                let text = text.replace("&quot;", "_").replace("&amp;", "_");
                let text = text.replace("&lt;", "_").replace("&gt;", "_");
                prop_assert!(text.chars().count() as f64 * GLYPH <= width);
            }
        }
    }
}
