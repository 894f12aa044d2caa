//! The report of `jitter`: the plan, and the variation of the workload's run time. The plan is a document
//! of its own, which is printed before a run, above the progress.

pub(crate) mod live;

use facts::{Facts, Why};
use recording::{JitterPlan, JitterSeries, JitterSpec, Recording, Source, Workload};
use stats::Distribution;
use summary::JitterSummary;
use units::{Cpu, LengthUnit, Nanos, TscHz};

use crate::document::Document;
use crate::document::table::{Column, Table, cells};
use crate::document::text::{Text, text};
use crate::measurements::latency::class;
use crate::measurements::moments::moments;
use crate::measurements::noise::culprits;
use crate::measurements::noise::proc_counters::counters;
use crate::measurements::ticks::words as tick_words;
use crate::number;

const ABOUT: &str = "Jitter: the time of a test's slowest loop minus that of its fastest; a loop is one \
    execution of the workload";

/// The number of listed causes, and that on one screen.
const LISTED: usize = 12;
const LISTED_ON_SCREEN: usize = 4;
/// The explanation below their table.
const CAUSES: &str = "Of the slowest loop of each test: the time of events during it, and the rest of the \
    difference from the fastest loop. Shares are of all tests' jitter.";

pub(crate) fn jitter(
    facts: &Facts,
    spec: &JitterSpec,
    series: &JitterSeries,
    summary: &JitterSummary,
) -> Document {
    jitter_plan(facts, spec, &series.plan).add(results(summary, series))
}

/// The plan of a run.
pub fn jitter_plan(facts: &Facts, spec: &JitterSpec, plan: &JitterPlan) -> Document {
    Document::from(ABOUT).add(Table::terms([
        cells!["workload", workload(&spec.workload)],
        cells!["CPU", text!("{}, {}", spec.cpu, class(spec.fifo))],
        cells!["tick", tick(facts, spec.cpu)],
        cells!["tests", amount(plan)],
    ]))
}

/// Whether timer interrupts are a part of the jitter.
fn tick(facts: &Facts, cpu: Cpu) -> Text {
    match facts.tick.nohz_full.value() {
        Ok(cpus) if cpus.contains(cpu) => {
            text!("stops while the workload runs: CPU {} is nohz_full", cpu)
        }
        Err(unknown) if !matches!(unknown.code, Why::NotConfigured | Why::TooOld) => {
            let why = unknown.to_string();
            text!("unknown whether CPU {} is nohz_full: {}", cpu, why)
        }
        _ => text!(
            "interrupts the workload{}, which is part of the jitter: CPU {} is not nohz_full",
            tick_words::rate(facts).map(|rate| text!(" {}", rate)),
            cpu
        ),
    }
}

fn amount(plan: &JitterPlan) -> Text {
    let loops = number::counted(plan.loops.into(), "loop");
    let tests = match (plan.tests, plan.duration_ns) {
        (Some(1), _) => text!("1 of {}", loops),
        (Some(tests), _) => text!("{} of {} each", tests, loops),
        (None, duration) => text!("{} each, for {}", loops, number::known(duration)),
    };
    text!("{}; a loop takes about {}", tests, plan.loop_ns)
}

fn workload(workload: &Workload) -> Text {
    let about = match workload {
        Workload::Tif => "random reads and writes in an array of 1 KB",
        Workload::Memory(_) => "random pointer chasing in a buffer of this size",
        Workload::Compute => "arithmetic in registers",
        Workload::Syscall => "minimal system calls",
        Workload::Exec(_) => "the function of this library",
    };
    text!("{}: {}", Text::name(workload.to_string()), about)
}

fn unit_text(unit: LengthUnit) -> &'static str {
    match unit {
        LengthUnit::Ns => "nanoseconds",
        LengthUnit::Ticks => "TSC cycles",
    }
}

fn length(unit: LengthUnit, length: u64) -> Text {
    match unit {
        LengthUnit::Ns => number::duration(Nanos::from_nanos(length)),
        LengthUnit::Ticks => number::short_count(length),
    }
}

/// The results of a run, its moments and its doubts, below its plan.
pub fn jitter_results(
    recording: &Recording,
    series: &JitterSeries,
    summary: &JitterSummary,
) -> Document {
    results(summary, series).add(moments(recording)).doubts(&recording.doubts)
}

fn results(summary: &JitterSummary, series: &JitterSeries) -> Document {
    let unit = unit(summary.unit, series.clock_hz);
    Document::from(text!("Measured in {}{}", summary.elapsed_ns, unit))
        .add(lengths(summary))
        .add(causes(series.source, summary))
        .add_full(counters(&[(summary.cpu, &summary.proc)], "", true))
}

