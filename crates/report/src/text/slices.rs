//! The tables of `slices`: how long CPU-bound tasks ran before something preempted them, step by
//! step; who it was; and spinner by spinner. Or, on request, line by line what the program of
//! the 2009 report would have printed.

use std::fmt::Write;

use facts::Facts;
use recording::{Doubt, End, Policy, Recording, SlicesSeries, SlicesSpec};
use stats::{ClassicLine, Ender, SlicesSummary, StepSlices, StepSummary, TaskSummary};
use units::Nanos;

use crate::number;
use crate::text::layout::doubts::doubts;
use crate::text::layout::fit::fitted;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table, cut};
use crate::text::noise::culprits::source_words;
use crate::text::ticks::words::cpus;
use crate::text::wakers::table as wakers_table;

/// More spinners than this are cut to [`SHORTEST`].
const LISTED: usize = 24;
const SHORTEST: usize = 16;
/// Of each step so many enders are told.
const ENDERS: usize = 5;
/// What stands below the 2009 report's columns.
const CLASSIC: &str = "\"avg slice\" is in whole milliseconds of each process, averaged; \
    \"utime\" in microseconds, of whole ticks. \"exactly\": the mean slice, a process's mean CPU \
    time, and how long the sample was.";
/// How everything was found, in tables.
const AS_FOUND: &str = "as found";

/// All of `slices`.
pub(crate) fn slices_text(
    facts: &Facts,
    spec: &SlicesSpec,
    series: &SlicesSeries,
    reasons: &[Doubt],
) -> String {
    let summary = SlicesSummary::of(facts.tick.hz.get().copied(), spec, series);
    let mut text = paragraph("", &title(spec, &summary)) + "\n";
    text.push_str(&fitted(8..=40, |name| steps(&summary, name)));
    text.push('\n');
    text.push_str(&paragraph("", &words(&summary)));
    text.push_str(&differences(&summary));
    text.push_str(&enders(&summary, series));
    text.push('\n');
    text.push_str(&tasks(&summary));
    text.push_str(&woken(&summary));
    text.push_str(&doubts(reasons));
    text
}

fn title(spec: &SlicesSpec, summary: &SlicesSummary) -> String {
    let plural = |count: u32| if count == 1 { "process" } else { "processes" };
    let sleepers = match spec.sleepers {
        0 => String::new(),
        count => format!(
            " beside {count} {} that sleep{} {} at a time",
            plural(count),
            if count == 1 { "s" } else { "" },
            number::duration(spec.sleep_ns),
        ),
    };
    let pinned = if spec.pinned { ", each on its own" } else { "" };
    let policy = match spec.policy {
        Policy::Other => "",
        Policy::Batch => ", SCHED_BATCH",
    };
    let nice = match spec.nice {
        0 => String::new(),
        nice => format!(", nice {nice}"),
    };
    let each = if spec.steps.is_empty() { "" } else { " each step" };
    format!(
        "Slices: {} {} spinning{sleepers}, on {}{pinned}{policy}{nice}; {}{each}.",
        spec.spinners,
        plural(spec.spinners),
        cpus(&spec.cpus),
        number::measured(Some(summary.found.wall_ns), spec.duration_ns),
    )
}

fn steps(summary: &SlicesSummary, name: usize) -> String {
    let mut columns = vec![("", Side::Left), ("slice", Side::Right)];
    if summary.source.is_some() {
        let seen = ["typical", "p99"];
        columns.extend(seen.map(|word| (word, Side::Right)));
    }
    columns.extend([("switches/s", Side::Right), ("CPU used", Side::Right)]);
    columns.push(("work", Side::Right));
    let mut table = Table::new(1, &columns);
    let changed = summary.steps.iter().map(|step| (step.step.as_str(), &step.found));
    for (words, step) in [(AS_FOUND, &summary.found)].into_iter().chain(changed) {
        let lengths = step.slice_ns;
        let mut cells = vec![cut(words, name), any(lengths.mean)];
        if summary.source.is_some() {
            cells.extend([lengths.p50, lengths.p99].map(any));
        }
        cells.push(number::known(step.switches_hz, number::bare_rate));
        cells.push(number::known(step.busy_ppm, number::share));
        cells.push(number::known(step.work_of(&summary.found), number::share));
        table.row(cells);
    }
    table.text()
}

fn any(length: Option<Nanos>) -> String {
    number::any(length, number::duration)
}

