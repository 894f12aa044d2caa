//! The report of `watch`: what the threads of a program did and waited for, what had the CPU meanwhile,
//! and their longest delays.

use recording::{Culprit, DelayKind, DelayRun, WatchSpec, WatchTarget};
use summary::{TakerSummary, WatchSummary, WatchedDelaySummary, WatchedThreadSummary};
use units::Nanos;

use crate::document::Document;
use crate::document::table::{Cell, Column, Table, cells};
use crate::document::text::{Text, text};
use crate::measurements::noise::culprits::{cell_of, kind_word, name_of};
use crate::number;

/// The number of listed threads, and of other rows, on one screen and with `--full`.
const THREADS_ON_SCREEN: usize = 6;
const ON_SCREEN: usize = 5;
const LISTED: usize = 20;
/// The number of runs of a delay that are listed.
const RUNS: usize = 16;
/// The name of the idle task.
const IDLE: &str = "idle";
/// The explanation below the table of threads.
const LEGEND: &str = "\"waiting\": able to run, but another thread had the CPU. \"interrupted\": in \
    interrupts and softirqs, a part of the time on a CPU. \"system\": in system calls and page faults, as the \
    kernel accounts it.";
/// The explanation of the times of other threads.
const TAKERS: &str = "Times are summed over the threads that waited. \"idle\": the CPU left its idle state.";

pub(crate) fn watch(spec: &WatchSpec, summary: &WatchSummary) -> Document {
    let document = Document::from(title(spec, summary));
    if summary.seen == 0 {
        return document;
    }
    let full = threads(&summary.threads, LISTED).legend(LEGEND);
    let screen = threads(&summary.threads, THREADS_ON_SCREEN);
    document
        .lines(lengths(summary))
        .lines(summary.longest.first().map(worst))
        .add(Document::default().heading("Threads").add_or(full, screen))
        .add(parts(summary))
        .add(takers(summary))
        .add_full(interrupts(summary))
        .add_full(delays(&summary.longest))
}

fn title(spec: &WatchSpec, summary: &WatchSummary) -> Text {
    let what = match &spec.target {
        WatchTarget::Processes(processes) => {
            let pids: Vec<String> = processes.iter().map(u32::to_string).collect();
            let processes = if pids.len() == 1 { "Process" } else { "Processes" };
            text!("{} {}", processes, pids.join(", "))
        }
        WatchTarget::Unit(name) => Text::name(name),
        WatchTarget::Cgroup(path) => text!("Cgroup {}", Text::name(path)),
    };
    let time = number::duration(summary.elapsed_ns);
    if summary.seen == 0 {
        return text!("{}: no thread ran or was woken in {}.", what, time);
    }
    text!(
        "{}: {} in {}, {} on CPUs ({} of one), {} waiting for a CPU ({} of that and the time on \
         CPUs){}.",
        what,
        number::counted(summary.seen, "thread"),
        time,
        summary.run_ns,
        number::known(summary.run_ppm),
        summary.wait_ns,
        number::known(summary.wait_ppm),
        summary.interrupted_ns.map(|ns| text!(
            ", {} interrupted ({} of the time on CPUs)",
            ns,
            number::known(summary.interrupted_ppm)
        )),
    )
}

/// The lengths of waits; none without single waits.
fn lengths(summary: &WatchSummary) -> Option<Text> {
    let of = summary.wait_lengths_ns;
    of.p50?;
    let [median, p99, p99_9, longest] =
        [of.p50, of.p99, of.p99_9, of.max].map(number::any);
    Some(text!(
        "{} waits for a CPU: median {}, p99 {}, p99.9 {}, longest {}.",
        summary.waits,
        median,
        p99,
        p99_9,
        longest
    ))
}

/// The longest delay, as a sentence.
fn worst(delay: &WatchedDelaySummary) -> Text {
    text!("The longest delay: {}.", sentence(delay))
}

fn sentence(delay: &WatchedDelaySummary) -> Text {
    let thread = name_of(&delay.thread.name, delay.thread.thread.as_ref());
    let what = match delay.kind {
        DelayKind::Woken => "waited after its wake-up for",
        DelayKind::Preempted => "was preempted for",
        DelayKind::Interrupted => "was interrupted for",
    };
    text!("{} {} {} on CPU {}, {}", thread, what, delay.ns, delay.cpu, because(delay))
}

