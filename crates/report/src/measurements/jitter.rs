//! The report of `jitter`: the plan, and the variation of the workload's run time. The plan is a document
//! of its own, which is printed before a run, above the progress.

pub(crate) mod live;

use facts::{Facts, Why};
use recording::{Doubt, JitterPlan, JitterSeries, JitterSpec, Workload};
use stats::Distribution;
use summary::JitterSummary;
use units::{Cpu, LengthUnit, Nanos, TscHz};

use crate::document::Document;
use crate::document::table::{Column, Table, cells};
use crate::document::text::{Text, text};
use crate::measurements::latency::class;
use crate::measurements::noise::proc_counters::counters;
use crate::measurements::ticks::words as tick_words;
use crate::number;

const ABOUT: &str = "Jitter: the time of a test's slowest loop minus that of its fastest; a loop is one \
    execution of the workload";

pub(crate) fn jitter(
    facts: &Facts,
    spec: &JitterSpec,
    series: &JitterSeries,
    summary: &JitterSummary,
) -> Document {
    jitter_plan(facts, spec, &series.plan).add(jitter_results(summary, series, &[]))
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

/// The results of a run and its doubts, below its plan.
pub fn jitter_results(
    summary: &JitterSummary,
    series: &JitterSeries,
    doubts: &[Doubt],
) -> Document {
    let unit = unit(summary.unit, series.clock_hz);
    Document::from(text!("Measured in {}{}", summary.elapsed_ns, unit))
        .add(lengths(summary))
        .add_full(counters(&[(summary.cpu, &summary.proc)], "", true))
        .doubts(doubts)
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
    use recording::{Body, Recording};

    use super::*;
    use crate::example::{self, GUEST};
    use crate::measurements::text_of;

    fn spec(recording: &mut Recording) -> (&mut JitterSpec, &mut JitterSeries) {
        let Body::Jitter { spec, series } = &mut recording.body else { panic!() };
        (spec, series)
    }

    /// Check `jitter` without options.
    #[test]
    fn jitter_of_a_guest() {
        assert_snapshot!(text_of(&example::jitter(GUEST)));
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