fn words(summary: &SlicesSummary) -> String {
    let found = &summary.found;
    let sleepers = found.wakeups_hz.map_or_else(String::new, |rate| {
        format!(" Each sleeper woke up {} times a second.", number::bare_rate(rate))
    });
    let seen = match found.seen {
        Some(_) => " \"typical\": half of the slices were no longer; \"p99\": 99 of 100.",
        None => "",
    };
    format!(
        "A slice is the CPU time between two involuntary switches, on average: {} of the \
         spinners, who used {} of CPU time in {}.{seen} \"CPU used\": all processes' part of the CPUs' \
         time; \"work\": passes of the spinners' loops a second, by those as found.{sleepers}",
        number::count(found.switches),
        number::duration(found.spinners_cpu_ns),
        number::duration(found.wall_ns),
    )
}

/// Whether steps differ by more than their turns do.
fn differences(summary: &SlicesSummary) -> String {
    let mut text = String::new();
    for step in &summary.steps {
        text.push('\n');
        text.push_str(&paragraph("", &difference(step, &summary.found)));
    }
    text
}

fn difference(step: &StepSummary, found: &StepSlices) -> String {
    let Some(ratio) = step.slice_ratio else {
        return format!("{}: without slices there is nothing to compare.", step.step);
    };
    let ranges = format!(
        "{} in its turns, {} as found",
        range(&step.found.turns_slice_ns),
        range(&found.turns_slice_ns)
    );
    let verdict = match step.differs {
        Some(true) => format!("more than the spread: {ranges}"),
        Some(false) => format!("no more than the spread: {ranges}"),
        None => {
            "whether that is more than the spread one turn each does not say: --turns \
                 3"
            .to_owned()
        }
    };
    format!("{}: slices are {ratio:.2} times as long; {verdict}.", step.step)
}

fn range(turns: &[Option<Nanos>]) -> String {
    let known = || turns.iter().flatten();
    let (least, most) = (known().min().copied(), known().max().copied());
    format!("{} to {}", any(least), any(most))
}

/// Who ended slices, step by step.
fn enders(summary: &SlicesSummary, series: &SlicesSeries) -> String {
    let Some(switches) = &series.switches else {
        return "\n".to_owned()
            + &paragraph(
                "",
                "Who ended the slices, and how long single ones were, only the scheduler \
                 can tell: nobody watched it (see the doubts).",
            );
    };
    let source = source_words(switches.source);
    let mut text = "\n".to_owned()
        + &paragraph("", &format!("Who ended slices, as {source} saw it"));
    let changed = summary.steps.iter().map(|step| (step.step.as_str(), &step.found));
    for (words, step) in [(AS_FOUND, &summary.found)].into_iter().chain(changed) {
        let all = &step.enders;
        let mut told: Vec<String> = all.iter().take(ENDERS).map(ender).collect();
        let more = all.len().saturating_sub(ENDERS);
        if more > 0 {
            told.push(format!("{more} more in --json"));
        }
        let told = if told.is_empty() { "nobody".to_owned() } else { told.join(", ") };
        text.push_str(&paragraph("  ", &format!("{words}: {told}")));
    }
    text
}

fn ender(ender: &Ender) -> String {
    let part = number::known(ender.part_ppm, number::share);
    let by = ender.by.as_deref().unwrap_or("somebody");
    match ender.end {
        End::Tick => format!("ticks {part}"),
        End::Wakeup => format!("wake-ups of {by} {part}"),
        End::Yield => format!("yields {part}"),
        End::Sleep => format!("sleeps {part}"),
        End::Other => format!("something else, then {by}, {part}"),
    }
}

/// Spinner by spinner; of many those with the shortest slices.
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
    let rest = format!("These had the shortest slices; {rest} more are in --json.");
    text + &paragraph("  ", &rest)
}

fn task_table(summary: &SlicesSummary, tasks: &[&TaskSummary], name: usize) -> String {
    let mut columns = vec![("process", Side::Left)];
    let is_seen = summary.source.is_some();
    columns.push(("CPU time", Side::Right));
    if !is_seen {
        columns.push(("switches", Side::Right));
    }
    columns.push(("slice", Side::Right));
    if is_seen {
        let ends = ["ticks", "wake-ups", "yields", "other"];
        columns.extend(ends.map(|word| (word, Side::Right)));
        columns.push(("mostly by", Side::Left));
    }
    let mut table = Table::new(1, &columns);
    for task in tasks {
        let mut cells = vec![cut(&task.name, name), number::duration(task.cpu_ns)];
        if !is_seen {
            cells.push(number::count(task.switches));
        }
        cells.push(any(task.slice_ns_mean.filter(|_| task.spins)));
        if is_seen {
            cells.extend(ends(task, name));
        }
        table.row(cells);
    }
    table.text()
}

