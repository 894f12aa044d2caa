//! What ran in the window of one step of `slices`: a row for each CPU, coloured by task.
//!
//! Spinners have calm shades; whatever else runs is what slices are broken by, and has one
//! strong colour and a mark above the row, however short it is. Where nobody saw what ran the
//! row is hatched, and where a CPU was idle it is empty. A row of more stretches than a
//! reader's browser likes has one path for each colour, and tells nothing when pointed at.

use recording::End;
use stats::{PictureRole, PictureRow, PictureStretch, PictureTask};
use units::{Nanos, Span};

use crate::number;
use crate::picture::sheet::{LEFT, PLOT, Sheet, line, on_axis, px, rect};
use crate::picture::xml::escaped;

/// How many shades spinners have; the style sheet has a class for each.
pub(crate) const SHADES: usize = 9;
/// The height of the marks above a row.
const MARKS: f64 = 8.0;
/// The height of a row.
const ROW: f64 = 20.0;
/// The space below it.
const SPACE: f64 = 7.0;
/// The least width of a mark, and of a spinner's stretch.
const LEAST: [f64; 2] = [1.2, 0.5];
/// The space between two stretches, which tells equal shades apart.
const BETWEEN: f64 = 0.6;
/// In a row of many stretches, what begins closer together is drawn once.
const NEAR: f64 = 0.5;

/// Rows, and what the tasks in them are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rows<'a> {
    /// All tasks.
    pub(crate) tasks: &'a [PictureTask],
    /// How long the window is.
    pub(crate) window: Nanos,
    /// Rows of more stretches do not tell of each of them.
    pub(crate) most: usize,
}

impl Rows<'_> {
    /// Draws rows and the axis below them.
    pub(crate) fn draw(&self, sheet: &mut Sheet, rows: &[PictureRow]) {
        let height = (MARKS + ROW + SPACE) * rows.len() as f64;
        sheet.open(LEFT);
        for at in self.axis() {
            sheet.put(line("grid", on_axis(at, self.window), [0.0, height]));
        }
        sheet.close();
        for row in rows {
            let name = format!("CPU {}", row.cpu);
            sheet.text("row", LEFT - 8.0, MARKS + ROW / 2.0 + 4.0, &name);
            sheet.open(LEFT);
            self.row(sheet, row);
            sheet.close();
            sheet.down(MARKS + ROW + SPACE);
        }
        for at in self.axis() {
            let x = LEFT + on_axis(at, self.window);
            let zero = if at.is_zero() { "0" } else { &number::duration(at) };
            sheet.text("axis", x, 9.0, zero);
        }
        sheet.down(14.0);
    }

    /// At most eleven moments.
    fn axis(&self) -> Vec<Nanos> {
        let window = self.window.get();
        let tens = (0..19).map(|tens| 10_u64.pow(tens));
        let steps = tens.flat_map(|ten| [1, 2, 5].map(|times| times * ten));
        let step = steps.into_iter().find(|step| window / step <= 10);
        let each = step.map_or(0, |step| window / step);
        let at = |times| Nanos::from_nanos(step.unwrap_or(0)).saturating_mul(times);
        (0..=each).map(at).collect()
    }

    fn row(&self, sheet: &mut Sheet, row: &PictureRow) {
        sheet.put(rect("track", [0.0, MARKS, PLOT, ROW], None));
        let (spinners, others) = self.sorted(row);
        if row.stretches.len() + row.unseen.len() > self.most {
            self.as_shapes(sheet, row, &spinners, &others);
            return;
        }
        for span in &row.unseen {
            let [x, width] = self.place(*span, LEAST[1]);
            let title = format!("not seen for {}", number::duration(span.length));
            sheet.put(rect("unseen", [x, MARKS, width, ROW], Some(&title)));
        }
        for (seen, task) in &spinners {
            let class = format!("k{}", task.shade % SHADES);
            let [x, width] = self.place(seen.span, LEAST[1]);
            let title = self.title(seen, task);
            sheet.put(rect(&class, [x, MARKS, width, ROW], Some(&title)));
        }
        for (seen, task) in &others {
            let title = escaped(&self.title(seen, task));
            let path = mark(self.place(seen.span, LEAST[0]), seen.preempted.is_some());
            sheet.put(format_args!(
                "<path class=\"other\" d=\"{path}\"><title>{title}</title></path>"
            ));
        }
    }

    /// All of one colour as one shape.
    fn as_shapes(
        &self,
        sheet: &mut Sheet,
        row: &PictureRow,
        spinners: &[Seen<'_>],
        others: &[Seen<'_>],
    ) {
        let unseen = row.unseen.iter().map(|span| self.place(*span, LEAST[1]));
        shape(sheet, "unseen", unseen.map(|place| (place, area(place))));
        for shade in 0..SHADES {
            let of_shade =
                spinners.iter().filter(|(_, task)| task.shade % SHADES == shade);
            let places = of_shade.map(|(seen, _)| self.place(seen.span, LEAST[1]));
            shape(sheet, &format!("k{shade}"), places.map(|place| (place, area(place))));
        }
        let marks = others.iter().map(|(seen, _)| {
            let place = self.place(seen.span, LEAST[0]);
            (place, mark(place, seen.preempted.is_some()))
        });
        shape(sheet, "other", marks);
    }

    /// Spinners' stretches, and those of others; idling is neither.
    fn sorted<'b>(&'b self, row: &'b PictureRow) -> (Vec<Seen<'b>>, Vec<Seen<'b>>) {
        let with_task =
            |seen: &'b PictureStretch| Some((seen, self.tasks.get(seen.task)?));
        let all = row.stretches.iter().filter_map(with_task);
        all.filter(|(_, task)| task.role != PictureRole::Idle)
            .partition(|(_, task)| task.role == PictureRole::Spinner)
    }

    /// Where a stretch begins, and how wide it is drawn; within the row.
    fn place(&self, span: Span, least: f64) -> [f64; 2] {
        let x = self.x(span.start);
        let width = (self.x(span.end()) - x - BETWEEN).max(least);
        [x.min(PLOT - width), width]
    }

    fn x(&self, time: Nanos) -> f64 {
        on_axis(time, self.window)
    }

    /// Who ran, for how long, and what ended it.
    fn title(&self, seen: &PictureStretch, task: &PictureTask) -> String {
        let named = |at: usize| self.tasks.get(at).map_or("?", |task| &task.name);
        let before = seen.preempted.map_or_else(String::new, |victim| {
            format!(" woke up, preempted {},", named(victim))
        });
        let next = seen.next.map(named);
        let then = next.map_or_else(String::new, |next| format!("; then {next}"));
        let end = match (seen.end, next) {
            (End::Wakeup, Some(next)) => {
                format!("preempted by {next}, which woke up")
            }
            (End::Wakeup, None) => "preempted by one that woke up".to_owned(),
            (End::Tick, _) => format!("had run long enough (tick){then}"),
            (End::Yield, _) => format!("let others go first{then}"),
            (End::Sleep, _) => format!("went to sleep{then}"),
            (End::Other, _) => format!("was made to go{then}"),
        };
        format!("{}{before} ran {}: {end}", task.name, number::duration(seen.whole))
    }
}

