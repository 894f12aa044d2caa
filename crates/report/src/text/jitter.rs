//! The report of `jitter`: a header with the plan, progress, and the variation of the workload's
//! run time. The header is separate because it is printed before a run, above the progress.

pub(crate) mod histogram;

use facts::{Facts, Why};
use recording::{Doubt, JitterPlan, JitterSeries, JitterSoFar, JitterSpec, Workload};
use stats::Distribution;
use summary::{JitterProgress, JitterSummary};
use units::{Cpu, LengthUnit, Nanos, TscHz, printable};

use crate::number;
use crate::text::layout::doubts::doubts;
use crate::text::layout::paragraph::paragraph;
use crate::text::layout::table::{Side, Table, aligned};
use crate::text::noise::proc_counters::counters;
use crate::text::ticks::words as tick_words;

/// The width of the progress columns: enough for times above one second in nanoseconds.
const COLUMN: usize = 13;

pub(crate) fn jitter_text(
    facts: &Facts,
    spec: &JitterSpec,
    series: &JitterSeries,
    summary: &JitterSummary,
) -> String {
    jitter_header(facts, spec, &series.plan) + &results(summary, series.clock_hz)
}

/// The plan of a run, with an empty line below.
pub fn jitter_header(facts: &Facts, spec: &JitterSpec, plan: &JitterPlan) -> String {
    let class = spec.fifo.map_or_else(
        || "ordinary task".to_owned(),
        |priority| format!("real-time priority {priority} (SCHED_FIFO)"),
    );
    let mut text = paragraph(
        "",
        "Jitter: the time of a test's slowest loop minus that of its fastest; a loop is one \
         execution of the workload",
    );
    text.push_str(&paragraph("  workload  ", &printable(&workload(&spec.workload))));
    text.push_str(&paragraph("  CPU       ", &format!("{}, {class}", spec.cpu)));
    text.push_str(&paragraph("  tick      ", &tick(facts, spec.cpu)));
    text.push_str(&paragraph("  tests     ", &amount(plan)));
    text + "\n"
}

/// Whether timer interrupts are a part of the jitter.
fn tick(facts: &Facts, cpu: Cpu) -> String {
    let not_full = || {
        let rate = tick_words::rate(facts);
        let rate = rate.map_or_else(String::new, |rate| format!(" {rate}"));
        format!(
            "interrupts the workload{rate}, which is part of the jitter: CPU {cpu} is not nohz_full"
        )
    };
    match facts.tick.nohz_full.value() {
        Ok(cpus) if cpus.contains(cpu) => {
            format!("stops while the workload runs: CPU {cpu} is nohz_full")
        }
        Ok(_) => not_full(),
        Err(unknown) if matches!(unknown.code, Why::NotConfigured | Why::TooOld) => {
            not_full()
        }
        Err(unknown) => format!("unknown whether CPU {cpu} is nohz_full: {unknown}"),
    }
}

fn amount(plan: &JitterPlan) -> String {
    let loops = match plan.loops {
        1 => "1 loop".to_owned(),
        loops => format!("{} loops", number::count(loops.into())),
    };
    let tests = match (plan.tests, plan.duration_ns) {
        (Some(1), _) => format!("1 of {loops}"),
        (Some(tests), _) => format!("{} of {loops} each", number::count(tests.into())),
        (None, duration) => {
            let duration = number::known(duration, number::duration);
            format!("{loops} each, for {duration}")
        }
    };
    format!("{tests}; a loop takes about {}", number::duration(plan.loop_ns))
}

fn workload(workload: &Workload) -> String {
    let text = match workload {
        Workload::Tif => "random reads and writes in an array of 1 KB",
        Workload::Memory(_) => "random pointer chasing in a buffer of this size",
        Workload::Compute => "arithmetic in registers",
        Workload::Syscall => "minimal system calls",
        Workload::Exec(_) => "the function of this library",
    };
    format!("{workload}: {text}")
}

/// The table head above the rows of [`jitter_row`].
pub fn jitter_rows_header(unit: LengthUnit) -> String {
    let (heads, unit) = (["test", "jitter", "max", "min", "mean"], unit_text(unit));
    format!("Jitter in {unit}\n{}", row(heads.map(str::to_owned)))
}

/// The progress of a run, as a table row.
pub fn jitter_row(unit: LengthUnit, so_far: &JitterSoFar, hz: TscHz) -> String {
    let JitterProgress { test, jitter, max, min, mean } =
        JitterProgress::of(so_far, unit, hz);
    row([test, jitter, max, min, mean].map(|number| number.to_string()))
}

/// The progress of a run, as text of one line.
pub fn jitter_so_far(unit: LengthUnit, so_far: &JitterSoFar, hz: TscHz) -> String {
    let JitterProgress { test, jitter, max, min, mean } =
        JitterProgress::of(so_far, unit, hz);
    let [jitter, max, min, mean] = [jitter, max, min, mean].map(|it| length(unit, it));
    let test = number::count(test);
    format!("test {test}: jitter {jitter}, max {max}, min {min}, mean {mean}")
}

fn row([test, rest @ ..]: [String; 5]) -> String {
    let rest = rest.map(|cell| format!(" {}", aligned(&cell, COLUMN, Side::Right)));
    format!("{}{}\n", aligned(&test, COLUMN, Side::Right), rest.concat())
}

fn unit_text(unit: LengthUnit) -> &'static str {
    match unit {
        LengthUnit::Ns => "nanoseconds",
        LengthUnit::Ticks => "TSC cycles",
    }
}

fn length(unit: LengthUnit, length: u64) -> String {
    match unit {
        LengthUnit::Ns => number::duration(Nanos::from_nanos(length)),
        LengthUnit::Ticks => number::short_count(length),
    }
}