/// What had the CPU for most of a delay.
fn because(delay: &WatchedDelaySummary) -> Text {
    if let Some(culprit) = &delay.interruption {
        return text!("by {}", source(culprit));
    }
    let half = Nanos::from_nanos(delay.ns.get() / 2);
    if delay.parts.quota_ns > half {
        return text!("as the quota of its cgroup was used up");
    }
    let Some(run) = delay.runs.iter().max_by_key(|run| run.ns) else {
        return text!("in which nothing is known to have had the CPU");
    };
    if run.ns < half && delay.elsewhere_ns > run.ns {
        return text!("after it had waited on another one for {}", delay.elsewhere_ns);
    }
    let others = u64::try_from(delay.runs.len()).unwrap_or(0).saturating_sub(1);
    let others = others + delay.runs_before;
    let others = (others > 0).then(|| {
        text!(", and {} for {}", others_ran(others), delay.ns.saturating_sub(run.ns))
    });
    let Some(culprit) = &run.thread else {
        return text!("of which the CPU was idle for {}{}", run.ns, others);
    };
    let name = name_of(&culprit.name, culprit.thread.as_ref());
    match run.before_ns {
        Nanos::ZERO => text!("while {} ran for {}{}", name, run.ns, others),
        before => text!(
            "while {}, which had run for {}, ran for {} more{}",
            name,
            before,
            run.ns,
            others
        ),
    }
}

fn others_ran(count: u64) -> Text {
    match count {
        1 => "another one".into(),
        _ => text!("{} others", count),
    }
}

fn threads(threads: &[WatchedThreadSummary], listed: usize) -> Table {
    let tid = |one: &WatchedThreadSummary| match one.sums.tid {
        Some(tid) => tid.to_string(),
        None => format!("{} ended", one.sums.count),
    };
    Table::of(&threads[..threads.len().min(listed)])
        .column(Column::name("thread", 6..=15), |one| Text::name(&one.sums.name))
        .number("TID", tid)
        .number("on CPUs", |one| number::known(one.run_ppm))
        .number("waiting", |one| one.sums.wait_ns)
        .number("longest", |one| number::known(one.sums.wait_ns_max))
        .number("interrupted", |one| number::known(one.sums.interrupted_ns))
        .number("moved", |one| {
            number::known(one.sums.migrations.map(number::short_count))
        })
        .number("faults", |one| {
            number::short_count(one.sums.minor_faults + one.sums.major_faults)
        })
        .number("system", |one| one.sums.system_ns)
        .table
        .rest(number::more(threads.len().saturating_sub(listed), "that waited less"))
}

/// What had the CPU while threads waited, by group.
fn parts(summary: &WatchSummary) -> Document {
    let Some(parts) = summary.parts.filter(|_| !summary.wait_ns.is_zero()) else {
        return Document::default();
    };
    let names = [
        "nothing (idle)",
        "the same program",
        "other programs",
        "real-time threads",
        "kernel threads",
        "interrupts",
        "quota of the cgroup",
    ];
    let mut rows: Vec<(&str, Nanos)> = names.into_iter().zip(parts.all()).collect();
    rows.push(("unknown", summary.unknown_ns));
    rows.retain(|(_, ns)| !ns.is_zero());
    rows.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let parts = rows.into_iter().map(|(name, ns)| text!("{} {}", name, ns));
    let line = text!("While they waited: {}.", Text::join(parts, ", "));
    Document::from(line)
}

fn takers(summary: &WatchSummary) -> Document {
    let all = &summary.takers;
    if all.is_empty() {
        return Document::default();
    }
    let table = |listed: usize| {
        Table::of(&all[..all.len().min(listed)])
            .column(Column::name("thread", 12..=30), taker_name)
            .column(Column::name("of", 12..=26), taker_kind)
            .number("waited", |one| one.ns)
            .number("share", |one| number::known(one.wait_ppm))
            .number("runs", |one| number::short_count(one.runs))
            .table
            .rest(number::more(all.len().saturating_sub(listed), "with less time"))
    };
    let title = "Threads that had the CPU meanwhile";
    let full = table(LISTED).legend(TAKERS);
    Document::default().heading(title).add_or(full, table(ON_SCREEN))
}