/// What made the slowest loop of each test slower than the fastest; empty if events were not traced.
fn causes(source: Option<Source>, summary: &JitterSummary) -> Document {
    let Some(source) = source.filter(|_| !summary.culprits.is_empty()) else {
        return Document::default();
    };
    let own = Some(summary.own);
    let listed = |count| culprits::table("tests", &summary.culprits, own, count);
    let words = culprits::source_words(source);
    Document::default()
        .heading(text!("Causes of jitter, traced with {}", words))
        .add_or(listed(LISTED).legend(CAUSES), listed(LISTED_ON_SCREEN).legend(CAUSES))
}

fn unit(unit: LengthUnit, clock: TscHz) -> Text {
    match unit {
        LengthUnit::Ns => Text::default(),
        LengthUnit::Ticks => {
            text!(", in {} ({})", unit_text(unit), number::frequency(clock.get()))
        }
    }
}

fn lengths(summary: &JitterSummary) -> Table {
    let Distribution { max, min, mean, p50, p99, .. } = summary.jitter;
    let tests = ("jitter of a test", summary.tests, [min, p50, mean, p99, max]);
    let Distribution { max, min, mean, .. } = summary.loop_time;
    let loops = ("time of a loop", summary.loops_all, [min, None, mean, None, max]);
    Table::of(&[tests, loops])
        .column(Column::words(""), |(of, ..)| *of)
        .number("count", |(_, count, _)| number::short_count(*count))
        .numbers(["min", "median", "mean", "p99", "max"], |(.., lengths)| {
            lengths.map(|one| number::any(one.map(|one| length(summary.unit, one))))
        })
        .table
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::{Blamed, Body, Culprit, CulpritKind, Recording, Share, Thread};
    use summary::Summary;

    use super::*;
    use crate::example::{self, GUEST};
    use crate::measurements::{recording_document, text_of};
    use crate::terminal::screen_text;

    fn spec(recording: &mut Recording) -> (&mut JitterSpec, &mut JitterSeries) {
        let Body::Jitter { spec, series } = &mut recording.body else { panic!() };
        (spec, series)
    }

    /// Check `jitter` without options.
    #[test]
    fn jitter_of_a_guest() {
        assert_snapshot!(text_of(&example::jitter(GUEST)));
    }

    /// Check the causes of jitter: the timer in each test, a thread in one of them, and noisefloor itself.
    #[test]
    fn causes_of_jitter() {
        let mut recording = example::jitter(GUEST);
        let (_, series) = spec(&mut recording);
        let thread = |name: &str, own| {
            let thread = Some(Thread {
                tid: 417,
                pid: 417,
                prio: 0,
                owner: None,
                unit: None,
                own,
            });
            Culprit { kind: CulpritKind::Thread, name: name.to_owned(), thread }
        };
        let timer = Culprit {
            kind: CulpritKind::Timer,
            name: "tick_nohz_handler".to_owned(),
            thread: None,
        };
        let share = |gap, culprit, micros| {
            let ns = Nanos::from_micros(micros);
            Share { gap, culprit, ns, inside_ns: ns, entry_ns: Some(Nanos::ZERO) }
        };
        let mut shares: Vec<Share> = (0..100).map(|test| share(test, 0, 7)).collect();
        shares.extend([share(3, 1, 25), share(4, 2, 3)]);
        series.source = Some(Source::Tracefs);
        series.blamed = Some(Blamed {
            culprits: vec![timer, thread("pathd", false), thread("noisefloor", true)],
            shares,
            ..Blamed::default()
        });
        let document = recording_document(&recording, &Summary::of(&recording));
        assert_snapshot!(screen_text(&document));
    }

    /// Check `jitter` in TSC cycles, of a library, with a number of tests, none of them complete.
    #[test]
    fn jitter_in_ticks() {
        let mut recording = example::jitter(GUEST);
        let (spec, series) = spec(&mut recording);
        spec.unit = LengthUnit::Ticks;
        spec.workload = "exec:/a/very/long/path/to/the/users/own/library/of/workloads/\
                         libworkload.so"
            .parse()
            .unwrap();
        (spec.fifo, series.plan.duration_ns) = (None, None);
        (spec.tests, series.plan.tests) = (Some(1), Some(1));
        series.tests.clear();
        assert_snapshot!(text_of(&recording));
    }

    /// Check the amounts of tests and loops.
    #[test]
    fn amounts() {
        let plan = |tests, seconds: Option<u64>, loops| {
            let duration_ns = seconds.map(Nanos::from_secs);
            amount(&JitterPlan {
                loops,
                tests,
                duration_ns,
                loop_ns: Nanos::from_micros(1),
            })
        };
        assert_eq!(plan(Some(1), None, 1), "1 of 1 loop; a loop takes about 1 µs");
        let expected = "20 of 1000 loops each; a loop takes about 1 µs";
        assert_eq!(plan(Some(20), None, 1000), expected);
        let expected = "12,345 loops each, for 60 s; a loop takes about 1 µs";
        assert_eq!(plan(None, Some(60), 12_345), expected);
    }
}
