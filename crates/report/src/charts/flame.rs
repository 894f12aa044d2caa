//! Flame graphs: callers below callees; the width of a frame is its number of instructions.
//!
//! In the style of Brendan Gregg's `flamegraph.pl`: with tool-tips, zoom on click and search. A colour is
//! derived from the function's name and has no meaning; in a comparison red is more and blue is fewer
//! instructions of the function itself.

use recording::Cell;
use stats::Unit;
use summary::{Change, FlameGraph, Frame, Typical, WholePhase};
use units::Instructions;

use crate::document::chart::{Axis, Chart, Mark, Measure, Panel, Shape, Tone};
use crate::document::text::{Text, text};
use crate::explanations::format_name;
use crate::explanations::phase::subject;
use crate::explanations::titles::{Titles, diff_titles, on_kernel, size, titles};
use crate::kernel_label::{full_name, labels};
use crate::number;

/// The typical tick of a cell, or all that its program executed; `None` without stacks.
pub(crate) fn of_cell(cell: &Cell) -> Option<Chart> {
    let tick = Typical::of(cell, None).map(|typical| event(&typical));
    tick.or_else(|| Some(whole(&WholePhase::of(cell, None, None)?)))
}

/// One tick or call.
pub(crate) fn event(typical: &Typical<'_>) -> Chart {
    let graph = FlameGraph::of(&typical.stacks);
    let about = size(typical, graph.total());
    by_name(titles(typical), about, &graph)
}

/// A whole phase.
pub(crate) fn whole(phase: &WholePhase<'_>) -> Chart {
    let graph = FlameGraph::of(&phase.stacks);
    let label = labels([phase.cell]).concat();
    let subject = subject(phase).replacen("the", "The", 1);
    let title = format!("{subject}, {}", on_kernel(&phase.cell.name, &label));
    let about = text!("{} instructions", number::count(graph.total().get()));
    by_name(Titles { title, names: full_name(phase.cell) }, about, &graph)
}

/// A graph with colours by name.
fn by_name(titles: Titles, about: Text, graph: &FlameGraph) -> Chart {
    let colour = |frame: &Frame| (Tone::Warm(hash(&frame.name)), Text::default());
    frames(titles, about, graph, colour)
}

/// The second of two events, coloured by its difference from the first.
pub(crate) fn compared(before: &Typical<'_>, after: &Typical<'_>) -> Chart {
    let graph = FlameGraph::compared(&before.stacks, &after.stacks);
    let changes = || graph.frames().iter().filter_map(|frame| frame.change);
    let most = changes().map(|change| change.own.unsigned_abs()).max().unwrap_or(0);
    frames(diff_titles(before, after), difference(&graph), &graph, |frame| {
        let Change { own, total } = frame.change.unwrap_or_default();
        let (more_own, more_total) =
            (number::exact_difference(own), number::exact_difference(total));
        let part = own as f64 / most.max(1) as f64;
        (
            Tone::Change(part),
            text!("; difference: self {}, total {}", more_own, more_total),
        )
    })
}

/// The difference of both, in words.
fn difference(graph: &FlameGraph) -> Text {
    let count = |count: Instructions| number::count(count.get());
    let mut about = text!(
        "{} instructions, {} compared with {}; red: more in the function itself, blue: fewer",
        count(graph.total()),
        number::exact_difference(graph.total().more_than(graph.total_before())),
        count(graph.total_before()),
    );
    if graph.removed() > Instructions::ZERO {
        let removed = count(graph.removed());
        about.push(text!("; not shown: {} of functions that no longer run", removed));
    }
    about
}

