//! The tables of `slices`: time slices of CPU-bound tasks by variant, what ended them, and each
//! process. With `--classic`, the lines that the program of the 2009 report would have printed.

use std::fmt::Write;

use recording::{Doubt, End, Policy, SlicesSeries, SlicesSpec, Source};
use summary::{
    ClassicLine, SliceEnds, SlicesSummary, StepSlices, StepSummary, TaskSummary,
};
use units::Nanos;

use crate::number::{self, ShareUnit};
use crate::text::layout::doubts::doubts;
use crate::text::layout::fit::fitted;
use crate::text::layout::labels::cut_labels;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table};
use crate::text::noise::culprits::source_words;
use crate::text::ticks::words::cpus;
use crate::text::wakers;

/// Of more processes than this, only [`SHORTEST`] spinners are listed.
const LISTED: usize = 24;
const SHORTEST: usize = 16;
/// The number of listed causes that ended slices, for each variant.
const ENDS: usize = 5;
/// The explanation below the 2009 report's columns.
const CLASSIC: &str = "\"avg slice\": mean of the processes' slices, each in whole milliseconds; \
    \"utime\": mean user time in microseconds, in whole ticks. \"exactly\": mean slice and mean CPU \
    time of a process, and the length of the sample.";
/// The variant with the settings that were not changed.
const UNMODIFIED: &str = "unmodified";

pub(crate) fn slices_text(
    spec: &SlicesSpec,
    series: &SlicesSeries,
    summary: &SlicesSummary,
) -> String {
    let source = series.switches.as_ref().map(|switches| switches.source);
    let mut text = paragraph("", &title(spec, summary)) + "\n";
    text.push_str(&fitted(8..=40, |name| variant_table(summary, name)));
    text.push('\n');
    text.push_str(&paragraph("", &legend(summary)));
    for step in &summary.steps {
        text.push('\n');
        text.push_str(&paragraph("", &difference(step, &summary.results)));
    }
    text.push_str(&all_ends(source, summary));
    text.push('\n');
    text.push_str(&tasks(summary));
    text + &woken(summary)
}

fn title(spec: &SlicesSpec, summary: &SlicesSummary) -> String {
    let plural = |count: u32| if count == 1 { "" } else { "s" };
    let sleepers = match spec.sleepers {
        0 => String::new(),
        count => format!(
            " and {count} sleeper{} ({} at a time)",
            plural(count),
            number::duration(spec.sleep_ns),
        ),
    };
    let pinned = if spec.pinned { ", each pinned to one" } else { "" };
    let policy = match spec.policy {
        Policy::Other => "",
        Policy::Batch => ", SCHED_BATCH",
    };
    let nice = match spec.nice {
        0 => String::new(),
        nice => format!(", nice {nice}"),
    };
    let each = if spec.steps.is_empty() { "" } else { " per variant" };
    format!(
        "Time slices of {} spinner{}{sleepers} on {}{pinned}{policy}{nice}; {}{each}.",
        spec.spinners,
        plural(spec.spinners),
        cpus(&spec.cpus),
        number::measured(Some(summary.results.wall_ns), spec.duration_ns),
    )
}

/// All variants by name, the unmodified settings first.
fn variants(summary: &SlicesSummary) -> impl Iterator<Item = (&str, &StepSlices)> {
    let changed = summary.steps.iter().map(|step| (step.step.as_str(), &step.results));
    std::iter::once((UNMODIFIED, &summary.results)).chain(changed)
}

fn variant_table(summary: &SlicesSummary, name: usize) -> String {
    let mut columns = vec![("", Side::Left), ("slice", Side::Right)];
    if summary.source.is_some() {
        columns.extend(["median", "p99"].map(|head| (head, Side::Right)));
    }
    columns.extend(["switches/s", "CPU used", "work"].map(|head| (head, Side::Right)));
    let mut table = Table::new(1, &columns);
    let names = cut_labels(variants(summary).map(|(variant, _)| variant), name);
    for ((_, slices), name) in variants(summary).zip(names) {
        let lengths = slices.slice_ns;
        let mut cells = vec![name, any(lengths.mean)];
        if summary.source.is_some() {
            cells.extend([lengths.p50, lengths.p99].map(any));
        }
        cells.push(number::known(slices.switches_hz, number::bare_rate));
        cells.push(number::known(slices.busy_ppm, number::share));
        cells.push(number::known(slices.work_of(&summary.results), number::share));
        table.row(cells);
    }
    table.text()
}

fn any(length: Option<Nanos>) -> String {
    number::any(length, number::duration)
}

