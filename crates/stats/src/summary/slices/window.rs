//! What ran on a CPU in a short window: stretches cut to it, with who came before and next, and
//! when it was not seen what ran.
//!
//! Comes from the scheduler's switches, which are in their order. Where a stretch does not end
//! where the next one begins, some were lost: nobody came next there, rather than a wrong one.

use recording::{CpuSwitches, End, Stretch};
use units::{Cpu, Nanos, Span};

/// A stretch in a step's window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PictureStretch {
    /// The part of it that lies in the window, from the window's beginning.
    pub span: Span,
    /// How long all of it was.
    pub whole: Nanos,
    /// Which one of the tasks.
    pub task: usize,
    /// Why it ended.
    pub end: End,
    /// Which task came next; `None` where that was not seen.
    pub next: Option<usize>,
    /// Which task it took the CPU from when it was woken, if it did.
    pub preempted: Option<usize>,
}

/// One CPU in a step's window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PictureRow {
    /// The CPU.
    pub cpu: Cpu,
    /// What ran, in its order.
    pub stretches: Vec<PictureStretch>,
    /// When it was not seen what ran, from the window's beginning.
    pub unseen: Vec<Span>,
}

impl PictureRow {
    /// What ran on a CPU in that window.
    pub(super) fn of(cpu: &CpuSwitches, window: Span) -> Self {
        let stretches = &cpu.stretches;
        let is_before = |seen: &Stretch| span(seen).end() <= window.start;
        let first = stretches.partition_point(is_before);
        let (mut shown, mut unseen, mut until) = (Vec::new(), Vec::new(), window.start);
        for (at, seen) in stretches.iter().enumerate().skip(first) {
            if seen.start_ns >= window.end() {
                break;
            }
            let (from, to) =
                (seen.start_ns.max(until), span(seen).end().min(window.end()));
            push_span(&mut unseen, window, until, from);
            shown.push(PictureStretch {
                span: within(window, from, to),
                whole: seen.ns,
                task: place(seen),
                end: seen.end,
                next: follower(stretches, at).map(place),
                preempted: victim(stretches, at),
            });
            until = until.max(to);
        }
        push_span(&mut unseen, window, until, window.end());
        Self { cpu: cpu.cpu, stretches: shown, unseen }
    }
}

/// From a window's beginning.
/// When it ran.
pub(super) fn span(stretch: &Stretch) -> Span {
    Span { start: stretch.start_ns, length: stretch.ns }
}

/// The task's place among those that ran.
pub(super) fn place(stretch: &Stretch) -> usize {
    usize::try_from(stretch.task).unwrap_or(usize::MAX)
}

fn within(window: Span, from: Nanos, to: Nanos) -> Span {
    let start = from.saturating_sub(window.start);
    Span { start, length: to.saturating_sub(from) }
}

fn push_span(spans: &mut Vec<Span>, window: Span, from: Nanos, to: Nanos) {
    if from < to {
        spans.push(within(window, from, to));
    }
}

/// The stretch that comes next, if nothing is missing between.
fn follower(stretches: &[Stretch], at: usize) -> Option<&Stretch> {
    let next = stretches.get(at + 1)?;
    (next.start_ns == span(stretches.get(at)?).end()).then_some(next)
}

/// The task that this one preempted when it was woken.
fn victim(stretches: &[Stretch], at: usize) -> Option<usize> {
    let before = at.checked_sub(1)?;
    follower(stretches, before)?;
    let victim = stretches.get(before)?;
    (victim.end == End::Wakeup).then(|| place(victim))
}

/// The stretches that end from then on, and before that.
pub(super) fn ended_in(stretches: &[Stretch], from: Nanos, before: Nanos) -> &[Stretch] {
    let at = |time| stretches.partition_point(|seen| span(seen).end() < time);
    stretches.get(at(from)..at(before)).unwrap_or_default()
}

/// The stretches that begin from then on, and before that.
pub(super) fn begun_in(stretches: &[Stretch], from: Nanos, before: Nanos) -> &[Stretch] {
    let at = |time| stretches.partition_point(|seen| seen.start_ns < time);
    stretches.get(at(from)..at(before)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    use End::{Sleep, Tick, Wakeup};

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

    /// Check that stretches are cut at both ends of the window, that their whole length is
    /// known, and that those outside of it are left out.
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

    /// Check that what nobody saw is told, and nobody comes next there.
    #[test]
    fn unseen() {
        let row = row(&[(10, 90, 0, Wakeup), (150, 90, 2, Sleep)], span(0, 300));
        assert_eq!(row.unseen, [span(0, 10), span(100, 50), span(240, 60)]);
        assert_eq!((row.stretches[0].next, row.stretches[1].preempted), (None, None));
    }
}
