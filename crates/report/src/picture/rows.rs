//! The tasks that ran in the window of one variant of `slices`: a row for each CPU, coloured by
//! task.
//!
//! Each spinner has a shade. All other tasks interrupt slices, and have one strong colour and a
//! mark above the row, however short they ran. The row is hatched while switches were not
//! traced, and empty while the CPU was idle. A row with more stretches than browsers draw quickly has one path for
//! each colour, without tool-tips.

use recording::End;
use summary::{PictureRole, PictureRow, PictureStretch, PictureTask};
use units::{Nanos, Span};

use crate::number;
use crate::picture::canvas::{Canvas, LEFT, PLOT, line, on_axis, px, rect};
use crate::picture::xml::escape;

/// The number of shades of spinners; the style sheet has a class for each.
pub(crate) const SHADES: usize = 9;
/// The height of the marks above a row.
const MARKS: f64 = 8.0;
/// The height of a row.
const ROW: f64 = 20.0;
/// The space below a row.
const SPACE: f64 = 7.0;
/// The minimum width of a mark, and of a spinner's stretch.
const MIN_WIDTHS: [f64; 2] = [1.2, 0.5];
/// The space between two stretches, which separates equal shades.
const SPACING: f64 = 0.6;
/// In a row with many stretches, those that begin within this distance are drawn once.
const MERGED: f64 = 0.5;

/// What all rows of a picture have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows<'a> {
    /// All tasks.
    pub(crate) tasks: &'a [PictureTask],
    /// The length of the window.
    pub(crate) window: Nanos,
    /// The maximum number of stretches of a row with tool-tips.
    pub(crate) tool_tips_max: usize,
}