/// The results of a run and its doubts, below [`jitter_header`].
pub fn jitter_close(
    summary: &JitterSummary,
    series: &JitterSeries,
    reasons: &[Doubt],
) -> String {
    results(summary, series.clock_hz) + &doubts(reasons)
}

fn results(summary: &JitterSummary, clock: TscHz) -> String {
    let unit = match summary.unit {
        LengthUnit::Ns => String::new(),
        LengthUnit::Ticks => {
            let frequency = number::frequency(clock.get());
            format!(", in {} ({frequency})", unit_text(summary.unit))
        }
    };
    let time = number::duration(summary.elapsed_ns);
    let mut text = paragraph("", &format!("Measured in {time}{unit}")) + "\n";
    text.push_str(&lengths(summary));
    text.push('\n');
    text + &counters(&[(summary.cpu, &summary.proc)], "", true)
}

fn lengths(summary: &JitterSummary) -> String {
    let mut columns = vec![("", Side::Left)];
    let heads = ["count", "min", "median", "mean", "p99", "max"];
    columns.extend(heads.map(|head| (head, Side::Right)));
    let mut table = Table::new(1, &columns);
    let cell = |value| number::any(value, |value| length(summary.unit, value));
    let Distribution { max, min, mean, p50, p99, .. } = summary.jitter;
    let lengths = [min, p50, mean, p99, max].map(cell);
    let head = ["jitter of a test".to_owned(), number::short_count(summary.tests)];
    table.row(head.into_iter().chain(lengths));
    let Distribution { max, min, mean, .. } = summary.loop_time;
    let lengths = [min, None, mean, None, max].map(cell);
    let head = ["time of a loop".to_owned(), number::short_count(summary.loops_all)];
    table.row(head.into_iter().chain(lengths));
    table.text()
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use recording::{Body, Recording};
    use units::TscDelta;

    use super::*;
    use crate::example::{self, GUEST};
    use crate::text::text_of;

    fn spec(recording: &mut Recording) -> (&mut JitterSpec, &mut JitterSeries) {
        let Body::Jitter { spec, series } = &mut recording.body else { panic!() };
        (spec, series)
    }

    /// Check `jitter` without options.
    #[test]
    fn jitter_of_a_guest() {
        assert_snapshot!(text_of(&example::jitter(GUEST)), @r#"
    Jitter: the time of a test's slowest loop minus that of its fastest; a loop is
    one execution of the workload
      workload  tif: random reads and writes in an array of 1 KB
      CPU       1, real-time priority 99 (SCHED_FIFO)
      tick      interrupts the workload 250 times a second (CONFIG_HZ), which is
                part of the jitter: CPU 1 is not nohz_full
      tests     200 loops each, for 20 s; a loop takes about 1.00 ms

    Measured in 20 s

                        count      min   median     mean      p99      max
     jitter of a test     100  3.85 µs  23.7 µs  23.5 µs  42.3 µs  42.3 µs
     time of a loop    20,003   998 µs        -  1.00 ms        -  1.04 ms

    /proc counters during the measurement

                                     CPU 1
      LOC Local timer interrupts     250/s
       36 virtio1-req.0             40.2/s
      CAL Function call interrupts  3.10/s
     softirq SCHED                   240/s
     softirq RCU                     110/s
     softirq TIMER                  60.0/s
     involuntary context switches        6
     run queue wait time            7.3 ms
     steal time                      20 ms
    "#);
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
        assert_snapshot!(text_of(&recording), @r#"
    Jitter: the time of a test's slowest loop minus that of its fastest; a loop is
    one execution of the workload
      workload  exec:/a/very/long/path/to/the/users/own/library/of/workloads/
                libworkload.so: the function of this library
      CPU       1, ordinary task
      tick      interrupts the workload 250 times a second (CONFIG_HZ), which is
                part of the jitter: CPU 1 is not nohz_full
      tests     1 of 200 loops; a loop takes about 1.00 ms

    Measured in 20 s, in TSC cycles (2.60 GHz)

                       count     min  median    mean  p99     max
     jitter of a test      0       -       -       -    -       -
     time of a loop        3  2.59 M       -  2.59 M    -  2.60 M

    /proc counters during the measurement

                                     CPU 1
      LOC Local timer interrupts     250/s
       36 virtio1-req.0             40.2/s
      CAL Function call interrupts  3.10/s
     softirq SCHED                   240/s
     softirq RCU                     110/s
     softirq TIMER                  60.0/s
     involuntary context switches        6
     run queue wait time            7.3 ms
     steal time                      20 ms
    "#);
    }

    /// Check the rows of a run in both units, and the line on a terminal.
    #[test]
    fn progress() {
        let [last, max, min, sum] =
            [3_000, 4_000_000_000, 2_000, 5_000_000_000].map(TscDelta::from_ticks);
        let so_far = JitterSoFar { tests: 3, last, min, max, sum };
        let hz = TscHz::new(2_000_000_000).unwrap();
        let rows = jitter_rows_header(LengthUnit::Ns)
            + &jitter_row(LengthUnit::Ns, &so_far, hz)
            + &jitter_row(LengthUnit::Ticks, &so_far, hz)
            + &jitter_so_far(LengthUnit::Ns, &so_far, hz);
        assert_snapshot!(rows, @r#"
    Jitter in nanoseconds
             test        jitter           max           min          mean
                3          1500    2000000000          1000     833333334
                3          3000    4000000000          2000    1666666667
    test 3: jitter 1.5 µs, max 2 s, min 1 µs, mean 833 ms
    "#);
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