/// What parts of its slices ended how, and by whom most.
fn ends(task: &TaskSummary, name: usize) -> [String; 5] {
    let part = |ends: &[End]| number::any(task.ended_ppm(ends), number::share);
    let by = task.enders.iter().find_map(|ender| ender.by.as_deref());
    [
        part(&[End::Tick]),
        part(&[End::Wakeup]),
        part(&[End::Yield]),
        part(&[End::Sleep, End::Other]),
        number::any(by, |by| cut(by, name)),
    ]
}

/// Who woke up most, whether slices ended of it or not.
fn woken(summary: &SlicesSummary) -> String {
    let wakers = summary.wakers.as_ref().filter(|wakers| !wakers.threads.is_empty());
    let table = |wakers| fitted(6..=15, |name| wakers_table(wakers, name));
    let title = paragraph("", "Who woke up most on these CPUs (see wakers)");
    wakers.map_or_else(String::new, |wakers| format!("\n{title}\n{}", table(wakers)))
}

/// What the 2009 report's program would have printed, line by line, with the exact numbers
/// beside it.
pub fn slices_classic(recording: &Recording) -> String {
    let recording::Body::Slices { spec, series } = &recording.body else {
        return String::new();
    };
    let summary = SlicesSummary::of(recording.facts.tick.hz.get().copied(), spec, series);
    let mut text = String::new();
    for line in &summary.classic {
        let ClassicLine { avg_slice_ms, utime_us, slice_ns, cpu_ns, wall_ns } = line;
        // Writing to a string does not fail.
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
    text + &doubts(&recording.doubts)
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;

    use super::slices_classic;
    use crate::example::{self, GUEST, MUTE};
    use crate::text;

    /// Check `slices` with a step, where each switch was seen.
    #[test]
    fn watched() {
        assert_snapshot!(text(&example::slices(GUEST, true)), @r#"
    Slices: 16 processes spinning beside 2 processes that sleep 1 ms at a time, on
    CPUs 0,1; 450 ms each step.

                              slice  typical      p99  switches/s  CPU used   work
     as found               1.02 ms  1.03 ms  1.06 ms        1942     100 %  100 %
     WAKEUP_PREEMPTION=off  3.54 ms  4.00 ms  4.01 ms         564     100 %  100 %

    A slice is the CPU time between two involuntary switches, on average: 874 of the
    spinners, who used 894 ms of CPU time in 450 ms. "typical": half of the slices
    were no longer; "p99": 99 of 100. "CPU used": all processes' part of the CPUs'
    time; "work": passes of the spinners' loops a second, by those as found. Each
    sleeper woke up 964 times a second.

    WAKEUP_PREEMPTION=off: slices are 3.46 times as long; more than the spread:
    3.48 ms to 3.61 ms in its turns, 1.02 ms to 1.02 ms as found.

    Who ended slices, as the kernel's tracepoints (eBPF) saw it
      as found: wake-ups of sleep/1 49.9 %, wake-ups of sleep/0 49.7 %, ticks
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

    /// Check that what nobody watched is told as that, and nothing made up.
    #[test]
    fn unwatched() {
        assert_snapshot!(text(&example::slices(GUEST, false)), @r#"
    Slices: 16 processes spinning beside 2 processes that sleep 1 ms at a time, on
    CPUs 0,1; 450 ms each step.

                              slice  switches/s  CPU used   work
     as found               1.02 ms        1942     100 %  100 %
     WAKEUP_PREEMPTION=off  3.54 ms         564     100 %  100 %

    A slice is the CPU time between two involuntary switches, on average: 874 of the
    spinners, who used 894 ms of CPU time in 450 ms. "CPU used": all processes' part
    of the CPUs' time; "work": passes of the spinners' loops a second, by those as
    found. Each sleeper woke up 964 times a second.

    WAKEUP_PREEMPTION=off: slices are 3.46 times as long; more than the spread:
    3.48 ms to 3.61 ms in its turns, 1.02 ms to 1.02 ms as found.

    Who ended the slices, and how long single ones were, only the scheduler can
    tell: nobody watched it (see the doubts).

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

    /// Check the 2009 report's columns; on a machine that does not tell its tick there are none.
    #[test]
    fn classic() {
        assert_snapshot!(slices_classic(&example::slices(GUEST, true)), @r#"
    avg slice:  0.00 utime: 16000.000000   exactly 1.02 ms, 18.6 ms in 150 ms
    avg slice:  1.00 utime: 20000.000000   exactly 1.02 ms, 18.6 ms in 150 ms
    avg slice:  0.25 utime: 17000.000000   exactly 1.02 ms, 18.6 ms in 150 ms

    "avg slice" is in whole milliseconds of each process, averaged; "utime" in
    microseconds, of whole ticks. "exactly": the mean slice, a process's mean
    CPU time, and how long the sample was.
    "#);
        assert_eq!(slices_classic(&example::slices(MUTE, true)), "");
    }
}
