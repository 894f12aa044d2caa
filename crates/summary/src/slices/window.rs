//! What ran on a CPU in a short window: stretches clipped to it, with the previous and the next task,
//! and the times that were not traced.
//!
//! Stretches are those of traced switches, in order. If a stretch does not end at the start of the next
//! one, switches were lost between them: the next task is then unknown.

use recording::{CpuSwitches, End, Stretch};
use units::{Cpu, Nanos, Span};

/// A stretch in a variant's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PictureStretch {
    /// The part of it in the window, relative to the start of the window.
    pub span: Span,
    /// The length of the whole stretch.
    pub whole: Nanos,
    /// The index of the task.
    pub task: usize,
    /// Why it ended.
    pub end: End,
    /// The next task; `None` if it was not traced.
    pub next: Option<usize>,
    /// The task that it preempted at its wake-up.
    pub preempted: Option<usize>,
}

/// One CPU in a variant's window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PictureRow {
    /// The CPU.
    pub cpu: Cpu,
    /// What ran, in order.
    pub stretches: Vec<PictureStretch>,
    /// The times that were not traced, relative to the start of the window.
    pub untraced: Vec<Span>,
}

impl PictureRow {
    /// The stretches of a CPU in this window.
    pub(super) fn of(cpu: &CpuSwitches, window: Span) -> Self {
        let stretches = &cpu.stretches;
        let is_before = |stretch: &Stretch| span(stretch).end() <= window.start;
        let first = stretches.partition_point(is_before);
        let (mut shown, mut untraced, mut until) = (Vec::new(), Vec::new(), window.start);
        for (at, stretch) in stretches.iter().enumerate().skip(first) {
            if stretch.start_ns >= window.end() {
                break;
            }
            let from = stretch.start_ns.max(until);
            let to = span(stretch).end().min(window.end());
            push_span(&mut untraced, window, until, from);
            shown.push(PictureStretch {
                span: within(window, from, to),
                whole: stretch.ns,
                task: place(stretch),
                end: stretch.end,
                next: follower(stretches, at).map(place),
                preempted: victim(stretches, at),
            });
            until = until.max(to);
        }
        push_span(&mut untraced, window, until, window.end());
        Self { cpu: cpu.cpu, stretches: shown, untraced }
    }
}

/// Its time on the CPU.
pub(super) fn span(stretch: &Stretch) -> Span {
    Span { start: stretch.start_ns, length: stretch.ns }
}

/// The index of its task.
pub(super) fn place(stretch: &Stretch) -> usize {
    usize::try_from(stretch.task).unwrap_or(usize::MAX)
}

/// Relative to the start of the window.
fn within(window: Span, from: Nanos, to: Nanos) -> Span {
    let start = from.saturating_sub(window.start);
    Span { start, length: to.saturating_sub(from) }
}

fn push_span(spans: &mut Vec<Span>, window: Span, from: Nanos, to: Nanos) {
    if from < to {
        spans.push(within(window, from, to));
    }
}

/// The next stretch, if no switch was lost before it.
fn follower(stretches: &[Stretch], at: usize) -> Option<&Stretch> {
    let next = stretches.get(at + 1)?;
    (next.start_ns == span(stretches.get(at)?).end()).then_some(next)
}

/// The task that this one preempted at its wake-up.
fn victim(stretches: &[Stretch], at: usize) -> Option<usize> {
    let before = at.checked_sub(1)?;
    follower(stretches, before)?;
    let victim = stretches.get(before)?;
    (victim.end == End::Wakeup).then(|| place(victim))
}

/// The stretches that end in `[from, before)`.
pub(super) fn ended_in(stretches: &[Stretch], from: Nanos, before: Nanos) -> &[Stretch] {
    let at = |time| stretches.partition_point(|stretch| span(stretch).end() < time);
    stretches.get(at(from)..at(before)).unwrap_or_default()
}

/// The stretches that start in `[from, before)`.
pub(super) fn begun_in(stretches: &[Stretch], from: Nanos, before: Nanos) -> &[Stretch] {
    let at = |time| stretches.partition_point(|stretch| stretch.start_ns < time);
    stretches.get(at(from)..at(before)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use End::{Sleep, Tick, Wakeup};

    use super::*;

    fn span(start: u64, length: u64) -> Span {
        Span { start: Nanos::from_micros(start), length: Nanos::from_micros(length) }
    }

    fn row(stretches: &[(u64, u64, u32, End)], window: Span) -> PictureRow {
        let stretch = |&(start, length, task, end): &(u64, u64, u32, End)| {
            let Span { start, length } = span(start, length);
            Stretch { start_ns: start, ns: length, task, end }
        };
        let stretches = stretches.iter().map(stretch).collect();
        PictureRow::of(
            &CpuSwitches { cpu: Cpu::new(0), stretches, loose_ends: Vec::new(), lost: 0 },
            window,
        )
    }

    /// Check that stretches are clipped at both ends of the window, that their whole length is known,
    /// and that those outside of it are omitted.
    #[test]
    fn cut_at_the_ends() {
        let all =
            [(0, 9, 0, Tick), (9, 30, 1, Wakeup), (39, 30, 2, Tick), (69, 9, 0, Sleep)];
        let row = row(&all, span(19, 40));
        let [first, last] = row.stretches.as_slice() else { panic!("{row:?}") };
        assert_eq!((first.span, first.whole), (span(0, 20), Nanos::from_micros(30)));
        assert_eq!((last.span, last.whole), (span(20, 20), Nanos::from_micros(30)));
        assert_eq!((last.next, last.preempted), (Some(0), Some(1)));
        assert_eq!((first.next, first.preempted), (Some(2), None));
    }

    /// Check that untraced times are listed, and that the next task is unknown there.
    #[test]
    fn untraced() {
        let row = row(&[(10, 90, 0, Wakeup), (150, 90, 2, Sleep)], span(0, 300));
        assert_eq!(row.untraced, [span(0, 10), span(100, 50), span(240, 60)]);
        assert_eq!((row.stretches[0].next, row.stretches[1].preempted), (None, None));
    }
}