fn legend(summary: &SlicesSummary) -> String {
    let found = &summary.results;
    let sleepers = found.wakeups_hz.map_or_else(String::new, |rate| {
        format!(" Each sleeper woke up {} times per second.", number::bare_rate(rate))
    });
    format!(
        "Spinners compute without pause. A slice is the CPU time between two involuntary context \
         switches; \"slice\": the mean, {} of CPU time by {} switches in {}. \"CPU \
         used\": the CPUs' utilization by all processes; \"work\": loop iterations of the spinners \
         per second, compared with the unmodified settings.{sleepers}",
        number::duration(found.spinners_cpu_ns),
        number::count(found.switches),
        number::duration(found.wall_ns),
    )
}

/// Whether a variant differs from the unmodified settings by more than its rounds differ.
fn difference(step: &StepSummary, found: &StepSlices) -> String {
    let Some(ratio) = step.slice_ratio else {
        return format!("{}: no slices to compare.", step.step);
    };
    let ranges = format!(
        "{}, unmodified {}",
        range(&step.results.turns_slice_ns),
        range(&found.turns_slice_ns)
    );
    let rounds = match step.differs {
        Some(true) => format!("the ranges of the rounds do not overlap: {ranges}"),
        Some(false) => format!("the ranges of the rounds overlap: {ranges}"),
        None => "the variation is unknown with one round each (see --turns)".to_owned(),
    };
    format!("{}: slices are {ratio:.2} times as long; {rounds}.", step.step)
}

fn range(rounds: &[Option<Nanos>]) -> String {
    let known = || rounds.iter().flatten();
    let (least, most) = (known().min().copied(), known().max().copied());
    format!("{} to {}", any(least), any(most))
}

/// What ended slices, by variant.
fn all_ends(source: Option<Source>, summary: &SlicesSummary) -> String {
    let Some(source) = source else {
        let text = "What ended the slices, and the lengths of single ones, are unknown: scheduler \
                    switches were not traced (see the doubts).";
        return "\n".to_owned() + &paragraph("", text);
    };
    let title = format!("What ended slices, traced with {}", source_words(source));
    let mut text = "\n".to_owned() + &paragraph("", &title);
    for (variant, slices) in variants(summary) {
        let all = &slices.ends;
        let listed = || all.iter().take(ENDS);
        let unit = ShareUnit::of(listed().map(|ends| ends.part_ppm));
        let mut list: Vec<String> = listed().map(|ends| one_end(ends, unit)).collect();
        let more = all.len().saturating_sub(ENDS);
        if more > 0 {
            list.push(format!("{more} more in --json"));
        }
        let list = if list.is_empty() { "nothing".to_owned() } else { list.join(", ") };
        text.push_str(&paragraph("  ", &format!("{variant}: {list}")));
    }
    text
}

fn one_end(ends: &SliceEnds, unit: ShareUnit) -> String {
    let part = unit.known(ends.part_ppm);
    let by = ends.by.as_deref().unwrap_or("an unknown task");
    match ends.end {
        End::Tick => format!("ticks {part}"),
        End::Wakeup => format!("wake-ups of {by} {part}"),
        End::Yield => format!("yields {part}"),
        End::Sleep => format!("sleeps {part}"),
        End::Other => format!("other causes before {by} {part}"),
    }
}

/// All processes; of many, the spinners with the shortest slices.
fn tasks(summary: &SlicesSummary) -> String {
    let mut tasks: Vec<&TaskSummary> = summary.tasks.iter().collect();
    let count = tasks.len();
    if count > LISTED {
        let shortest = |task: &&TaskSummary| task.slice_ns_mean.unwrap_or(Nanos::MAX);
        tasks.retain(|task| task.spins);
        tasks.sort_by_key(shortest);
        tasks.truncate(SHORTEST);
    }
    let text = fitted(6..=15, |name| task_table(summary, &tasks, name));
    if tasks.len() == count {
        return text;
    }
    let rest = count - tasks.len();
    let rest = format!("These have the shortest slices; {rest} more: see --json.");
    text + &paragraph("  ", &rest)
}

