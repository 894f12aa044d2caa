//! The report of `slices`: time slices of CPU-bound tasks by variant, what ended them, and each
//! process.

pub(crate) mod classic;
pub(crate) mod placements;
mod simulated;
mod widths;

use facts::Facts;
use recording::{End, Policy, SlicesSeries, SlicesSpec, Source};
use summary::{SliceEnds, SlicesSummary, StepSlices, StepSummary, TaskSummary};
use units::Nanos;

use crate::document::Document;
use crate::document::table::{Column, Table};
use crate::document::text::{Text, text};
use crate::measurements::noise::culprits::source_words;
use crate::measurements::slices::widths::{PROCESS, VARIANT};
use crate::measurements::ticks::words::cpus;
use crate::measurements::{scheduler, wakers};
use crate::number::{self, ShareUnit};

/// Of more processes than this, only [`SHORTEST`] spinners are listed.
const LISTED: usize = 24;
const SHORTEST: usize = 16;
/// The number of listed causes that ended slices, for each variant.
const ENDS: usize = 5;
/// The groups of these causes in the table of processes.
const GROUPS: [(&str, &[End]); 4] = [
    ("ticks", &[End::Tick]),
    ("wake-ups", &[End::Wakeup]),
    ("yields", &[End::Yield]),
    ("other", &[End::Sleep, End::Other]),
];
/// The variant with the settings that were not changed.
const UNMODIFIED: &str = "unmodified";
const LEGEND: &str = "\"slice\": mean CPU time between two involuntary context switches; \"CPU \
    used\": by all processes; \"work\": loop iterations, compared with the unmodified settings.";

pub(crate) fn slices(
    facts: &Facts,
    spec: &SlicesSpec,
    series: &SlicesSeries,
    summary: &SlicesSummary,
) -> Document {
    let source = series.switches.as_ref().map(|switches| switches.source);
    let found = &summary.results;
    // The threads with the most wake-ups, whether or not these ended slices.
    let woken = summary.wakers.as_ref().map(|woken| {
        let title = text!(
            "The threads with the most wake-ups on these CPUs (see {})",
            Text::command("noisefloor wakers"),
        );
        Document::section(title, wakers::table(woken))
    });
    Document::from(title(spec, summary))
        .add(spec.simulated.as_deref().map(|inputs| simulated::sentence(facts, inputs)))
        .add(scheduler::sentence(facts))
        .add(variant_table(summary).legend(LEGEND))
        .lines(summary.steps.iter().map(|step| difference(step, found)))
        .add(all_ends(source, summary))
        .add(placements::placements(&variants(summary), summary.placements_lost))
        .add_full(definitions(found))
        .add_full(Document::section("Each process", tasks(summary)))
        .add_full(woken)
}

fn title(spec: &SlicesSpec, summary: &SlicesSummary) -> Text {
    let sleepers = (spec.sleepers > 0).then(|| {
        let sleepers = number::counted(spec.sleepers.into(), "sleeper");
        text!(" and {} ({} at a time)", sleepers, spec.sleep_ns)
    });
    let policy = match spec.policy {
        Policy::Other => "",
        Policy::Batch => ", SCHED_BATCH",
    };
    text!(
        "Time slices of {}{} on {}{}{}{}; {}{}.",
        number::counted(spec.spinners.into(), "spinner"),
        sleepers,
        cpus(&spec.cpus),
        spec.pinned.then_some(", each pinned to one"),
        policy,
        (spec.nice != 0).then(|| format!(", nice {}", spec.nice)),
        number::measured(Some(summary.results.wall_ns), spec.duration_ns),
        (!spec.steps.is_empty()).then_some(" per variant"),
    )
}

/// All variants by name, the unmodified settings first.
fn variants(summary: &SlicesSummary) -> Vec<(Text, &StepSlices)> {
    let changed = summary.steps.iter().map(|step| (name(step), &step.results));
    std::iter::once((UNMODIFIED.into(), &summary.results)).chain(changed).collect()
}

/// The settings of a variant.
fn name(step: &StepSummary) -> Text {
    Text::command(&step.step)
}

fn variant_table(summary: &SlicesSummary) -> Table {
    let variants = variants(summary);
    let mut table = Table::of(&variants)
        .column(Column::name("", VARIANT), |(name, _)| name.clone())
        .number("slice", |(_, of)| any(of.slice_ns.mean));
    if summary.source.is_some() {
        table = table
            .number("median", |(_, of)| any(of.slice_ns.p50))
            .number("p99", |(_, of)| any(of.slice_ns.p99));
    }
    let work = |of: &StepSlices| number::known(of.work_of(&summary.results));
    table
        .number("switches/s", |(_, of)| number::known(of.switches_hz))
        .number("CPU used", |(_, of)| number::known(of.busy_ppm))
        .number("work", |(_, of)| work(of))
        .table
}

fn any(length: Option<Nanos>) -> Text {
    number::any(length)
}

/// What the legend does not say.
fn definitions(found: &StepSlices) -> Text {
    let sleepers = found.wakeups_hz;
    text!(
        "Spinners compute without pause. The mean slice of the unmodified settings is {} of CPU time \
         by {} switches in {}.{}",
        found.spinners_cpu_ns,
        found.switches,
        found.wall_ns,
        sleepers.map(|rate| text!(" Each sleeper woke up {} times per second.", rate)),
    )
}

