//! The causes of late wake-ups: the latest one as a sentence, the time by part and culprit, and what
//! happened at the latest ones.

use std::cmp::Reverse;

use recording::{CulpritKind, Source, WakePart};
use summary::{
    LateWakeupSummary, LatencySummary, WakeCause, WakeCulprit, WakeMomentSummary,
};
use units::Cpu;

use crate::document::Document;
use crate::document::table::{Cell, Column, Table, cells};
use crate::document::text::{Text, text};
use crate::measurements::moments::from_start;
use crate::measurements::noise::culprits::{
    OWN, cell_of, kind_word, name_of, source_words,
};
use crate::number;

/// The number of listed culprits on one screen, and with `--full`.
const LISTED_ON_SCREEN: usize = 5;
const LISTED: usize = 16;
/// The number of wake-ups with what happened, and of moments of each.
const WAKEUPS: usize = 10;
const MOMENTS: usize = 12;
/// The explanation below the table.
pub(crate) const LEGEND: &str = "\"expiry\": until the timer's interrupt; \"scheduling\": from its end until the \
    thread runs; \"return\": to user mode. Shares are of the latency of all wake-ups.";
/// What the idle task means.
const IDLE: &str = "\"idle\": the CPU had nothing to run; before the interrupt, it leaves an idle state, or \
    a hypervisor runs others. Unexplained time before the interrupt: interrupts are disabled, or a \
    hypervisor runs others. \"slack\": to save interrupts, the kernel may delay the timer.";

/// The latest wake-up, and the culprits; empty if events were not traced.
pub(crate) fn causes(source: Option<Source>, summary: &LatencySummary) -> Document {
    let Some(source) = source.filter(|_| !summary.culprits.is_empty()) else {
        return Document::default();
    };
    let screen = table(&summary.culprits, LISTED_ON_SCREEN).legend(LEGEND);
    let full = table(&summary.culprits, LISTED).legend(text!("{} {}", LEGEND, IDLE));
    Document::default()
        .heading(text!("Causes of late wake-ups, traced with {}", source_words(source)))
        .lines(latest(summary).first().map(|(cpu, late)| sentence(*cpu, late)))
        .add_or(full, screen)
        .add_full(Document::section("The latest wake-ups", moments(&latest(summary))))
}

/// The latest wake-ups of all CPUs, the latest first.
fn latest(summary: &LatencySummary) -> Vec<(Cpu, &LateWakeupSummary)> {
    let cpus = summary.cpus.iter();
    let causes = cpus.filter_map(|cpu| Some((cpu.cpu, cpu.causes.as_ref()?)));
    let late = causes
        .flat_map(|(cpu, causes)| causes.latest.iter().map(move |late| (cpu, late)));
    let mut late: Vec<_> = late.collect();
    late.sort_by_key(|(_, late)| Reverse(late.late_ns));
    late.truncate(WAKEUPS);
    late
}

/// What took most of a wake-up, as a sentence.
fn sentence(cpu: Cpu, late: &LateWakeupSummary) -> Text {
    text!("CPU {}, {} late: {}.", cpu, late.late_ns, because(late))
}

fn because(late: &LateWakeupSummary) -> Text {
    let main = &late.main;
    let (ns, name) = (main.ns, name_of(&main.cause.name, main.cause.thread.as_ref()));
    match (main.cause.kind, main.part) {
        (CulpritKind::Unexplained, _) => {
            text!(
                "no event of the kernel explains {} of it: firmware, or a hypervisor",
                ns
            )
        }
        (CulpritKind::Quota, _) => {
            text!("its cgroup had used up the CPU quota, and the thread waited {}", ns)
        }
        (CulpritKind::Thread, WakePart::Expiry) if main.cause.is_idle() => {
            text!(
                "the CPU was idle, and the timer's interrupt came {} after the expiry",
                ns
            )
        }
        (CulpritKind::Thread, WakePart::Expiry) => text!(
            "the timer's interrupt came {} after the expiry, while {} ran: with interrupts \
             disabled, or because of a hypervisor",
            ns,
            name
        ),
        (CulpritKind::Thread, _) if main.cause.is_idle() => {
            text!("the CPU took {} to leave its idle state", ns)
        }
        (CulpritKind::Thread, WakePart::Return) if main.cause.is_own() => {
            text!("the thread took {} to return to user mode", ns)
        }
        (CulpritKind::Thread, _) if !main.before_ns.is_zero() => text!(
            "{} had run for {} when the timer expired, and ran for {} more",
            name,
            main.before_ns,
            ns
        ),
        (CulpritKind::Thread, _) => text!("{} ran for {}", name, ns),
        (kind, _) => text!("{} {} took {}", kind_word(kind), name, ns),
    }
}

/// The name as a cell.
pub(crate) fn cell(cause: &WakeCause) -> Cell {
    if cause.is_idle() {
        return "idle".into();
    }
    if cause.is_own() {
        return OWN.into();
    }
    cell_of(&cause.name, cause.thread.as_ref())
}

/// The kind of a cause that its name does not tell.
pub(crate) fn kind(cause: &WakeCause) -> &'static str {
    match cause.is_idle() || cause.is_own() {
        true => "",
        false => kind_word(cause.kind),
    }
}

/// The name of a part.
pub(crate) fn part_word(part: Option<WakePart>) -> &'static str {
    match part {
        None => "before",
        Some(WakePart::Expiry) => "expiry",
        Some(WakePart::Interrupt) => "interrupt",
        Some(WakePart::Scheduling) => "scheduling",
        Some(WakePart::Return) => "return",
    }
}

fn table(culprits: &[WakeCulprit], listed: usize) -> Table {
    Table::of(&culprits[..culprits.len().min(listed)])
        .column(Column::words("part"), |culprit| part_word(Some(culprit.part)))
        .column(Column::words("source"), |culprit| kind(&culprit.cause))
        .column(Column::name("", 12..=23), |culprit| cell(&culprit.cause))
        .number("wake-ups", |culprit| culprit.wakeups)
        .number("time", |culprit| culprit.ns)
        .number("share", |culprit| number::known(culprit.late_ppm))
        .number("longest", |culprit| culprit.max_ns)
        .table
        .rest(number::more(culprits.len().saturating_sub(listed), "with less time"))
}

/// What happened before and during wake-ups.
fn moments(wakeups: &[(Cpu, &LateWakeupSummary)]) -> Table {
    let mut table = Table::new([
        Column::group("", 40..=78),
        Column::number("start"),
        Column::number("duration"),
        Column::words("part"),
        Column::words("source"),
        Column::name("", 12..=23),
    ]);
    for (cpu, late) in wakeups {
        let at = number::moment(late.at_ns);
        let title = text!("CPU {}, {} late, {} after the start", *cpu, late.late_ns, at);
        for moment in longest(&late.moments) {
            table.row(cells![
                title.clone(),
                from_start(moment.after_ns),
                moment.ns,
                part_word(moment.part),
                kind(&moment.cause),
                cell(&moment.cause),
            ]);
        }
    }
    table
}

/// The longest moments, in order of time.
fn longest(moments: &[WakeMomentSummary]) -> Vec<&WakeMomentSummary> {
    let mut longest: Vec<&WakeMomentSummary> = moments.iter().collect();
    longest.sort_by_key(|moment| Reverse(moment.ns));
    longest.truncate(MOMENTS);
    longest.sort_by_key(|moment| moment.after_ns);
    longest
}