fn task_table(summary: &SlicesSummary, tasks: &[&TaskSummary], name: usize) -> String {
    let mut columns = vec![("process", Side::Left)];
    let is_traced = summary.source.is_some();
    columns.push(("CPU time", Side::Right));
    if !is_traced {
        columns.push(("switches", Side::Right));
    }
    columns.push(("slice", Side::Right));
    if is_traced {
        let ends = ["ticks", "wake-ups", "yields", "other"];
        columns.extend(ends.map(|head| (head, Side::Right)));
        columns.push(("mostly by", Side::Left));
    }
    let mut table = Table::new(1, &columns);
    let names = cut_labels(tasks.iter().map(|task| &task.name), name);
    let by = cut_labels(tasks.iter().map(|task| mostly_by(task)), name);
    for ((task, name), by) in tasks.iter().zip(names).zip(by) {
        let mut cells = vec![name, number::duration(task.cpu_ns)];
        if !is_traced {
            cells.push(number::count(task.switches));
        }
        cells.push(any(task.slice_ns_mean.filter(|_| task.spins)));
        if is_traced {
            cells.extend(ends(task, by));
        }
        table.row(cells);
    }
    table.text()
}

/// The most frequent next task.
fn mostly_by(task: &TaskSummary) -> String {
    let by = task.ends.iter().find_map(|ends| ends.by.as_deref());
    number::any(by, str::to_owned)
}

/// The shares of a process's slices by what ended them, and the most frequent next task.
fn ends(task: &TaskSummary, by: String) -> [String; 5] {
    let part = |ends: &[End]| number::any(task.ended_ppm(ends), number::share);
    [
        part(&[End::Tick]),
        part(&[End::Wakeup]),
        part(&[End::Yield]),
        part(&[End::Sleep, End::Other]),
        by,
    ]
}

/// The threads with the most wake-ups, whether or not these ended slices.
fn woken(summary: &SlicesSummary) -> String {
    let wakers = summary.wakers.as_ref().filter(|wakers| !wakers.threads.is_empty());
    let table = |wakers| fitted(6..=15, |name| wakers::table(wakers, name));
    let title = paragraph(
        "",
        "The threads with the most wake-ups on these CPUs (see noisefloor wakers)",
    );
    wakers.map_or_else(String::new, |wakers| format!("\n{title}\n{}", table(wakers)))
}

