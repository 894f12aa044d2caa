//! Moments above the limit of `--stop-above`: the first one with the events before and during it, or a
//! list of the worst ones.

use recording::{Culprit, Moment, MomentEvent, MomentKind, Recording};
use units::Nanos;

use crate::document::Document;
use crate::document::table::{Cell, Column, Table, cells};
use crate::document::text::{Text, text};
use crate::measurements::noise::culprits::{cell_of, kind_word};
use crate::number;

/// The maximum number of listed events: the last ones.
const EVENTS: usize = 40;
/// The number of moments on one screen.
const LISTED: usize = 10;
/// The time of day in RFC 3339, with milliseconds.
const TIME_OF_DAY: std::ops::Range<usize> = 11..23;

/// The moments of a recording; empty if there are none.
pub(crate) fn moments(recording: &Recording) -> Document {
    let trigger = recording.body.trigger();
    let found = &recording.moments.found;
    let (Some(limit), Some(first)) = (trigger.stop_above_ns, found.first()) else {
        return Document::default();
    };
    if trigger.keep.is_none() {
        let one = one(first, limit);
        return match heading(first.kind, limit) {
            Some(title) => Document::section(title, one),
            None => one,
        };
    }
    let events = found.iter().map(|moment| one(moment, limit));
    let all = Document::default()
        .heading(text!("{} above {}", worst(first.kind), limit))
        .add_or(list(found, found.len()), list(found, LISTED));
    events.fold(all, Document::add_full)
}

/// The heading of the first moment; a gap's sentence needs none.
fn heading(kind: MomentKind, limit: Nanos) -> Option<Text> {
    match kind {
        MomentKind::Wakeup => Some(text!("The first wake-up later than {}", limit)),
        MomentKind::Loop => Some(text!("The first test with more jitter than {}", limit)),
        MomentKind::Interruption => {
            Some(text!("The first interruption longer than {}", limit))
        }
        MomentKind::Gap | MomentKind::Other => None,
    }
}

/// What the list has.
fn worst(kind: MomentKind) -> &'static str {
    match kind {
        MomentKind::Gap => "The longest gaps",
        MomentKind::Wakeup => "The latest wake-ups",
        MomentKind::Loop => "The tests with the most jitter",
        MomentKind::Interruption | MomentKind::Other => "The longest interruptions",
    }
}

/// Moments in the order of time, the worst ones if there are more.
fn list(found: &[Moment], listed: usize) -> Table {
    let mut worst: Vec<&Moment> = found.iter().collect();
    worst.sort_by_key(|moment| std::cmp::Reverse(moment.value_ns));
    worst.truncate(listed);
    worst.sort_by_key(|moment| moment.at_ns);
    Table::of(&worst)
        .number("CPU", |moment| moment.cpu.to_string())
        .column(Column::words("time (UTC)"), |moment| {
            moment.time.get(TIME_OF_DAY).unwrap_or_default().to_owned()
        })
        .number("after", |moment| number::moment(moment.after_ns))
        .number("length", |moment| moment.value_ns)
        .column(Column::name("largest part", 12..=30), |moment| largest(moment))
        .number("of it", |moment| {
            number::any(moment.causes.as_ref().and_then(|all| Some(all.first()?.ns)))
        })
        .table
        .rest(number::more(found.len().saturating_sub(worst.len()), "that are shorter"))
}

/// The name of what took most of a moment.
fn largest(moment: &Moment) -> Cell {
    match moment.causes.as_ref().and_then(|all| all.first()) {
        Some(cause) => cell(&cause.culprit),
        None => "unknown".into(),
    }
}

fn cell(culprit: &Culprit) -> Cell {
    cell_of(&culprit.name, culprit.thread.as_ref())
}

/// One moment, and the events before and during it.
fn one(moment: &Moment, limit: Nanos) -> Document {
    let sentence = text!(
        "CPU {}: {}, more than {}, {} after the start{}.",
        moment.cpu,
        what(moment),
        limit,
        number::moment(moment.after_ns),
        started(moment.kind),
    );
    if moment.causes.is_none() {
        return Document::from(sentence);
    }
    let noun = noun(moment.kind);
    let events = text!(" Events before and during the {}, from its start:", noun);
    Document::from(text!("{}{}", sentence, events)).add(table(moment, noun))
}

fn what(moment: &Moment) -> Text {
    let (length, value) = (moment.length_ns, moment.value_ns);
    match moment.kind {
        MomentKind::Gap => text!("a gap of {}", length),
        MomentKind::Wakeup => text!("a wake-up {} late", length),
        MomentKind::Loop => {
            text!("a loop of {}, {} slower than the fastest of its test", length, value)
        }
        MomentKind::Interruption | MomentKind::Other => {
            text!("an interruption of {}", length)
        }
    }
}

fn noun(kind: MomentKind) -> &'static str {
    match kind {
        MomentKind::Gap => "gap",
        MomentKind::Wakeup => "wake-up",
        MomentKind::Loop => "loop",
        MomentKind::Interruption | MomentKind::Other => "interruption",
    }
}