/// Whether a variant differs from the unmodified settings by more than its rounds differ.
fn difference(step: &StepSummary, found: &StepSlices) -> Text {
    let Some(ratio) = step.slice_ratio else {
        return text!("{}: no slices to compare.", name(step));
    };
    let ranges = text!(
        "{}, unmodified {}",
        range(&step.results.turns_slice_ns),
        range(&found.turns_slice_ns)
    );
    let rounds = match step.differs {
        Some(true) => text!("the ranges of the rounds do not overlap: {}", ranges),
        Some(false) => text!("the ranges of the rounds overlap: {}", ranges),
        None => text!(
            "the variation is unknown with one round each (see {})",
            Text::command("--turns")
        ),
    };
    text!(
        "{}: slices are {} times as long; {}.",
        name(step),
        format!("{ratio:.2}"),
        rounds
    )
}

fn range(rounds: &[Option<Nanos>]) -> Text {
    let known = || rounds.iter().flatten();
    text!("{} to {}", any(known().min().copied()), any(known().max().copied()))
}

/// What ended slices, by variant.
fn all_ends(source: Option<Source>, summary: &SlicesSummary) -> Document {
    let Some(source) = source else {
        let unknown = "What ended the slices, and the lengths of single ones, are unknown: scheduler \
                       switches were not traced (see the doubts).";
        return unknown.into();
    };
    let title = text!("What ended slices, traced with {}", source_words(source));
    let table = Table::of(&variants(summary))
        .column(Column::name("", VARIANT), |(name, _)| name.clone())
        .column(Column::prose(""), |(_, slices)| most_ends(&slices.ends))
        .table;
    Document::section(title, table)
}

/// The most frequent causes, with their shares.
fn most_ends(all: &[SliceEnds]) -> Text {
    let unit = ShareUnit::of(all.iter().take(ENDS).map(|ends| ends.part_ppm));
    let ends = all.iter().map(|ends| one_end(ends, unit)).collect();
    if all.is_empty() { "nothing".into() } else { Text::first(ENDS, ends, ", ") }
}

fn one_end(ends: &SliceEnds, unit: ShareUnit) -> Text {
    let by = ends.by.as_ref().map_or_else(|| "an unknown task".into(), Text::name);
    let cause = match ends.end {
        End::Tick => "ticks".into(),
        End::Wakeup => text!("wake-ups of {}", by),
        End::Yield => "yields".into(),
        End::Sleep => "sleeps".into(),
        End::Other => text!("other causes before {}", by),
    };
    text!("{} {}", cause, unit.known(ends.part_ppm))
}

/// All processes; of many, the spinners with the shortest slices.
fn tasks(summary: &SlicesSummary) -> Table {
    let mut tasks: Vec<&TaskSummary> = summary.tasks.iter().collect();
    if tasks.len() > LISTED {
        tasks.retain(|task| task.spins);
        tasks.sort_by_key(|task| task.slice_ns_mean.unwrap_or(Nanos::MAX));
        tasks.truncate(SHORTEST);
    }
    let rest = summary.tasks.len() - tasks.len();
    let rest = (rest > 0).then(|| {
        text!("These have the shortest slices; {} more: see --json.", rest.to_string())
    });
    let is_traced = summary.source.is_some();
    let mut table = Table::of(&tasks)
        .column(Column::name("process", PROCESS), |task| Text::name(&task.name))
        .number("CPU time", |task| task.cpu_ns);
    if !is_traced {
        table = table.number("switches", |task| task.switches);
    }
    table = table.number("slice", |task| any(task.slice_ns_mean.filter(|_| task.spins)));
    if is_traced {
        for (head, ends) in GROUPS {
            let part = |task: &&TaskSummary| task.ended_ppm(ends);
            table = table.number(head, |task| number::any(part(task)));
        }
        table = table.column(Column::name("mostly by", PROCESS), |task| mostly_by(task));
    }
    table.table.rest(rest)
}

/// The most frequent next task.
fn mostly_by(task: &TaskSummary) -> Text {
    number::any(task.ends.iter().find_map(|ends| ends.by.as_deref()).map(Text::name))
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use crate::example::{self, GUEST};
    use crate::measurements::text_of;

    /// Check `slices` with a variant and traced switches.
    #[test]
    fn traced() {
        assert_snapshot!(text_of(&example::slices(GUEST, true)));
    }

    /// Check that the report names a scheduler of sched_ext, and its part of the tasks; and that it has no line
    /// about the kernel's own.
    #[test]
    fn schedulers() {
        let text = |all: Option<bool>| {
            let mut recording = example::slices(GUEST, true);
            if let Some(all) = all {
                recording = example::with_scheduler(recording, "lavd_1.1.4", all);
            }
            text_of(&recording)
        };
        let is_named = "Scheduler: lavd_1.1.4 (sched_ext), not the fair class.";
        assert!(text(Some(true)).contains(is_named), "{}", text(Some(true)));
        let some =
            "Scheduler: the fair class; tasks of SCHED_EXT have lavd_1.1.4 (sched_ext).";
        assert!(text(Some(false)).contains(some), "{}", text(Some(false)));
        assert!(!text(None).contains("Scheduler:"));
    }

    /// Check that without tracing, causes and single slices are reported as unknown.
    #[test]
    fn not_traced() {
        assert_snapshot!(text_of(&example::slices(GUEST, false)));
    }
}