/// The lines that the 2009 report's program would have printed, with the exact numbers beside
/// them.
pub fn slices_classic(summary: &SlicesSummary, reasons: &[Doubt]) -> String {
    let mut text = String::new();
    for line in &summary.classic {
        let ClassicLine { avg_slice_ms, utime_us, slice_ns, cpu_ns, wall_ns } = line;
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "avg slice: {avg_slice_ms:5.2} utime: {utime_us:.6}   exactly {}, {} in {}",
            any(*slice_ns),
            number::duration(*cpu_ns),
            number::duration(*wall_ns),
        );
    }
    if !text.is_empty() {
        text.push('\n');
        text.push_str(&paragraph("", CLASSIC));
    }
    text + &doubts(reasons)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use recording::Recording;
    use summary::Summary;

    use super::slices_classic;
    use crate::example::{self, GUEST, MUTE};
    use crate::text::text_of;

    /// Check `slices` with a variant and traced switches.
    #[test]
    fn traced() {
        assert_snapshot!(text_of(&example::slices(GUEST, true)), @r#"
    Time slices of 16 spinners and 2 sleepers (1 ms at a time) on CPUs 0,1; 450 ms
    per variant.

                              slice   median      p99  switches/s  CPU used   work
     unmodified             1.02 ms  1.03 ms  1.06 ms        1942     100 %  100 %
     WAKEUP_PREEMPTION=off  3.54 ms  4.00 ms  4.01 ms         564     100 %  100 %

    Spinners compute without pause. A slice is the CPU time between two involuntary
    context switches; "slice": the mean, 894 ms of CPU time by 874 switches in
    450 ms. "CPU used": the CPUs' utilization by all processes; "work": loop
    iterations of the spinners per second, compared with the unmodified settings.
    Each sleeper woke up 964 times per second.

    WAKEUP_PREEMPTION=off: slices are 3.46 times as long; the ranges of the rounds
    do not overlap: 3.48 ms to 3.61 ms, unmodified 1.02 ms to 1.02 ms.

    What ended slices, traced with eBPF at kernel tracepoints
      unmodified: wake-ups of sleep/1 49.9 %, wake-ups of sleep/0 49.7 %, ticks
      0.459 %
      WAKEUP_PREEMPTION=off: ticks 97.6 %, wake-ups of spin/0 1.18 %, wake-ups of
      spin/1 1.18 %

     process  CPU time    slice   ticks  wake-ups  yields  other  mostly by
     spin/0    56.6 ms   993 µs       -     100 %       -      -  sleep/0
     spin/1    56.7 ms   994 µs  1.72 %    98.3 %       -      -  sleep/1
     spin/2    56.1 ms  1.02 ms  1.82 %    98.2 %       -      -  sleep/0
     spin/3    56.8 ms   996 µs       -     100 %       -      -  sleep/1
     spin/4    55.6 ms  1.03 ms  1.82 %    98.2 %       -      -  sleep/0
     spin/5    55.3 ms  1.02 ms  1.82 %    98.2 %       -      -  sleep/1
     spin/6    55.6 ms  1.03 ms       -     100 %       -      -  sleep/0
     spin/7    55.6 ms  1.03 ms       -     100 %       -      -  sleep/1
     spin/8    56.0 ms  1.04 ms       -     100 %       -      -  sleep/0
     spin/9    55.6 ms  1.03 ms       -     100 %       -      -  sleep/1
     spin/10   55.6 ms  1.03 ms       -     100 %       -      -  sleep/0
     spin/11   55.7 ms  1.03 ms       -     100 %       -      -  sleep/1
     spin/12   55.7 ms  1.03 ms       -     100 %       -      -  sleep/0
     spin/13   55.6 ms  1.03 ms       -     100 %       -      -  sleep/1
     spin/14   55.8 ms  1.03 ms       -     100 %       -      -  sleep/0
     spin/15   55.7 ms  1.03 ms       -     100 %       -      -  sleep/1
     sleep/0   3.01 ms        -       -         -       -  100 %  spin/2
     sleep/1   3.05 ms        -       -         -       -  100 %  spin/3
    "#);
    }

    /// Check that without tracing, causes and single slices are reported as unknown.
    #[test]
    fn not_traced() {
        assert_snapshot!(text_of(&example::slices(GUEST, false)), @r#"
    Time slices of 16 spinners and 2 sleepers (1 ms at a time) on CPUs 0,1; 450 ms
    per variant.

                              slice  switches/s  CPU used   work
     unmodified             1.02 ms        1942     100 %  100 %
     WAKEUP_PREEMPTION=off  3.54 ms         564     100 %  100 %

    Spinners compute without pause. A slice is the CPU time between two involuntary
    context switches; "slice": the mean, 894 ms of CPU time by 874 switches in
    450 ms. "CPU used": the CPUs' utilization by all processes; "work": loop
    iterations of the spinners per second, compared with the unmodified settings.
    Each sleeper woke up 964 times per second.

    WAKEUP_PREEMPTION=off: slices are 3.46 times as long; the ranges of the rounds
    do not overlap: 3.48 ms to 3.61 ms, unmodified 1.02 ms to 1.02 ms.

    What ended the slices, and the lengths of single ones, are unknown: scheduler
    switches were not traced (see the doubts).

     process  CPU time  switches    slice
     spin/0    56.6 ms        57   993 µs
     spin/1    56.7 ms        57   994 µs
     spin/2    56.1 ms        55  1.02 ms
     spin/3    56.8 ms        57   996 µs
     spin/4    55.6 ms        54  1.03 ms
     spin/5    55.3 ms        54  1.02 ms
     spin/6    55.6 ms        54  1.03 ms
     spin/7    55.6 ms        54  1.03 ms
     spin/8    56.0 ms        54  1.04 ms
     spin/9    55.6 ms        54  1.03 ms
     spin/10   55.6 ms        54  1.03 ms
     spin/11   55.7 ms        54  1.03 ms
     spin/12   55.7 ms        54  1.03 ms
     spin/13   55.6 ms        54  1.03 ms
     spin/14   55.8 ms        54  1.03 ms
     spin/15   55.7 ms        54  1.03 ms
     sleep/0   3.01 ms         0        -
     sleep/1   3.05 ms         0        -
    "#);
    }

    /// Check the 2009 report's columns; if the tick rate is unknown, there are none.
    #[test]
    fn classic() {
        let classic = |recording: &Recording| {
            let Summary::Slices(summary) = Summary::of(recording) else { panic!() };
            slices_classic(&summary, &recording.doubts)
        };
        assert_snapshot!(classic(&example::slices(GUEST, true)), @r#"
    avg slice:  0.00 utime: 16000.000000   exactly 1.02 ms, 18.6 ms in 150 ms
    avg slice:  1.00 utime: 20000.000000   exactly 1.02 ms, 18.6 ms in 150 ms
    avg slice:  0.25 utime: 17000.000000   exactly 1.02 ms, 18.6 ms in 150 ms

    "avg slice": mean of the processes' slices, each in whole milliseconds; "utime":
    mean user time in microseconds, in whole ticks. "exactly": mean slice and mean
    CPU time of a process, and the length of the sample.
    "#);
        assert_eq!(classic(&example::slices(MUTE, true)), "");
    }
}