/// What has started, if that is not the measurement.
fn started(kind: MomentKind) -> &'static str {
    match kind {
        MomentKind::Gap => " of the loop",
        MomentKind::Interruption => " of the program",
        MomentKind::Wakeup | MomentKind::Loop | MomentKind::Other => "",
    }
}

fn table(moment: &Moment, noun: &str) -> Table {
    let mut near: Vec<&MomentEvent> =
        moment.before.iter().chain(&moment.during).collect();
    near.sort_by_key(|event| event.start_ns);
    let near = &near[near.len().saturating_sub(EVENTS)..];
    let mut table = Table::new([
        Column::number("start"),
        Column::number("duration"),
        Column::words(""),
        Column::name("", 12..=48),
    ]);
    let row = |event: &&MomentEvent| {
        let culprit = &event.culprit;
        let (kind, name) = (kind_word(culprit.kind), Text::name(&culprit.name));
        cells![from_start(event.start_ns), event.ns, kind, name]
    };
    let (before, during) = near.split_at(near.partition_point(|it| it.start_ns < 0));
    before.iter().map(row).for_each(|cells| table.row(cells));
    let [start, end] = ["start", "end"].map(|edge| text!("{} of the {}", edge, noun));
    table.row(cells![Nanos::ZERO, moment.length_ns, "", start]);
    during.iter().map(row).for_each(|cells| table.row(cells));
    table.row(cells![moment.length_ns, "", "", end]);
    table
}

/// A time from the start of a moment; negative: before it.
pub(crate) fn from_start(ns: i64) -> Text {
    let time = Nanos::from_nanos(ns.unsigned_abs());
    match ns < 0 {
        true => text!("-{}", time),
        false => time.into(),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::{Body, CulpritKind, MomentCause, Thread, Trigger};
    use units::Cpu;

    use super::*;
    use crate::example::{self, GUEST};
    use crate::terminal::{full_text, screen_text};

    fn culprit(kind: CulpritKind, name: &str) -> Culprit {
        let thread =
            Thread { tid: 417, pid: 417, prio: 0, owner: None, unit: None, own: false };
        let thread = (kind == CulpritKind::Thread).then_some(thread);
        Culprit { kind, name: name.to_owned(), thread }
    }

    fn event(kind: CulpritKind, name: &str, start_us: i64, us: u64) -> MomentEvent {
        let culprit = culprit(kind, name);
        MomentEvent { culprit, start_ns: start_us * 1_000, ns: Nanos::from_micros(us) }
    }

    /// A moment of that many microseconds.
    fn moment(kind: MomentKind, after_ms: u64, us: u64) -> Moment {
        let after_ns = Nanos::from_millis(after_ms);
        let value_ns = Nanos::from_micros(us);
        let took = Nanos::from_micros(us - us / 10);
        let cause = culprit(CulpritKind::Thread, "pathd");
        Moment {
            kind,
            cpu: Cpu::new(0),
            at_ns: Nanos::from_secs(70) + after_ns,
            time: format!("2026-11-20T06:30:12.{:03}070Z", after_ms % 1_000),
            after_ns,
            length_ns: value_ns + Nanos::from_micros(1),
            value_ns,
            causes: Some(vec![MomentCause { culprit: cause, ns: took }]),
            before: vec![event(CulpritKind::Softirq, "SCHED", -300, 5)],
            during: vec![
                event(CulpritKind::Thread, "pathd", -20, us - 3),
                event(CulpritKind::Timer, "tick_nohz_handler", 1, 3),
            ],
        }
    }

    fn recording(keep: Option<u32>, found: Vec<Moment>) -> Recording {
        let mut recording = example::noise(GUEST, 1);
        if let Body::Noise { spec, .. } = &mut recording.body {
            let above = Nanos::from_micros(50);
            spec.trigger = Trigger { stop_above_ns: Some(above), keep };
        }
        recording.moments.found = found;
        recording
    }

    /// Check the first moment of each kind, with the events before and during it, and one without events.
    #[test]
    fn first_moments() {
        let kinds = [
            MomentKind::Gap,
            MomentKind::Wakeup,
            MomentKind::Loop,
            MomentKind::Interruption,
        ];
        let texts = kinds.map(|kind| {
            full_text(&moments(&recording(None, vec![moment(kind, 1_100, 60)])))
        });
        assert_snapshot!(texts.join("\n"));
        let untraced = Moment { causes: None, ..moment(MomentKind::Wakeup, 1_100, 60) };
        assert_snapshot!(full_text(&moments(&recording(None, vec![untraced]))));
        assert_eq!(moments(&recording(None, vec![])), Document::default());
    }

    /// Check the list of the worst moments, on one screen and in full.
    #[test]
    fn worst_moments() {
        let found = (1..=12).map(|at| moment(MomentKind::Gap, at * 700, 100 + at % 5));
        let recording = recording(Some(12), found.collect());
        assert_snapshot!(screen_text(&moments(&recording)));
        let full = full_text(&moments(&recording));
        assert_eq!(full.matches("start of the gap").count(), 12, "{full}");
    }
}