/// The graph, with the colour of each frame and a note in its tool-tip.
fn frames(
    titles: Titles,
    about: Text,
    graph: &FlameGraph,
    style: impl Fn(&Frame) -> (Tone, Text),
) -> Chart {
    let deepest = graph.frames().iter().map(|frame| frame.depth).max().unwrap_or(0);
    let mark = |frame: &Frame| {
        let (tone, note) = style(frame);
        let ends = [frame.start, frame.start + frame.total].map(|at| at.get() as f64);
        let band = (deepest - frame.depth) as f64;
        let share = number::any(graph.share(frame));
        let total = number::count(frame.total.get());
        Mark::over(ends, [band, band + 1.0]).tone(tone).says(
            Text::name(format_name(&frame.name, frame.renamed_from.as_deref())),
            text!("{} instructions, {}{}", total, share, note),
        )
    };
    let x = Axis { measure: Measure::None, ..Axis::linear("", Unit::Instructions) };
    let y = Axis::bands((0..=deepest).map(|_| Text::default()));
    let y = Axis { title: "function".into(), ..y };
    let marks = graph.frames().iter().map(mark);
    Chart::new("flame", titles.title)
        .about(titles.names)
        .about(about)
        .panel(Panel::new(x, y).draw(Shape::Frame, Tone::Muted, "", marks))
}

/// The hash of a name (FNV-1a, 64 bits).
fn hash(name: &str) -> u64 {
    let mix =
        |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    name.bytes().fold(0xcbf2_9ce4_8422_2325, mix)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use summary::CallStack;
    use units::Instructions;

    use super::*;
    use crate::chart;
    use crate::chart::svg::checked::check_xml;
    use crate::example::cell::{NEW, OLD, cell, lost, new_tick, old_tick, typical};

    /// The part of a line between two marks.
    fn between<'a>(line: &'a str, from: &str, to: &str) -> &'a str {
        line.split_once(from).unwrap().1.split_once(to).unwrap().0
    }

    /// The rectangle and the text of each frame.
    fn frames_of(svg: &str) -> impl Iterator<Item = &str> {
        let is_frame = |part: &&str| part.starts_with(" data-name");
        svg.split("<g class=\"frame\"").filter(is_frame)
    }

    /// Check that a graph is well-formed, loads nothing, and has tool-tips.
    #[test]
    fn tick() {
        let cell = cell("<other> & \"fifo\"", OLD, lost());
        let svg = chart::file(&event(&typical(&cell, old_tick())));
        check_xml(&svg);
        let about = "<title>update_process_times: 1077 instructions, 40.6 %</title>";
        assert!(svg.contains(about));
        assert!(svg.contains("One tick, &lt;other&gt; &amp; &quot;fifo&quot;"));
        let links = svg.replace("xmlns=\"http://www.w3.org/2000/svg\"", "");
        assert!(!links.contains("http") && !links.contains("href"));
    }

    /// Check the tool-tips and colours of a comparison: the largest difference has the strongest.
    #[test]
    fn difference() {
        let cells = [OLD, NEW].map(|kernel| cell("other", kernel, lost()));
        let (a, b) = (typical(&cells[0], old_tick()), typical(&cells[1], new_tick()));
        let svg = chart::file(&compared(&a, &b));
        check_xml(&svg);
        let frame = |name: &str| {
            let name = format!(" data-name=\"{name}\"");
            frames_of(&svg).find(|frame| frame.starts_with(&name)).unwrap()
        };
        assert!(frame("hrtimer_interrupt").contains("; difference: self +3, total +"));
        assert!(frame("rb_erase").contains("<rect class=\"d4\""));
        let most = frame("update_curr_dl_se");
        assert!(most.contains("; difference: self +93, total +93"), "{most}");
        let pair = "tick_sched_timer → tick_nohz_handler";
        assert!(frame(pair).contains("; difference: self +18, total +"));
        assert!(svg.contains("not shown: "));
        assert!(svg.contains(">One tick, other: 6.12.117 compared with 6.1.0</text>"));
        assert!(svg.contains(&format!("{NEW} compared with {OLD} ")));
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
            check_xml(&chart::file(&compared(&half, &whole)));
            let svg = chart::file(&event(&whole));
            check_xml(&svg);
            for frame in frames_of(&svg).filter(|frame| frame.contains("<rect")) {
                let number = |from| between(frame, from, "\"").parse::<f64>().unwrap();
                let (x, width) = (number(" x=\""), number(" width=\""));
                prop_assert!(x >= 16.0 && x + width <= 584.01);
                let text = between(frame, "<text", "</text>").split_once('>').unwrap().1;
                let text = text.replace("&quot;", "_").replace("&amp;", "_");
                let text = text.replace("&lt;", "_").replace("&gt;", "_");
                prop_assert!(text.chars().count() as f64 * 7.83 <= width);
            }
        }
    }
}