impl Rows<'_> {
    /// Draws rows and the axis below them.
    pub(crate) fn draw(&self, canvas: &mut Canvas, rows: &[PictureRow]) {
        let height = (MARKS + ROW + SPACE) * rows.len() as f64;
        canvas.open_group(LEFT);
        for at in self.axis() {
            canvas.draw(line("grid", on_axis(at, self.window), [0.0, height]));
        }
        canvas.close_group();
        for row in rows {
            let name = format!("CPU {}", row.cpu);
            canvas.text("row", LEFT - 8.0, MARKS + ROW / 2.0 + 4.0, &name);
            canvas.open_group(LEFT);
            self.row(canvas, row);
            canvas.close_group();
            canvas.move_down(MARKS + ROW + SPACE);
        }
        for at in self.axis() {
            let x = LEFT + on_axis(at, self.window);
            let zero = if at.is_zero() { "0" } else { &number::duration(at) };
            canvas.text("axis", x, 9.0, zero);
        }
        canvas.move_down(14.0);
    }

    /// The times on the axis, at most eleven.
    fn axis(&self) -> Vec<Nanos> {
        let window = self.window.get();
        let tens = (0..19).map(|tens| 10_u64.pow(tens));
        let steps = tens.flat_map(|ten| [1, 2, 5].map(|times| times * ten));
        let step = steps.into_iter().find(|step| window / step <= 10);
        let each = step.map_or(0, |step| window / step);
        let at = |times| Nanos::from_nanos(step.unwrap_or(0)).saturating_mul(times);
        (0..=each).map(at).collect()
    }

    fn row(&self, canvas: &mut Canvas, row: &PictureRow) {
        canvas.draw(rect("track", [0.0, MARKS, PLOT, ROW], None));
        let (spinners, others) = self.partition(row);
        if row.stretches.len() + row.untraced.len() > self.tool_tips_max {
            self.draw_merged(canvas, row, &spinners, &others);
            return;
        }
        for span in &row.untraced {
            let [x, width] = self.place(*span, MIN_WIDTHS[1]);
            let title = format!("not traced for {}", number::duration(span.length));
            canvas.draw(rect("unseen", [x, MARKS, width, ROW], Some(&title)));
        }
        for (stretch, task) in &spinners {
            let class = format!("k{}", task.shade % SHADES);
            let [x, width] = self.place(stretch.span, MIN_WIDTHS[1]);
            let title = self.title(stretch, task);
            canvas.draw(rect(&class, [x, MARKS, width, ROW], Some(&title)));
        }
        for (stretch, task) in &others {
            let title = escape(&self.title(stretch, task));
            let path = mark(
                self.place(stretch.span, MIN_WIDTHS[0]),
                stretch.preempted.is_some(),
            );
            canvas.draw(format_args!(
                "<path class=\"other\" d=\"{path}\"><title>{title}</title></path>"
            ));
        }
    }

    /// Draws all stretches of one colour as one path.
    fn draw_merged(
        &self,
        canvas: &mut Canvas,
        row: &PictureRow,
        spinners: &[Run<'_>],
        others: &[Run<'_>],
    ) {
        let unseen = row.untraced.iter().map(|span| self.place(*span, MIN_WIDTHS[1]));
        draw_shapes(canvas, "unseen", unseen.map(|place| (place, area(place))));
        for shade in 0..SHADES {
            let of_shade =
                spinners.iter().filter(|(_, task)| task.shade % SHADES == shade);
            let places =
                of_shade.map(|(stretch, _)| self.place(stretch.span, MIN_WIDTHS[1]));
            draw_shapes(
                canvas,
                &format!("k{shade}"),
                places.map(|place| (place, area(place))),
            );
        }
        let marks = others.iter().map(|(stretch, _)| {
            let place = self.place(stretch.span, MIN_WIDTHS[0]);
            (place, mark(place, stretch.preempted.is_some()))
        });
        draw_shapes(canvas, "other", marks);
    }

    /// The stretches of spinners and of other tasks, without idle ones.
    fn partition<'b>(&'b self, row: &'b PictureRow) -> (Vec<Run<'b>>, Vec<Run<'b>>) {
        let with_task =
            |stretch: &'b PictureStretch| Some((stretch, self.tasks.get(stretch.task)?));
        let all = row.stretches.iter().filter_map(with_task);
        all.filter(|(_, task)| task.role != PictureRole::Idle)
            .partition(|(_, task)| task.role == PictureRole::Spinner)
    }

    /// The position and width of a stretch, inside the row.
    fn place(&self, span: Span, least: f64) -> [f64; 2] {
        let x = self.x(span.start);
        let width = (self.x(span.end()) - x - SPACING).max(least);
        [x.min(PLOT - width), width]
    }

    fn x(&self, time: Nanos) -> f64 {
        on_axis(time, self.window)
    }

    /// The tool-tip of a stretch: the task, its run time, and what ended it.
    fn title(&self, stretch: &PictureStretch, task: &PictureTask) -> String {
        let named = |at: usize| self.tasks.get(at).map_or("?", |task| &task.name);
        let before = stretch.preempted.map_or_else(String::new, |victim| {
            format!(" woke up, preempted {},", named(victim))
        });
        let next = stretch.next.map(named);
        let then = next.map_or_else(String::new, |next| format!("; then {next}"));
        let end = match (stretch.end, next) {
            (End::Wakeup, Some(next)) => {
                format!("preempted by {next}, which woke up")
            }
            (End::Wakeup, None) => "preempted by a task that woke up".to_owned(),
            (End::Tick, _) => format!("slice ended at a tick{then}"),
            (End::Yield, _) => format!("yielded{then}"),
            (End::Sleep, _) => format!("went to sleep{then}"),
            (End::Other, _) => format!("moved, or its priority changed{then}"),
        };
        format!("{}{before} ran {}: {end}", task.name, number::duration(stretch.whole))
    }
}

/// A stretch and its task.
type Run<'a> = (&'a PictureStretch, &'a PictureTask);

/// Draws shapes as one path, without those that earlier ones cover.
fn draw_shapes(
    canvas: &mut Canvas,
    class: &str,
    shapes: impl Iterator<Item = ([f64; 2], String)>,
) {
    let (mut path, mut last) = (String::new(), f64::NEG_INFINITY);
    for ([x, width], shape) in shapes {
        if x + width > last + MERGED {
            path.push_str(&shape);
            last = x + width;
        }
    }
    if !path.is_empty() {
        canvas.draw(format_args!("<path class=\"{class}\" d=\"{path}\"/>"));
    }
}