fn taker_name(taker: &TakerSummary) -> Cell {
    thread_cell(taker.thread.as_ref())
}

fn thread_cell(thread: Option<&Culprit>) -> Cell {
    match thread {
        None => IDLE.into(),
        Some(culprit) => cell_of(&culprit.name, culprit.thread.as_ref()),
    }
}

fn taker_kind(taker: &TakerSummary) -> Text {
    whose(taker.thread.as_ref(), taker.same_program)
}

/// Whose thread it is: the unit of another program, if it is known.
fn whose(thread: Option<&Culprit>, is_same: bool) -> Text {
    let Some(thread) = thread else { return Text::default() };
    let thread = thread.thread.as_ref();
    let unit = thread.and_then(|thread| thread.unit.as_ref());
    match (thread.and_then(|thread| thread.owner.as_ref()), unit) {
        _ if is_same => "same program".into(),
        (Some(recording::ThreadOwner::Kernel), _) => "kernel".into(),
        (_, Some(unit)) => Text::name(unit.to_string()),
        (Some(recording::ThreadOwner::Program(_)) | None, None) => "other program".into(),
    }
}

fn interrupts(summary: &WatchSummary) -> Document {
    let all = &summary.interrupts;
    if all.is_empty() {
        return Document::default();
    }
    let table = Table::of(&all[..all.len().min(LISTED)])
        .column(Column::words("source"), |one| kind_word(one.culprit.kind))
        .column(Column::name("", 12..=30), |one| Text::name(&one.culprit.name))
        .number("count", |one| number::short_count(one.count))
        .number("time", |one| one.ns)
        .number("longest", |one| one.ns_max)
        .table;
    Document::section("Interrupts while threads had a CPU", table)
}

/// The interrupt or softirq that ended an interruption.
fn source(culprit: &Culprit) -> Text {
    let kind = kind_word(culprit.kind);
    let says_it = kind.is_empty() || culprit.name.ends_with(kind);
    let kind = (!says_it).then(|| format!("{kind} "));
    text!("{}{}", kind, Text::name(&culprit.name))
}

/// The longest delays with what had the CPU meanwhile.
fn delays(longest: &[WatchedDelaySummary]) -> Document {
    let mut table = Table::new([
        Column::group("", 40..=78),
        Column::number("from"),
        Column::number("duration"),
        Column::name("thread", 12..=30),
        Column::name("of", 12..=26),
    ]);
    for delay in longest {
        let at = number::moment(delay.at_ns);
        let title = text!("{} after the start: {}", at, sentence(delay));
        let mut from = delay.elsewhere_ns;
        for run in delay.runs.iter().take(RUNS) {
            table.row(cells![
                title.clone(),
                start(from, run),
                run.ns,
                thread_cell(run.thread.as_ref()),
                whose(run.thread.as_ref(), run.is_same),
            ]);
            from = from.saturating_add(run.ns);
        }
        if delay.runs.is_empty() {
            table.row(cells![title, "0", delay.ns, interrupted_by(delay), ""]);
        }
    }
    Document::section("The longest delays", table)
}

/// When a run began, relative to the delay.
fn start(from: Nanos, run: &DelayRun) -> Text {
    match run.before_ns {
        Nanos::ZERO => from.into(),
        before => text!("-{}", before),
    }
}

fn interrupted_by(delay: &WatchedDelaySummary) -> Cell {
    match &delay.interruption {
        Some(culprit) => source(culprit).into(),
        None => "?".into(),
    }
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::Body;

    use crate::example::watch;
    use crate::example::{GUEST, METAL};
    use crate::measurements::text_of;

    /// Check `watch` of a service, all of it.
    #[test]
    fn watch_of_a_unit() {
        assert_snapshot!(text_of(&watch::watch(GUEST)));
    }

    /// Check `watch` with the counters of `/proc` only, and without a thread.
    #[test]
    fn watch_with_counters_and_none() {
        let mut counted = watch::counted(METAL);
        assert_snapshot!(text_of(&counted));
        if let Body::Watch { series, .. } = &mut counted.body {
            series.threads.clear();
        }
        assert_snapshot!(text_of(&counted), @"nginx: no thread ran or was woken in 10 s.");
    }
}