/// A stretch and whose it is.
type Seen<'a> = (&'a PictureStretch, &'a PictureTask);

/// Shapes as one, without those that earlier ones cover; each with where it is.
fn shape(
    sheet: &mut Sheet,
    class: &str,
    shapes: impl Iterator<Item = ([f64; 2], String)>,
) {
    let (mut path, mut last) = (String::new(), f64::NEG_INFINITY);
    for ([x, width], shape) in shapes {
        if x + width > last + NEAR {
            path.push_str(&shape);
            last = x + width;
        }
    }
    if !path.is_empty() {
        sheet.put(format_args!("<path class=\"{class}\" d=\"{path}\"/>"));
    }
}

/// What a row is filled with.
fn area([x, width]: [f64; 2]) -> String {
    let [x, y, width, height] = [x, MARKS, width, ROW].map(px);
    format!("M{x} {y}h{width}v{height}h-{width}z")
}

/// A pin through the row, with a head if it preempted somebody.
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
        Rows { tasks, window: Nanos::from_micros(micros), most: 9 }
    }

    fn seen(start: u64, ns: u64, end: End) -> PictureStretch {
        let [start, whole] = [start, ns].map(Nanos::from_nanos);
        let span = Span { start, length: whole };
        PictureStretch { span, whole, task: 1, end, next: None, preempted: None }
    }

    /// Check that a window has at most eleven moments on its axis, whatever its length.
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

    /// Check that what is too short to see is drawn, and within the row.
    #[test]
    fn least_width() {
        let tasks = tasks();
        let place = |start| {
            let [x, width] =
                rows(&tasks, 50_000).place(seen(start, 5, End::Sleep).span, LEAST[0]);
            [px(x), px(width)]
        };
        assert_eq!(place(0), ["0", "1.2"]);
        assert_eq!(place(49_999_995), ["910.8", "1.2"]);
    }

    /// Check what a stretch tells: who ran, for how long, what ended it, and what came next as
    /// far as that is known.
    #[test]
    fn titles() {
        use End::{Other, Sleep, Tick, Wakeup, Yield};
        let tasks = tasks();
        let told = |end, next, preempted| {
            let seen = PictureStretch { next, preempted, ..seen(0, 5_200, end) };
            rows(&tasks, 50).title(&seen, &tasks[1])
        };
        assert_eq!(
            told(Sleep, Some(0), Some(0)),
            "sleep/0 woke up, preempted spin/0, ran 5.2 µs: went to sleep; then spin/0"
        );
        let ends = [Tick, Wakeup, Yield, Sleep, Other].map(|end| told(end, None, None));
        let expected = [
            "had run long enough (tick)",
            "preempted by one that woke up",
            "let others go first",
            "went to sleep",
            "was made to go",
        ];
        assert_eq!(ends, expected.map(|end| format!("sleep/0 ran 5.2 µs: {end}")));
        let woken = told(Wakeup, Some(0), None);
        assert_eq!(woken, "sleep/0 ran 5.2 µs: preempted by spin/0, which woke up");
    }
}