/// The path of a spinner's stretch, or of a hatched one.
fn area([x, width]: [f64; 2]) -> String {
    let [x, y, width, height] = [x, MARKS, width, ROW].map(px);
    format!("M{x} {y}h{width}v{height}h-{width}z")
}

/// The path of a mark across the row, with a head if the task preempted another one.
pub(crate) fn mark([x, width]: [f64; 2], has_preempted: bool) -> String {
    let [left, wide, bottom] = [x, width, MARKS + ROW].map(px);
    if has_preempted {
        let middle = px(x + width / 2.0);
        format!("M{left} {bottom}V5h{wide}V{bottom}zM{middle} 7l-3.2 -7h6.4z")
    } else {
        format!("M{left} {bottom}V4h{wide}V{bottom}z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks() -> Vec<PictureTask> {
        let task = |(name, role): (&str, _)| PictureTask {
            name: name.to_owned(),
            role,
            shade: 0,
        };
        [("spin/0", PictureRole::Spinner), ("sleep/0", PictureRole::Sleeper)]
            .map(task)
            .into()
    }

    fn rows(tasks: &[PictureTask], micros: u64) -> Rows<'_> {
        Rows { tasks, window: Nanos::from_micros(micros), tool_tips_max: 9 }
    }

    fn stretch(start: u64, ns: u64, end: End) -> PictureStretch {
        let [start, whole] = [start, ns].map(Nanos::from_nanos);
        let span = Span { start, length: whole };
        PictureStretch { span, whole, task: 1, end, next: None, preempted: None }
    }

    /// Check that the axis has at most eleven times for any window.
    #[test]
    fn axis() {
        let axis =
            |micros| rows(&[], micros).axis().last().map(|last| last.get() / 1_000);
        let ends = [50_000, 49_999, 9_000, 1, 0].map(axis);
        assert_eq!(ends, [50_000, 45_000, 9_000, 1, 0].map(Some));
        for micros in [1, 7, 99, 101, 12_345, u64::MAX / 1_000] {
            let count = rows(&[], micros).axis().len();
            assert!((2..=11).contains(&count), "{micros}: {count}");
        }
    }

    /// Check that very short stretches have the minimum width, inside the row.
    #[test]
    fn least_width() {
        let tasks = tasks();
        let place = |start| {
            let [x, width] = rows(&tasks, 50_000)
                .place(stretch(start, 5, End::Sleep).span, MIN_WIDTHS[0]);
            [px(x), px(width)]
        };
        assert_eq!(place(0), ["0", "1.2"]);
        assert_eq!(place(49_999_995), ["910.8", "1.2"]);
    }

    /// Check the tool-tips of stretches: task, run time, end, and the next task if it is known.
    #[test]
    fn titles() {
        use End::{Other, Sleep, Tick, Wakeup, Yield};
        let tasks = tasks();
        let title = |end, next, preempted| {
            let stretch = PictureStretch { next, preempted, ..stretch(0, 5_200, end) };
            rows(&tasks, 50).title(&stretch, &tasks[1])
        };
        assert_eq!(
            title(Sleep, Some(0), Some(0)),
            "sleep/0 woke up, preempted spin/0, ran 5.2 µs: went to sleep; then spin/0"
        );
        let ends = [Tick, Wakeup, Yield, Sleep, Other].map(|end| title(end, None, None));
        let expected = [
            "slice ended at a tick",
            "preempted by a task that woke up",
            "yielded",
            "went to sleep",
            "moved, or its priority changed",
        ];
        assert_eq!(ends, expected.map(|end| format!("sleep/0 ran 5.2 µs: {end}")));
        let woken = title(Wakeup, Some(0), None);
        assert_eq!(woken, "sleep/0 ran 5.2 µs: preempted by spin/0, which woke up");
    }
}
