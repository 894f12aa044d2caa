//! The tasks that ran in the window of one variant of `slices`: a row for each CPU.
//!
//! Each spinner has a shade. All other tasks interrupt slices, and have one strong colour, however short
//! they ran.

use recording::End;
use stats::Unit;
use summary::{
    PictureRole, PictureRow, PictureStep, PictureStretch, PictureTask, SlicesPicture,
    StepSlices,
};
use units::Span;

use crate::charts::slices::words;
use crate::charts::values::nanos;
use crate::document::chart::{Axis, Mark, Panel, Series, Shape, Tone};
use crate::document::text::{Text, text};
use crate::number;

/// The maximum number of rows of all variants and of one variant; each has at least one.
const ROWS: [usize; 2] = [24, 8];

/// The number of CPUs drawn for each variant.
pub(super) fn shown(picture: &SlicesPicture) -> usize {
    let [all, most] = ROWS;
    all.checked_div(picture.steps.len()).unwrap_or(1).clamp(1, most)
}

/// The window of a variant.
pub(super) fn panel(
    picture: &SlicesPicture,
    (name, results): &(Text, &StepSlices),
    step: &PictureStep,
) -> Panel {
    let rows = step.rows.get(..shown(picture)).unwrap_or(&step.rows);
    let names = rows.iter().map(|row| text!("CPU {}", row.cpu));
    let panel = Panel::new(Axis::linear("time", Unit::Ns), Axis::bands(names));
    let figures = words::figures(results, step);
    if rows.is_empty() {
        let none = text!("No task of this variant was traced: {}", figures);
        return panel.titled(name.clone(), none);
    }
    let rows = Rows { picture, rows };
    let all = |name, shape, tone, of: &dyn Fn(usize) -> Vec<Mark>| {
        Series::new(shape, tone, name, (0..rows.rows.len()).flat_map(of))
    };
    let flags = "one that woke up and preempted";
    let quiet = "sleeper or other task";
    panel
        .titled(name.clone(), figures)
        .series(all("idle", Shape::Box, Tone::Ground, &|band| rows.ground(band)))
        .series(all("not traced", Shape::Box, Tone::Unseen, &|band| rows.untraced(band)))
        .series(all("spinners", Shape::Box, Tone::Shade(0), &|band| rows.spinners(band)))
        .series(all(quiet, Shape::Box, Tone::Strong, &|band| rows.others(band, false)))
        .series(all(flags, Shape::Flag, Tone::Strong, &|band| rows.others(band, true)))
}

/// The rows of a window, and the tasks.
struct Rows<'a> {
    picture: &'a SlicesPicture,
    rows: &'a [PictureRow],
}

impl Rows<'_> {
    fn ground(&self, band: usize) -> Vec<Mark> {
        vec![Mark::over([0.0, nanos(self.picture.window)], in_row(band, 0.3))]
    }

    fn untraced(&self, band: usize) -> Vec<Mark> {
        let spans = self.rows.get(band).map_or(&[][..], |row| &row.untraced);
        let mark = |span: &Span| {
            let length = number::duration(span.length);
            Mark::over(ends(*span), in_row(band, 0.3))
                .says(text!("not traced for {}", length), "")
        };
        spans.iter().map(mark).collect()
    }

    fn spinners(&self, band: usize) -> Vec<Mark> {
        let all = self.stretches(band, |role| role == PictureRole::Spinner);
        all.map(|(stretch, task)| {
            self.mark(stretch, task, in_row(band, 0.3)).tone(Tone::Shade(task.shade))
        })
        .collect()
    }

    fn others(&self, band: usize, have_preempted: bool) -> Vec<Mark> {
        let is_other = |role| matches!(role, PictureRole::Sleeper | PictureRole::Other);
        let all = self.stretches(band, is_other);
        let all =
            all.filter(|(stretch, _)| stretch.preempted.is_some() == have_preempted);
        let top = if have_preempted { 0.04 } else { 0.16 };
        all.map(|(stretch, task)| self.mark(stretch, task, in_row(band, top))).collect()
    }

    fn stretches(
        &self,
        band: usize,
        is_shown: impl Fn(PictureRole) -> bool,
    ) -> impl Iterator<Item = (&PictureStretch, &PictureTask)> {
        let stretches = self.rows.get(band).map_or(&[][..], |row| &row.stretches);
        let tasks = &self.picture.tasks;
        let all = stretches.iter().filter_map(|one| Some((one, tasks.get(one.task)?)));
        all.filter(move |(_, task)| is_shown(task.role))
    }

    fn mark(&self, stretch: &PictureStretch, task: &PictureTask, y: [f64; 2]) -> Mark {
        Mark::over(ends(stretch.span), y)
            .says(title(&self.picture.tasks, stretch, task), "")
    }
}

/// The place of a row in its band, from this part of it on.
fn in_row(band: usize, top: f64) -> [f64; 2] {
    [top, 0.94].map(|part| band as f64 + part)
}

fn ends(span: Span) -> [f64; 2] {
    [span.start, span.end()].map(nanos)
}

/// The tool-tip of a stretch: the task, its run time, and what ended it.
fn title(tasks: &[PictureTask], stretch: &PictureStretch, task: &PictureTask) -> Text {
    let named = |at: usize| Text::name(tasks.get(at).map_or("?", |task| &task.name));
    let before =
        stretch.preempted.map(|victim| text!(" woke up, preempted {},", named(victim)));
    let next = stretch.next.map(named);
    let then = || next.clone().map(|next| text!("; then {}", next));
    let end = match (stretch.end, next.clone()) {
        (End::Wakeup, Some(next)) => text!("preempted by {}, which woke up", next),
        (End::Wakeup, None) => "preempted by a task that woke up".into(),
        (End::Tick, _) => text!("slice ended at a tick{}", then()),
        (End::Yield, _) => text!("yielded{}", then()),
        (End::Sleep, _) => text!("went to sleep{}", then()),
        (End::Other, _) => text!("moved, or its priority changed{}", then()),
    };
    let ran = number::duration(stretch.whole);
    text!("{}{} ran {}: {}", Text::name(&task.name), before, ran, end)
}

#[cfg(test)]
mod tests {
    use units::Nanos;

    use super::*;

    /// Check the tool-tips of stretches: task, run time, end, and the next task if it is known.
    #[test]
    fn titles() {
        use End::{Other, Sleep, Tick, Wakeup, Yield};
        let task = |(name, role): (&str, _)| PictureTask {
            name: name.to_owned(),
            role,
            shade: 0,
        };
        let tasks = [("spin/0", PictureRole::Spinner), ("sleep/0", PictureRole::Sleeper)]
            .map(task);
        let title = |end, next, preempted| {
            let whole = Nanos::from_nanos(5_200);
            let span = Span { start: Nanos::ZERO, length: whole };
            let stretch = PictureStretch { span, whole, task: 1, end, next, preempted };
            title(&tasks, &stretch, &tasks[1]).to_string()
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
